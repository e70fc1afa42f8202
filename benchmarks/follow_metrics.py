#!/usr/bin/env python3
"""Runs a training command and prints `UPD n ntok loss` as each `train` event arrives in metrics.jsonl.

    benchmarks/follow_metrics.py RUN -- stretto train CONFIG --run RUN report.every=1

A harness that times other trainers from their log lines can time Stretto from these in the same way.
"""
import json
import pathlib
import subprocess
import sys
import time


def main():
    run, command = pathlib.Path(sys.argv[1]), sys.argv[sys.argv.index("--") + 1:]
    log = run / "metrics.jsonl"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    position, pending, alive = 0, "", True
    while alive:
        alive = process.poll() is None
        if log.exists():
            with open(log, encoding="utf-8") as file:
                file.seek(position)
                pending += file.read()
                position = file.tell()
            *lines, pending = pending.split("\n")
            for event in map(json.loads, lines):
                if event["event"] == "train":
                    print("UPD", event["step"], event["target_tokens"], f"{event['loss']:.4f}", flush=True)
                elif event["event"] == "valid":
                    print("VALID", json.dumps(event), flush=True)
        time.sleep(0.003)
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
