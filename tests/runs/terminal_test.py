#!/usr/bin/env python3
"""Training whose terminal is closed, or whose words nobody reads any more; the table of a search on a terminal.

    tests/runs/terminal_test.py build/release/stretto [TEST...]
"""
import fcntl
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import termios
import time

from harness import TIMING, Lab, check, compare, main
from search_test import SEARCH, search

TIMING |= {"comm_seconds", "comm_wait_seconds", "processes"}
KINDS = [(), ("--processes", "2")] if any((pathlib.Path(p) / "mpirun").exists() for p in os.environ["PATH"].split(":")) else [()]
LONG = ("train.max_steps=100000", "train.update_freq=4", "data.max_tokens=60")


def with_hangup(disposition):
    """What a child does before it becomes the program: this process may itself run under nohup."""
    return lambda: signal.signal(signal.SIGHUP, disposition)


def start(lab, run, *words, kind=(), hangup=signal.SIG_DFL, **options):
    options.setdefault("stderr", subprocess.DEVNULL)
    return subprocess.Popen([*lab.command(run, *words), *kind], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            preexec_fn=with_hangup(hangup), **options)


def log_of(lab, run):
    return (lab.root / run / "log.txt").read_text()


def saved_where_it_stopped(lab, run):
    last = sorted((lab.root / run / "checkpoints").glob("step_*"))[-1]
    return int(last.name[5:]) == [e["step"] for e in lab.events(run) if e["event"] == "train"][-1]


def a_hangup_saves_and_leaves(stretto):
    with Lab(stretto) as lab:
        for kind in KINDS:
            run = f"run{len(kind)}"
            process = start(lab, run, *LONG, kind=kind)
            lab.wait_for_updates(run, 10, process)
            process.send_signal(signal.SIGHUP)
            code = process.wait(timeout=60)
            check(code == 75, f"{kind}: exit code {code}")
            check(saved_where_it_stopped(lab, run), f"{kind}: the last update was not saved")
            check("saved and stopped" in log_of(lab, run), f"{kind}: {log_of(lab, run)[-2000:]}")


def under_nohup_a_hangup_changes_nothing(stretto):
    with Lab(stretto) as lab:
        for kind in KINDS:
            run = f"run{len(kind)}"
            process = start(lab, run, kind=kind, hangup=signal.SIG_IGN)
            lab.wait_for_updates(run, 3, process)
            process.send_signal(signal.SIGHUP)
            code = process.wait(timeout=120)
            check(code == 0, f"{kind}: exit code {code}: {log_of(lab, run)[-2000:]}")


def a_terminal_that_is_closed_saves_and_leaves(stretto):
    with Lab(stretto) as lab:
        for kind in KINDS:
            run = f"run{len(kind)}"
            pid, screen = pty.fork()  # the child leads a session of its own on this terminal
            if pid == 0:
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
                os.execv(lab.stretto, [*lab.command(run, *LONG), *kind])
            metrics, deadline = lab.root / run / "metrics.jsonl", time.monotonic() + 120
            os.set_blocking(screen, False)
            while not metrics.exists() or metrics.read_text().count('"train"') < 10:
                check(time.monotonic() < deadline, f"{kind}: never came to step 10")
                try:
                    os.read(screen, 65536)
                except BlockingIOError:
                    time.sleep(0.05)
            os.close(screen)
            _, status = os.waitpid(pid, 0)
            check(os.waitstatus_to_exitcode(status) == 75, f"{kind}: exit code {os.waitstatus_to_exitcode(status)}")
            check(saved_where_it_stopped(lab, run), f"{kind}: the last update was not saved")


def on_a_terminal(command, columns):
    """What a program writes on a terminal of its own until it ends, and its exit code."""
    pid, screen = pty.fork()
    if pid == 0:
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(command[0], command, {**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
    written = b""
    try:
        while piece := os.read(screen, 65536):
            written += piece
    except OSError:  # how Linux says that nobody has the other side open any more
        pass
    os.close(screen)
    return written.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def screens(written):
    """The lines that stand on the screen each time before lines are taken off it, and at the end."""
    lines, row, found = [""], 0, []
    went_up = False
    for word in re.findall(r"\x1b\[1A|\x1b\[K|\r|\n|[^\x1b\r\n]+|\x1b", written):
        if word == "\x1b[1A" and not went_up:
            found.append([line for line in lines if line])
        went_up = word in ("\x1b[1A", "\x1b[K", "\r")
        if word == "\x1b[1A":
            row -= 1
        elif word == "\x1b[K":  # always at the left margin
            lines[row] = ""
        elif word == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif word != "\r":
            check(word != "\x1b" and row >= 0 and lines[row] == "", f"{word!r} is written over {lines[row]!r}")
            lines[row] = word
    return [*found, [line for line in lines if line]]


def a_search_shows_its_table_and_takes_it_off(stretto):
    columns = 44
    with Lab(stretto) as lab:
        command = search(lab, "found", text=SEARCH.replace("max_trials = 6", "max_trials = 3"))
        written, code = on_a_terminal(command, columns)
        check(code == 0, f"exit code {code}: {written}")
        *before, last = screens(written)
        said = [line.split(" ", 1)[1] for line in (lab.root / "found/log.txt").read_text().splitlines()]
        check(last == said, f"at the end the screen has\n{last}\nthe log\n{said}")
        tables = []
        for lines in before:
            begin = next((i for i, line in enumerate(lines) if " of 3 trials begun · " in line), None)
            check(begin is not None and lines[:begin] == said[:begin], f"no table below what was said:\n{lines}")
            tables.append(lines[begin:])
        check(len(tables) > 2 and any("…" in line for table in tables for line in table), f"{tables}")
        for table in tables:
            check(all(len(line) < columns for line in table), f"wider than the screen:\n{table}")
            check(re.fullmatch(r"\d of 3 trials begun · \d train · nll · .+", table[0]), table[0])
            check(sum("until" in line for line in table) == int(table[0].split()[6]), f"{table}")
        rows = {line for table in tables for line in table[1:]}
        check(any(re.match(r"  0 +until 8 +lr", row) for row in rows), f"no trial begins: {rows}")
        check(any(re.match(r"\* \d +until 16 +\d\.\d{4} +", row) for row in rows), f"no trial goes on: {rows}")


def quiet_draws_nothing(stretto):
    with Lab(stretto) as lab:
        written, code = on_a_terminal([*lab.command("run"), "--quiet"], 80)
        check(code == 0 and written == "", f"exit code {code}: {written!r}")
        written, code = on_a_terminal([*lab.command("loud"), "report.every=1"], 80)
        check(code == 0 and "\x1b[K" in written, f"exit code {code}, and nothing is drawn without it: {written!r}")
        command = search(lab, "found", "--quiet", text=SEARCH.replace("max_trials = 6", "max_trials = 3"))
        written, code = on_a_terminal(command, 80)
        check(code == 0 and "\x1b" not in written and "begun" not in written, f"exit code {code}: {written!r}")


def a_reader_of_the_screen_may_leave(stretto):
    with Lab(stretto) as lab:
        for kind in KINDS:
            exact = ("dist.deterministic=true", "train.update_freq=2")
            reference, run = f"reference{len(kind)}", f"run{len(kind)}"
            process = start(lab, reference, *exact, kind=kind)
            check(process.wait(timeout=120) == 0, f"{kind}: undisturbed")
            process = start(lab, run, *exact, kind=kind, stderr=subprocess.PIPE)
            process.stderr.readline()
            process.stderr.close()
            code = process.wait(timeout=120)
            check(code == 0, f"{kind}: exit code {code}: {log_of(lab, run)[-2000:]}")
            compare(lab, reference, run, str(kind))
            check("finished at step 60" in log_of(lab, run), f"{kind}: {log_of(lab, run)[-2000:]}")


def what_ranks_die_of_stands_in_the_log(stretto):
    if len(KINDS) == 1:
        return
    with Lab(stretto) as lab:
        process = start(lab, "run", *LONG, kind=("--processes", "2"), stderr=subprocess.PIPE)
        process.stderr.readline()
        process.stderr.close()
        lab.wait_for_updates("run", 10, process)
        victim = next(int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*") if is_rank(path, lab, 1))
        os.kill(victim, signal.SIGKILL)
        code = process.wait(timeout=60)
        check(code == 69, f"exit code {code}")
        check(f"error: rank 1 (host" in log_of(lab, "run") and f"pid {victim}) died without a word" in log_of(lab, "run"),
              log_of(lab, "run")[-2000:])


def is_rank(path, lab, rank):
    try:
        return str(lab.root).encode() in (path / "cmdline").read_bytes() and \
            f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in (path / "environ").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    main({test.__name__: test for test in (a_hangup_saves_and_leaves, under_nohup_a_hangup_changes_nothing,
                                           a_terminal_that_is_closed_saves_and_leaves,
                                           a_search_shows_its_table_and_takes_it_off, quiet_draws_nothing,
                                           a_reader_of_the_screen_may_leave,
                                           what_ranks_die_of_stands_in_the_log)})
