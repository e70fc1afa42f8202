#!/usr/bin/env python3
"""Runs a training command and prints `UPD n ntok loss` as each `train` event arrives in metrics.jsonl.

    benchmarks/follow_metrics.py RUN -- stretto train CONFIG --run RUN report.every=1

A harness that times other trainers from their log lines can time Stretto from these in the same way. When the
command fails, the end of what it wrote follows on stderr, and this program leaves with the same exit code (128 + the
signal when it was killed).
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LAST_LINES = 20


def print_event(event):
    if event["event"] == "train":
        # Families without targets count the tokens of their texts, pictures, or frames of sounds.
        tokens = next((event[name] for name in ("target_tokens", "tokens", "pictures", "frames") if name in event), None)
        print("UPD", event["step"], tokens, f"{event['loss']:.4f}", flush=True)
    elif event["event"] == "valid":
        print("VALID", json.dumps(event), flush=True)


def size_of(path):
    """Bytes of a file; 0 if there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def follow(log, process):
    """Prints the events of `log` until the process has ended and all that it wrote is read.

    It looks at the size alone, two hundred times a second: what it takes of a core, the command lacks."""
    position, pending, alive = 0, b"", True
    while alive:
        alive = process.poll() is None
        if size_of(log) > position:
            with open(log, "rb") as file:
                file.seek(position)
                pending += file.read()
                position = file.tell()
            *lines, pending = pending.split(b"\n")
            for line in lines:
                print_event(json.loads(line))
        time.sleep(0.005)
    return process.returncode


def main():
    if "--" not in sys.argv[2:-1]:
        sys.exit(__doc__.split("\n\n")[1].strip())
    run, command = pathlib.Path(sys.argv[1]), sys.argv[sys.argv.index("--") + 1:]
    # A file and not a pipe: nobody has to empty it while the updates are timed.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        except OSError as error:
            sys.exit(f"follow_metrics.py: cannot start {command[0]}: {error.strerror}")
        code = follow(run / "metrics.jsonl", process)
        if code != 0:
            output.seek(0)
            ending = f"was killed by signal {-code}" if code < 0 else f"left with exit code {code}"
            print(f"follow_metrics.py: {command[0]} {ending}:", file=sys.stderr)
            sys.stderr.writelines(collections.deque(output, LAST_LINES))
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
