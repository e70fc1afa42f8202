"""What the programs about speech share: sounds and manifests that both sides read, and networks by the keys of either side.

Sounds are noise, with texts of random letters: how long an update takes depends on lengths alone.
"""
import csv
import io
import random
import unicodedata
import wave

import records

RATE, HOP_SECONDS, WINDOW_SECONDS = 16_000, 0.01, 0.02
ALPHABET = " 'abcdefghijklmnopqrstuvwxyz"
LETTERS_PER_SECOND = 12


def block(channels, kernel, dropout=0.0, **more):
    return {"channels": channels, "kernel": kernel, "dropout": dropout, **more}


def wave2letter_small():
    """Stretto's preset of that name."""
    middle = [block(96, 11, 0.2), block(128, 13, 0.2), block(160, 17, 0.2), block(192, 21, 0.3), block(224, 25, 0.3)]
    return [block(96, 11, 0.2, stride=2), *middle, block(256, 29, 0.4, dilation=2), block(320, 1, 0.4)]


def quartznet_5x5():
    middle = [block(channels, kernel, repeat=5, residual="block", separable=True)
              for kernel, channels in ((33, 256), (39, 256), (51, 512), (63, 512), (75, 512))]
    return [block(256, 33, stride=2, separable=True), *middle, block(512, 87, dilation=2, separable=True), block(1024, 1)]


# Name: features, [model] of Stretto, and the class of torch_speech_models.py with its arguments.
NETS = {
    "wave2letter": (64, {"name": "wave2letter", "preset": "wave2letter_small"},
                    ("TimeDelay", {"blocks": wave2letter_small(), "clips": True})),
    "quartznet": (64, {"name": "quartznet", "preset": "quartznet_5x5"}, ("TimeDelay", {"blocks": quartznet_5x5()})),
    "deepspeech2": (96, {"name": "deepspeech2", "preset": "deepspeech2_small"},
                    ("DeepSpeech2", {"convolutions": [(32, (11, 41), (2, 2)), (32, (11, 21), (1, 2))], "num_layers": 2,
                                     "hidden_dim": 512, "output_dim": 1024})),
    "conformer": (80, {"name": "conformer", "preset": "none", "num_layers": 6, "d_model": 144, "num_heads": 4, "ffn_dim": 576,
                       "kernel": 31},
                  ("Conformer", {"num_layers": 6, "width": 144, "heads": 4, "inner": 576, "kernel": 31})),
}

# Recipe of configs/speech_recognition: its features, and the class of torch_speech_models.py with its arguments.
TWINS = {
    "kathleen_wave2letter_small": (64, ("TimeDelay", {"blocks": wave2letter_small(), "clips": True})),
    "kathleen_conformer": (64, ("Conformer", {"num_layers": 6, "width": 144, "heads": 4, "inner": 576, "kernel": 15})),
}


def lengths_of(count, seed):
    """Seconds of utterances as LibriSpeech has them, from 1 to 16: most between 5 and 15."""
    draw = random.Random(seed)
    return [min(16.0, max(1.0, round(draw.triangular(1, 16.5, 14), 2))) for _ in range(count)]


def made_up(work, count, seed=1):
    """(manifest, seconds of all sounds): so many WAV files, and a CSV file in OpenSeq2Seq's columns."""
    folder, lengths, draw = work / f"sounds_{count}_{seed}", lengths_of(count, seed), random.Random(seed)
    manifest = folder / "manifest.csv"
    if not manifest.exists():
        folder.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["wav_filename", "wav_filesize", "transcript"])
        for number, seconds in enumerate(lengths):
            path = folder / f"{number:05}.wav"
            with wave.open(str(path), "wb") as sound:
                sound.setnchannels(1)
                sound.setsampwidth(2)
                sound.setframerate(RATE)
                sound.writeframes(draw.randbytes(2 * int(seconds * RATE)))
            words = "".join(draw.choices(ALPHABET, k=int(LETTERS_PER_SECOND * seconds)))
            rows.writerow([path, path.stat().st_size, " ".join(words.split()) or "a"])
        records.write_whole(manifest, text.getvalue())
    return manifest, sum(lengths)


def read_manifest(path):
    """(file, seconds, text) of each row of a manifest that made_up() wrote."""
    with open(path, newline="", encoding="utf-8") as file:
        return [(row["wav_filename"], (int(row["wav_filesize"]) - 44) / 2 / RATE, row["transcript"]) for row in csv.DictReader(file)]


def write_manifest(path, rows):
    """A TSV file of (file, text), as data.train takes it."""
    records.write_whole(path, "".join(f"{file}\t{text}\n" for file, text in (("wav_filename", "transcript"), *rows)))
    return path


def manifest_rows(path):
    """(file, text) of a file of write_manifest()."""
    return [tuple(line.split("\t", 1)) for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def is_punctuation(letter):
    return letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " " or unicodedata.category(letter)[0] == "P"


def plain(text):
    """A text by the rules nfkc, lower, punctuation and spaces of tokenizer.normalise."""
    text, kept = unicodedata.normalize("NFKC", text).lower(), []
    for place, letter in enumerate(text):
        within_word = 0 < place < len(text) - 1 and text[place - 1].isalpha() and text[place + 1].isalpha()
        if letter in "-/" or "\u2010" <= letter <= "\u2015":
            kept.append(" ")
        elif letter == "'" and within_word or not is_punctuation(letter):
            kept.append(letter)
    return " ".join("".join(kept).split())


def waiting_share(events):
    """Of the time of updates, what a run waited for micro-batches; of its `train` events with report.every = 1."""
    return sum(event["data_wait_seconds"] for event in events) / sum(event["frames"] / event["frames_per_second"] for event in events)


def features_section(features):
    return {"kind": "log_mel", "dialect": "librosa", "rate": RATE, "window_seconds": WINDOW_SECONDS, "hop_seconds": HOP_SECONDS,
            "num_mels": features, "normalise": "per_feature"}
