#!/usr/bin/env python3
"""A model that takes a state from one update to the next loses none of it: kills, resumes and processes leave every bit alone.

    tests/runs/carry_test.py build/release/recurrent_family_tests [TEST...]     leaves with 77 where there is no mpirun
"""
import json
import pathlib
import shutil
import sys

from harness import TIMING, Lab, check, compare, main

TIMING |= {"numbers_per_second", "comm_seconds", "comm_wait_seconds", "processes"}
MPIRUN = pathlib.Path(__file__).resolve().parents[1] / "distributed/mpirun.sh"

# Six micro-batches, which are a stretch of all lanes, for up to three processes.
RECIPE = """
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "recurrent"
[dist]
deterministic = true
[optim]
lr = 0.05
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 12
save_every = 4
update_freq = 6
[eval]
every = 4
[report]
every = 1
tensorboard = false
html = false
"""


def train(lab, run, processes=1, killed=None):
    """One start. `killed`: in which of the lines that it writes to metrics.jsonl."""
    command = lab.command(run) if processes == 1 else [str(MPIRUN), str(processes), *lab.command(run)]
    result = lab.run(command, env={"STRETTO_FAILPOINT": f"metrics.write:kill:{killed}"} if killed else None)
    what = f"{run}, {processes} processes: exit code {result.returncode}: {result.stderr[-3000:]}"
    check((result.returncode != 0) if killed else (result.returncode == 0), what)


def last_tensors(lab, run):
    """The last checkpoint's files of tensors: names, shapes and bytes, without the run's identity."""
    folder = lab.root / run / "checkpoints/step_00000012"
    files = {}
    for path in folder.rglob("*.safetensors"):
        content = path.read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        head = json.loads(content[8:end])
        head.pop("__metadata__", None)
        files[str(path.relative_to(folder))] = head, content[end:]
    check(any("carry/h" in head for head, _ in files.values()), f"there is no state in {sorted(files)}")
    return files


def same(lab, run, what):
    compare(lab, "whole", run, what)
    want, got = last_tensors(lab, "whole"), last_tensors(lab, run)
    check(want == got, f"{what}: other bytes in {[name for name in want | got if want.get(name) != got.get(name)]}")


def killed_runs_end_with_the_bits_of_a_whole_one(program):
    with Lab(program, RECIPE) as lab:
        train(lab, "whole")
        for killed in (2, 5, 8, 11):
            run = f"killed{killed}"
            train(lab, run, killed=killed)
            train(lab, run)
            same(lab, run, run)
        for killed in (7, 6, 3):  # in updates 6, 9 and 11: each start but the first goes on from a checkpoint
            train(lab, "often", killed=killed)
        train(lab, "often")
        same(lab, "often", "killed three times")


def two_and_three_processes_end_with_the_bits_of_one(program):
    with Lab(program, RECIPE) as lab:
        train(lab, "whole")
        for processes in (2, 3):
            train(lab, f"of{processes}", processes)
            same(lab, f"of{processes}", f"{processes} processes")


def a_killed_run_goes_on_with_another_number_of_processes(program):
    with Lab(program, RECIPE) as lab:
        train(lab, "whole")
        train(lab, "run", processes=3, killed=8)
        train(lab, "run", processes=2, killed=5)
        train(lab, "run")
        same(lab, "run", "3, then 2 processes, then one")


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        sys.exit(77)
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name.startswith(("killed", "two", "a_killed"))})
