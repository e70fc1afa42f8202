"""The rows of speech recognition: convolutions with CTC, an attention decoder beside it, and labels of utterances."""
import array
import dataclasses
import json
import math
import random
import wave
from typing import ClassVar

from harness import check

from matrix.row import Row, lines_of

RATE = 8000
LETTERS = {"a": (300, 900), "b": (600, 2400), "c": (1500, 3300)}  # two tones each, in Hz
WORDS = ("ab", "ca", "bac", "cab")


def sound(text, number):
    """Samples of 16 bits: 80 ms of a letter's tones, a pause for a space, and noise that depends on the number."""
    draw = random.Random(number)
    samples = array.array("h")
    for letter in f" {text} ":
        for t in range(RATE * 80 // 1000):
            tones = LETTERS.get(letter, ())
            value = sum(math.sin(2 * math.pi * hz * t / RATE) for hz in tones) * 4000 + draw.gauss(0, 40)
            samples.append(int(value))
    return samples


def write_wave(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


def texts_of(part):
    """Texts of one to three words, and for `test` three that all of training has."""
    draw = random.Random(part)
    count = {"train": 24, "valid": 8, "test": 3}[part]
    return [" ".join(draw.choice(WORDS) for _ in range(1 + number % 3)) for number in range(count)]


def write_sounds(folder):
    """sounds/{train,valid,test}.csv with the columns of OpenSeq2Seq, their WAV files, and commands/ as Speech Commands."""
    if (folder / "sounds").exists():
        return
    (folder / "sounds").mkdir()
    for word in WORDS:
        (folder / "commands" / word).mkdir(parents=True)
    for first, part in enumerate(("train", "valid", "test")):
        rows = ["wav_filename,wav_filesize,transcript"]
        for number, text in enumerate(texts_of(part)):
            path = folder / f"sounds/{part}_{number}.wav"
            write_wave(path, sound(text, 1000 * first + number))
            rows.append(f"{path.name},{path.stat().st_size},{text}")
        (folder / f"sounds/{part}.csv").write_text("\n".join(rows) + "\n")
        names = [f"{word}/{part}{number}_nohash_0.wav" for word in WORDS
                 for number in range({"train": 6, "valid": 2, "test": 1}[part])]
        for number, name in enumerate(names):
            write_wave(folder / "commands" / name, sound(name.split("/")[0], 5000 + 100 * first + number))
        if part != "train":
            listed = {"valid": "validation_list.txt", "test": "testing_list.txt"}[part]
            (folder / "commands" / listed).write_text("\n".join(names) + "\n")
    (folder / "sounds/text.wav").write_text("no sound")


BEGIN = """[task]
name = "speech_recognition"
[data]
{files}
cache_dir = "cache"
threads = 1
min_seconds = 0.05
batch_seconds = 2
bucket_seconds = 0.1
[features]
rate = 8000
num_mels = 24
[augment]
speeds = [0.9, 1.0, 1.1]
feature_masks = 1
feature_mask_width = 3
[tokenizer]
type = "char"
"""
TEXTS = BEGIN.format(files='train = ["sounds/train.csv"]\nvalid = ["sounds/valid.csv"]')
LABELS = BEGIN.format(files='train = ["commands"]\nvalid = ["commands"]\nformat = "speech_commands"').replace(
    "batch_seconds = 2", "batch_seconds = 1")  # an epoch of as many micro-batches as a kill wants
END = """
[optim]
name = "adamw"
lr = 3e-3
clip_norm = 1.0
[eval]
every = 4
"""


@dataclasses.dataclass(frozen=True)
class Sounds(Row):
    scores: frozenset = frozenset({"wer", "cer"})
    lines: tuple = ()
    replayed: tuple = ("utterances", {"utterance", "text"})
    large: ClassVar[tuple] = ("data.batch_seconds=100",)

    lacks: ClassVar[dict] = {
        "embed": "a recogniser gives no vectors of lines",
        "export": "no class of transformers is equal to it",
        "init_from": "no other family has its layers",
        "freeze": "it has no encoder of text",
        "unfreeze": "its layers have other names",
        "lora": "its convolutions have no LoRA",
        "lora_sharded": "its convolutions have no LoRA",
        "lora_export": "its convolutions have no LoRA",
        "adapters": "it has no adapters",
        "adapters_elsewhere": "it has no adapters",
    }

    def write_data(self, folder):
        write_sounds(folder)
        object.__setattr__(self, "lines", tuple(
            str(folder / "sounds" / name) for name in ("test_0.wav", "text.wav", "test_1.wav", "test_2.wav")))

    def check_answers(self, bench, folder):
        text = lines_of(self, bench.infer(self, folder))
        answers = [json.loads(line) for line in lines_of(self, bench.infer(self, folder, "--json"))]
        check([answer["file"] for answer in answers] == list(self.lines), f"{answers}")
        check("problem" in answers[1] and text[1] == "", f"{answers[1]}, {text}")
        for answer, line in zip(answers, text):
            if "problem" not in answer:
                self.check_answer(answer, line)
        files = bench.output("infer", folder, *self.lines).splitlines()
        check(files == text, f"as files {files}, as lines {text}")

    def check_answer(self, answer, line):
        check(answer["text"] == line and answer["seconds"] > 0.1, f"{answer}, {line}")
        check([word["word"] for word in answer["words"]] == line.split(), f"{answer}")
        times = [time for word in answer["words"] if "begin" in word for time in (word["begin"], word["end"])]
        check(times == sorted(times) and all(0 <= time <= answer["seconds"] + 1e-3 for time in times), f"{answer}")

    def check_reference(self, bench):
        lines = (bench.folder(self, "reference") / "report.json").read_text()
        check('"audio/wav"' in lines, "the report has no player")


@dataclasses.dataclass(frozen=True)
class Commands(Sounds):
    scores: frozenset = frozenset({"accuracy"})
    replayed: tuple = ("utterances", {"utterance", "label"})

    def check_answer(self, answer, line):
        chances = [one["probability"] for one in answer["top"]]
        check(answer["label"] == line and line in WORDS and answer["probability"] == chances[0], f"{answer}, {line}")
        check(chances == sorted(chances, reverse=True) and abs(sum(chances) - 1) < 1e-5, f"{answer}")

    def write_data(self, folder):
        super().write_data(folder)
        object.__setattr__(self, "lines", tuple(str(folder / path) for path in (
            "commands/ca/test0_nohash_0.wav", "sounds/text.wav", "commands/bac/test0_nohash_0.wav",
            "commands/ab/test0_nohash_0.wav")))


NORMED = {
    "shared_batches": "batch norm ties the frames of a micro-batch",
    "micro_batches": "batch norm ties the frames of a micro-batch",
}
CONVOLUTIONS = """[model]
name = "wave2letter"
preset = "none"
[[model.blocks]]
channels = 64
kernel = 7
stride = 2
[[model.blocks]]
channels = 192
kernel = 7
dropout = 0.1
"""
PICTURES = """[model]
name = "resnet"
preset = "none"
depth = 8
base_width = 16
num_frames = 48
"""

ROWS = (
    Sounds(
        "convolutions_ctc",
        TEXTS + CONVOLUTIONS + END,
        {"family": "speech_recognition", "model": "convolutions in time", "labels": "characters of sounds"},
        without=NORMED,
        overflow=None),
    Sounds(
        "gru_ctc",
        TEXTS + """[model]
name = "deepspeech2"
preset = "none"
num_layers = 1
hidden_dim = 96
direction = "forward"
row_convolution = 4
output_dim = 192
dropout = 0.1
[[model.convolutions]]
channels = 8
time_kernel = 5
frequency_kernel = 7
time_stride = 2
frequency_stride = 2
""" + END,
        {"family": "speech_recognition", "model": "GRU over convolutions", "labels": "characters of sounds"},
        without=NORMED,
        overflow=None),
    Sounds(
        "conformer_joint",
        TEXTS + """[model]
name = "conformer"
preset = "none"
num_layers = 1
d_model = 48
num_heads = 2
ffn_dim = 192
kernel = 5
subsampling = "conv1d"
subsampling_factor = 2
convolution_norm = "layer_norm"
[model.decoder]
weight = 0.5
hidden_dim = 48
embedding_dim = 16
attention_dim = 32
location_filters = 4
location_kernel = 5
[decode]
reader = "attention"
method = "beam"
beam_size = 2
""" + END,
        {"family": "speech_recognition", "model": "Conformer", "labels": "characters by attention"},
        rounding=1e-3,
        overflow=None),
    Commands(
        "commands",
        LABELS + PICTURES + "[loss]\nname = \"label\"\n" + END,
        {"family": "speech_recognition", "model": "residual network", "labels": "labels of sounds"},
        without=NORMED,
        overflow=None),
)
