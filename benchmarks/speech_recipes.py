#!/usr/bin/env python3
"""Speech recognition on small sets of real speech: what configs/speech_recognition trains in minutes.

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

- yesno, fsdd, kathleen: each recipe with its seeds: error rates of the last weights, seconds of the whole process of training, and the
  share of its updates that waited for data.
- speakers: fsdd without one speaker, tested on it, with its seeds.
- overfit: a few clips of real speech, read back after 600 updates on them, at 16 and 22.05 kHz: the goal is no error at all.

Each finished cell is a line of WORK/speech.jsonl: a second call goes on. Estimated for two cores and three seeds: yesno a minute and a
half, fsdd one hour, kathleen three hours, speakers five hours, overfit an hour. --smoke tries the script: a seed and few updates of each.
"""
import argparse
import collections
import itertools
import json
import pathlib
import random
import shutil
import statistics
import sys
import tarfile

import records
import speech_files
import understanding

RECIPES = {"yesno": ("yesno_wave2letter",),
           "fsdd": ("fsdd_wave2letter_small", "fsdd_deepspeech2_small", "fsdd_conformer"),
           "kathleen": ("kathleen_wave2letter_small", "kathleen_conformer")}
PARTS = (*RECIPES, "speakers", "overfit")
CLIPS = ("ljspeech_mini", "speech_misc/librivox_austen", "speech_misc/speechbrain_samples")
# Nothing that keeps a model from learning its clips by heart.
BY_HEART = ("augment.speeds=[]", "augment.feature_masks=0", "augment.time_masks=0", "optim.weight_decay=0", "schedule.warmup_steps=50",
            "train.max_epochs=0", "train.max_steps=600", "train.save_every=600", "eval.every=300")
WITHOUT_DROPOUT = {"kathleen_wave2letter_small": ("model.dropout_scale=0",),
                   "kathleen_conformer": ("model.dropout=0", "model.attention_dropout=0", "model.activation_dropout=0")}
SMOKE = ("train.max_epochs=0", "train.max_steps=3", "schedule.warmup_steps=1", "eval.every=3", "train.save_every=3", "report.samples=0")


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
    for part in ("train", "valid"):
        kept = [(metadata.parent / f"wavs/{name}.flac", text) for name, text in rows if (name in held) == (part == "valid")]
        speech_files.write_manifest(data / f"kathleen/{part}.tsv", kept)


def clip_words(options, data, name):
    """Overrides that name a folder of clips, or a manifest of one that has none that can be read as it is."""
    path = options.sources / name
    if (path / "transcripts.tsv").exists():  # ID TEXT, without a header
        rows = [line.split("\t", 1) for line in (path / "transcripts.tsv").read_text(encoding="utf-8").splitlines() if "\t" in line]
        path = speech_files.write_manifest(data / f"{path.name}.tsv", [(path / f"{clip}.wav", text) for clip, text in rows])
    return [f'data.train=["{path}"]', f'data.valid=["{path}"]']


CUTS = {"yesno": cut_yesno, "fsdd": cut_fsdd, "kathleen": cut_kathleen}


def data_words(part, data):
    """Overrides that name the cut, wherever it lies."""
    if part == "kathleen":
        return [f'data.train=["{data}/kathleen/train.tsv"]', f'data.valid=["{data}/kathleen/valid.tsv"]']
    return [f'data.train=["{data}/{part}/train"]', f'data.valid=["{data}/{part}/valid"]']


def evaluated(options, run, *words):
    text, _, _ = understanding.call([options.stretto, "eval", run, "--checkpoint", "last", "--json", f"data.cache_dir={options.work}/cache",
                                     f"run.threads={options.threads}", *words])
    return json.loads(text)


def trained(options, recipe, run, words, seed):
    """The last scores of a run, and its seconds."""
    shutil.rmtree(run, ignore_errors=True)
    _, seconds, _ = understanding.call(
        [options.stretto, "train", records.ROOT / f"configs/speech_recognition/{recipe}.toml", "--run", run, "--quiet", *words,
         *(SMOKE if options.smoke else ()), f"run.seed={seed}", f"run.threads={options.threads}", f"data.cache_dir={options.work}/cache",
         "report.every=1"])
    updates = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
    scores = evaluated(options, run)
    return {"wer": scores["wer"], "cer": scores["cer"], "loss": scores["loss"], "utterances": scores["utterances"],
            "errors": scores["substitutions"] + scores["deletions"] + scores["insertions"], "words": scores["words"],
            "seconds": seconds, "waiting": speech_files.waiting_share(updates), "updates": updates[-1]["step"]}


def trainings(options, data):
    """(part, what is trained, recipe, seed, folder of the run, overrides), in their order."""
    seeds = range(1, options.seeds + 1)
    for part in (part for part in RECIPES if part in options.parts):
        CUTS[part](options, data)
        for recipe, seed in itertools.product(RECIPES[part], seeds):
            yield part, recipe, recipe, seed, f"{recipe}_{seed}", data_words(part, data)
    for speaker in cut_speakers(options, data)[:1 if options.smoke else None] if "speakers" in options.parts else ():
        words = data_words(f"speakers/{speaker}", data)
        for recipe, seed in itertools.product(RECIPES["fsdd"], seeds):
            yield "speakers", f"{recipe} without {speaker}", recipe, seed, f"{recipe}_without_{speaker}_{seed}", words
    for name in CLIPS if "overfit" in options.parts else ():
        clips = clip_words(options, data, name)
        for recipe, rate in itertools.product(WITHOUT_DROPOUT, (16000, 22050)):
            words = [*clips, *BY_HEART, *WITHOUT_DROPOUT[recipe], f"features.rate={rate}"]
            yield "overfit", f"{recipe}: {name}, {rate} Hz", recipe, 1, f"overfit_{recipe}_{pathlib.Path(name).name}_{rate}", words


def cells_of(options, data):
    for part, what, recipe, seed, run, words in trainings(options, data):
        yield ({"part": part, "what": what, "seed": seed},
               lambda recipe=recipe, run=run, words=words, seed=seed: trained(options, recipe, options.work / run, words, seed))


def mean_and_range(values):
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def page_of(options, cells):
    """The results in Markdown; of fsdd without a speaker also the sums over speakers."""
    groups, sums = collections.defaultdict(list), collections.defaultdict(list)
    for cell in cells.all():
        part, what = cell["key"]["part"], cell["key"]["what"]
        groups[part, what].append(cell)
        if part == "speakers":
            sums["speakers", f"{what.split()[0]}, all speakers"].append(cell)
    rows = []
    for (part, what), runs in (groups | sums).items():
        rates = (mean_and_range([run[name] for run in runs]) for name in ("wer", "cer"))
        rows.append([part, what, len(runs), *rates, f"{sum(run['errors'] for run in runs)} of {sum(run['words'] for run in runs)}",
                     mean_and_range([run["seconds"] for run in runs]), f"at most {100 * max(run['waiting'] for run in runs):.1f} %"])
    titles = ["set", "recipe", "runs", "WER, %", "CER, %", "errors of words", "seconds", "waiting for data"]
    notes = [f"{options.threads} threads. Means (least to most) over the runs of a row: {options.seeds} seeds, one to learn clips by heart. "
             "Seconds are those of the whole process of training. Waiting is the share of the updates' time."]
    return records.page("Recipes of speech recognition", notes, records.table(titles, rows), "hours", cells.head())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--sources", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--work", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", action="store_true", help="a seed and three updates of each: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    if options.smoke:
        options.seeds, options.work = 1, options.work / "smoke"
    (options.work / "data").mkdir(parents=True, exist_ok=True)
    cells = understanding.Cells(options.work / "speech.jsonl")
    well = options.page or cells.measure_all(cells_of(options, options.work / "data"))
    records.publish(page_of(options, cells), options.out)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
