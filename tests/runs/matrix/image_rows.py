"""The rows of image classification: a residual network that mixes pictures, and a vision Transformer."""
import dataclasses
import json
import struct
import zlib
from typing import ClassVar

from harness import check

from matrix.row import Row, lines_of

CLASSES = ("columns", "grey", "rows")
SIDE = 16


def png(pixels):
    """A grey PNG of SIDE x SIDE."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(pixels[y * SIDE:(y + 1) * SIDE]) for y in range(SIDE))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def picture(name, number):
    """Stripes of rows or of columns, which no mirror turns, or none."""
    def light(y, x):
        place = {"rows": y, "columns": x, "grey": 0}[name]
        return 200 + number % 50 if name != "grey" and (place // 2 + number) % 2 == 0 else 40 + (7 * number + x) % 30
    return png([light(y, x) for y in range(SIDE) for x in range(SIDE)])


def write_pictures(folder):
    """pictures/train, pictures/valid and pictures/test, with a folder for each class."""
    if (folder / "pictures").exists():
        return
    for part, count, first in (("train", 20, 0), ("valid", 5, 20), ("test", 1, 200)):
        for name in CLASSES:
            (folder / "pictures" / part / name).mkdir(parents=True)
            for number in range(first, first + count):
                (folder / "pictures" / part / name / f"{number}.png").write_bytes(picture(name, number))
    (folder / "pictures/test/text.png").write_text("no picture")


BEGIN = """[task]
name = "image_classification"
[data]
train = ["pictures/train"]
valid = ["pictures/valid"]
cache_dir = "cache"
threads = 1
max_samples = 6
[augment]
image_size = 16
crop = "pad"
padding = 2
"""
END = """
[optim]
name = "adamw"
lr = 3e-3
clip_norm = 1.0
[eval]
every = 4
"""
LORA = ("model.lora.rank=4", "model.lora.alpha=8", 'model.lora.maps=["*attention*", "*ffn*"]', "optim.lr=1e-2")


@dataclasses.dataclass(frozen=True)
class Pictures(Row):
    scores: frozenset = frozenset({"accuracy", "top5"})
    lines: tuple = ()
    replayed: tuple = ("pictures", {"picture", "label"})
    large: ClassVar[tuple] = ("data.max_samples=60",)

    lacks: ClassVar[dict] = {
        "embed": "a classifier of pictures gives no vectors of lines",
        "init_from": "no other family has its layers",
        "freeze": "it has no encoder",
    }

    def write_data(self, folder):
        write_pictures(folder)
        object.__setattr__(self, "lines", tuple(
            str(folder / "pictures/test" / name) for name in ("rows/200.png", "text.png", "grey/200.png", "columns/200.png")))

    def check_answers(self, bench, folder):
        text = lines_of(self, bench.infer(self, folder))
        answers = [json.loads(line) for line in lines_of(self, bench.infer(self, folder, "--json"))]
        check([answer["file"] for answer in answers] == list(self.lines), f"{answers}")
        check([answer.get("label", "") for answer in answers] == text and text[1] == "", f"{answers}, {text}")
        check("problem" in answers[1], f"{answers[1]}")
        for answer in answers[:1] + answers[2:]:
            chances = [one["probability"] for one in answer["top"]]
            check(answer["label"] in CLASSES and answer["probability"] == chances[0], f"{answer}")
            check(chances == sorted(chances, reverse=True) and abs(sum(chances) - 1) < 1e-5, f"{answer}")
        files = bench.output("infer", folder, *self.lines).splitlines()
        check(files == text, f"as files {files}, as lines {text}")

    def check_reference(self, bench):
        lines = (bench.folder(self, "reference") / "report.json").read_text()
        check('"image/png"' in lines, "the report shows no picture")


ROWS = (
    Pictures(
        "resnet",
        BEGIN + """mixup_alpha = 0.2
cutmix_alpha = 1.0
[model]
name = "resnet"
preset = "none"
depth = 14
""" + END,
        {"family": "image_classification", "model": "residual network", "labels": "mixed classes"},
        without={
            "export": "no class of transformers is equal to it; another file does not say what becomes of a picture",
            "shared_batches": "batch norm ties the pictures of a micro-batch",
            "micro_batches": "batch norm ties the pictures of a micro-batch",
            "unfreeze": "its layers are not those of a Transformer",
            "lora": "its convolutions have no LoRA",
            "lora_sharded": "its convolutions have no LoRA",
            "lora_export": "its convolutions have no LoRA",
            "adapters": "it has no adapters",
            "adapters_elsewhere": "it has no adapters",
        },
        overflow=None),
    Pictures(
        "vit",
        BEGIN + """[model]
name = "vit"
preset = "none"
num_layers = 2
d_model = 32
num_heads = 2
ffn_dim = 512
patch_size = 4
image_size = 16
""" + END,
        {"family": "image_classification", "model": "vision Transformer", "labels": "classes of pictures"},
        overflow=(("layers.1.ffn.up.bias constant value=1e29", "layers.1.ffn.down.weight constant value=1e29"),
                  "layers.1.ffn.down", "layers.1.ffn"),
        lora=(LORA, 16),
        adapters=4,
        adapter_train=("head.", "norm"),
        unfreeze=(('train.unfreeze=["layers.1.* 2", "layers.0.* 5", "patches.* 8"]',),
                  {"layers.1.ffn.up.weight": True, "layers.0.ffn.up.weight": True, "patches.weight": False})),
)
