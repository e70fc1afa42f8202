"""What the tests of runs with several processes share: how they are started, and what is read of them."""
import atexit
import functools
import os
import shutil

from harness import TIMING, Lab, check

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader"]
if os.geteuid() == 0:
    MPIRUN.append("--allow-run-as-root")
TIMING |= {"comm_seconds", "comm_wait_seconds", "processes"}

FOUR = ("train.update_freq=4", "data.max_tokens=60")  # four micro-batches an update, for up to four processes
EXACT = (*FOUR, "dist.deterministic=true")

# Enough parameters for three slices: dist.strategy = "sharded" cuts at multiples of 65,536.
WIDE = ("model.d_model=64", "model.encoder.ffn_dim=512", "model.decoder.ffn_dim=512")


def train(lab, run, processes, *overrides, env=None, timeout=300, options=()):
    command = lab.command(run, *overrides)
    command += ["--processes", str(processes), *options]
    return lab.run(command, env=env, timeout=timeout)


def succeed(result, what):
    check(result.returncode == 0, f"{what}: exit code {result.returncode}: {result.stderr[-3000:]}")


@functools.cache
def shared_lab(stretto):
    """A lab for tests that only train runs of their own, and compare them with runs of one process (`once`)."""
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    return lab


def once(lab, run, *overrides):
    """A run of one process that several tests read."""
    if not (lab.root / run).exists():
        succeed(lab.train(run, *overrides), run)


def of(lab, run, event, *names):
    return [tuple(e.get(name) for name in names) for e in lab.events(run) if e["event"] == event]


def mpirun(lab, run, processes, *overrides, on_rank=None, env=None):
    """A command for mpirun itself; `on_rank` = (rank, shell commands that only this rank runs first)."""
    rank, first = on_rank or (-1, ":")
    script = f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then {first}; fi; exec "$@"'
    return [*MPIRUN, "-n", str(processes), "sh", "-c", script, "sh", *lab.command(run, *overrides)]
