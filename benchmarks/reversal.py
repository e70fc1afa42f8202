#!/usr/bin/env python3
"""Every encoder with every decoder on the reversal task: the nine recipes configs/smoke/reversal_*.toml, trained to their end.

    benchmarks/reversal.py [--stretto build/release/stretto] [--out benchmarks/reversal_….md] [--runs FOLDER] [NAME...]

NAME is the end of a recipe's name, as in `lstm_lstm` or `conv_transformer`; default: all nine. Each recipe trains in a fresh
run folder with an empty token cache, then `stretto eval` scores the test set. The table is Markdown with BLEU, updates, seconds
of training and scoring together, and parameters; --out receives it after each recipe, whole. Run folders are temporary unless
--runs names a folder that does not exist or is empty.

Leaves with 0 if every BLEU is 90 or more, 1 if one is below or a recipe failed, 130 after Ctrl-C and 143 after SIGTERM. What
was interrupted has ended by then, and the rows that were complete stay.
"""
import argparse
import dataclasses
import datetime
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from records import ROOT, commit, write_whole

PARTS = ("transformer", "lstm", "conv")
NAMES = [f"{encoder}_{decoder}" for encoder, decoder in itertools.product(PARTS, PARTS)]
ENOUGH = 90  # BLEU
GRACE = 60  # seconds that an interrupted training has to save


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    cells: list  # BLEU, updates, seconds, parameters
    good: bool


class Failed(Exception):
    pass


class Interrupted(BaseException):
    def __init__(self, number):
        super().__init__()
        self.number = number


class Signals:
    """What SIGINT and SIGTERM do: they raise Interrupted, though not while a program starts. Until Popen has given it back
    nobody could end it."""

    starting, came = False, None

    @classmethod
    def interrupt(cls, number, _):
        if not cls.starting:
            raise Interrupted(number)
        cls.came = number

    @classmethod
    def let_in(cls):
        cls.starting = False
        if cls.came is not None:
            raise Interrupted(cls.came)


def end(process):
    """Tells a program to end, waits for it, and kills it when that takes long or somebody is in a hurry."""
    process.terminate()
    try:
        process.communicate(timeout=GRACE)
    except (subprocess.TimeoutExpired, Interrupted):
        process.kill()
        process.communicate()


def call(command, log, cache):
    """What the command prints. Its own session keeps Ctrl-C from it: it is this program that ends it."""
    with open(log, "a", encoding="utf-8") as err:
        Signals.starting = True
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True,
                                       env={**os.environ, "STRETTO_CACHE": str(cache)}, start_new_session=True)
        except OSError:
            Signals.let_in()
            raise
        try:
            Signals.let_in()
            out, _ = process.communicate()
        except BaseException:
            end(process)
            raise
    if process.returncode != 0:
        last = "\n".join(pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise Failed(f"{' '.join(command)}\nleft with {process.returncode}:\n{last}")
    return out


def measure(stretto, name, folder):
    """Trains and scores one recipe in `folder`, which is empty: a row of the table, and the machine's facts."""
    run, log, cache = folder / "run", folder / "stderr.txt", folder / "cache"
    begin = time.monotonic()
    call([stretto, "train", str(ROOT / f"configs/smoke/reversal_{name}.toml"), "--run", str(run), "--quiet"], log, cache)
    score = json.loads(call([stretto, "eval", str(run), "--json"], log, cache))
    seconds = time.monotonic() - begin
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    cells = [f"{score['bleu']:.1f}" + (f" (below {ENOUGH})" if score["bleu"] < ENOUGH else ""), f"{events[-1]['step']:,}",
             f"{seconds:.0f}", dict(report["facts"])["parameters"]]
    return Row(name, cells, score["bleu"] >= ENOUGH), dict(report["machine"])


def table(rows, machine, head):
    """The whole file. A row more adds a line and changes nothing else."""
    lines = [f"# The reversal task: {head['date']}", "", f"Commit {head['commit']}. "
             f"Processor: {machine.get('processor', 'unknown')}, {machine.get('threads', '?')} threads, device {machine.get('device', '?')}.",
             "", "Ten symbols, sentences of 5 to 50; 10,000 pairs for training, BLEU on the 2,000 of the test set. Seconds are those of",
             "training and scoring together.", "", "```bash skip: a quarter of an hour", head["command"], "```", "",
             "| encoder, decoder | BLEU | updates | seconds | parameters |", "|---|---|---|---|---|"]
    # `lstm_conv` is an LSTM encoder and a convolutional decoder.
    lines += [f"| {row.name.replace('_', ', ')} | {' | '.join(row.cells)} |" for row in rows]
    return "\n".join(lines) + "\n"


def measure_all(options, place, head):
    """A row for each recipe. Nothing is printed before one has told what machine this is."""
    rows, machine, printed = [], None, 0
    for name in options.name or NAMES:
        folder = place / name
        folder.mkdir(parents=True)
        print(f"reversal.py: {name}", file=sys.stderr, flush=True)
        try:
            row, machine = measure(options.stretto, name, folder)
        except (Failed, OSError, LookupError, ValueError) as failure:
            print(f"reversal.py: {name}: {failure}", file=sys.stderr, flush=True)
            row = Row(name, ["failed", "", "", ""], False)
        rows.append(row)
        if machine is None:
            continue
        text = table(rows, machine, head)
        if options.out:
            write_whole(options.out, text)
        print(text[printed:], end="", flush=True)
        printed = len(text)
    return rows


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--runs", type=pathlib.Path)
    parser.add_argument("name", nargs="*", metavar="NAME")
    options = parser.parse_args()
    for name in options.name:
        if name not in NAMES:
            parser.error(f"there is no recipe {name}; there are {', '.join(NAMES)}")
    if len(set(options.name)) < len(options.name):
        parser.error("a recipe is named twice")
    options.stretto = shutil.which(options.stretto) or parser.error(f"{options.stretto} is no program: ./dev build makes it")
    if options.runs and options.runs.exists() and (not options.runs.is_dir() or any(options.runs.iterdir())):
        parser.error(f"{options.runs} is not empty; a run that is there already would be resumed")
    return options


def main():
    options = parse()
    head = {"date": datetime.date.today().isoformat(), "commit": commit(), "command": " ".join(["benchmarks/reversal.py", *options.name])}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, Signals.interrupt)
    place = options.runs or pathlib.Path(tempfile.mkdtemp(prefix="stretto_reversal_"))
    try:
        wrong = [row.name for row in measure_all(options, place, head) if not row.good]
    except Interrupted as interruption:
        print("reversal.py: interrupted", file=sys.stderr)
        return 128 + interruption.number
    finally:
        if not options.runs:
            shutil.rmtree(place, ignore_errors=True)
    if wrong:
        print(f"reversal.py: below {ENOUGH}, or failed: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
