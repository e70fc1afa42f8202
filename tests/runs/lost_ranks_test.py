#!/usr/bin/env python3
"""Ranks that are killed, that stop, or get a signal: who is named, how the job ends, and what is saved.

    tests/runs/lost_ranks_test.py build/release/stretto [TEST...]
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import FULL, Failure, Lab, check, compare, full_or, main
from mpi_runs import EXACT, FOUR, MPIRUN, mpirun, of, once, shared_lab, succeed, train


def ranks_of(process):
    """Process ids of the ranks below a launcher, by rank."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environ = (path / "environ").read_bytes().split(b"\0")
            parents = path
            while True:
                parent = int((parents / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == process.pid:
                    break
                if parent <= 1:
                    raise LookupError
                parents = pathlib.Path(f"/proc/{parent}")
            if (path / "comm").read_text().strip() != "stretto":
                continue
            rank = [e for e in environ if e.startswith(b"OMPI_COMM_WORLD_RANK=")]
            if rank:
                found[int(rank[0].split(b"=")[1])] = int(path.name)
        except (OSError, LookupError, IndexError, ValueError):
            continue
    return found


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def long_run(lab, run, processes, *overrides, options=(), starter=None):
    words = ("train.max_steps=100000", "dist.timeout_seconds=3", *FOUR, *overrides)
    command = [*lab.command(run, *words), "--processes", str(processes), *options]
    process = subprocess.Popen(starter(lab, run, processes, *words) if starter else command,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    lab.wait_for_updates(run, 10, process)
    return process, ranks_of(process)


def ends_with(process, code, seconds, what):
    start = time.monotonic()
    try:
        _, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    check(process.returncode == code, f"{what}: exit code {process.returncode}, expected {code}: {stderr[-3000:]}")
    return stderr, time.monotonic() - start


LOSSES = [(f"{what}_{rank}", number, rank)
          for what, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)) for rank in (0, 1)]
SOME_LOSSES = LOSSES[1:3]  # dist.faults has all of them, of processes that do not train


def lost_ranks_are_named_and_all_leave(stretto):
    with Lab(stretto) as lab:
        for name, number, rank in full_or(LOSSES, SOME_LOSSES):
            process, ranks = long_run(lab, name, 3)
            check(sorted(ranks) == [0, 1, 2], f"ranks found: {ranks}")
            os.kill(ranks[rank], number)
            stderr, seconds = ends_with(process, 69, 30, name)
            check(re.search(rf"error: rank {rank} \(host", stderr), f"{name}: it is not the root cause: {stderr}")
            check(seconds < 15, f"{name}: it took {seconds:.1f} s")
            check(not any(alive(pid) for pid in ranks.values()), f"{name}: ranks are left behind")
            again = lab.train(name, *FOUR, "train.max_steps=100000", "train.max_hours=0.00001", timeout=60)
            succeed(again, f"{name}: the last checkpoint is resumed from")


def a_rank_that_stops_while_all_validate_is_named(stretto):
    with Lab(stretto) as lab:
        for side in ("src", "tgt"):  # minutes of decoding
            (lab.root / f"valid.{side}").write_text((lab.root / f"valid.{side}").read_text() * 1000)
        for name, number, rank in full_or(LOSSES[2:], LOSSES[3:]):
            process, ranks = long_run(lab, name, 2, "eval.every=10", "eval.bleu=true", "eval.bleu_sentences=20000",
                                      "decode.beam_size=24")
            time.sleep(3)
            check(process.poll() is None and not of(lab, name, "valid", "step"), "the test is stale: it does not validate")
            os.kill(ranks[rank], number)
            stderr, seconds = ends_with(process, 69, 60, name)
            check(re.search(rf"error: rank {rank} \(host", stderr), f"{name}: it is not the root cause: {stderr}")
            check("is lost: it was not heard of" in stderr, f"{name}: {stderr}")
            check(seconds < 40, f"{name}: it took {seconds:.1f} s")


def lost_ranks_of_a_plain_mpirun_are_named_once(stretto):
    with Lab(stretto) as lab:
        for name, number, rank in full_or(LOSSES, SOME_LOSSES):
            process, ranks = long_run(lab, name, full_or(3, 2), starter=mpirun)
            os.kill(ranks[rank], number)
            # mpirun's own code for a rank that a signal ended; of a stopped one it never hears.
            stderr, seconds = ends_with(process, 137 if number == signal.SIGKILL else 69, 30, name)
            count = len(re.findall(rf"error: rank {rank} \(host .* is lost", stderr))
            check(count == 1, f"{name}: told {count} times: {stderr}")
            check(seconds < 15, f"{name}: it took {seconds:.1f} s")


def rank_at_start(process, rank):
    """Process id of a rank as soon as there is one."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = ranks_of(process).get(rank)
        if found:
            return found
        check(process.poll() is None, "ended before its ranks began")
    raise Failure("no ranks came")


def starting(lab, run, *overrides, starter=None, env=None):
    command = lab.command(run, "--quiet", "dist.timeout_seconds=2", *FOUR, *overrides)
    command = [*MPIRUN, "-n", "3", *command] if starter == mpirun else [*command, "--processes", "3"]
    return subprocess.Popen(command, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def a_rank_lost_while_starting_ends_the_job(stretto):
    with Lab(stretto) as lab:
        for case, (name, number, rank) in enumerate(full_or(LOSSES, SOME_LOSSES)):
            for delay in full_or((0, 0.12), (0.12 * case,)):
                what = f"{name} after {delay} s"
                process = starting(lab, f"{name}_{delay}", env={"STRETTO_JOIN_SECONDS": "8"})
                victim = rank_at_start(process, rank)
                time.sleep(delay)
                os.kill(victim, number)
                stderr, seconds = ends_with(process, 69, 30, what)
                check(re.search(rf"error: rank {rank} \(host", stderr), f"{what}: it is not the root cause: {stderr}")
                check(seconds < 20 and not alive(victim), f"{what}: it took {seconds:.1f} s")


def a_rank_killed_while_starting_a_plain_mpirun_ends_it(stretto):
    with Lab(stretto) as lab:
        for rank, delay in full_or(((0, 0), (1, 0), (1, 0.1)), ((1, 0.1),)):
            process = starting(lab, f"run_{rank}_{delay}", starter=mpirun)
            victim = rank_at_start(process, rank)
            time.sleep(delay)
            os.kill(victim, signal.SIGKILL)
            ends_with(process, 137, 20, f"rank {rank} after {delay} s")


def a_rank_lost_while_starting_is_restarted(stretto):
    with Lab(stretto) as lab:
        process = subprocess.Popen([*lab.command("run", *FOUR), "--processes", "2", "--restarts", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        os.kill(rank_at_start(process, 1), signal.SIGKILL)
        stderr, _ = ends_with(process, 0, 60, "restart")
        check("restart 1 of 1" in stderr, stderr)


def a_killed_mpirun_takes_its_ranks_along(stretto):
    with Lab(stretto) as lab:
        process, ranks = long_run(lab, "run", 3)
        parent = int(pathlib.Path(f"/proc/{ranks[0]}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(parent, signal.SIGKILL)
        stderr, seconds = ends_with(process, 69, 20, "mpirun killed")
        check("since the mpirun that they ran under had died" in stderr, stderr)
        check(not any(alive(pid) for pid in ranks.values()), "ranks train on")
        check(seconds < 8, f"it took {seconds:.1f} s")


def errors_that_all_ranks_have_are_told_once(stretto):
    with Lab(stretto) as lab:
        result = lab.run([*MPIRUN, "-n", "3", lab.stretto, "eval", str(lab.root / "nosuch")])
        check(result.returncode == 2, f"exit code {result.returncode}: {result.stderr}")
        check(result.stderr.count("no run folder") == 1, result.stderr)
        check(re.search(r"^rank \d \(host [^)]+\): error: no run folder", result.stderr, re.M), result.stderr)


def a_refused_start_is_told_once_and_without_wrong_advice(stretto):
    with Lab(stretto) as lab:
        process, _ = long_run(lab, "run", 2)
        inside_a_file = lab.command("tiny.toml/run", *FOUR)
        evaluate = [lab.stretto, "eval", str(lab.root / "run")]
        plain = [*MPIRUN, "-n", "2"]
        commands = (
            ([*lab.command("run", *FOUR), "--processes", "2"], 2, ".lock is in use by"),
            ([*plain, *lab.command("run", *FOUR)], 2, ".lock is in use by"),
            ([*inside_a_file, "--processes", "2"], 74, f"cannot create {lab.root}/tiny.toml/run"),
            ([*plain, *inside_a_file], 74, f"cannot create {lab.root}/tiny.toml/run"),
            ([*evaluate, "--processes", "2", "--hypotheses", "/nonexistent/here"], 74, "no folder /nonexistent"),
            ([*plain, *evaluate, "--hypotheses", "/nonexistent/here"], 74, "no folder /nonexistent"),
            ([*lab.command("other", "dist.backend=single"), "--processes", "2"], 2, 'dist.backend is "single"'),
            ([*plain, *lab.command("other", "dist.backend=single")], 2, 'dist.backend is "single"'),
        )
        # By the launcher of its own and by mpirun in turn.
        for command, code, words in full_or(commands, (commands[0], commands[3], commands[4], commands[7])):
            result = lab.run(command)
            what = f"{' '.join(command)}: exit code {result.returncode}: {result.stderr}"
            check(result.returncode == code, what)
            check(result.stderr.count(words) == 1 and result.stderr.count("error:") == 1, what)
            check("start again" not in result.stderr and "is lost" not in result.stderr, what)
            check(command[0] == "mpirun" or "rank" not in result.stderr, what)
        process.kill()  # its ranks go with it
        process.communicate(timeout=30)


def a_signal_to_one_rank_stops_all_saved(stretto):
    with Lab(stretto) as lab:
        process, ranks = long_run(lab, "run", 2)
        os.kill(ranks[1], signal.SIGUSR1)
        ends_with(process, 75, 30, "SIGUSR1 to rank 1")
        last = sorted((lab.root / "run" / "checkpoints").glob("step_*"))[-1]
        steps = of(lab, "run", "train", "step")
        check(int(last.name[5:]) == steps[-1][0], f"saved {last.name}, the last step was {steps[-1]}")


def the_launcher_forwards_signals_and_exit_codes(stretto):
    with Lab(stretto) as lab:
        process, _ = long_run(lab, "run", 2)
        process.send_signal(signal.SIGTERM)
        ends_with(process, 75, 30, "SIGTERM to the launcher")
        bad = train(lab, "bad", 2, "model.d_model=33")
        check(bad.returncode == 2, f"a bad configuration: exit code {bad.returncode}")


def ranks_that_are_killed_after_the_signal_have_failed(stretto):
    with Lab(stretto) as lab:
        for run, every, said in (("saved", 7, "the last checkpoint is that of step "),
                                 ("unsaved", 100000, "nothing was saved: the same command begins anew")):
            # Not in the background, where the first checkpoint may still be on its way when the ranks are stopped.
            process, ranks = long_run(lab, run, 2, f"train.save_every={every}", f"eval.every={every}",
                                      "train.save_in_background=false")
            for pid in ranks.values():
                os.kill(pid, signal.SIGSTOP)  # so that none of them can save
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            for pid in ranks.values():
                os.kill(pid, signal.SIGKILL)
            stderr, _ = ends_with(process, 69, 30, run)
            check("ranks 0, 1 ended after the signal, without having saved" in stderr and said in stderr, f"{run}: {stderr}")
            steps = list((lab.root / run / "checkpoints").glob("step_*"))
            check(bool(steps) == (run == "saved"), f"{run}: {steps}")


def a_signal_while_processes_start_is_no_failure_and_says_what_is_saved(stretto):
    with Lab(stretto) as lab:
        process = starting(lab, "run")
        rank_at_start(process, 1)
        process.send_signal(signal.SIGTERM)
        stderr, _ = ends_with(process, 75, 30, "SIGTERM while starting")
        check("stopped by a signal while the processes started up; nothing was saved" in stderr, stderr)


def a_signal_in_the_last_validation_changes_nothing(stretto):
    with Lab(stretto) as lab:
        command = lab.command("run", *FOUR, "train.max_steps=10", "schedule.warmup_steps=2", "train.save_every=100",
                              "eval.every=100", "eval.bleu=true", "decode.beam_size=40")
        process = subprocess.Popen([*command, "--processes", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True)
        lab.wait_for_updates("run", 10, process)
        time.sleep(0.1)  # the update is written before the ranks look for a signal, the last time before they validate
        process.send_signal(signal.SIGTERM)
        stderr, _ = ends_with(process, 0, 60, "SIGTERM in the last validation")
        check("finished at step 10" in stderr, stderr)


def a_signal_after_the_last_work_changes_nothing(stretto):
    # To each process, its training over and how it ends not yet said; of several to the launcher too, or to one rank.
    late = "command.end:term"
    short = (*FOUR, "train.max_steps=10", "schedule.warmup_steps=2", "train.save_every=100", "eval.every=100")
    with Lab(stretto) as lab:
        for run, result in (
            ("alone", lab.train("alone", *short, env={"STRETTO_FAILPOINT": late})),
            ("launched", train(lab, "launched", 2, *short, env={"STRETTO_FAILPOINT": late})),
            ("mpirun", lab.run(mpirun(lab, "mpirun", 2, *short, on_rank=(1, f"export STRETTO_FAILPOINT={late}")))),
        ):
            succeed(result, f"{run}: a signal when all is done")
            check("finished at step 10" in result.stderr and "is lost" not in result.stderr, f"{run}: {result.stderr}")


def a_restarted_run_ends_as_an_undisturbed_one(stretto):
    lab = shared_lab(stretto)
    once(lab, "exact", *EXACT)
    # Both ranks kill themselves at their 70th micro-batch: step 35 of 60, the checkpoint is that of step 35 or 28.
    killed = {"STRETTO_FAILPOINT": "micro_batch:kill:70"}
    succeed(train(lab, "restarted", 2, *EXACT, options=("--restarts", "3"), env=killed), "with restarts")
    compare(lab, "exact", "restarted", "restarted")
    if FULL:
        check(train(lab, "without", 2, *EXACT, env=killed).returncode != 0, "a killed run ended well")


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        sys.exit(77)
    main({f.__name__: f for f in (
        lost_ranks_are_named_and_all_leave, a_rank_that_stops_while_all_validate_is_named,
        lost_ranks_of_a_plain_mpirun_are_named_once, a_rank_lost_while_starting_ends_the_job,
        a_rank_killed_while_starting_a_plain_mpirun_ends_it, a_rank_lost_while_starting_is_restarted,
        a_killed_mpirun_takes_its_ranks_along, errors_that_all_ranks_have_are_told_once,
        a_refused_start_is_told_once_and_without_wrong_advice, ranks_that_are_killed_after_the_signal_have_failed,
        a_signal_while_processes_start_is_no_failure_and_says_what_is_saved,
        a_signal_in_the_last_validation_changes_nothing, a_signal_after_the_last_work_changes_nothing,
        a_signal_to_one_rank_stops_all_saved, the_launcher_forwards_signals_and_exit_codes,
        a_restarted_run_ends_as_an_undisturbed_one)})
