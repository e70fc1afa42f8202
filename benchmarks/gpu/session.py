"""What the steps of everything.py share: a budget of time, programs that are ended in time, the GPU's memory, results as they come."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

LOG_BYTES = 400_000  # of each step's output: its end


class GpuWatch:
    """Samples of one GPU's used memory (MiB) and load (%) while a program runs, by nvidia-smi."""

    QUERY = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits"]

    def __init__(self, on):
        self.memory, self.load, self.process = [], [], None
        if not on:
            return
        self.before = self.values(subprocess.run(self.QUERY, stdout=subprocess.PIPE, text=True).stdout)[0]
        self.process = subprocess.Popen([*self.QUERY, "-lms", "100"], stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    @staticmethod
    def values(line):
        try:
            memory, load = line.split(",")[:2]
            return float(memory), float(load)
        except ValueError:
            return 0.0, 0.0

    def read(self):
        for line in self.process.stdout:
            memory, load = self.values(line)
            self.memory.append(memory)
            self.load.append(load)

    def end(self):
        """Peak MiB over what was used before, and the mean load of the samples in which the program had memory."""
        if not self.process:
            return None, None
        self.process.kill()
        self.process.wait()
        self.thread.join()
        grown = [m - self.before for m in self.memory]
        busy = [load for load, m in zip(self.load, grown) if m > max(grown) / 2]
        return (max(grown), sum(busy) / len(busy)) if grown else (None, None)


class CommandResult:
    def __init__(self, name, status, seconds, output, peak=None, load=None):
        self.name, self.status, self.seconds, self.output = name, status, seconds, output
        self.peak, self.load = peak, load
        self.passed = status == 0


def has_torch(*more):
    """Does this machine's Python have torch, and these packages?"""
    return subprocess.run([sys.executable, "-c", f"import {', '.join(('torch', *more))}"], stderr=subprocess.DEVNULL).returncode == 0


class Session:
    """A run of all steps. Results are written after each, so that a run which is broken off leaves what it has."""

    def __init__(self, out, seconds, dry_run, has_gpu):
        self.out, self.dry_run, self.has_gpu = pathlib.Path(out), dry_run, has_gpu
        self.deadline = time.monotonic() + seconds
        self.failed = False
        self.head, self.steps, self.tables = [], [], {}
        self.running = set()
        self.lock = threading.Lock()
        self.planned = 0
        if not dry_run:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "log.txt").write_text("")

    def left(self):
        return self.deadline - time.monotonic() - 5

    def note(self, name, verdict, seconds=None, fail=False):
        """A line of the table of steps; `fail` counts against the whole."""
        with self.lock:
            self.failed |= fail
            self.steps.append((name, verdict, "" if seconds is None else f"{seconds:.0f} s"))
            self.write()
        print(f"== {name}: {verdict}" + ("" if seconds is None else f", {seconds:.0f} s"), flush=True)

    def row(self, title, head, cells):
        """A line of a table of figures."""
        with self.lock:
            self.tables.setdefault((title, tuple(head)), []).append([str(c) for c in cells])
            self.write()

    def write(self):
        lines = [*self.head, "", "| step | result | time |", "|---|---|---|"]
        lines += ["| " + " | ".join(step) + " |" for step in self.steps]
        for (title, head), rows in self.tables.items():
            lines += ["", f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
            lines += ["| " + " | ".join(row) + " |" for row in rows]
        self.replace("summary.md", "\n".join(lines) + "\n")
        self.replace("results.json", json.dumps({
            "steps": self.steps,
            "tables": [{"title": t, "rows": [dict(zip(h, r)) for r in rows]} for (t, h), rows in self.tables.items()]}, indent=1) + "\n")

    def replace(self, name, text):
        if self.dry_run:
            return
        part = self.out / f".{name}.part"
        part.write_text(text)
        part.replace(self.out / name)

    def log(self, result):
        with self.lock, open(self.out / "log.txt", "a", encoding="utf-8") as file:
            text = result.output[-LOG_BYTES:]
            file.write(f"==== {result.name}: status {result.status}, {result.seconds:.1f} s\n{text}\n")

    def end_all(self):
        for process in list(self.running):
            self.end(process)

    @staticmethod
    def end(process):
        """Ends a program and all it started: asked first, then not."""
        for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=patience)
                break
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def run(self, name, limit, command, env=None, watch=False, note=True):
        """Runs one program, at most `limit` seconds and never past the budget; None where no time is left or nothing is to run."""
        if self.dry_run:
            self.planned += limit
            settings = "".join(f"{k}={v} " for k, v in (env or {}).items())
            print(f"{name} (at most {limit} s)\n  {settings}{' '.join(map(str, command))}")
            return None
        limit = min(limit, self.left())
        if limit < 5:
            self.note(name, "not run: no time left", fail=True)
            return None
        gpu = GpuWatch(watch and self.has_gpu)
        start = time.monotonic()
        process = subprocess.Popen([str(c) for c in command], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.running.add(process)
        stopped = False
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            stopped = True
            self.end(process)
            try:
                output, _ = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:  # something it started holds on to its output
                output = "(its output is lost)\n"
        finally:
            self.running.discard(process)
            peak, load = gpu.end()
        result = CommandResult(name, -1 if stopped else process.returncode, time.monotonic() - start, output, peak, load)
        self.log(result)
        if note or not result.passed:
            verdict = "passed" if result.passed else f"FAILED: stopped after {limit:.0f} s" if stopped else f"FAILED: exit {result.status}"
            said = [line.strip() for line in result.output.splitlines() if "error" in line.lower()]
            if not result.passed and said:
                verdict += f": {said[0][:200]}".replace("|", "/")
            self.note(name, verdict, result.seconds, fail=not result.passed)
        return result

    def together(self, jobs):
        """Several run(...) at once; each job is a function. For steps whose time says nothing."""
        if self.dry_run:
            before = self.planned
            most = 0
            for job in jobs:
                self.planned = before
                job()
                most = max(most, self.planned - before)
            self.planned = before + most
            return
        threads = [threading.Thread(target=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
