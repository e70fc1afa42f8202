"""examples/slurm/train.sbatch with the built program, in a queue made up: each job gets the signal before its limit.

    slurm_test.py PATH/TO/stretto
"""
import os
import pathlib
import signal
import subprocess

from harness import Lab, check, compare, main, wait_for

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples/slurm/train.sbatch"
# As a task of srun: its pid is noted, and it is the program itself that gets the signal.
SRUN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
echo $$ >"$QUEUE/pid"
exec "$@"
"""
SCONTROL = """#!/bin/sh
[ "$1 $2" = "requeue 7" ] && touch "$QUEUE/requeued"
"""


def fake_commands(lab):
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        path = lab.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def steps(lab, run):
    return lab.events(run)[-1]["step"] if lab.updates(run) else 0


def job(lab, run, restarts, max_steps, signalled):
    """One turn in the queue. @return whether the job was queued again"""
    environment = {**os.environ, "PATH": f"{lab.root / 'bin'}:{os.environ['PATH']}", "QUEUE": str(lab.root),
                   "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts), "STRETTO": lab.stretto}
    for name in ("pid", "requeued"):
        (lab.root / name).unlink(missing_ok=True)
    before = steps(lab, run)
    process = subprocess.Popen([SCRIPT, lab.config, lab.root / run, f"train.max_steps={max_steps}"], env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        if signalled:
            wait_for(lambda: steps(lab, run) > before + 5, "an update", process)
            os.kill(int((lab.root / "pid").read_text()), signal.SIGUSR1)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    check(process.returncode == 0, f"exit code {process.returncode}: {said}")
    if signalled:
        check("saved and stopped at step" in said, said)
    return (lab.root / "requeued").exists()


def a_job_saves_before_its_limit_and_goes_on_in_the_next_turn(stretto):
    with Lab(stretto) as lab:
        fake_commands(lab)
        lab.config.write_text(lab.config.read_text().replace("save_every = 7", "save_every = 1000000"))
        for turn in range(2):  # that would never end by themselves
            check(job(lab, "cut", turn, 1000000, signalled=True), "the job was not queued again")
            check(lab.events("cut")[-1]["event"] != "end", "it was not stopped by the signal")
        end = steps(lab, "cut") + 30
        check(not job(lab, "cut", 2, end, signalled=False), "a finished job was queued again")
        result = lab.train("whole", f"train.max_steps={end}")
        check(result.returncode == 0, result.stderr)
        compare(lab, "whole", "cut", "three turns in the queue")


if __name__ == "__main__":
    main({"a_job_saves_before_its_limit_and_goes_on_in_the_next_turn":
          a_job_saves_before_its_limit_and_goes_on_in_the_next_turn})
