#!/usr/bin/env python3
"""A smoke recipe trains as it did when its curve was stored.

    tests/runs/smoke_test.py build/release/stretto [TEST...]
    tests/runs/smoke_test.py build/release/stretto --store      writes the curve anew

Curves: tests/assets/losses/NAME.txt, `step loss batch_hash` a line. The order of data must be equal to the bit. Losses may
differ by rounding between processors: 1e-4 relative in the first 20 updates, 2 % at the end.
"""
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
    events = run_recipe(stretto, "configs/smoke/translation.toml")
    text = "".join(f"{e['step']} {e['loss']:.6f} {e['batch_hash']}\n" for e in events)
    (CURVES / "translation.txt").write_text(text)
    print(f"stored {len(events)} steps, last loss {events[-1]['loss']:.4f}")


def translation_follows_its_stored_curve(stretto):
    stored = [line.split() for line in (CURVES / "translation.txt").read_text().splitlines()]
    events = run_recipe(stretto, "configs/smoke/translation.toml")
    check(len(events) == len(stored), f"{len(events)} updates, {len(stored)} stored")
    for event, (step, loss, batch_hash) in zip(events, stored):
        check(event["step"] == int(step), f"step {event['step']}, expected {step}")
        check(event["batch_hash"] == batch_hash, f"step {step}: other data than stored")
        allowed = 1e-4 if event["step"] <= 20 else 0.02
        check(abs(event["loss"] - float(loss)) <= allowed * float(loss),
              f"step {step}: loss {event['loss']:.6f}, stored {loss}")
    check(events[-1]["loss"] < 0.5 * events[0]["loss"], "the loss did not even halve")


if __name__ == "__main__":
    if sys.argv[2:] == ["--store"]:
        store(sys.argv[1])
    else:
        main({"translation_follows_its_stored_curve": translation_follows_its_stored_curve})
