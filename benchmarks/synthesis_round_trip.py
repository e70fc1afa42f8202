#!/usr/bin/env python3
"""A round trip from text to sound and back: a voice of ours speaks, and a recogniser of ours listens.

    python benchmarks/synthesis_round_trip.py --stretto STRETTO --data DATA --work WORK [--out PAGE.md] [--parts digits kathleen]
                 [--voice KEY=VALUE ...] [--recogniser KEY=VALUE ...] [--tiny]

- digits: the Free Spoken Digit Dataset, fsdd/fsdd_5speakers.tar.gz. A recogniser learns from all training clips. A voice learns from them
  without one speaker of each digit, and then speaks all digits of all speakers. Counted are digits that the recogniser understands: of the
  ten pairs that the voice never had, and of the others.
- kathleen: an hour of one speaker, kathleen/kathleen_22050.tar, cut into clips for training, 30 for validation and 100 for the test. The
  voice speaks the 100 sentences: how many never stop, how many end early (less than --short of the time of the recording), and the
  character and word error rate of a recogniser, beside its error on the recordings themselves.

Both give frames a second of training, by metrics.jsonl, and of speaking with Griffin-Lim, by the time of the process.

The files of WORK/data are made once; they are what configs/speech_synthesis/digits.toml and kathleen.toml name as data/fsdd and
data/kathleen. Runs are in WORK/runs: a second call goes on with those that are not finished. --voice and --recogniser are overrides of all
of their trainings. --tiny is a dry run of few updates. Estimated for two cores: digits two hours, kathleen a night.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tarfile
import time

import records

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PARTS = ("digits", "kathleen")
TESTED, VALIDATED = 100, 30  # clips of kathleen
RECIPES = records.ROOT / "configs"


class Failed(Exception):
    """A program left with an error."""


def call(command, input=None):
    """What a command prints, and its seconds."""
    start = time.monotonic()
    result = subprocess.run([str(word) for word in command], input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit code {result.returncode}: {result.stderr[-2000:]}")
    return result.stdout, time.monotonic() - start


def train(options, name, recipe, files, overrides):
    """The folder of a run that is trained to its end."""
    run = options.work / "runs" / name
    words = [f"data.{key}={json.dumps(list(map(str, value)))}" for key, value in files.items()]
    short = ["train.max_epochs=0", "train.max_steps=3", "schedule.warmup_steps=1", "eval.every=3", "report.samples=0"] if options.tiny else []
    call([options.stretto, "train", RECIPES / recipe, "--run", run, "--quiet", f"data.cache_dir={options.work}/cache", *words, *short,
          *overrides])
    return run


def training_rate(run, unit):
    """Units a second of the updates of a run, but for the first ones; the median."""
    rates = [event[unit] for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train" and unit in event]
    return statistics.median(rates[len(rates) // 10:] or [0])


def write_manifest(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def unpack(archive, folder):
    """Extracts an archive once."""
    if not folder.exists():
        beside = folder.with_name(f".{folder.name}.{os.getpid()}")
        beside.mkdir(parents=True)
        with tarfile.open(archive) as tar:
            tar.extractall(beside, filter="data")
        os.replace(beside, folder)
    return folder


def speak(options, run, folder, sentences, speaker=None):
    """Sounds of sentences: the answers of `infer`, and its seconds."""
    words = ["--speaker", speaker] if speaker else []
    text, seconds = call([options.stretto, "infer", run, "--output", folder, "--json", *words], "".join(line + "\n" for line in sentences))
    return [json.loads(line) for line in text.splitlines()], seconds


def listen(options, run, files):
    """What a recogniser understands of files."""
    text, _ = call([options.stretto, "infer", run, *files, "--json"])
    return [json.loads(line).get("text", "") for line in text.splitlines()]


# Digits

def digit_clips(options):
    """(file, digit, speaker, take) of all recordings."""
    folder = unpack(options.data / "fsdd/fsdd_5speakers.tar.gz", options.work / "data/fsdd/all") / "recordings"
    clips = []
    for path in sorted(folder.glob("*.wav")):
        digit, speaker, take = path.stem.split("_")
        clips.append((path, int(digit), speaker, int(take)))
    return clips


def digit_rows(clips):
    return [{"audio_filepath": str(path), "text": DIGITS[digit], "speaker": speaker} for path, digit, speaker, _ in clips]


def digit_files(options, name, clips):
    """Manifests for training and for validation, which has takes 0 to 4."""
    folder = options.work / "data/fsdd"
    return {"train": [write_manifest(folder / f"{name}_train.jsonl", digit_rows([clip for clip in clips if clip[3] > 4]))],
            "valid": [write_manifest(folder / f"{name}_valid.jsonl", digit_rows([clip for clip in clips if clip[3] <= 4]))]}


def understood(options, recogniser, voice, speakers):
    """For each speaker and digit whether the recogniser understands the voice; the answers of the voice; seconds."""
    right, answers, seconds = {}, [], 0
    for speaker in speakers:
        spoken, took = speak(options, voice, options.work / "sounds/digits" / speaker, DIGITS, speaker)
        heard = listen(options, recogniser, [answer["file"] for answer in spoken])
        right |= {(speaker, digit): text == DIGITS[digit] for digit, text in enumerate(heard)}
        answers += spoken
        seconds += took
    return right, answers, seconds


def digits(options):
    clips = digit_clips(options)
    speakers = sorted({speaker for _, _, speaker, _ in clips})
    held = {(speakers[digit % len(speakers)], digit) for digit in range(10)}
    as_manifest = ['data.format="manifest"', "data.label_words=[]"]
    recogniser = train(options, "digits_recogniser", "speech_recognition/fsdd_wave2letter_small.toml", digit_files(options, "all", clips),
                       [*as_manifest, *options.recogniser])
    known = [clip for clip in clips if (clip[2], clip[1]) not in held]
    voice = train(options, "digits_voice", "speech_synthesis/digits.toml", digit_files(options, "known", known), [*as_manifest, *options.voice])
    right, answers, seconds = understood(options, recogniser, voice, speakers)
    test = json.loads(call([options.stretto, "eval", recogniser, "--json", f"data.cache_dir={options.work}/cache"])[0])
    new = [right[pair] for pair in sorted(held, key=lambda pair: pair[1])]
    others = [value for pair, value in right.items() if pair not in held]
    rows = [("digits understood, of ten pairs of a digit and a speaker that training never had (goal 8)", f"{sum(new)} of {len(new)}"),
            ("of the other pairs", f"{sum(others)} of {len(others)}"),
            ("word error rate of the recogniser on recordings, %", f"{test['wer']:.2f}"),
            ("digits that never stopped", sum(answer["end"] == "never" for answer in answers)),
            *rates(voice, answers, seconds)]
    table = records.table(("digit", *speakers), [
        (DIGITS[digit], *(("✓" if right[speaker, digit] else "–") + (" (new)" if (speaker, digit) in held else "") for speaker in speakers))
        for digit in range(10)])
    return "## Digits\n\n" + records.table(("what", "value"), rows) + "\n\n" + table


def rates(voice, answers, seconds):
    """Rows of how fast a voice trains and speaks."""
    spoken = sum(answer.get("seconds", 0) for answer in answers)
    return [("frames a second of training", f"{training_rate(voice, 'frames_per_second'):,.0f}"),
            ("seconds of sound a second of speaking, start of the program and Griffin-Lim included", f"{spoken / seconds:.2f}"),
            *((name, f"{value:.3f}") for name, value in last_scores(voice).items())]


def last_scores(run):
    """The numbers of the last validation."""
    valid = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "valid"]
    names = ("loss", "mel_l1", "stop_error", "attention_diagonality", "monotonic_steps")
    return {name: valid[-1][name] for name in names if valid and name in valid[-1]}


# Sentences of one speaker

def sentence_files(options):
    """Lists of LJSpeech's form beside the folder wavs, and the rows (id, text) of the test."""
    folder = unpack(options.data / "kathleen/kathleen_22050.tar", options.work / "data/kathleen")
    rows = [line.split("|", 1) for line in (folder / "metadata.csv").read_text(encoding="utf-8").splitlines() if "|" in line]
    order = list(rows)
    random.Random(1).shuffle(order)  # one reading a prompt, so that no text is in two parts
    parts = {"test": order[:TESTED], "valid": order[TESTED:TESTED + VALIDATED], "train": order[TESTED + VALIDATED:]}
    for name, part in parts.items():
        (folder / f"{name}.csv").write_text("".join(f"{clip}|{text}\n" for clip, text in sorted(part)), encoding="utf-8")
    return {name: [folder / f"{name}.csv"] for name in ("train", "valid")}, sorted(parts["test"]), folder


def error_rates(options, references, texts):
    """Word and character error rates in percent, as `score` counts them, of texts without case and punctuation."""
    def plain(text):
        return " ".join("".join(letter for letter in text.lower() if letter.isalpha() or letter in " '").split())

    reference = options.work / "reference.txt"
    reference.write_text("".join(plain(text) + "\n" for text in references), encoding="utf-8")
    lines = "".join(plain(text) + "\n" for text in texts)
    return [float(json.loads(call([options.stretto, "score", "--metric", metric, "--reference", reference, "--json"], lines)[0])["score"])
            for metric in ("wer", "cer")]


def kathleen(options):
    files, test, folder = sentence_files(options)
    recogniser = train(options, "kathleen_recogniser", "speech_recognition/kathleen_wave2letter_small.toml", files, options.recogniser)
    voice = train(options, "kathleen_voice", "speech_synthesis/kathleen.toml", {**files, "test": [folder / "test.csv"]}, options.voice)
    texts = [text for _, text in test]
    answers, seconds = speak(options, voice, options.work / "sounds/kathleen", texts)
    recordings = [next(folder.glob(f"wavs/{clip}.*")) for clip, _ in test]
    of_voice = error_rates(options, texts, listen(options, recogniser, [answer["file"] for answer in answers]))
    of_speaker = error_rates(options, texts, listen(options, recogniser, recordings))
    heard = json.loads(call([options.stretto, "eval", voice, "--json", "--data", folder / "test.csv"])[0])
    lengths = [json.loads(line)["seconds"] for line in call([options.stretto, "infer", recogniser, *recordings, "--json"])[0].splitlines()]
    ends = collections.Counter(answer["end"] for answer in answers)
    early = sum(answer["seconds"] < options.short * length for answer, length in zip(answers, lengths, strict=True))
    rows = [("sentences that never stop, of 100 (goal 0)", ends["never"]), ("that end early", early),
            ("WER and CER of the recogniser on the voice, %", f"{of_voice[0]:.1f}, {of_voice[1]:.1f}"),
            ("on the recordings, %", f"{of_speaker[0]:.1f}, {of_speaker[1]:.1f}"),
            ("monotonic steps of these sentences, teacher forcing (goal 0.95)", f"{heard['monotonic_steps']:.3f}"),
            ("their attention diagonality", f"{heard['attention_diagonality']:.3f}"), *rates(voice, answers, seconds)]
    return "## Sentences of one speaker\n\n" + records.table(("what", "value"), rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with fsdd and kathleen")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--voice", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--recogniser", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--short", type=float, default=0.6, help="a sentence ends early below this share of its recording")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    options.work, options.data = options.work.resolve(), options.data.resolve()
    return options


def main():
    options = parse()
    bodies = [{"digits": digits, "kathleen": kathleen}[part](options) for part in options.parts]
    notes = ["A voice of Stretto speaks, and a recogniser of Stretto, trained on recordings, listens."]
    records.publish(records.page("Synthesis, a round trip", notes, "\n\n".join(bodies)), options.out)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"{failure}")
