#!/usr/bin/env python3
"""A smoke recipe trains as it did when its curve was stored.

    tests/runs/smoke_test.py build/release/stretto [TEST...]
    tests/runs/smoke_test.py build/release/stretto --store      writes the curve anew

Curves: tests/assets/losses/NAME.txt, `step loss batch_hash` a line. The order of data must be equal to the bit. Losses may
differ by rounding between processors: 1e-4 relative in the first 20 updates, 2 % at the end.
"""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import check, main

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CURVES = ROOT / "tests/assets/losses"


def run_recipe(stretto, recipe):
    with tempfile.TemporaryDirectory(prefix="stretto_smoke_") as folder:
        result = subprocess.run([stretto, "train", str(ROOT / recipe), "--run", folder + "/run"],
                                env={**os.environ, "STRETTO_CACHE": folder + "/cache"}, timeout=300,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        lines = (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()
        for name in ("report.html", "config.toml", "log.txt"):
            check((pathlib.Path(folder) / "run" / name).exists(), f"the run folder has no {name}")
    return [event for event in map(json.loads, lines) if event["event"] == "train"]


def store(stretto):
    CURVES.mkdir(parents=True, exist_ok=True)
    for name in RECIPES:
        events = run_recipe(stretto, f"configs/smoke/{name}.toml")
        text = "".join(f"{e['step']} {e['loss']:.6f} {e['batch_hash']}\n" for e in events)
        (CURVES / f"{name}.txt").write_text(text)
        print(f"{name}: stored {len(events)} steps, last loss {events[-1]['loss']:.4f}")


def follows_its_stored_curve(stretto, name):
    stored = [line.split() for line in (CURVES / f"{name}.txt").read_text().splitlines()]
    events = run_recipe(stretto, f"configs/smoke/{name}.toml")
    check(len(events) == len(stored), f"{len(events)} updates, {len(stored)} stored")
    early, late = RECIPES[name]
    for event, (step, loss, batch_hash) in zip(events, stored):
        check(event["step"] == int(step), f"step {event['step']}, expected {step}")
        check(event["batch_hash"] == batch_hash, f"step {step}: other data than stored")
        allowed = early if event["step"] <= 20 else late
        check(abs(event["loss"] - float(loss)) <= allowed * float(loss),
              f"step {step}: loss {event['loss']:.6f}, stored {loss}")
    check(events[-1]["loss"] < 0.6 * events[0]["loss"], "the loss hardly fell")


# Recipe -> how far losses may be from those stored, relative: in the first 20 updates, and after them.
# Half precision differs by its own rounding between processors that have bf16 products and those that have not.
RECIPES = {"translation": (1e-4, 0.02), "mixed_fp16": (2e-3, 0.04), "mixed_bf16": (5e-3, 0.05), "large_batch": (1e-4, 0.02),
           "batch_norm": (1e-4, 0.02), "modern_blocks": (1e-4, 0.02), "modern_attention": (1e-4, 0.02)}

if __name__ == "__main__":
    if sys.argv[2:] == ["--store"]:
        store(sys.argv[1])
    else:
        main({f"{name}_follows_its_stored_curve": functools.partial(follows_its_stored_curve, name=name) for name in RECIPES})
