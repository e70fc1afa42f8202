#!/usr/bin/env python3
"""Time of commands that need no tensors, time from the command to the first training step, and memory as the corpus grows.

    benchmarks/start_up.py build/release/stretto [PAIRS...]        default: 30000 1000000
    benchmarks/start_up.py build/release/stretto --commands        the commands alone, within seconds

Commands: `--help`, `describe`, `score` of twelve lines and `check` of a smoke recipe, --starts times each in turn, after one start that
is not counted; the table has the median with the least and the most. Leaves with 1 if the median of one of the first three is above
--most-ms: they load no libtorch. `check` is shown without a limit, since it reads text and trains a tokenizer.

First step: text is the phrasebook's training pairs (build/phrasebook) repeated to the wanted number of lines. Anonymous memory is
what the process owns (RssAnon); peak resident memory counts mapped cache pages too.
"""
import argparse
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import records

CONFIG = records.ROOT / "configs/smoke/translation.toml"
PHRASEBOOK = records.ROOT / "build/phrasebook"
UNLIMITED = "check"


def commands(folder):
    """Name -> arguments."""
    lines = folder / "lines.txt"
    lines.write_text("the small house has a red door and a big old garden\n" * 12, encoding="utf-8")
    return {"--help": ["--help"], "describe": ["describe"], "score": ["score", "--hypotheses", str(lines), "--reference", str(lines)],
            "check": ["check", str(CONFIG)]}


def milliseconds(command):
    begin = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\nleft with {done.returncode}:\n{done.stderr}")
    return 1000 * seconds


def measure_commands(options):
    """A table, and the names of those that are too slow."""
    with tempfile.TemporaryDirectory(prefix="stretto_start_up_") as folder:
        every = {name: [options.stretto, *words] for name, words in commands(pathlib.Path(folder)).items()}
        found = {name: [] for name in every}
        for number in range(options.starts + 1):
            for name, command in every.items():
                taken = milliseconds(command)
                if number > 0:  # the first start reads files from the disk
                    found[name].append(taken)
    slow = [name for name, taken in found.items() if name != UNLIMITED and statistics.median(taken) > options.most_ms]
    return records.table(["command", "ms"], [[f"`{name}`", records.spread(taken, decimals=1)] for name, taken in found.items()]), slow


def repeat(side, pairs, path):
    lines = (PHRASEBOOK / f"train.{side}").read_bytes().splitlines(keepends=True)
    with open(path, "wb") as out:
        for start in range(0, pairs, len(lines)):
            out.writelines(lines[:min(len(lines), pairs - start)])


def status(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) // 1024
    return 0


def first_line(command, run):
    """Seconds until a training's metrics.jsonl has its first line, which ends it; RssAnon and peak RSS in MiB then."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        log = run / "metrics.jsonl"
        while not (log.exists() and log.stat().st_size > 0):
            if process.poll() is not None:
                sys.exit(f"training ended with {process.returncode}: {' '.join(command)}")
            time.sleep(0.005)
        seconds = time.monotonic() - start
        return seconds, status(process.pid, "RssAnon"), status(process.pid, "VmHWM")
    finally:
        process.kill()
        process.wait()


def first_step(stretto, folder, run):
    return first_line([stretto, "train", str(CONFIG), "--run", str(run), f"data.train_src={folder}/train.en",
                       f"data.train_tgt={folder}/train.fr", f"data.cache_dir={folder}/cache",
                       f"tokenizer.model={folder}/tokenizer.model", "report.every=1", "eval.every=1000000",
                       "train.max_steps=1000000", "report.html=false", "report.tensorboard=false"], run)


def measure_first_steps(options):
    rows = []
    for pairs in options.pairs:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_start_up_"))
        try:
            for side in ("en", "fr"):
                repeat(side, pairs, folder / f"train.{side}")
            subprocess.run([options.stretto, "tokenizer", "train", "--vocab-size", "600", "--output",
                            str(folder / "tokenizer.model"), str(PHRASEBOOK / "train.en"),
                            str(PHRASEBOOK / "train.fr")], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cold = first_step(options.stretto, folder, folder / "cold")
            warm = [first_step(options.stretto, folder, folder / f"warm{i}") for i in range(3)]
            seconds = sorted(w[0] for w in warm)[1]
            rows.append([f"{pairs:,}", f"{cold[0]:.1f}", f"{seconds:.2f}", warm[-1][1], warm[-1][2]])
            print(f"start_up.py: {pairs:,} pairs: {cold[0]:.1f} s, cached {seconds:.2f} s", file=sys.stderr, flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return records.table(["pairs", "first step, nothing cached s", "first step, cached s", "RssAnon MiB", "peak RSS MiB"], rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stretto")
    parser.add_argument("pairs", nargs="*", type=int, default=[30_000, 1_000_000])
    parser.add_argument("--commands", action="store_true", help="no first steps")
    parser.add_argument("--starts", type=int, default=20, help="of each command")
    parser.add_argument("--most-ms", type=float, default=50, help="largest median that is accepted")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    if options.starts < 1:
        parser.error("--starts must be at least 1")
    if not (PHRASEBOOK / "train.en").is_file():
        parser.error(f"no {PHRASEBOOK}/train.en: ./dev build makes it")
    return options


def main():
    options, head = parse(), records.head_of_now()
    table, slow = measure_commands(options)
    notes, parts = [f"Commands: starts in turn, {options.starts} of each; median with the least and the most."], [table]
    if not options.commands:
        notes.append("First step: the smoke model, 600 sub-words.")
        parts.append(measure_first_steps(options))
    records.publish(records.page("Start-up", notes, "\n\n".join(parts), "seconds" if options.commands else "minutes", head), options.out)
    for name in slow:
        print(f"start_up.py: the median of `{name}` is above {options.most_ms:g} ms", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
