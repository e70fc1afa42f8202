#!/usr/bin/env python3
"""What looking and saving cost: the noise scale, the check for non-finite values, checkpoints beside training.

    benchmarks/costs.py --stretto build/release/stretto --bench build/release/optimizer_bench [--rounds 5] [--updates 60]
        CONFIG [key=value …]

Runs the experiment in turn without and with the noise scale and with a checkpoint every few updates. All runs see the same batches,
so updates are compared one by one: a round's cost is the median difference of its updates, and the table gives the median over
rounds with the least and the most.

  noise scale         an update with it minus the same update without it
  non-finite values   one pass over the gradient: the sum of squares, finite only if all numbers are, that clipping reads anyway.
                      optimizer_bench times it at the model's number of parameters, with the run's threads, once a round
  checkpoint, wait    what training waited for one, from the run's log, over `--interval` updates (train.save_every's default)
  checkpoint, all     the time that updates with checkpoints beside them took more, per checkpoint, over the same
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SKIP = 3  # first updates, which warm up
SAVED = re.compile(r"([\d,]+) checkpoints: training waited ([\d,]+) ms in all, ([\d.,]+) ms at the longest; written beside it in ([\d.,]+) s")
PARAMETERS = re.compile(r"parameters: ([\d,]+)")


def number(text):
    return float(text.replace(",", ""))


class Run:
    """Seconds of each update, and from the log: parameters, and (checkpoints, ms waited, longest ms, seconds of writing)."""

    def __init__(self, options, folder, *extra):
        where = folder / "run"
        shutil.rmtree(where, ignore_errors=True)
        command = [options.stretto, "train", options.config, "--run", str(where), "--quiet",
                   f"train.max_steps={options.updates + SKIP}", "schedule.warmup_steps=5", "report.every=1", "report.html=false",
                   "report.tensorboard=false", "eval.every=1000000", "eval.bleu=false", "train.update_freq=2",
                   "train.save_every=1000000", f"run.threads={options.threads}", *options.override, *extra]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{result.stdout}")
        events = [json.loads(line) for line in (where / "metrics.jsonl").read_text().splitlines()]
        train = [e for e in events if e["event"] == "train"]
        self.steps = [b["seconds"] - a["seconds"] for a, b in zip(train, train[1:])][SKIP - 1:]
        self.hashes = [e["batch_hash"] for e in train]
        self.parameters = number(PARAMETERS.search((where / "log.txt").read_text())[1])
        saved = SAVED.search((where / "log.txt").read_text())
        self.saved = tuple(map(number, saved.groups())) if saved else None


def norm_seconds(options, elements):
    command = [options.bench, f"--elements={int(elements)}", f"--threads={options.threads}", "--names=norm", "--rounds=9", "--json"]
    line = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return statistics.median(line["seconds"]) * elements / line["elements"]


def one_round(options, folder, backwards):
    """Each cost of this round: (seconds, share of an update or of the interval)."""
    kinds = {"plain": ["train.noise_scale=false"], "noise": ["train.noise_scale=true"],
             "saving": ["train.noise_scale=false", f"train.save_every={options.every}"]}
    runs = {kind: Run(options, folder, *kinds[kind]) for kind in (reversed(kinds) if backwards else kinds)}
    plain, noise, saving = (runs[kind] for kind in kinds)
    if not plain.hashes == noise.hashes == saving.hashes:
        sys.exit("the runs of a round saw other batches")
    if not saving.saved:
        sys.exit("no checkpoint was written: let --every be smaller than --updates")
    step = statistics.mean(plain.steps)
    extra = statistics.median(b - a for a, b in zip(plain.steps, noise.steps))
    norm = norm_seconds(options, plain.parameters)
    saves, waited, longest, writing = saving.saved
    wait = waited / saves / 1e3
    slower = sum(b - a for a, b in zip(plain.steps, saving.steps)) / (len(saving.steps) / options.every)
    interval = options.interval * step
    return {"update": (step, None), "noise": (extra, extra / step), "norm": (norm, norm / step), "wait": (wait, wait / interval),
            "all": (slower, slower / interval), "longest": (longest / 1e3, None), "writing": (writing / saves, None)}


ROWS = [("update", "an update with neither"), ("noise", "noise scale, each update"),
        ("norm", "check for non-finite values, each update"), ("wait", "a checkpoint: training waits"),
        ("all", "a checkpoint: all time it takes from training"), ("writing", "a checkpoint: written beside training in"),
        ("longest", "longest stall of a round")]


def spread(values, unit, decimals):
    return (f"{statistics.median(values) / unit:.{decimals}f} "
            f"({min(values) / unit:.{decimals}f} – {max(values) / unit:.{decimals}f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    resolved = lambda p: str(pathlib.Path(p).resolve())
    parser.add_argument("--stretto", default="build/release/stretto", type=resolved)
    parser.add_argument("--bench", default="build/release/optimizer_bench", type=resolved, help="the program optimizer_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--every", type=int, default=20, help="updates between checkpoints in the third run of a round")
    parser.add_argument("--interval", type=int, default=1000, help="updates between checkpoints that the share is for")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("config", type=resolved)
    parser.add_argument("override", nargs="*")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_costs_"))
    rounds = []
    try:
        for i in range(options.rounds):
            rounds.append(one_round(options, folder, i % 2 == 1))
            print(f"round {i + 1} of {options.rounds}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.rounds} rounds of {options.updates} updates, {options.threads} threads, a checkpoint every {options.every} updates "
          f"as measured, every {options.interval:,} as the share has it\n")
    print("| what | ms: median of rounds (least – most) | share of wall time: median (least – most) |\n|---|---|---|")
    for key, name in ROWS:
        seconds, shares = [r[key][0] for r in rounds], [r[key][1] for r in rounds]
        share = f"{spread(shares, 0.01, 3)} %" if shares[0] is not None else ""
        print(f"| {name} | {spread(seconds, 1e-3, 2)} | {share} |")
    print(f"\nLongest stall of all: {max(r['longest'][0] for r in rounds) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
