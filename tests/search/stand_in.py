#!/usr/bin/env python3
"""Plays `stretto train` for tests of the search: no training, but its files, its lock and its exit codes.

    stand_in.py RUN UNTIL KEY=VALUE...

The loss is a function of the learning rate and of the updates made. `checkpoints/state` has those; a run goes on from there.
$STAND_IN_END is where trials end by themselves, whatever they are asked for.
$STAND_IN_FAILURES names a folder: a file N there says in its words how trial N fails, one a line, each used once.
"""
import fcntl
import json
import math
import os
import pathlib
import sys
import time


def main():
    run, until, words = pathlib.Path(sys.argv[1]), int(sys.argv[2]), dict(word.split("=", 1) for word in sys.argv[3:])
    lock = open(run / ".lock", "a")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    failures = pathlib.Path(os.environ.get("STAND_IN_FAILURES", "/nowhere")) / run.name
    if failures.exists():
        lines = failures.read_text().splitlines()
        if lines:
            # Renamed, since it may be killed at any time: the file is that of before or of after.
            rest = failures.with_suffix(".tmp")
            rest.write_text("".join(line + "\n" for line in lines[1:]))
            rest.rename(failures)
            if lines[0].startswith("silent"):
                return int(lines[0][len("silent"):])
            if lines[0] == "other data":
                print("error: the data have changed since then: data.train: a: is new", file=sys.stderr, flush=True)
                return 65
            print("error: this trial fails as it was told", file=sys.stderr, flush=True)
            if lines[0] == "nan":
                (run / "metrics.jsonl").write_text(json.dumps({"step": until, "epoch": 1, "event": "valid", "nll": None}) + "\n")
                return 0
            if lines[0] == "nothing":
                return 0
            if lines[0] == "diverged":
                steps = ({"step": step, "epoch": 1, "event": "train", "seconds": step / 4} for step in (1, 2, 3, 4))
                (run / "metrics.jsonl").write_text("".join(
                    json.dumps(event | ({"skipped": True} if event["step"] > 2 else {})) + "\n" for event in steps))
                return 70
            return int(lines[0])
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        with open(run / "gpus", "a") as gpus:
            gpus.write(os.environ["CUDA_VISIBLE_DEVICES"] + "\n")
    state = run / "checkpoints/state"
    if not state.exists():
        (run / "metrics.jsonl").write_text("")
    step = int(state.read_text()) if state.exists() else 0
    rate = float(words["optim.lr"])
    slowness = float(os.environ.get("STAND_IN_SECONDS", "0.02")) * (1 + hash(rate) % 3)
    time.sleep(slowness)
    if step < until:
        made = min(until, int(os.environ.get("STAND_IN_END", until)))
        loss = abs(math.log10(rate) + 3) + 10 / made
        with open(run / "metrics.jsonl", "a") as metrics:
            metrics.write(json.dumps({"step": made, "epoch": 1, "event": "valid", "nll": loss, "seconds": slowness}) + "\n")
            if made < until:
                metrics.write(json.dumps({"step": made, "epoch": 1, "event": "end", "seconds": slowness}) + "\n")
        state.parent.mkdir(exist_ok=True)
        state.with_suffix(".tmp").write_text(str(until))
        state.with_suffix(".tmp").rename(state)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(75)
