#!/usr/bin/env python3
"""Plants small faults in a copy of the tree, one at a time, and tells which of them no test notices.

    tools/mutate.py                   all faults of tools/mutations.toml: hours; goes on where it was stopped
    tools/mutate.py NAME...           those with these names, or in these rooms (`optim`, `store`)
    tools/mutate.py --check           only whether the list still fits the sources
    tools/mutate.py --list FILE --tree FOLDER --work FOLDER   another list, tree, or place of the copy

Your files are read, never written: the copy is build/mutants/tree, with a build of its own that is kept between runs.
Each [[mutation]] of the list has `name`, `file`, `old` (which stands there exactly once), `new`, `why`, and `tests`:
test files, wildcards allowed. [[program]] says how the tests of a folder are built and run. A fault is killed when a
test fails or runs ten times as long as without it. Before anything is planted, all tests that are wanted have to pass.

Exit code: 0 when at least --aim (0.9) of the judged faults were killed, 1 when fewer were, 2 when the list does not
fit the tree, 65 when the tests fail without any fault.
"""

import argparse
import dataclasses
import fcntl
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

SUITE = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,", re.M)
LEAST_LIMIT = 120  # seconds that a test has at least: machines are busy
KILLED, SURVIVED, NO_BUILD, SKIPPED = "killed", "survived", "does not compile", "skipped"


class Problem(Exception):
    """Something that ends the run; its exit code and words."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Program:
    """How the test files of some folders are built and run."""

    folders: tuple
    build: str
    run: str            # {file}, {suites}: of a test file
    nothing: str = ""   # printed when a run had no test in it
    skip_code: int = 77
    ending: str = ""    # of its test files, where another program has files in the same folder

    def runs(self, path):
        return path.endswith(self.ending) and any(path.startswith(folder + "/") for folder in self.folders)


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple

    @property
    def room(self):
        return pathlib.PurePath(self.file).parts[1] if "/" in self.file else ""


def read_list(path):
    """(programs, mutations, the command that configures the build)"""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        programs = [Program(**{key: tuple(value) if isinstance(value, list) else value
                               for key, value in entry.items()}) for entry in data["program"]]
        mutations = [Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in data["mutation"]]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise Problem(2, f"{path}: {error}") from error
    return programs, mutations, data.get("configure", "")


def files_of(tree, patterns):
    return sorted({str(path.relative_to(tree)) for pattern in patterns for path in tree.glob(pattern)})


def stale(tree, programs, mutations):
    """What of the list does not fit the tree, a line each."""
    problems, names = [], set()
    for one in mutations:
        if one.name in names:
            problems.append(f"{one.name}: another fault has this name")
        names.add(one.name)
        path = tree / one.file
        count = path.read_text(encoding="utf-8").count(one.old) if path.is_file() else -1
        if count != 1:
            found = "is not there" if count < 0 else "no longer has this text" if count == 0 else "has this text twice"
            problems.append(f"{one.name}: {one.file} {found}: {one.old.strip().splitlines()[0]!r}")
        if one.old == one.new:
            problems.append(f"{one.name}: `new` is `old`")
        for pattern in one.tests:
            found = files_of(tree, [pattern])
            if not found:
                problems.append(f"{one.name}: there is no test file {pattern}")
            problems += [f"{one.name}: no program runs {path}" for path in found
                         if not any(program.runs(path) for program in programs)]
    return problems


def copy_tree(tree, copy, apart):
    """Makes the copy hold what git would see of the tree; what is equal is left alone, for the build's sake.

    Returns a hash of all of it but the files of `apart`.
    """
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=tree, check=True,
                           capture_output=True).stdout.decode().split("\0")
    wanted = {name for name in names if name and (tree / name).is_file()}
    digest = hashlib.sha256()
    for name in sorted(wanted):
        bytes_, there = (tree / name).read_bytes(), copy / name
        if name not in apart:
            digest.update(f"{name}\0{len(bytes_)}\0".encode() + bytes_)
        if not there.is_file() or there.read_bytes() != bytes_:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(bytes_)
        shutil.copymode(tree / name, there)
    known = copy / ".mutate-files"
    for name in set(known.read_text(encoding="utf-8").split("\n") if known.exists() else []) - wanted:
        if name:
            (copy / name).unlink(missing_ok=True)
    known.write_text("\n".join(sorted(wanted)), encoding="utf-8")
    if (tree / ".deps").exists() and not (copy / ".deps").exists():
        (copy / ".deps").symlink_to((tree / ".deps").resolve())
    return digest.hexdigest()


def run(command, folder, limit=None):
    """(exit code or None when it ran out of time, output); whatever it started ends with it."""
    with subprocess.Popen(command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True, encoding="utf-8",
                          errors="replace") as process:
        try:
            output, _ = process.communicate(timeout=limit)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        except BaseException:  # Ctrl-C too
            os.killpg(process.pid, signal.SIGKILL)
            raise


class Bench:
    """The copy, its build, and what is known of this state of the tree.

    Results are kept by a hash of the fault, the tests that judge it, and all other files but tests and manual: a new
    test is tried on the faults that it is listed for, a change of the code on all.
    """

    def __init__(self, tree, work, listing):
        self.work, self.copy = work, work / "tree"
        work.mkdir(parents=True, exist_ok=True)
        self.lock = open(work / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Problem(2, f"another tools/mutate.py works in {work}") from error
        self.programs, mutations, self.configure = listing
        apart = {path for one in mutations for path in files_of(tree, one.tests)}
        apart |= set(files_of(tree, ["*.md", "docs/*.md", "benchmarks/*.md", "tools/mutations.toml"]))
        self.state = copy_tree(tree, self.copy, apart)
        self.known, self.seconds = {}, {}
        self.results = work / "results.jsonl"
        for line in self.results.read_text(encoding="utf-8").splitlines() if self.results.exists() else []:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off by a kill
            self.known[entry["key"]] = entry

    def key(self, what, tests):
        """Of a result: `what` in this state of the tree, judged by these test files."""
        digest = hashlib.sha256(f"{self.state}\0{what}\0".encode())
        for path in files_of(self.copy, tests):
            digest.update(hashlib.sha256((self.copy / path).read_bytes()).digest())
        return digest.hexdigest()

    def note(self, key, **facts):
        self.known[key] = {"key": key, **facts}
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(self.known[key]) + "\n")

    def build(self, command):
        if self.configure:
            code, output = run(self.configure, self.copy)
            if code:
                return code, output
        return run(command, self.copy)

    def commands(self, tests):
        """(program, command) for each test file of these patterns; files of one program with suites go together."""
        found = []
        for program in self.programs:
            paths = [path for path in files_of(self.copy, tests) if program.runs(path)]
            if not paths:
                continue
            if "{suites}" not in program.run:
                found += [(program, program.run.replace("{file}", shlex.quote(path))) for path in paths]
                continue
            suites = sorted({suite for path in paths
                             for suite in SUITE.findall((self.copy / path).read_text(encoding="utf-8"))})
            each = ":".join(f"{suite}.*:*/{suite}.*:{suite}/*:*/{suite}/*" for suite in suites)
            found.append((program, program.run.replace("{suites}", shlex.quote(each))))
        return found

    def prove_sound(self, mutations):
        """All tests that are wanted pass as the tree is; how long each takes is the measure of one that hangs."""
        wanted = {pair: one.tests for one in mutations for pair in self.commands(one.tests)}
        for (program, command), tests in wanted.items():
            key = self.key(command, tests)
            if key not in self.known:
                print(f"without a fault: {short(command)}", flush=True)
                code, output = self.build(program.build)
                if code:
                    raise Problem(65, f"the tree does not build without a fault:\n{tail(output)}")
                start = time.monotonic()
                code, output = run(command, self.copy)
                if program.nothing and program.nothing in output:
                    raise Problem(2, f"no test in {command}")
                if code not in (0, program.skip_code):
                    raise Problem(65, f"fails without a fault: {command}\n{tail(output)}")
                self.note(key, seconds=time.monotonic() - start, skips=code != 0)
            self.seconds[command] = self.known[key]

    def judge(self, one):
        """(result, the test or the command that noticed)"""
        path = self.copy / one.file
        sound = path.read_text(encoding="utf-8")
        path.write_text(sound.replace(one.old, one.new), encoding="utf-8")
        try:
            judged = False
            for program, command in self.commands(one.tests):
                if self.seconds[command]["skips"]:
                    continue
                code, output = self.build(program.build)
                if code:
                    return NO_BUILD, tail(output)
                judged = True
                code, output = run(command, self.copy, max(LEAST_LIMIT, 10 * self.seconds[command]["seconds"]))
                if code != 0:
                    failed = re.search(r"\[  FAILED  \] (\S+)|^FAILED +(\S+?):", output, re.M)
                    return KILLED, "it hung" if code is None else next(filter(None, failed.groups())) if failed \
                        else f"exit code {code} of {short(command)}"
            return (SURVIVED, "") if judged else (SKIPPED, "its tests cannot run on this machine")
        finally:
            path.write_text(sound, encoding="utf-8")


def short(command):
    return command if len(command) < 110 else command[:107] + "…"


def tail(output, lines=15):
    return "\n".join("  " + line for line in output.splitlines()[-lines:])


def place_of(tree, one):
    text = (tree / one.file).read_text(encoding="utf-8")
    return f"{one.file}:{text[:text.index(one.old)].count(chr(10)) + 1}"


def summary(tree, results, aim):
    """Prints what survived; the exit code."""
    by = {kind: [one for one, result in results if result == kind] for kind in (KILLED, SURVIVED, NO_BUILD, SKIPPED)}
    for one in by[SURVIVED]:
        print(f"\nsurvived: {one.name} ({place_of(tree, one)}): {one.why}")
        print("\n".join(f"  - {line}" for line in one.old.strip("\n").split("\n")))
        print("\n".join(f"  + {line}" for line in one.new.strip("\n").split("\n")))
    for kind in (NO_BUILD, SKIPPED):
        if by[kind]:
            print(f"\n{kind}: {', '.join(one.name for one in by[kind])}")
    judged = len(by[KILLED]) + len(by[SURVIVED])
    share = len(by[KILLED]) / judged if judged else 1
    print(f"\n{len(by[KILLED])} of {judged} planted faults were noticed ({100 * share:.0f} %)")
    if by[NO_BUILD]:
        return 2
    return 0 if share >= aim else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("names", nargs="*", metavar="NAME", help="a fault, or a room; wildcards allowed")
    parser.add_argument("--list", type=pathlib.Path, default=here / "mutations.toml")
    parser.add_argument("--tree", type=pathlib.Path, default=here.parent)
    parser.add_argument("--work", type=pathlib.Path, help="where the copy is (default: build/mutants of the tree)")
    parser.add_argument("--check", action="store_true", help="plant nothing")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--aim", type=float, default=0.9, help="share to be killed (default 0.9)")
    options = parser.parse_args()
    tree = options.tree.resolve()
    listing = read_list(options.list)
    if problems := stale(tree, *listing[:2]):
        raise Problem(2, f"{options.list} does not fit the sources, mend these entries:\n  " + "\n  ".join(problems))
    chosen = [one for one in listing[1] if not options.names or
              any(fnmatch.fnmatch(one.name, name) or one.room == name for name in options.names)]
    if not chosen:
        raise Problem(2, f"no fault is called {' or '.join(options.names)}")
    if options.check:
        print(f"{len(chosen)} planted faults fit the sources")
        return 0
    work = (options.work or tree / "build" / "mutants").resolve()
    if options.again:
        (work / "results.jsonl").unlink(missing_ok=True)
    bench = Bench(tree, work, listing)
    pending = [one for one in chosen if bench.key(one, one.tests) not in bench.known]
    bench.prove_sound(pending)
    results = []
    for number, one in enumerate(chosen, 1):
        key, start = bench.key(one, one.tests), time.monotonic()
        if key not in bench.known:
            result, by = bench.judge(one)
            bench.note(key, name=one.name, result=result, by=by)
            took = f"{time.monotonic() - start:.0f} s"
        else:
            took = "known"
        found = bench.known[key]
        print(f"{number}/{len(chosen)} {found['result']}: {one.name} ({took})"
              + (f": {found['by']}" if found["by"] else ""), flush=True)
        results.append((one, found["result"]))
    return summary(tree, results, options.aim)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        print(f"mutate.py: {problem}", file=sys.stderr)
        sys.exit(problem.code)
    except KeyboardInterrupt:
        sys.exit("\nstopped; the same command goes on from here")
