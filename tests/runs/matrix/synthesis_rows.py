"""The rows of speech synthesis: Tacotron 2 for two speakers, and CENTAUR with style tokens and magnitudes."""
import array
import dataclasses
import json
import math
import pathlib
import wave
from typing import ClassVar

from harness import check

from matrix.row import Row, lines_of

RATE = 8000
LETTERS = "abcdef"


def write_clip(path, text, deep):
    """A tone for each letter, which a deep voice has an octave below."""
    samples = array.array("h")
    for letter in text:
        hertz = (300 + 200 * LETTERS.index(letter)) * (0.5 if deep else 1)
        samples.extend(int(12000 * math.sin(2 * math.pi * hertz * i / RATE)) for i in range(RATE * 6 // 100))
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())


def word(number):
    return "".join(LETTERS[(number * (k + 2) + k * k + number // 6) % 6] for k in range(3 + number % 3))


def write_clips(folder):
    """clips/train.jsonl and clips/valid.jsonl with their sounds, of two speakers in turn."""
    clips = folder / "clips"
    if clips.exists():
        return
    clips.mkdir()
    for part, first, count in (("train", 0, 32), ("valid", 60, 6)):
        rows = []
        for number in range(first, first + count):
            deep = number % 2 == 0
            write_clip(clips / f"{number}.wav", word(number), deep)
            rows.append({"audio_filepath": f"{number}.wav", "text": word(number), "speaker": "deep" if deep else "high"})
        (clips / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


BEGIN = """[task]
name = "speech_synthesis"
[data]
train = ["clips/train.jsonl"]
valid = ["clips/valid.jsonl"]
cache_dir = "cache"
threads = 1
batch_seconds = 1.5
[features]
rate = 8000
window_seconds = 0.032
hop_seconds = 0.016
num_mels = 16
high_hz = 0.0
[decode]
max_seconds = 0.6
griffin_lim_iterations = 2
mel_iterations = 5
"""
END = """
[optim]
name = "adam"
lr = 3e-3
clip_norm = 1.0
[eval]
every = 4
"""


@dataclasses.dataclass(frozen=True)
class Clips(Row):
    lines: tuple = ("abcf", "", "fed cab")
    scores: frozenset = frozenset({"mel_l1", "stop_error", "attention_diagonality", "monotonic_steps"})
    replayed: tuple = ("clips", {"text", "clip"})
    large: ClassVar[tuple] = ("data.batch_seconds=1000",)

    lacks: ClassVar[dict] = {
        "embed": "a model that speaks gives no vectors of lines",
        "export": "no class of transformers is equal to it",
        "init_from": "no other family has its layers",
        "freeze": "its encoder is no Transformer's",
        "unfreeze": "its layers are not those of a Transformer",
        "shared_batches": "batch norm ties the clips of a micro-batch",
        "micro_batches": "batch norm ties the clips of a micro-batch",
        "lora": "it has no LoRA",
        "lora_sharded": "it has no LoRA",
        "lora_export": "it has no LoRA",
        "adapters": "it has no adapters",
        "adapters_elsewhere": "it has no adapters",
    }

    def write_data(self, folder):
        write_clips(folder)
        object.__setattr__(self, "infer_words", ("--output", str(folder / f"{self.name}_sounds")))

    def check_answers(self, bench, folder):
        files = lines_of(self, bench.infer(self, folder))
        answers = [json.loads(line) for line in lines_of(self, bench.infer(self, folder, "--json"))]
        check([answer["text"] for answer in answers] == list(self.lines), f"{answers}")
        check(files[1] == "" and "problem" in answers[1] and "file" not in answers[1], f"{files}, {answers[1]}")
        for file, answer in zip(files[::2], answers[::2], strict=True):
            check(answer["file"] == file and pathlib.Path(file).exists(), f"{answer}")
            with wave.open(file) as sound:
                seconds = sound.getnframes() / sound.getframerate()
                check(sound.getframerate() == RATE and sound.getsampwidth() == 2 and sound.getnchannels() == 1, f"{sound.getparams()}")
            check(abs(seconds - answer["seconds"]) < 1e-4, f"{seconds}, {answer}")
            check(answer["end"] in ("stop", "text_end", "never"), f"{answer}")
            check(all(0 <= answer[key] <= 1 for key in ("attention_diagonality", "monotonic_steps")), f"{answer}")

    def check_reference(self, bench):
        lines = (bench.folder(self, "reference") / "report.json").read_text()
        check('"audio/wav"' in lines and '"image/png"' in lines, "the report has no player, or no picture")


ROWS = (
    Clips(
        "tacotron2",
        BEGIN + """[model]
name = "tacotron2"
reduction = 2
speaker_dim = 8
embedding_dim = 32
encoder_dim = 32
encoder_convolutions = 2
prenet_dim = 32
decoder_dim = 64
attention_dim = 32
location_filters = 8
location_kernel = 7
postnet_layers = 3
postnet_dim = 64
[loss]
guided_attention = 1.0
""" + END,
        {"family": "speech_synthesis", "model": "Tacotron 2", "labels": "frames of several speakers"},
        overflow=None),
    Clips(
        "centaur",
        BEGIN + """[model]
name = "centaur"
reduction = 2
spectrum = "both"
d_model = 64
encoder_convolutions = 2
decoder_convolutions = 2
num_layers = 2
prenet_dim = 64
speaker_dim = 8
[model.style]
num_tokens = 4
num_heads = 2
dim = 16
reference_dim = 16
[loss]
kind = "l1"
""" + END,
        {"family": "speech_synthesis", "model": "CENTAUR", "labels": "magnitudes in a style"},
        overflow=None),
)
