#!/usr/bin/env python3
"""The ladder of "Scaling Neural Machine Translation" (Ott et al. 2018, table 1): time to a fixed validation loss.

    benchmarks/ladder.py --stretto build/release/stretto --config configs/translation/multi30k_ladder.toml \
        --target 3.0 --limit-minutes 8 [--row NAME] [--out benchmarks/ladder_….json]

Each row is one way to train the same model on the same text. It trains until a validation reaches the target
(natural-log nll per target token) or the limit ends. The time is that of training alone: the `seconds` of metrics.jsonl, between
which the last two validations are interpolated. Rows run one after the other on an otherwise quiet machine.
"""
import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import records

# Name, processes, overrides. `cores` is filled in: threads of one process that has the machine to itself.
ROWS = [
    ("baseline", 1, []),
    ("accumulation 16", 1, ["train.update_freq=16"]),
    ("+ 2x learning rate", 1, ["train.update_freq=16", "optim.lr=2e-3"]),
    ("micro-batches of 4,096", 1, ["data.max_tokens=4096", "optim.lr=1.4e-3"]),
    ("baseline, bf16", 1, ["train.precision=mixed_bf16"]),
    ("2 processes", 2, ["train.update_freq=2", "optim.lr=1.4e-3", "dist.overlap=false"]),
    ("2 processes + overlap", 2, ["train.update_freq=2", "optim.lr=1.4e-3"]),
    ("2 processes, the baseline's batch", 2, []),
    ("2 processes, the baseline's batch, bf16", 2, ["train.precision=mixed_bf16"]),
    ("2 processes + overlap, bf16", 2, ["train.update_freq=2", "optim.lr=1.4e-3", "train.precision=mixed_bf16"]),
]


def crossing(validations, target):
    """Seconds and updates at which nll crossed the target, by linear interpolation in nll."""
    before = None
    for at in validations:
        if at["nll"] <= target:
            if before is None:
                return at["seconds"], at["step"]
            share = (before["nll"] - target) / (before["nll"] - at["nll"])
            return (before["seconds"] + share * (at["seconds"] - before["seconds"]),
                    before["step"] + share * (at["step"] - before["step"]))
        before = at
    return None


def train(options, processes, overrides, run):
    command = [options.stretto, "train", options.config, "--run", str(run), "--quiet", *overrides, *options.override]
    if processes > 1:
        command += ["--processes", str(processes)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60 * options.limit_minutes * 1.5 + 60
    while process.poll() is None:
        seen = records.json_lines(run / "metrics.jsonl")
        done = crossing([e for e in seen if e["event"] == "valid"], options.target)
        trained = seen[-1].get("seconds", 0) if seen else 0
        if done or trained > 60 * options.limit_minutes or time.monotonic() > deadline:
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(1)
    try:
        _, stderr = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    if process.returncode not in (0, 75):
        raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{stderr}")


def measure(options, name, processes, overrides):
    run = pathlib.Path(tempfile.mkdtemp(prefix="stretto_ladder_")) / "run"
    try:
        train(options, processes, overrides, run)
        seen = records.json_lines(run / "metrics.jsonl")
    finally:
        shutil.rmtree(run.parent, ignore_errors=True)
    updates = [e for e in seen if e["event"] == "train" and not e.get("skipped")]
    validations = [e for e in seen if e["event"] == "valid"]
    reached = crossing(validations, options.target)
    return {
        "row": name, "processes": processes, "overrides": overrides,
        "tokens_per_update": sum(e["target_tokens"] for e in updates) / len(updates),
        "tokens_per_second": sorted(e["tokens_per_second"] for e in updates)[len(updates) // 2],
        "seconds": reached[0] if reached else None, "updates": reached[1] if reached else None,
        "last_nll": validations[-1]["nll"] if validations else None,
        "trained_seconds": seen[-1]["seconds"],
        "noise_scale": next((e["noise_scale"] for e in reversed(updates) if "noise_scale" in e), None),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--config", default="configs/translation/multi30k_ladder.toml")
    parser.add_argument("--target", type=float, required=True)
    parser.add_argument("--limit-minutes", type=float, default=8)
    parser.add_argument("--row", action="append", help="only rows of this name")
    parser.add_argument("--out")
    parser.add_argument("override", nargs="*", help="key=value for every row")
    options = parser.parse_args()
    results = []
    print("| row | target tokens an update | tokens/s | updates | minutes | speed-up |\n|---|---|---|---|---|---|", flush=True)
    for name, processes, overrides in ROWS:
        if options.row and name not in options.row:
            continue
        result = measure(options, name, processes, overrides)
        results.append(result)
        base = results[0]["seconds"] if results[0]["row"] == ROWS[0][0] else None
        if result["seconds"]:
            speed_up = f"{base / result['seconds']:.2f}" if base else "-"
            reached = f"{result['updates']:.0f} | {result['seconds'] / 60:.2f} | {speed_up}"
        else:
            reached = f"not reached: nll {result['last_nll']:.3f} | after {result['trained_seconds'] / 60:.1f} | "
        print(f"| {name} | {result['tokens_per_update']:.0f} | {result['tokens_per_second']:.0f} | {reached} |", flush=True)
        if options.out:
            pathlib.Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
