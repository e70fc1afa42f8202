#!/usr/bin/env python3
"""Plays ssh and other hosts for tests of the search.

    stand_in_ssh.py HOST COMMAND         runs COMMAND here, in a session of its own, as ssh would on HOST
    stand_in_ssh.py --watch WORDS        plays `stretto search watch`

$STAND_IN_HOSTS names a folder. Each start appends HOST to `log` there. A file HOST there says in its words how the host fails,
one a line: an exit code, used once, or `down`, for ever.
"""
import os
import pathlib
import subprocess
import sys
import threading


def failure_of(host):
    folder = pathlib.Path(os.environ.get("STAND_IN_HOSTS", "/nowhere"))
    if not folder.exists():
        return None
    with open(folder / "log", "a") as log:
        log.write(host + "\n")
    words = folder / host
    lines = words.read_text().splitlines() if words.exists() else []
    if not lines:
        return None
    if lines[0] == "down":
        return 255
    words.write_text("".join(line + "\n" for line in lines[1:]))
    return int(lines[0])


def watch(words):
    def given(name):
        return [word[len(name):] for word in words if word.startswith(name)]

    variables = dict(value.split("=", 1) for value in given("--variable="))
    process = subprocess.Popen(given("--word="), stdin=subprocess.DEVNULL, env={**os.environ, **variables})

    def listen():
        while sys.stdin.buffer.read1(100):
            pass
        process.send_signal(2)
    threading.Thread(target=listen, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def main():
    if sys.argv[1] == "--watch":
        return watch(sys.argv[2:])
    host, command = sys.argv[1:]
    code = failure_of(host)
    if code is not None:
        print(f"connect to host {host}: no route", file=sys.stderr, flush=True)
        return code
    # What runs there outlives this connection.
    return subprocess.Popen(["sh", "-c", command], start_new_session=True).wait()


if __name__ == "__main__":
    try:
        os._exit(main())
    except KeyboardInterrupt:
        os._exit(255)
