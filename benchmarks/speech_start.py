#!/usr/bin/env python3
"""How soon a recogniser trains on ten hours of sounds, and how long its updates wait for data.

    python benchmarks/speech_start.py --stretto STRETTO --sources SOURCES --work WORK [--out PAGE.md] [--hours 10] [--starts 5]
                 [--recipes kathleen_wave2letter_small kathleen_conformer] [--updates 60] [--threads 2]

SOURCES has kathleen/kathleen_22050.tar. Its clips (0.86 hours) are repeated as files of their own, by hard links, until they are --hours
long, and listed in a manifest. The time is that from the command to the end of the first update:

- cold: no cache of Stretto's, and the sounds and the manifest are no longer in the memory of the system (posix_fadvise; program and
  libraries stay there);
- without the cache: with all files in memory;
- with it: as all later starts are. The goal is 2 s.

Then the recipe trains for --updates updates. Waiting is the share of the time of updates, but the first ten, in which the training thread
waited for micro-batches; the goal is 3 %. Leaves with 1 if a goal is missed. Takes about ten minutes; --smoke tries the script.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import sys

import records
import speech_files
import speech_recipes
import start_up
import understanding

GOAL_SECONDS, GOAL_WAITING = 2.0, 0.03
WARM = 10  # updates that are left out
CLIP_HOURS = 0.86
RECIPES = speech_recipes.RECIPES["kathleen"]


def long_manifest(options):
    """A list FILE<tab>TEXT of all clips, so many times that they are long enough; each row has a file of its own."""
    data = options.work / "data"
    speech_recipes.cut_kathleen(options, data)
    place = data / f"kathleen_{options.hours:g}h"
    manifest = place / "list.tsv"
    if manifest.exists():
        return manifest
    rows = [row for part in ("train", "valid") for row in speech_files.manifest_rows(data / f"kathleen/{part}.tsv")]
    count, links = round(options.hours / CLIP_HOURS * len(rows)), []
    for number in range(count):
        path, text = rows[number % len(rows)]
        link = place / f"{number // len(rows):03}" / pathlib.Path(path).name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.hardlink_to(path)
        links.append((link, text))
    return speech_files.write_manifest(manifest, links)


def forget(manifest):
    """Asks the system to drop the pages of a list and of its files."""
    os.sync()
    for path in {manifest, *(pathlib.Path(file) for file, _ in speech_files.manifest_rows(manifest))}:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def command(options, recipe, manifest, run, *more):
    shutil.rmtree(run, ignore_errors=True)
    return [options.stretto, "train", str(records.ROOT / f"configs/speech_recognition/{recipe}.toml"), "--run", str(run),
            f'data.train=["{manifest}"]', f'data.valid=["{options.work}/data/kathleen/valid.tsv"]', f"data.cache_dir={options.work}/cache",
            f"run.threads={options.threads}", "run.device=cpu", "eval.every=1000000", "train.save_every=1000000", "report.every=1",
            "report.html=false", "report.tensorboard=false", *more]


def starts(options, recipe, manifest):
    """Seconds to the first update: {how: [seconds]}; peak MiB of the last one."""
    found = {"cold": [], "without the cache": [], "with the cache": []}
    run = options.work / f"runs/start_{recipe}"
    for how, count in (("cold", options.cold_starts), ("without the cache", options.cold_starts), ("with the cache", options.starts)):
        for _ in range(count):
            if how != "with the cache":
                shutil.rmtree(options.work / "cache", ignore_errors=True)
            if how == "cold":
                forget(manifest)
            seconds, _, peak = start_up.first_line(command(options, recipe, manifest, run), run)
            found[how].append(seconds)
            print(f"{understanding.program_name()}: {recipe}, {how}: {seconds:.2f} s", file=sys.stderr, flush=True)
    return found, peak


def waiting(options, recipe, manifest):
    """The share of waiting, and seconds of sound a second, of the updates behind the first ones."""
    run = options.work / f"runs/wait_{recipe}"
    understanding.call([*command(options, recipe, manifest, run, "train.max_epochs=0", f"train.max_steps={options.updates}",
                                 f"schedule.warmup_steps={options.updates // 2}"), "--quiet"])
    events = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"][options.warm:]
    hop = speech_files.HOP_SECONDS
    rate = sum(event["frames"] for event in events) * hop / sum(event["frames"] / event["frames_per_second"] for event in events)
    return speech_files.waiting_share(events), rate


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--sources", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--work", type=pathlib.Path, help="folder for clips, caches and runs; default temporary")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--starts", type=int, default=5, help="with the cache")
    parser.add_argument("--cold-starts", type=int, default=3, help="of each of the other kinds")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="a quarter of an hour, few updates: tries the script")
    options = parser.parse_args()
    options.stretto, options.warm = records.program(parser, options.stretto), WARM
    if options.tiny:
        options.recipes, options.hours, options.starts, options.cold_starts, options.updates, options.warm = RECIPES[:1], 0.25, 1, 1, 3, 1
    if options.updates <= options.warm:
        parser.error(f"--updates must be more than {options.warm}")
    return options


def main():
    options, rows, missed = parse(), [], []
    head = records.head_of_now()
    with records.work_folder(options, "stretto_speech_start_"):
        manifest = long_manifest(options)
        count = len(speech_files.manifest_rows(manifest))
        for recipe in options.recipes:
            found, peak = starts(options, recipe, manifest)
            share, rate = waiting(options, recipe, manifest)
            rows.append([recipe, *(records.spread(seconds) for seconds in found.values()), f"{100 * share:.2f} %", f"{rate:,.0f}", peak])
            if (middle := statistics.median(found["with the cache"])) > GOAL_SECONDS:
                missed.append(f"{recipe} starts within {middle:.2f} s, not {GOAL_SECONDS:g}")
            if share > GOAL_WAITING:
                missed.append(f"{recipe} waits {100 * share:.1f} % of the time for data, not {100 * GOAL_WAITING:g}")
    notes = [f"{count:,} clips in FLAC at 22.05 kHz, {options.hours:g} hours; {options.threads} threads. Seconds to the end of the first update, "
             "medians (least – most); the clips are hard links, so that their bytes are read from the disk once."]
    titles = ["recipe", "cold, s", "without the cache, s", "with the cache, s", "waiting for data", "seconds of sound a second", "peak MiB"]
    records.publish(records.page("Start of recognition", notes, records.table(titles, rows), "ten minutes", head), options.out)
    for what in missed:
        print(f"{understanding.program_name()}: {what}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except understanding.Failed as failure:
        sys.exit(f"error: {failure}")
