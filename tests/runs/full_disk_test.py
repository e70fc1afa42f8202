#!/usr/bin/env python3
"""A disk that is really full: a small file system in memory, filled while a run trains on it.

    tests/runs/full_disk_test.py build/release/stretto [TEST...]

And one that becomes read-only, before a run and while it trains.

It needs a mount namespace of its own, as root or with user namespaces; ends with 77 where it gets none.
"""
import contextlib
import errno
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys

from changed_data_test import FAMILIES, KEYS, lab_with
from harness import Lab, check, compare, main, wait_for

SKIPPED = 77
# No validation but the last, so that a checkpoint is due at each interval and at no other time.
COMMON = ("train.max_steps=400", "eval.every=100000")


class Disk:
    """A file system of so many bytes and files below the lab's folder, and something to fill it with."""

    def __init__(self, lab, options):
        self.folder = lab.root / "disk"
        self.filler = self.folder / "filler"
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "disk", str(self.folder)], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def fill(self, leave_bytes):
        """The run writes at the same time: what it takes in between is asked for again."""
        with open(self.filler, "wb") as file:
            size = 0
            for _ in range(1000):
                free = os.statvfs(self.folder)
                more = free.f_bavail * free.f_frsize - leave_bytes
                if more <= 0:
                    break
                try:
                    os.posix_fallocate(file.fileno(), size, more)
                    size += more
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def fill_with_files(self):
        self.filler.mkdir()
        try:
            for number in range(os.statvfs(self.folder).f_ffree):
                (self.filler / str(number)).touch()
        except OSError as error:  # the run has taken the last ones
            if error.errno != errno.ENOSPC:
                raise

    def remount(self, how):
        subprocess.run(["mount", "-o", f"remount,bind,{how}", str(self.folder)], check=True)

    def free(self):
        if self.filler.is_dir():
            for file in self.filler.iterdir():
                file.unlink()
            self.filler.rmdir()
        else:
            self.filler.unlink()


class Run:
    """A training process whose messages can be read while it runs."""

    def __init__(self, lab, *overrides):
        self.folder = lab.root / "disk" / "run"
        self.log = lab.root / "stderr.txt"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(lab.command("disk/run", *overrides), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log)

    @contextlib.contextmanager
    def stopped_at(self, condition, what):
        """Waits, and keeps the run still meanwhile: its next save is tenths of a second away."""
        wait_for(condition, what, self.process, self.said)
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stopped_at_a_checkpoint(self):
        return self.stopped_at(self.checkpoints, "its first checkpoint")

    @contextlib.contextmanager
    def stopped_at_a_failed_save(self):
        """The checkpoint before it stays whole."""
        before = self.checkpoints()[-1]
        with self.stopped_at(lambda: "could not be saved" in self.said(), "the failing save"):
            require_whole(before)
            yield

    def said(self):
        return self.log.read_text(errors="replace")

    def checkpoints(self):
        return sorted(path.parent for path in self.folder.glob("checkpoints/step_*/manifest.json"))

    def end(self):
        return self.process.wait(timeout=120)


def require_whole(checkpoint):
    """What the manifest says of each file is so."""
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    for file in manifest["files"]:
        data = (checkpoint / file["name"]).read_bytes()
        check(hashlib.sha256(data).hexdigest() == file["sha256"], f"{checkpoint}/{file['name']} is damaged")


def begun(lab, *overrides):
    """A run, after another one that nothing disturbs."""
    result = lab.train("reference", *overrides)
    check(result.returncode == 0, f"the undisturbed run failed: {result.stderr}")
    return Run(lab, *overrides)


def ends_as_undisturbed(lab, run, said, what):
    code = run.end()
    check(code == 0, f"exit code {code}: {run.said()}")
    check(said in run.said(), run.said())
    check(not list(run.folder.glob("checkpoints/.tmp-*")), "half a checkpoint was left behind")
    compare(lab, "reference", "disk/run", what)


def goes_on_as_undisturbed(lab, what, *overrides):
    result = lab.train("disk/run", *overrides)
    check(result.returncode == 0, result.stderr)
    compare(lab, "reference", "disk/run", what)


def a_run_that_cannot_fit_is_refused_with_the_numbers(stretto):
    with Lab(stretto) as lab, Disk(lab, "size=1m"):
        result = lab.train("disk/run")
        check(result.returncode == 74, f"exit code {result.returncode}: {result.stderr}")
        for words in ("checkpoints of", "need", "free", "train.keep_last"):
            check(words in result.stderr, f"`{words}` is not in the message: {result.stderr}")
        check(not list(lab.root.glob("disk/run/checkpoints/step_*")), "a checkpoint was written")


def goes_on_after(stretto, options, fill):
    """The disk is full for one interval: that save fails, the one before stays, the run ends well."""
    overrides = (*COMMON, "train.save_every=100")
    with Lab(stretto) as lab, Disk(lab, options) as disk:
        run = begun(lab, *overrides)
        with run.stopped_at_a_checkpoint():
            fill(disk)
        with run.stopped_at_a_failed_save():
            disk.free()
        ends_as_undisturbed(lab, run, "training goes on", "after a disk that was full")


def a_full_disk_costs_a_checkpoint_and_not_the_run(stretto):
    goes_on_after(stretto, "size=16m", lambda disk: disk.fill(150_000))


def a_disk_without_room_for_more_files_neither(stretto):
    goes_on_after(stretto, "size=16m,nr_inodes=200", lambda disk: disk.fill_with_files())


def when_the_last_save_fails_the_exit_code_is_74(stretto):
    overrides = (*COMMON, "train.save_every=200")
    with Lab(stretto) as lab, Disk(lab, "size=16m") as disk:
        run = begun(lab, *overrides)
        with run.stopped_at_a_checkpoint():
            disk.fill(150_000)
        code = run.end()
        check(code == 74, f"exit code {code}: {run.said()}")
        check("could not be saved" in run.said(), run.said())
        check([path.name for path in run.checkpoints()] == ["step_00000200"], f"{run.checkpoints()}")
        require_whole(run.checkpoints()[-1])
        disk.free()
        goes_on_as_undisturbed(lab, "after a last save that failed", *overrides)


def a_disk_full_to_the_last_byte_stops_the_run_and_nothing_is_lost(stretto):
    overrides = (*COMMON, "train.save_every=40")
    with Lab(stretto) as lab, Disk(lab, "size=16m") as disk:
        run = begun(lab, *overrides)
        with run.stopped_at_a_checkpoint():
            disk.fill(0)
        code = run.end()
        check(code == 74, f"exit code {code}: {run.said()}")
        check("No space left on device" in run.said() or "no room" in run.said(), run.said())
        require_whole(run.checkpoints()[-1])
        disk.free()
        goes_on_as_undisturbed(lab, "after a disk that was full to the last byte", *overrides)


def a_disk_that_is_read_only_refuses_to_train_and_is_still_read(stretto):
    overrides = (*COMMON, "train.save_every=40")
    with Lab(stretto) as lab, Disk(lab, "size=16m") as disk:
        half = begun(lab, *overrides)
        with half.stopped_at_a_checkpoint():
            half.process.send_signal(signal.SIGTERM)
        check(half.end() == 75, half.said())
        disk.remount("ro")
        for run in ("disk/run", "disk/new"):
            refused = lab.train(run, *overrides)
            check(refused.returncode == 74, f"{run}: exit code {refused.returncode}: {refused.stderr}")
            check("Read-only file system" in refused.stderr, f"{run}: {refused.stderr}")
        run = str(lab.root / "disk/run")
        for command, text in (["eval", run, "--json"], None), (["infer", run], "the red house\n"):
            result = lab.run([lab.stretto, *command], input=text)
            check(result.returncode == 0 and result.stdout, f"{command[0]} of a read-only run: {result.stderr}")
        disk.remount("rw")
        goes_on_as_undisturbed(lab, "after a disk that was read-only", *overrides)


def checkpoints_that_become_read_only_cost_a_checkpoint_and_not_the_run(stretto):
    """The folder becomes a mount of its own: a whole file system with open files cannot be made read-only."""
    overrides = (*COMMON, "train.save_every=100")
    with Lab(stretto) as lab, Disk(lab, "size=16m"):
        run = begun(lab, *overrides)
        folder = str(run.folder / "checkpoints")
        with run.stopped_at_a_checkpoint():  # so nobody writes below the new mount yet
            for how in ("--bind", folder), ("-o", "remount,bind,ro"):
                subprocess.run(["mount", *how, folder], check=True)
        with run.stopped_at_a_failed_save():
            subprocess.run(["umount", "--lazy", folder], check=True)
        ends_as_undisturbed(lab, run, "Read-only file system", "after checkpoints that were read-only")


def a_cache_without_room_stops_runs_that_map_it_and_no_others(stretto):
    """The other families have their texts in memory then. Each names the remedy, and it helps."""
    remedy = "set data.cache_dir to a folder where you may write, on a disk with room"
    for family in ("translation", *FAMILIES):
        goes_on = family in ("text_classification", "question_answering")
        with lab_with(stretto, family) as lab, Disk(lab, "size=256k") as disk:
            disk.fill(0)
            result = lab.train("run", *KEYS, f"data.cache_dir={disk.folder}/cache")
            check(result.returncode == (0 if goes_on else 74), f"{family}: exit code {result.returncode}: {result.stderr}")
            check(result.stderr.count(remedy) == 1, f"{family}: {result.stderr}")
            check("the token cache: cannot write" in result.stderr, f"{family}: {result.stderr}")
            check("No space left on device" in result.stderr, f"{family}: {result.stderr}")
            check(not list(disk.folder.glob("cache/.tmp-*")), f"{family}: half a folder of the cache was left behind")
            result = lab.train("run", *KEYS, f"data.cache_dir={lab.root}/cache")
            check(result.returncode == 0, f"{family}: with another cache: {result.stderr}")


def a_disk_without_room_for_the_tokenizer_is_told_before_text_is_tokenised(stretto):
    """What the run reads is in the cache, on another disk, once it is tokenised."""
    with lab_with(stretto, "recurrent") as lab, Disk(lab, "size=16m") as disk:
        known = sorted(set((lab.root / "train.txt").read_text().split()))
        words = lab.root / "words.txt"
        words.write_text("".join(f"{word} 1\n" for word in (*known, *(f"w{number:07}" for number in range(20000)))))
        keys = (*KEYS, f"tokenizer.model={words}", f"data.cache_dir={lab.root}/cache")

        def stores():
            return list((lab.root / "cache").glob("*/head.bin"))
        disk.fill(64_000)  # for the configuration and the log
        result = lab.train("disk/run", *keys)
        check(result.returncode == 74, f"exit code {result.returncode}: {result.stderr}")
        check("No space left on device" in result.stderr and "tokenizer/" in result.stderr, result.stderr)
        check(not stores(), f"text was tokenised: {stores()}")
        result = lab.train("run", *keys)
        check(result.returncode == 0 and stores(), f"the test is stale: {result.stderr}")


def in_a_namespace_of_its_own():
    """Starts this program again where its mounts are its own; ends with 77 where that cannot be had."""
    ways = [["unshare", "--mount"], ["unshare", "--mount", "--user", "--map-root-user"]]
    probe = ["sh", "-c", "mount -t tmpfs -o size=64k probe /tmp"]
    for way in ways:
        try:
            result = subprocess.run([*way, *probe], capture_output=True, text=True)
        except FileNotFoundError:
            print("skipped: there is no `unshare` (package util-linux)")
            sys.exit(SKIPPED)
        if result.returncode == 0:
            os.environ["STRETTO_OWN_MOUNTS"] = "1"
            os.execvp("unshare", [*way, sys.executable, str(pathlib.Path(__file__).resolve()), *sys.argv[1:]])
    print(f"skipped: a file system can be mounted neither as this user nor in a user namespace: {result.stderr.strip()}")
    sys.exit(SKIPPED)


if __name__ == "__main__":
    if "STRETTO_OWN_MOUNTS" not in os.environ:
        in_a_namespace_of_its_own()
    main({f.__name__: f for f in (a_run_that_cannot_fit_is_refused_with_the_numbers,
                                  a_full_disk_costs_a_checkpoint_and_not_the_run,
                                  a_disk_without_room_for_more_files_neither,
                                  when_the_last_save_fails_the_exit_code_is_74,
                                  a_disk_full_to_the_last_byte_stops_the_run_and_nothing_is_lost,
                                  a_disk_that_is_read_only_refuses_to_train_and_is_still_read,
                                  checkpoints_that_become_read_only_cost_a_checkpoint_and_not_the_run,
                                  a_cache_without_room_stops_runs_that_map_it_and_no_others,
                                  a_disk_without_room_for_the_tokenizer_is_told_before_text_is_tokenised)})
