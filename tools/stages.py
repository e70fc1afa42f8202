"""Stages of a long check: runs commands, counts what passed, knows how much time is left, and says at the end what failed.

A stage is a check (one command, one point) or a suite (a run of ctest, a point for each test). Output goes to the terminal and
to a file in the folder of logs. A Run with `minutes` ends the stage at which they are over, and names what did not run. A
Run with a Kept notes each check and each test as it passes, and leaves that out when it goes on. An interruption ends what
runs, and so does SIGKILL.
"""

import base64
import contextlib
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOTALS = re.compile(r"(\d+) tests? failed out of (\d+)")  # "100% tests passed, 0 tests failed out of 123"
RESULT = re.compile(r"^ *\d+/\d+ Test +#(\d+): (\S+) \.*( *\**)(Passed|Failed|Timeout|Not Run|Skipped|Exception|Subprocess)")
SKIPPED = re.compile(r"^\s+\d+ - .* \(Skipped\)$", re.M)
SECONDS = re.compile(r"^== (.*): (\d+) s \(total \d+ s\)$", re.M)  # a stage of ./dev
PATIENCE = 5  # seconds that processes have to end by themselves
PLACE = re.compile(r"^ *(Start +\d+:|\d+/\d+ Test +#|\d+% tests passed)")


def tree_hash(root):
    """Hash of all files that git tracks or would track, as they are now."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        for command in (["git", "-C", str(root), "add", "-A"], ["git", "-C", str(root), "write-tree"]):
            answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return answer.stdout.strip()


def failed_tests(text):
    """What ctest printed of the tests that failed: the last 60 lines of each."""
    found, lines, named = [], [], ""
    for line in [*text.splitlines(), "100% tests passed"]:
        if PLACE.match(line):
            if named:
                found += [named, *lines[-60:]]
            named = line if "***" in line and "***Skipped" not in line else ""
            lines = []
        else:
            lines.append(line)
    return "\n".join(found)


def interrupt(number, _):
    raise KeyboardInterrupt(number)


def interruptible(work):
    """Calls work, which SIGTERM and SIGHUP interrupt as Ctrl-C does. Returns what it returns, or 128 and the signal's number."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, interrupt)
    try:
        return work()
    except KeyboardInterrupt as stop:
        number = stop.args[0] if stop.args else signal.SIGINT
        with contextlib.suppress(OSError):  # the terminal may be closed
            print(f"== stopped by {signal.Signals(number).name}", file=sys.stderr)
        return 128 + number


def end_group(process):
    """Ends the group that a process leads: SIGTERM, and SIGKILL for what is there after PATIENCE, or where this is interrupted."""
    is_gone = False
    try:
        os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.05)
    except ProcessLookupError:
        is_gone = True
    finally:
        if not is_gone:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


# Waits for the end of its input. Then it ends the group $0, as end_group() does. PR_SET_PDEATHSIG would reach the command, but nothing
# that the command has started.
GUARD = "cat; kill -s TERM -- -$0; for _ in $(seq $1); do sleep 0.1; kill -s 0 -- -$0 || exit; done; kill -s KILL -- -$0"


@contextlib.contextmanager
def guarded(leader):
    """Meanwhile a process, in a session of its own, ends the group of `leader` when this process is gone, as after SIGKILL."""
    with subprocess.Popen(["sh", "-c", GUARD, str(leader), str(int(10 * PATIENCE))], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as guard:
        try:
            yield
        finally:
            guard.kill()  # before its input ends


class Kept:
    """What passed of one state of the files, in a JSON file that is written after each check and each test."""

    def __init__(self, path, tree):
        self.path = path
        self.stages = {}  # name -> {"seconds": …, "passed": …, "skipped": …, "tests": {name: …}}
        self.is_new = True
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["tree"] == tree:
                self.stages, self.is_new = stored["stages"], False
        except (OSError, ValueError, KeyError):
            pass
        self.tree = tree

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        with beside.open("w", encoding="utf-8") as file:
            json.dump({"tree": self.tree, "stages": self.stages}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())  # else a loss of power may leave an empty file
        os.replace(beside, self.path)


class Run:
    """One pass over the stages. Of its `minutes`, `spent` seconds went before it."""

    def __init__(self, root, logs, minutes=None, kept=None, output=sys.stdout, spent=0):
        self.root = pathlib.Path(root)
        self.logs = pathlib.Path(logs)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.begin = time.monotonic() - spent
        self.deadline = None if minutes is None else self.begin + 60 * minutes
        self.kept = kept
        self.output = output
        self.lock = threading.Lock()
        self.running = set()
        self.stopped = False
        self.passed = self.failed = self.skipped = 0
        self.seconds = [("set-up", spent)] if spent else []  # (stage, seconds)
        self.failures = []
        self.not_run = []

    def say(self, text):
        with self.lock:
            print(text, file=self.output, flush=True)

    def left(self):
        return None if self.deadline is None else self.deadline - time.monotonic()

    def is_over(self):
        return self.deadline is not None and self.left() <= 0

    def stop(self):
        """Ends the commands of all threads, and whatever they still begin."""
        self.stopped = True
        for process in list(self.running):
            end_group(process)

    def execute(self, name, command, env=None, input_text=None, quiet=False, minutes=None, on_line=None):
        """(exit status, or None if its time was over; output). A command leads a group of processes, all of which end when its
        time is over or this thread is interrupted. `on_line` is called with each line when it is there."""
        log = self.logs / (re.sub(r"[^A-Za-z0-9]", "_", name) + ".log")
        limits = [limit for limit in (self.left(), minutes and 60 * minutes) if limit is not None]
        with subprocess.Popen(command, cwd=self.root, env={**os.environ, **(env or {})}, start_new_session=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL if input_text is None else subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            over, timer = threading.Event(), None
            try:
                self.running.add(process)
                if self.stopped:
                    end_group(process)
                if limits:
                    timer = threading.Timer(max(0, min(limits)), lambda: (over.set(), end_group(process)))
                    timer.daemon = True
                    timer.start()
                with guarded(process.pid):
                    if input_text is not None:
                        threading.Thread(target=self.feed, args=(process.stdin, input_text), daemon=True).start()
                    lines = []
                    with log.open("w", encoding="utf-8") as file:
                        for line in process.stdout:
                            lines.append(line)
                            file.write(line)
                            if on_line:
                                on_line(line)
                            if not quiet:
                                with self.lock:
                                    self.output.write(line)
                                    self.output.flush()
                    status = process.wait()
            except BaseException:
                end_group(process)
                raise
            finally:
                self.running.discard(process)
                if timer:
                    timer.cancel()
        return (None if over.is_set() else status), "".join(lines)

    @staticmethod
    def feed(pipe, text):
        try:
            pipe.write(text)
            pipe.close()
        except OSError:  # it ended without reading all
            pass

    def cut_off(self, name, at):
        self.seconds.append((f"{name} (cut off)", time.monotonic() - at))
        self.not_run.append(f"{name} (cut off)")
        self.say(f"== {name}: cut off after {time.monotonic() - at:.0f} s, since its time is over")

    def check(self, name, command, keep_output=False, env=None, input_text=None, minutes=None):
        """One command, one point. `keep_output`: other checks run beside it, so that its output comes at its end. With
        `minutes` it has no more of them, and is named among what did not run whole."""
        if self.kept and name in self.kept.stages:
            self.passed += 1
            self.seconds.append((name, self.kept.stages[name]["seconds"]))
            self.say(f"== {name}: passed before")
            return True
        if self.is_over():
            self.not_run.append(name)
            return False
        at = time.monotonic()
        if not keep_output:
            self.say(f"== {name}")
        try:
            status, output = self.execute(name, command, env, input_text, keep_output, minutes)
        except OSError as error:
            status, output = 127, f"{command[0]}: {error.strerror}\n"
        if self.stopped:
            return False
        if status is None:
            self.cut_off(name, at)
            return False
        seconds = time.monotonic() - at
        self.seconds.append((name, seconds))
        for title, part in SECONDS.findall(output):
            self.seconds.append((f"… of it {title}", int(part)))
        if keep_output and output.strip():
            self.say(f"== {name}\n{output.rstrip()}")
        if status == 0:
            self.passed += 1
            self.say(f"== {name}: ok, {seconds:.0f} s")
            self.note(name, {"seconds": seconds})
            return True
        self.failed += 1
        self.say(f"== {name}: FAILED, left with {status}, {seconds:.0f} s")
        tail = "\n".join(line[:500] for line in output.splitlines()[-60:])
        self.failures.append(f"== {name}: FAILED, left with {status}\n{tail}")
        return False

    def note(self, name, entry):
        if self.kept:
            with self.lock:
                self.kept.stages[name] = entry
                self.kept.write()

    def numbers(self, command):
        """The tests that a command of ctest would run: (number, name)."""
        answer = subprocess.run([*command, "-N"], cwd=self.root, capture_output=True, text=True, check=False)
        return [(int(number), name) for number, name in re.findall(r"^ *Test +#(\d+): (\S+)", answer.stdout, re.M)]

    def suite(self, name, command, env=None, essential=False):
        """A run of ctest, whose totals are added up. `essential`: without all of it there is no verdict."""
        before = self.kept.stages.get(name, {}) if self.kept else {}
        tests = dict(before.get("tests", {}))
        if self.kept:
            left = [number for number, test in self.numbers(command) if test not in tests]
            self.passed += sum(state == "Passed" for state in tests.values())
            self.skipped += sum(state == "Skipped" for state in tests.values())
            if tests:
                self.say(f"== {name}: {len(tests)} tests passed before")
            if tests and not left:
                self.seconds.append((name, before["seconds"]))
                return
            command = [*command, "-I", ",".join(["0", "0", "0", *map(str, left)])] if tests else command
        if self.is_over():
            self.not_run.append(name)
            if essential:
                self.lack(name)
            return
        at = time.monotonic()
        self.say(f"== {name}")

        def keep(line):
            match = self.kept and RESULT.match(line)
            if match and match[4] in ("Passed", "Skipped"):
                tests[match[2]] = match[4]
                self.note(name, {"seconds": before.get("seconds", 0) + time.monotonic() - at, "tests": tests})

        status, output = self.execute(name, command, env, on_line=keep)
        if status is None:
            results = [match[4] for match in map(RESULT.match, output.splitlines()) if match]
            self.passed += results.count("Passed")
            self.failed += len(results) - results.count("Passed") - results.count("Skipped")
            self.cut_off(name, at)
            if essential:
                self.lack(name)
            return
        self.count(name, status, output, time.monotonic() - at)

    def lack(self, name):
        self.failed += 1
        self.failures.append(f"== {name}: not run whole, and without it there is no verdict")

    def count(self, name, status, output, seconds):
        totals = TOTALS.findall(output)
        self.seconds.append((name, seconds))
        for title, part in SECONDS.findall(output):
            self.seconds.append((f"… of it {title}", int(part)))
        if totals:
            failed, of = map(int, totals[-1])
            left_out = len(SKIPPED.findall(output))  # which ctest counts as passed
            self.skipped += left_out
            self.passed += of - failed - left_out
            self.failed += failed
            if status != 0 and failed == 0:
                self.failed += 1
        else:
            self.failed += 1
            self.failures.append(f"== {name}: no test totals\n" + "\n".join(output.splitlines()[-30:]))
        self.say(f"== {name}: left with {status}, {seconds:.0f} s")
        if status != 0:
            self.failures.append(f"== {name}: left with {status}\n{failed_tests(output)}")

    def keep_inputs(self, prefix, since):
        """Prints the inputs that a fuzzer left: a record of this output may be all that remains of them."""
        for path in sorted(self.logs.glob(f"{prefix}-*")):
            if path.is_file() and path.stat().st_mtime >= since - 1:
                packed = base64.b64encode(gzip.compress(path.read_bytes())).decode()
                lines = [packed[i:i + 400] for i in range(0, len(packed), 400)][:20]
                text = "\n".join([f"{path}, packed by gzip and base64:", *lines])
                self.say(text)
                self.failures.append(text)

    def conclude(self):
        """Prints what failed, the seconds, and the totals; the exit status."""
        if self.failures:
            self.say("== what failed, once more")
            self.say("\n".join(self.failures))
        self.say("== seconds of each stage")
        for name, seconds in self.seconds:
            self.say(f"{seconds:8.0f}  {name}")
        self.say(f"{time.monotonic() - self.begin:8.0f}  in all")
        if self.not_run:
            self.say(f"== not run whole, since the time was over: {'; '.join(self.not_run)}")
        if self.skipped:
            self.say(f"== skipped: {self.skipped} tests, which say above what they need")
        self.say(f"{self.passed} passed, {self.failed} failed")
        return 0 if self.failed == 0 else 1
