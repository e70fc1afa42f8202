#!/usr/bin/env python3
"""Speech recognition on small sets of real speech, and the table of batches: what configs/speech_recognition trains in minutes.

    python benchmarks/speech_recipes.py --stretto STRETTO --sources SOURCES --work WORK [--out PAGE.md] [--parts yesno fsdd ...]
                 [--seeds 3] [--threads 2]

SOURCES has waves_yesno_40.tar.gz and waves_yesno_20.tar.gz (yesno), fsdd_5speakers.tar.gz (fsdd) and kathleen_22050.tar (kathleen), each
in a folder of the name in brackets; and the folders ljspeech_mini, speech_misc/librivox_austen and speech_misc/speechbrain_samples. WORK/data
gets the cuts:

- yesno: names sorted, even places for training, odd ones for validation, 30 and 30 clips (icefall's split). One error is the least:
  0_1_0_1_0_0_0_0.wav of validation has seven words, not eight.
- fsdd: clips 0 to 4 of each digit and speaker for validation (the official split); and for each speaker a cut that leaves it out.
- kathleen: 100 sentences, drawn by a seed from those sorted by name, for validation.

Parts:

- yesno, fsdd, kathleen: each recipe with its seeds: error rates of the last validation, seconds from the start of the process, seconds of
  the updates alone, the share of waiting for data.
- speakers: fsdd without one speaker, tested on it; one seed each.
- overfit: a few clips of real speech, read back after 600 updates on them, at 16 and 22.05 kHz: the goal is no error at all.
- batches: texts and scores of 50 utterances of all lengths in batches of 1, 8 and 50, in both orders, and error rates on 1, 2 and 3
  processes, by the last model of yesno and of kathleen.

Each finished cell is a line of WORK/speech.jsonl: a second call goes on.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = {"yesno": ("yesno_wave2letter",),
           "fsdd": ("fsdd_wave2letter_small", "fsdd_deepspeech2_small", "fsdd_conformer"),
           "kathleen": ("kathleen_wave2letter_small", "kathleen_conformer")}
PARTS = (*RECIPES, "speakers", "overfit", "batches")
CLIPS = ("ljspeech_mini", "speech_misc/librivox_austen", "speech_misc/speechbrain_samples")
# Nothing that keeps a model from learning its clips by heart.
BY_HEART = ("augment.speeds=[]", "augment.feature_masks=0", "augment.time_masks=0", "model.dropout_scale=0", "optim.weight_decay=0",
            "schedule.warmup_steps=50", "train.max_epochs=0", "train.max_steps=600", "train.save_every=600", "eval.every=300")


def unpacked(archive, folder):
    """All files of an archive, in a folder that is made once."""
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(part, filter="data")
        part.rename(folder)
    return folder


def linked(files, folder):
    """A folder with the same files. Links by name are refused as data."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        (folder / file.name).hardlink_to(file)


def cut_yesno(options, data):
    clips = sorted((clip for name in ("waves_yesno_40.tar.gz", "waves_yesno_20.tar.gz")
                    for clip in unpacked(options.sources / "yesno" / name, data / "sources" / name.split(".")[0]).rglob("*.wav")),
                   key=lambda clip: clip.name)
    linked(clips[0::2], data / "yesno/train")
    linked(clips[1::2], data / "yesno/valid")


def fsdd_clips(options, data):
    folder = unpacked(options.sources / "fsdd/fsdd_5speakers.tar.gz", data / "sources/fsdd")
    return sorted(folder.rglob("*.wav"))


def cut_fsdd(options, data):
    clips = fsdd_clips(options, data)
    tested = [clip for clip in clips if int(clip.stem.split("_")[2]) < 5]
    linked([clip for clip in clips if clip not in tested], data / "fsdd/train")
    linked(tested, data / "fsdd/valid")


def cut_speakers(options, data):
    clips = fsdd_clips(options, data)
    speakers = sorted({clip.stem.split("_")[1] for clip in clips})
    for speaker in speakers:
        of_speaker = [clip for clip in clips if clip.stem.split("_")[1] == speaker]
        linked([clip for clip in clips if clip not in of_speaker], data / f"speakers/{speaker}/train")
        linked(of_speaker, data / f"speakers/{speaker}/valid")
    return speakers


def cut_kathleen(options, data):
    folder = unpacked(options.sources / "kathleen/kathleen_22050.tar", data / "sources/kathleen")
    [metadata] = folder.rglob("metadata.csv")
    rows = sorted(line.split("|", 1) for line in metadata.read_text(encoding="utf-8").splitlines())
    held = set(random.Random(1).sample([name for name, _ in rows], 100))
    (data / "kathleen").mkdir(parents=True, exist_ok=True)
    for part in ("train", "valid"):
        lines = ["wav_filename\ttranscript"]
        for name, text in rows:
            if (name in held) == (part == "valid"):
                lines.append(f"{metadata.parent / 'wavs' / name}.flac\t{text}")
        (data / f"kathleen/{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def clip_words(options, data, name):
    """Overrides that name a folder of clips, or a manifest of one that has none that can be read as it is."""
    path = options.sources / name
    if (path / "transcripts.tsv").exists():  # ID TEXT, without a header
        rows = [line.split("\t", 1) for line in (path / "transcripts.tsv").read_text(encoding="utf-8").splitlines() if "\t" in line]
        manifest = data / f"{path.name}.tsv"
        manifest.write_text("".join(f"{sound}\t{text}\n" for sound, text in
                                    (("wav_filename", "transcript"), *((path / f"{clip}.wav", text) for clip, text in rows))),
                            encoding="utf-8")
        path = manifest
    return [f'data.train=["{path}"]', f'data.valid=["{path}"]']


CUTS = {"yesno": cut_yesno, "fsdd": cut_fsdd, "kathleen": cut_kathleen}


def data_words(part, data):
    """Overrides that name the cut, wherever it lies."""
    if part == "kathleen":
        return [f'data.train=["{data}/kathleen/train.tsv"]', f'data.valid=["{data}/kathleen/valid.tsv"]']
    return [f'data.train=["{data}/{part}/train"]', f'data.valid=["{data}/{part}/valid"]']


def command(options, *words):
    result = subprocess.run([options.stretto, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            env={**os.environ, "STRETTO_CACHE": str(options.work / "cache"), "OMP_NUM_THREADS": str(options.threads)})
    if result.returncode:
        sys.exit(f"stretto {' '.join(map(str, words))}: {result.returncode}\n{result.stderr[-3000:]}")
    return result.stdout


def evaluated(options, run, *words):
    return json.loads(command(options, "eval", run, "--checkpoint", "last", "--json", *words))


def trained(options, recipe, run, words, seed):
    """The last scores of a run, and its seconds."""
    shutil.rmtree(run, ignore_errors=True)
    begin = time.monotonic()
    command(options, "train", ROOT / f"configs/speech_recognition/{recipe}.toml", "--run", run, *words, f"run.seed={seed}",
            f"run.threads={options.threads}")
    seconds = time.monotonic() - begin
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    updates = [event for event in events if event["event"] == "train"]
    waits = [event.get("data_wait_seconds", 0) for event in updates]
    scores = evaluated(options, run)
    return {"wer": scores["wer"], "cer": scores["cer"], "loss": scores["loss"], "utterances": scores["utterances"],
            "errors": scores["substitutions"] + scores["deletions"] + scores["insertions"], "words": scores["words"],
            "seconds": seconds, "waiting": sum(waits), "updates": updates[-1]["step"]}


def answers(options, run, part, data, batch_seconds, backwards):
    """Texts and scores of 50 utterances, by file."""
    if part == "kathleen":
        lines = (data / "kathleen/train.tsv").read_text(encoding="utf-8").splitlines()[1:51]
        files = [line.split("\t")[0] for line in lines]
    else:
        files = [str(file) for file in sorted((data / part / "train").iterdir()) + sorted((data / part / "valid").iterdir())][:50]
    if backwards:
        files.reverse()
    said = command(options, "infer", run, "--checkpoint", "last", "--json", f"eval.batch_seconds={batch_seconds}", *files)
    return {answer["file"]: (answer["text"], answer["score"]) for answer in map(json.loads, said.splitlines())}


def batches(options, run, part, data):
    """How far texts and scores of the same utterances are apart when they are read in other company."""
    forms = {f"{name}, {order}": answers(options, run, part, data, seconds, order == "backwards")
             for name, seconds in (("one by one", 0.001), ("about 8", 40), ("all 50", 100000)) for order in ("forwards", "backwards")}
    first = forms["one by one, forwards"]
    texts = sum(found[file][0] != first[file][0] for found in forms.values() for file in first)
    scores = max(abs(found[file][1] - first[file][1]) for found in forms.values() for file in first)
    processes = {}
    for count in (1, 2, 3):
        if count == 1 or shutil.which("mpirun"):
            found = evaluated(options, run, *(["--processes", count] if count > 1 else []))
            processes[count] = [found["wer"], found["cer"], found["loss"]]
    return {"utterances": len(first), "other_texts": texts, "furthest_score": scores, "processes": processes}


class Cells:
    """Results by key, each a line of a file."""

    def __init__(self, path):
        self.path = path
        self.found = {}
        if path.exists():
            for line in path.read_text().splitlines():
                key, value = json.loads(line)
                self.found[json.dumps(key)] = value

    def measure(self, key, make):
        name = json.dumps(key)
        if name not in self.found:
            print(*key, flush=True)
            self.found[name] = make()
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.found[name]]) + "\n")
        return self.found[name]


def measure(options, cells, data):
    for part in (part for part in RECIPES if part in options.parts):
        CUTS[part](options, data)
        for recipe in RECIPES[part]:
            for seed in range(1, options.seeds + 1):
                run = options.work / f"{recipe}_{seed}"
                cells.measure([part, recipe, seed], lambda: trained(options, recipe, run, data_words(part, data), seed))
    if "speakers" in options.parts:
        for speaker in cut_speakers(options, data):
            for recipe in RECIPES["fsdd"]:
                run = options.work / f"{recipe}_without_{speaker}"
                words = data_words(f"speakers/{speaker}", data)
                cells.measure(["speakers", recipe, speaker], lambda: trained(options, recipe, run, words, 1))
    for name in CLIPS if "overfit" in options.parts else ():
        for rate in (16000, 22050):
            run = options.work / f"overfit_{pathlib.Path(name).name}_{rate}"
            words = [*clip_words(options, data, name), *BY_HEART, f"features.rate={rate}"]
            cells.measure(["overfit", f"{name}, {rate} Hz", 1], lambda: trained(options, "kathleen_wave2letter_small", run, words, 1))
    if "batches" in options.parts:
        for part in ("yesno", "kathleen"):
            runs = [options.work / f"{recipe}_1" for recipe in RECIPES[part]]
            for run in (run for run in runs if run.exists()):
                cells.measure(["batches", run.name, ""], lambda: batches(options, run, part, data))


def mean_and_range(values):
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def page(cells):
    """The results in Markdown."""
    groups = collections.defaultdict(list)
    for name, value in cells.found.items():
        part, recipe, _ = json.loads(name)
        groups[part, recipe].append(value)
    lines = ["| set | recipe | runs | WER, % | CER, % | errors of words | seconds | waiting for data |", "|---|---|---|---|---|---|---|---|"]
    for (part, recipe), runs in groups.items():
        if part == "batches":
            continue
        words = f"{sum(run['errors'] for run in runs)} of {sum(run['words'] for run in runs)}"
        waits = max(run["waiting"] / run["seconds"] for run in runs)
        lines.append(f"| {part} | {recipe} | {len(runs)} | {mean_and_range([run['wer'] for run in runs])} | "
                     f"{mean_and_range([run['cer'] for run in runs])} | {words} | {mean_and_range([run['seconds'] for run in runs])} | "
                     f"at most {100 * waits:.1f} % |")
    lines += ["", "| model | utterances | other texts | furthest score | WER, CER, loss on 1, 2, 3 processes |", "|---|---|---|---|---|"]
    for (part, recipe), runs in groups.items():
        for run in runs if part == "batches" else []:
            processes = "; ".join(", ".join(f"{value:.6f}" for value in values) for values in run["processes"].values())
            lines.append(f"| {recipe} | {run['utterances']} | {run['other_texts']} | {run['furthest_score']:.2e} | {processes} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--sources", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--work", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    (options.work / "data").mkdir(exist_ok=True)
    cells = Cells(options.work / "speech.jsonl")
    measure(options, cells, options.work / "data")
    text = page(cells)
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
