#!/usr/bin/env python3
"""Plants small faults in a copy of the tree, and tells which of them no test notices.

    tools/mutate.py                   all faults of tools/mutations.toml; goes on where it was stopped
    tools/mutate.py NAME...           those with these names, or in these rooms (`optim`, `store`)
    tools/mutate.py --check           only whether the list still fits the sources
    tools/mutate.py --list FILE --tree FOLDER --work FOLDER   another list, tree, or place of the copy
    tools/mutate.py --jobs 2          processes that compile and test at once (default: the cores)

Your files are read, never written: the copy is build/mutants/tree, with a build of its own that is kept between runs.
All faults are compiled into one program (tools/fault_switch.py), in which STRETTO_FAULT chooses one, so that a fault
costs the time of its tests. A fault that cannot be chosen at run time is built alone.

Each [[mutation]] of the list has `name`, `file`, `old` (which stands there exactly once), `new`, `why`, and `tests`:
test files, wildcards allowed. [[program]] says how the tests of a folder are built and run. A fault is detected when a
test fails or runs ten times as long as without it. Before a fault is chosen, all tests that are wanted have to pass.

Exit code: 0 when at least --aim (0.9) of the judged faults were detected, 1 when fewer were, 2 when the list does not
fit the tree, 65 when the tests fail without any fault.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
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
import threading
import time
import tomllib
import zlib

import fault_switch

SUITE = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,", re.M)
LEAST_LIMIT = 120  # seconds that a test has at least: machines are busy
DETECTED, SURVIVED, NO_BUILD, SKIPPED = "detected", "survived", "does not compile", "skipped"
COMPILER_ERROR = re.compile(r"^(?:.*[ /])?(src/\S+?):(\d+):(?:\d+:)? (?:fatal )?error:", re.M)
ANY_PLACE = re.compile(r"(?:^|[ /])(src/[^\s:]+):(\d+)[:,]", re.M)
SWITCH_HEADER = "src/" + fault_switch.HEADER_NAME


class Problem(Exception):
    """Something that ends the run; its exit code and words."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Program:
    """How the test files of some folders are built and run. A file of several programs' folders is the first one's."""

    folders: tuple      # patterns: "tests/families/*/engine"
    build: str
    run: str            # {file}, {suites}: of a test file
    nothing: str = ""   # printed when a run had no test in it
    skip_code: int = 77
    ending: str = ""    # of its test files, where another program has files in the same folder

    def runs(self, path):
        return path.endswith(self.ending) and any(fnmatch.fnmatch(path, folder + "/*") for folder in self.folders)


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

    @property
    def number(self):
        """What STRETTO_FAULT is for it: that of its name, so that a new entry changes no file of another."""
        return 1 + zlib.crc32(self.name.encode()) % 1_000_000_000


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
        if sum(other.number == one.number for other in mutations) > 1:
            problems.append(f"{one.name}: another fault has its number, choose another name")
        for pattern in one.tests:
            found = files_of(tree, [pattern])
            if not found:
                problems.append(f"{one.name}: there is no test file {pattern}")
            problems += [f"{one.name}: no program runs {path}" for path in found
                         if not any(program.runs(path) for program in programs)]
    return problems


def copy_tree(tree, copy, apart, planted):
    """Makes the copy hold what git would see of the tree, and `planted` in the place of some files; what is equal is
    left alone, for the build's sake.

    Returns a hash of all of the tree but the files of `apart`.
    """
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=tree, check=True,
                           capture_output=True).stdout.decode().split("\0")
    wanted = {name for name in names if name and (tree / name).is_file()}
    digest = hashlib.sha256()
    for name in sorted(wanted):
        bytes_, there = (tree / name).read_bytes(), copy / name
        if name not in apart:
            digest.update(f"{name}\0{len(bytes_)}\0".encode() + bytes_)
        write_changed(there, planted[name].encode() if name in planted else bytes_)
        shutil.copymode(tree / name, there)
    for name in planted.keys() - wanted:
        write_changed(copy / name, planted[name].encode())
    wanted |= planted.keys()
    known = copy / ".mutate-files"
    for name in set(known.read_text(encoding="utf-8").split("\n") if known.exists() else []) - wanted:
        if name:
            (copy / name).unlink(missing_ok=True)
    known.write_text("\n".join(sorted(wanted)), encoding="utf-8")
    if (tree / ".deps").exists() and not (copy / ".deps").exists():
        (copy / ".deps").symlink_to((tree / ".deps").resolve())
    return digest.hexdigest()


def write_changed(path, bytes_):
    """Writes a file unless it is equal already, in which case its time of change stays."""
    if path.is_file() and path.read_bytes() == bytes_:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes_)


def run(command, folder, limit=None, env=None):
    """(exit code or None when it ran out of time, output); whatever it started ends with it."""
    with subprocess.Popen(command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True, encoding="utf-8",
                          errors="replace", env={**os.environ, **(env or {})}) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        except BaseException:  # Ctrl-C too
            os.killpg(process.pid, signal.SIGKILL)
            raise


class Plan:
    """The sources with all faults in them, each behind its number, and those faults that are built alone."""

    def __init__(self, tree, mutations, known):
        self.tree, self.owners, self.sites = tree, {}, {}
        self.by_file = collections.defaultdict(list)
        for one in mutations:
            self.by_file[one.file].append(one)
        self.alone = {one for one in mutations if self.alone_key(one) in known}

    def alone_key(self, one):
        """The key of the note that this fault could not be compiled beside the others."""
        return hashlib.sha256(b"alone\0" + str(one).encode() + (self.tree / one.file).read_bytes()).hexdigest()

    def sources(self):
        """path -> text of every file that differs from the tree."""
        planted = {}
        for file, faults in self.by_file.items():
            text = (self.tree / file).read_text(encoding="utf-8")
            sites = []
            if file.endswith((".cpp", ".h")):
                sites, alone = fault_switch.sites_of(text, [one for one in faults if one not in self.alone])
                self.alone |= set(alone)
            else:
                self.alone |= set(faults)
            if sites:
                planted[file], self.owners[file] = fault_switch.switched(text, sites)
            self.sites[file] = sites
        if planted:
            planted[SWITCH_HEADER] = fault_switch.HEADER
        return planted

    def alone_source(self, one):
        """The file with this fault in its place, and the others of the file behind their numbers where they fit."""
        text = (self.tree / one.file).read_text(encoding="utf-8").replace(one.old, one.new)
        others = [fault for site in self.sites.get(one.file, []) for fault in site.faults
                  if text.count(fault.old) == 1]
        sites, _ = fault_switch.sites_of(text, others) if others else ([], [])
        return fault_switch.switched(text, sites)[0] if sites else text

    def blamed(self, output):
        """The faults at whose places the compiler found errors. An error elsewhere in a file may be the use of a
        constant; else all faults of this file are meant."""
        found = set()
        for pattern in (COMPILER_ERROR, ANY_PLACE):
            for file, line in pattern.findall(output):
                owners = self.owners.get(file)
                if owners is None:
                    continue
                if int(line) in owners:
                    found |= set(owners[int(line)])
                elif pattern is COMPILER_ERROR:
                    constants = [site for site in self.sites[file] if not site.body]
                    found |= {fault for site in constants or self.sites[file] for fault in site.faults}
            if found:
                break
        return found - self.alone


class Bench:
    """The copy, its build, and what is known of this state of the tree.

    Results are kept by a hash of the fault, the tests that judge it, and all other files but tests and manual: a new
    test is tried on the faults that it is listed for, a change of the code on all.
    """

    def __init__(self, tree, work, listing, jobs):
        self.work, self.copy, self.jobs = work, work / "tree", jobs
        work.mkdir(parents=True, exist_ok=True)
        self.lock = open(work / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Problem(2, f"another tools/mutate.py works in {work}") from error
        self.programs, mutations, self.configure = listing
        self.known, self.seconds, self.writing = {}, {}, threading.Lock()
        self.results = work / "results.jsonl"
        for line in self.results.read_text(encoding="utf-8").splitlines() if self.results.exists() else []:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off by a kill
            self.known[entry["key"]] = entry
        self.apart = {path for one in mutations for path in files_of(tree, one.tests)}
        self.apart |= set(files_of(tree, ["*.md", "docs/*.md", "benchmarks/*.md", "tools/mutations.toml",
                                          "tools/mutate.py", "tools/fault_switch.py"]))
        self.tree, self.plan = tree, Plan(tree, mutations, self.known)
        self.state = copy_tree(tree, self.copy, self.apart, self.plan.sources())

    def key(self, what, tests):
        """The key of a result: `what` in this state of the tree, judged by these test files."""
        digest = hashlib.sha256(f"{self.state}\0{what}\0".encode())
        for path in files_of(self.copy, tests):
            digest.update(hashlib.sha256((self.copy / path).read_bytes()).digest())
        return digest.hexdigest()

    def note(self, key, **facts):
        with self.writing:
            self.known[key] = {"key": key, **facts}
            with open(self.results, "a", encoding="utf-8") as file:
                file.write(json.dumps(self.known[key]) + "\n")

    def build(self, command):
        env = {"CMAKE_BUILD_PARALLEL_LEVEL": str(self.jobs)}
        if self.configure:
            code, output = run(self.configure, self.copy, env=env)
            if code:
                return code, output
        return run(command, self.copy, env=env)

    def commands(self, tests):
        """(program, command) for each test file of these patterns; files of one program with suites go together."""
        found, waiting = [], files_of(self.copy, tests)
        for program in self.programs:
            paths = [path for path in waiting if program.runs(path)]
            if not paths:
                continue
            waiting = [path for path in waiting if path not in paths]
            if "{suites}" not in program.run:
                found += [(program, program.run.replace("{file}", shlex.quote(path))) for path in paths]
                continue
            suites = sorted({suite for path in paths
                             for suite in SUITE.findall((self.copy / path).read_text(encoding="utf-8"))})
            each = ":".join(f"{suite}.*:*/{suite}.*:{suite}/*:*/{suite}/*" for suite in suites)
            found.append((program, program.run.replace("{suites}", shlex.quote(each))))
        return found

    def build_all(self, mutations):
        """Builds the programs that these faults need, with all faults in them; a fault that the compiler refuses there is
        built alone."""
        wanted = [fault for fault in mutations if fault not in self.plan.alone
                  or any(self.key(command, fault.tests) not in self.known for _, command in self.commands(fault.tests))]
        for program in [one for one in self.programs
                        if any(pair[0] is one for fault in wanted for pair in self.commands(fault.tests))]:
            while True:
                code, output = self.build(program.build + (" -- -k 0" if program.build.startswith("cmake ") else ""))
                if code == 0:
                    break
                blamed = self.plan.blamed(output)
                if not blamed:
                    raise Problem(65, f"the tree does not build without a fault:\n{tail(output, 40)}")
                print("built alone: " + ", ".join(sorted(one.name for one in blamed)), flush=True)
                for one in blamed:
                    self.note(self.plan.alone_key(one), name=one.name, alone=True)
                self.plan.alone |= blamed
                copy_tree(self.tree, self.copy, self.apart, self.plan.sources())

    def prove_sound(self, mutations):
        """All tests that are wanted pass without a fault; how long each takes is the measure of one that hangs."""
        wanted = {pair: one.tests for one in mutations for pair in self.commands(one.tests)}

        def prove(item):
            (program, command), tests = item
            key = self.key(command, tests)
            if key not in self.known:
                start = time.monotonic()
                code, output = run(command, self.copy)
                print(f"without a fault ({time.monotonic() - start:.0f} s): {short(command)}", flush=True)
                if program.nothing and program.nothing in output:
                    raise Problem(2, f"no test in {command}")
                if code not in (0, program.skip_code):
                    raise Problem(65, f"fails without a fault: {command}\n{tail(output)}")
                self.note(key, seconds=time.monotonic() - start, skips=code != 0)
            self.seconds[command] = self.known[key]

        for _ in in_parallel(prove, wanted.items(), self.jobs):
            pass

    def judge(self, one):
        """(result, the test or the command that noticed); with its tests alone, or after a build of its own."""
        if one not in self.plan.alone:
            return self.tested(one, {"STRETTO_FAULT": str(one.number)})
        path = self.copy / one.file
        planted = path.read_bytes()
        path.write_text(self.plan.alone_source(one), encoding="utf-8")
        try:
            for program in {pair[0] for pair in self.commands(one.tests)}:
                code, output = self.build(program.build)
                if code:
                    return NO_BUILD, tail(output)
            return self.tested(one, {})
        finally:
            path.write_bytes(planted)

    def tested(self, one, env):
        judged = False
        for _, command in self.commands(one.tests):
            if self.seconds[command]["skips"]:
                continue
            judged = True
            code, output = run(command, self.copy, max(LEAST_LIMIT, 10 * self.seconds[command]["seconds"]),
                               {"GTEST_FAIL_FAST": "1", **env})
            if code != 0:
                failed = re.search(r"\[  FAILED  \] (\S+)|^FAILED +(\S+?):", output, re.M)
                return DETECTED, "it hung" if code is None else next(filter(None, failed.groups())) if failed \
                    else f"exit code {code} of {short(command)}"
        return (SURVIVED, "") if judged else (SKIPPED, "its tests cannot run on this machine")


def in_parallel(work, items, jobs):
    """The results of work(item) as they come; the first exception ends it, as does Ctrl-C."""
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=jobs)
    try:
        for future in concurrent.futures.as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def short(command):
    return command if len(command) < 110 else command[:107] + "…"


def tail(output, lines=15):
    return "\n".join("  " + line for line in output.splitlines()[-lines:])


def place_of(tree, one):
    text = (tree / one.file).read_text(encoding="utf-8")
    return f"{one.file}:{text[:text.index(one.old)].count(chr(10)) + 1}"


def summary(tree, results, aim):
    """Prints what survived; the exit code."""
    by = {kind: [one for one, result in results if result == kind] for kind in (DETECTED, SURVIVED, NO_BUILD, SKIPPED)}
    for one in by[SURVIVED]:
        print(f"\nsurvived: {one.name} ({place_of(tree, one)}): {one.why}")
        print("\n".join(f"  - {line}" for line in one.old.strip("\n").split("\n")))
        print("\n".join(f"  + {line}" for line in one.new.strip("\n").split("\n")))
    for kind in (NO_BUILD, SKIPPED):
        if by[kind]:
            print(f"\n{kind}: {', '.join(one.name for one in by[kind])}")
    judged = len(by[DETECTED]) + len(by[SURVIVED])
    share = len(by[DETECTED]) / judged if judged else 1
    print(f"\n{len(by[DETECTED])} of {judged} planted faults were detected ({100 * share:.1f} %), "
          f"{len(by[SURVIVED])} survived")
    if by[NO_BUILD]:
        return 2
    return 0 if share >= aim else 1


def judge_all(bench, chosen, pending):
    """Judges what is pending, those of the common program side by side, and prints each result as it comes."""
    count = iter(range(1, len(chosen) + 1))

    def tell(one, took):
        found = bench.known[bench.key(one, one.tests)]
        print(f"{next(count)}/{len(chosen)} {found['result']}: {one.name} ({took})"
              + (f": {found['by']}" if found["by"] else ""), flush=True)

    def judge(one):
        start = time.monotonic()
        result, by = bench.judge(one)
        bench.note(bench.key(one, one.tests), name=one.name, result=result, by=by)
        return one, f"{time.monotonic() - start:.0f} s"

    for one in chosen:
        if one not in pending:
            tell(one, "known")
    together = [one for one in pending if one not in bench.plan.alone]
    for one, took in in_parallel(judge, together, bench.jobs):
        tell(one, took)
    for one in pending:
        if one in bench.plan.alone:
            tell(*judge(one))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("names", nargs="*", metavar="NAME", help="a fault, or a room; wildcards allowed")
    parser.add_argument("--list", type=pathlib.Path, default=here / "mutations.toml")
    parser.add_argument("--tree", type=pathlib.Path, default=here.parent)
    parser.add_argument("--work", type=pathlib.Path, help="where the copy is (default: build/mutants of the tree)")
    parser.add_argument("--check", action="store_true", help="plant nothing")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--aim", type=float, default=0.9, help="share to be detected (default 0.9)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (default: the cores)")
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
        plan = Plan(tree, chosen, {})
        plan.sources()
        print(f"{len(chosen)} planted faults fit the sources; {len(chosen) - len(plan.alone)} of them are compiled into "
              "one program")
        return 0
    work = (options.work or tree / "build" / "mutants").resolve()
    if options.again:
        (work / "results.jsonl").unlink(missing_ok=True)
    bench = Bench(tree, work, listing, options.jobs)
    start = time.monotonic()
    pending = [one for one in chosen if bench.key(one, one.tests) not in bench.known]
    if pending:
        bench.build_all(pending)
        print(f"built in {time.monotonic() - start:.0f} s, with all faults in it", flush=True)
        bench.prove_sound(pending)
    judge_all(bench, chosen, pending)
    results = [(one, bench.known[bench.key(one, one.tests)]["result"]) for one in chosen]
    if pending:
        took = time.monotonic() - start
        print(f"\n{len(pending)} faults in {took:.0f} s, building included: {took / len(pending):.0f} s a fault")
    return summary(tree, results, options.aim)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        print(f"mutate.py: {problem}", file=sys.stderr)
        sys.exit(problem.code)
    except KeyboardInterrupt:
        sys.exit("\nstopped; the same command goes on from here")
