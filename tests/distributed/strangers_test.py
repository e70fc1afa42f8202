#!/usr/bin/env python3
"""A job on one machine and its mpirun: strangers at the door, an mpirun that hangs or is killed.

    strangers_test.py build/release/fault_loop [TEST...]      leaves with 77 where there is no mpirun
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import time

from faults_test import Failure, Job, alive, check, gone, main, parent_of

LISTENS = "0A"  # the state in /proc/net/tcp


def inodes_of(pid):
    found = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def doors_of(pid):
    """(family, address, port) of all sockets on which a process listens."""
    mine, doors = inodes_of(pid), []
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        try:
            lines = pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] != LISTENS or fields[9] not in mine:
                continue
            address, port = fields[1].split(":")
            words = bytes.fromhex(address)  # 32-bit words in the byte order of the machine
            if sys.byteorder == "little":
                words = b"".join(words[i:i + 4][::-1] for i in range(0, len(words), 4))
            doors.append((family, socket.inet_ntop(family, words), int(port, 16)))
    return doors


def mpirun_of(job, seconds=20):
    """Process id of a job's mpirun, as soon as there is one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (path / "comm").read_text().strip() in ("mpirun", "orterun") and parent_of(int(path.name)) == job.process.pid:
                    return int(path.name)
            except (OSError, ValueError, IndexError):
                continue
        check(job.process.poll() is None, "the job ended before its mpirun was seen")
        time.sleep(0.01)
    raise Failure("there is no mpirun")


def doors_that_open(mpirun, count, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        doors = doors_of(mpirun) if alive(mpirun) else []
        if len(doors) >= count:
            return doors
        time.sleep(0.01)
    raise Failure(f"mpirun listens on {doors} alone")


class Strangers:
    """Connections that say a few bytes, or nothing, and stay."""

    def __init__(self, doors, count, words):
        self.sockets = []
        for family, address, port in doors:
            for _ in range(count):
                stranger = socket.socket(family)
                stranger.setblocking(False)
                stranger.connect_ex((address, port))
                self.sockets.append(stranger)
        time.sleep(0.1)
        for stranger in self.sockets if words else []:
            try:
                stranger.send(words)
            except OSError:
                continue

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for stranger in self.sockets:
            stranger.close()


def mpirun_listens_to_this_machine_alone(program):
    with Job(program, 2, "--rounds", "100000") as job:
        pids = job.pids()
        doors = doors_of(parent_of(pids[0]))
        check(doors, "the test is stale: mpirun listens on nothing")
        for _, address, port in doors:
            check(address in ("127.0.0.1", "::1"), f"mpirun listens on {address} port {port}")
        for pid in pids.values():
            for _, address, port in doors_of(pid):
                check(address in ("127.0.0.1", "::1"), f"a rank listens on {address} port {port}")
        job.process.send_signal(signal.SIGTERM)
        code, err, _ = job.end()
        check(code == 75 and "warning" not in err, f"exit code {code}: {err}")


def strangers_at_the_start_do_not_keep_ranks_from_joining(program):
    for count, words in ((15, b""), (15, b"half a header"), (1201, b"")):
        with Job(program, 2) as job:
            with Strangers(doors_that_open(mpirun_of(job), 1), count, words):
                code, err, _ = job.end(timeout=120)
            check(code == 0 and "all rounds done" in err, f"{count} {words}: exit code {code}: {err}")


def strangers_during_the_job_do_not_keep_it_from_ending(program):
    for count, words in ((9, b""), (9, b"half a header"), (1201, b"x")):
        with Job(program, 2, "--rounds", "100") as job:
            pids = job.pids()
            with Strangers(doors_of(parent_of(pids[0])), count, words):
                code, err, _ = job.end(timeout=120)
            check(code == 0 and "all rounds done" in err, f"{count} {words}: exit code {code}: {err}")


def a_stopped_mpirun_does_not_hold_a_job_that_is_done(program):
    with Job(program, 2, "--rounds", "150") as job:
        pids = job.pids()
        os.kill(parent_of(pids[0]), signal.SIGSTOP)
        code, err, _ = job.end(timeout=90)
        check(code == 0 and "all rounds done" in err, f"exit code {code}: {err}")
        check(gone(pids.values()), "processes are left behind")


def a_stopped_mpirun_does_not_hold_a_job_that_is_asked_to_end(program):
    with Job(program, 2, "--rounds", "100000") as job:
        pids = job.pids()
        mpirun = parent_of(pids[0])
        os.kill(mpirun, signal.SIGSTOP)
        begin = time.monotonic()
        job.process.send_signal(signal.SIGTERM)
        code, err, _ = job.end(timeout=90)
        check(code == 75, f"exit code {code}: {err}")
        # 1 s until it is woken up; without that the ranks alone would wait 10 s for it, and it for ever.
        check(time.monotonic() - begin < 9, f"it took {time.monotonic() - begin:.1f} s")
        check(gone([mpirun, *pids.values()]), "processes are left behind")


def an_mpirun_that_stays_stopped_is_killed(program):
    with Job(program, 2, "--rounds", "100000") as job:
        pids = job.pids()
        mpirun = parent_of(pids[0])
        job.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 60
        while job.process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(mpirun, signal.SIGSTOP)  # again and again
            time.sleep(0.002)
        check(job.process.poll() is not None, "the launcher still waits")
        code, err, _ = job.end()
        check(code == 75, f"exit code {code}: {err}")
        check(gone([mpirun, *pids.values()]), "processes are left behind")


def a_stopped_mpirun_ends_though_nothing_has_begun(program):
    with Job(program, 2) as job:
        mpirun = mpirun_of(job)
        os.kill(mpirun, signal.SIGSTOP)
        time.sleep(0.2)
        job.process.send_signal(signal.SIGTERM)
        code, err, seconds = job.end(timeout=60)
        check(code == 128 + signal.SIGTERM, f"exit code {code}: {err}")
        check(seconds < 40 and gone([mpirun]), f"took {seconds:.1f} s")


def a_job_stays_on_this_machine_in_an_allocation_of_several(program):
    with tempfile.TemporaryDirectory() as folder:
        srun = pathlib.Path(folder) / "srun"
        srun.write_text(f"#!/bin/sh\ntouch {folder}/called\nexit 1\n")
        srun.chmod(0o755)
        host = socket.gethostname()
        allocation = {"SLURM_JOBID": "7", "SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "1(x2)",
                      "SLURM_NODELIST": f"{host},elsewhere", "SLURM_JOB_NODELIST": f"{host},elsewhere"}
        before = {name: os.environ.get(name) for name in ("PATH", *allocation)}
        os.environ.update(allocation, PATH=f"{folder}:{os.environ['PATH']}")
        try:
            with Job(program, 3) as job:
                code, err, _ = job.end()
            check(code == 0 and "all rounds done" in err, f"exit code {code}: {err}")
            check(not (pathlib.Path(folder) / "called").exists(), "srun was asked to start something elsewhere")
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def shared_by(mpirun):
    """The folder of the memory that its ranks share. Other jobs and tests have theirs in /dev/shm too."""
    words = pathlib.Path(f"/proc/{mpirun}/cmdline").read_text().split("\0")
    return pathlib.Path(words[words.index("btl_vader_backing_directory") + 1])


def a_killed_mpirun_leaves_no_memory_and_no_folder(program):
    with tempfile.TemporaryDirectory() as place:
        os.environ["TMPDIR"] = place
        try:
            with Job(program, 2, "--rounds", "100000") as job:
                pids = job.pids()
                mpirun = parent_of(pids[0])
                shared = shared_by(mpirun)
                check(list(shared.glob("*vader*")), f"the test is stale: ranks share no memory in {shared}")
                os.kill(mpirun, signal.SIGKILL)
                code, err, _ = job.end()
                check(code == 69, f"exit code {code}: {err}")
            check(gone(pids.values()), "processes are left behind")
            check(not os.listdir(place), f"left in TMPDIR: {os.listdir(place)}")
            check(not shared.exists(), f"{shared} is left")
        finally:
            del os.environ["TMPDIR"]


def the_next_job_removes_what_a_killed_launcher_shared(program):
    with Job(program, 2, "--rounds", "100000") as job:
        pids = job.pids()
        mpirun = parent_of(pids[0])
        stale = shared_by(mpirun)
        for pid in (job.process.pid, mpirun):
            os.kill(pid, signal.SIGKILL)
        job.process.communicate(timeout=10)
        check(gone([mpirun, *pids.values()], 15), "ranks outlive the launcher")
        check(stale.exists(), "the test expects a killed launcher to leave its folder")
        os.utime(stale / "launcher", (1_000_000, 1_000_000))
    with Job(program, 2) as job:
        code, err, _ = job.end()
        check(code == 0, f"exit code {code}: {err}")
    check(not stale.exists(), f"{stale} is still there")


def a_hangup_is_for_the_ranks_unless_nohup_says_otherwise(program):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with Job(program, 2, "--rounds", "100000") as job:
            pids = job.pids()
            for pid in (job.process.pid, parent_of(pids[0]), *pids.values()):  # as a session that is ended sends it
                os.kill(pid, signal.SIGHUP)
            code, err, _ = job.end()
            check(code == 75 and "stopped in round" in err, f"exit code {code}: {err}")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what the job inherits
        with Job(program, 2, "--rounds", "200") as job:
            pids = job.pids()
            for pid in (job.process.pid, parent_of(pids[0]), *pids.values()):
                os.kill(pid, signal.SIGHUP)
            code, err, _ = job.end()
            check(code == 0 and "all rounds done" in err, f"nohup: exit code {code}: {err}")
    finally:
        signal.signal(signal.SIGHUP, before)


TESTS = [mpirun_listens_to_this_machine_alone, strangers_at_the_start_do_not_keep_ranks_from_joining,
         strangers_during_the_job_do_not_keep_it_from_ending, a_stopped_mpirun_does_not_hold_a_job_that_is_done,
         a_stopped_mpirun_does_not_hold_a_job_that_is_asked_to_end, an_mpirun_that_stays_stopped_is_killed,
         a_stopped_mpirun_ends_though_nothing_has_begun, a_job_stays_on_this_machine_in_an_allocation_of_several,
         a_killed_mpirun_leaves_no_memory_and_no_folder,
         the_next_job_removes_what_a_killed_launcher_shared, a_hangup_is_for_the_ranks_unless_nohup_says_otherwise]


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        sys.exit(77)
    os.environ["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
    main({test.__name__: test for test in TESTS})
