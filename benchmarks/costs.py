#!/usr/bin/env python3
"""What looking and saving cost: the noise scale, the check for non-finite values, checkpoints beside training.

    benchmarks/costs.py --stretto build/release/stretto [--rounds 5] [--updates 40] CONFIG [key=value …]

Runs the experiment in turn with and without the noise scale, and with a checkpoint every few updates, and prints medians over rounds
of the median step. The check for non-finite values is the norm of the gradient, which a step needs anyway: what it reads is printed beside
the step as optimizer_bench measures it. The cost of a checkpoint is what training waited, from the run's log, over the time of
`train.save_every` updates at its default of 1,000.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile


def run(options, folder, *extra):
    where = folder / "run"
    shutil.rmtree(where, ignore_errors=True)
    command = [options.stretto, "train", options.config, "--run", str(where), "--quiet",
               f"train.max_steps={options.updates}", "schedule.warmup_steps=5", "report.every=1", "report.html=false",
               "report.tensorboard=false", "eval.every=1000000", "eval.bleu=false", "train.update_freq=2",
               "train.save_every=1000000", *options.override, *extra]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(result.stdout)
    events = [json.loads(line) for line in (where / "metrics.jsonl").read_text().splitlines()]
    at = [e["seconds"] for e in events if e["event"] == "train"]
    steps = [b - a for a, b in zip(at, at[1:])][2:]
    saved = re.search(r"([\d,]+) checkpoints: training waited (\d+) ms in all, ([\d.]+) ms at the longest; written beside it in ([\d.]+) s",
                      (where / "log.txt").read_text())
    return statistics.median(steps), sum(steps), saved and tuple(float(g.replace(",", "")) for g in saved.groups())


def spread(values):
    return f"{statistics.median(values) * 1e3:.1f} ms ({min(values) * 1e3:.1f} – {max(values) * 1e3:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="updates between checkpoints in the third run")
    parser.add_argument("config", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("override", nargs="*")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_costs_"))
    plain, noise, saving, saves = [], [], [], []
    try:
        for _ in range(options.rounds):
            plain.append(run(options, folder, "train.noise_scale=false")[0])
            noise.append(run(options, folder, "train.noise_scale=true")[0])
            step, _, saved = run(options, folder, "train.noise_scale=false", f"train.save_every={options.every}")
            saving.append(step)
            saves.append(saved)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    base = statistics.median(plain)
    stall = statistics.median(s[1] / s[0] for s in saves) / 1e3
    longest = max(s[2] for s in saves)
    writing = statistics.median(s[3] / s[0] for s in saves)
    print("| what | step: median of rounds (min – max) | share |\n|---|---|---|")
    print(f"| neither | {spread(plain)} | |")
    print(f"| noise scale | {spread(noise)} | {statistics.median(noise) / base - 1:+.2%} of a step |")
    print(f"| a checkpoint every {options.every} updates | {spread(saving)} | {statistics.median(saving) / base - 1:+.2%} of a step |")
    print(f"| one checkpoint: training waits {stall * 1e3:.1f} ms (longest of all {longest:.1f}), written beside it in {writing:.2f} s | | "
          f"{stall / (1000 * base):.4%} of 1,000 updates; with its writing counted in full {(stall + writing) / (1000 * base):.3%} |")


if __name__ == "__main__":
    main()
