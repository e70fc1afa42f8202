#!/usr/bin/env python3
"""A training takes no more memory the longer it lasts: what it writes leaves nothing among the tensors.

    tests/runs/memory_test.py build/release/stretto [TEST...]
"""
import pathlib

from harness import Lab, check, main

RECIPE = pathlib.Path(__file__).resolve().parents[2] / "configs/smoke/language_model_lstm.toml"
BEGIN, END = 125, 250
MIB = 2**20


def peaks(lab):
    return {event["step"]: event["peak_memory_bytes"] for event in lab.events("run") if event["event"] == "train"}


def events_validations_and_checkpoints_leave_no_memory_behind(stretto):
    with Lab(stretto) as lab:
        made = lab.run([stretto, "train", str(RECIPE), "--run", str(lab.root / "run"), "--quiet", "--until", str(END), "run.threads=1",
                        "run.device=cpu", "report.every=1", "report.html_seconds=0.5", "eval.every=25", "train.save_every=25",
                        f"data.cache_dir={lab.root}/cache"], timeout=300)
        check(made.returncode == 0, made.stderr[-2000:])
        found = peaks(lab)
        grown = found[END] - found[BEGIN]
        check(grown < 8 * MIB, f"the peak grew by {grown / MIB:.1f} MiB in updates {BEGIN} to {END}: {found}")


TESTS = {test.__name__: test for test in (events_validations_and_checkpoints_leave_no_memory_behind,)}

if __name__ == "__main__":
    main(TESTS)
