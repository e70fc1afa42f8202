#!/usr/bin/env python3
"""Where the time of a build goes: by room and file, by what the compiler does, with the sizes of what was built and the time of tests.

    cmake --preset release -B build/timed && CCACHE_DISABLE=1 ninja -C build/timed stretto
    benchmarks/build_time.py build/timed [--trace 5] [--tests build/release] [--out benchmarks/build_….md]

Times are those of ninja's log (BUILD/.ninja_log), which says when each command began and ended. Sums are therefore seconds of a core that
other commands may have shared; the wall time is that of the whole build. Measure a clean build with the compiler cache off. When the log
holds several builds, each file counts with its last compilation, and no wall time is given.

--trace N compiles the N slowest files of src/ once more with clang++ and -ftime-trace, one after the other, with the flags of
compile_commands.json and a precompiled header of clang's. It tells what dominates: headers, templates, optimisation, machine code. The
build itself may use another compiler, so that the shares are a guide.

--tests BUILD adds the time of tests by program, from the last run of ctest in that folder, or from a file that `ctest --output-junit`
wrote (--junit FILE).
"""
import argparse
import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import records

MiB = 2**20
# Totals of a trace: the ones that do not contain each other but in the order given.
PHASES = [("Frontend", "frontend, all"), ("Source", "of it: headers"), ("InstantiateClass", "of it: class templates"),
          ("InstantiateFunction", "of it: function templates"), ("Backend", "backend, all"), ("Optimizer", "of it: optimiser")]
UNUSED_BY_CLANG = re.compile(r"-Werror|-Winvalid-pch|-fpch-preprocess|-fno-semantic-interposition")


def read_log(path):
    """({output: seconds}, wall seconds or None): of each output its last command."""
    commands, last_end, builds, first, last = {}, -1, 1, None, 0
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        start, end, _, output, key = line.split("\t")
        start, end = int(start), int(end)
        builds += end < last_end
        last_end = end
        first, last = start if first is None else min(first, start), max(last, end)
        commands[output] = (start, end, key)
    # A command with several outputs has a line for each of them.
    seen, seconds = set(), {}
    for output, command in commands.items():
        if command not in seen:
            seen.add(command)
            seconds[output] = (command[1] - command[0]) / 1000
    return seconds, (last - first) / 1000 if builds == 1 and first is not None else None


def known(seconds, build):
    """Without objects that this build folder makes no more, of sources that have moved."""
    path = build / "compile_commands.json"
    if not path.is_file():
        return seconds
    entries = json.loads(path.read_text(encoding="utf-8"))
    objects = {words[words.index("-o") + 1] for words in (shlex.split(entry["command"]) for entry in entries) if "-o" in words}
    return {output: taken for output, taken in seconds.items() if output in objects or not output.endswith(".o")}


def room_of(output):
    if not output.endswith((".o", ".gch", ".pch")):
        return "linking and the rest"
    if "_pch.dir/" in output:
        return "precompiled header"
    if output.startswith("tests/"):
        return "tests"
    if output.startswith(("examples/", "benchmarks/")):
        return output.split("/")[0]
    if match := re.search(r"/room_(\w+)\.dir/", output):
        return match[1]
    if "/kernels/" in output:
        return "kernels"
    if match := re.search(r"/\w+\.dir/(\w+)/", output):
        return match[1]  # src/cli, the backends of src/distributed, and what experiment compiles apart
    return "others"


def content(build, output):
    """What an object was made of: its source, and of a unity file the sources in it."""
    short = re.sub(r"^src/|CMakeFiles/\w+\.dir/|\.o$", "", output)
    unity = build / re.sub(r"\.o$", "", output)
    if "Unity/" not in output or not unity.is_file():
        return short
    names = [pathlib.Path(name).name for name in re.findall(r'#include "([^"]+)"', unity.read_text(encoding="utf-8"))]
    return f"{room_of(output)}: {', '.join(names)}"


def rooms_table(seconds):
    sums, files = collections.Counter(), collections.Counter()
    for output, taken in seconds.items():
        sums[room_of(output)] += taken
        files[room_of(output)] += 1
    total = sum(sums.values())
    return records.table(["room", "commands", "seconds of a core", "share"],
                         [[room, files[room], f"{taken:,.1f}", f"{100 * taken / total:.0f} %"] for room, taken in sums.most_common()]
                         + [["all", sum(files.values()), f"{total:,.1f}", ""]])


def slowest(seconds, count):
    objects = {output: taken for output, taken in seconds.items() if output.endswith(".o") and output.startswith("src/")}
    return sorted(objects, key=objects.get, reverse=True)[:count]


class Clang:
    """Compiles files of a build once more, for their traces."""

    def __init__(self, compiler, build, folder):
        self.compiler, self.folder, self.headers = compiler, folder, {}
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            words = shlex.split(entry["command"])
            if "-o" in words:
                self.commands[words[words.index("-o") + 1]] = (words, entry["directory"])

    def flags(self, words):
        """Flags that both compilers have, and the header that is precompiled, if any."""
        kept, header, skip = [], None, False
        for word, after in zip(words[1:], words[2:] + [""]):
            if skip or word in ("-o", "-c", "-include", "-x"):
                header = after if word == "-include" else header
                skip = not skip
            elif not UNUSED_BY_CLANG.fullmatch(word):
                kept.append(word)
        return [*kept, "-w"], header

    def run(self, arguments, directory, made):
        begin = time.monotonic()
        done = subprocess.run([self.compiler, *arguments, "-ftime-trace", "-o", str(made)], cwd=directory, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["no message"]
            raise OSError(errors[0])
        return time.monotonic() - begin

    def precompiled(self, header, flags, directory):
        """clang's own, for each set of flags: it refuses one that was made for another processor or with other macros."""
        key = (header, *(flag for flag in flags if not flag.startswith("-I")))
        if key not in self.headers:
            made = self.folder / f"{len(self.headers)}.pch"
            # Not the file beside the header that the build's own compiler made.
            own = self.folder / f"{len(self.headers)}.hxx"
            shutil.copyfile(header, own)
            self.run([*flags, "-x", "c++-header", str(own)], directory, made)
            self.headers[key] = made
        return self.headers[key]

    def trace(self, output):
        """(seconds, {phase: seconds}, [(header, seconds)], [(template, seconds)])"""
        words, directory = self.commands[output]
        flags, header = self.flags(words)
        source = words[words.index("-c") + 1]
        flags = [word for word in flags if word != source]
        with_header = ["-include-pch", str(self.precompiled(header, flags, directory))] if header else []
        made = self.folder / "object.o"
        seconds = self.run([*flags, *with_header, "-c", source], directory, made)
        events = json.loads(made.with_suffix(".json").read_text(encoding="utf-8"))["traceEvents"]
        totals = {event["name"][6:]: event["dur"] / 1e6 for event in events if event["name"].startswith("Total ")}
        totals["Source"] = seconds_of_headers(events)
        return seconds, totals, longest(events, {"Source"}), longest(events, {"InstantiateFunction", "InstantiateClass"})


def seconds_of_headers(events):
    """Time within any header, counted once where headers include each other. A unity file's sources are no headers."""
    total, reached = 0, 0
    for event in sorted((event for event in events if event.get("name") == "Source"), key=lambda event: event["ts"]):
        if not event["args"]["detail"].endswith((".cpp", ".cxx")):
            end = event["ts"] + event["dur"]
            total += max(0, end - max(reached, event["ts"]))
            reached = max(reached, end)
    return total / 1e6


def longest(events, names, count=3):
    """What took longest, with what it contains; of the sources in a unity file only their headers."""
    sums = collections.Counter()
    for event in events:
        detail = event.get("args", {}).get("detail", "?")
        if event.get("name") in names and not detail.endswith((".cpp", ".cxx")):
            sums[detail] += event["dur"] / 1e6
    return sums.most_common(count)


def trace_section(options, build, seconds):
    if not (build / "compile_commands.json").is_file():
        return "No compile_commands.json: nothing was traced."
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_build_time_"))
    rows, details, sums = [], [], collections.Counter()
    try:
        clang = Clang(options.clang, build, folder)
        for output in slowest(seconds, options.trace):
            name = content(build, output)
            print(f"build_time.py: clang compiles {name}", file=sys.stderr, flush=True)
            try:
                taken, totals, headers, templates = clang.trace(output)
            except (OSError, KeyError, ValueError) as failure:
                rows.append([name, f"not compiled: {failure}"] + [""] * len(PHASES))
                continue
            sums.update(totals)
            sums["all"] += taken
            rows.append([name, f"{taken:.1f}", *(f"{totals.get(key, 0):.1f}" for key, _ in PHASES)])
            shown = [f"{pathlib.Path(path).name} {spent:.1f} s" for path, spent in headers]
            shown += [f"`{template[:70]}` {spent:.1f} s" for template, spent in templates]
            details.append(f"- {name}: " + "; ".join(shown))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = records.table(["file, with clang", "seconds", *(title for _, title in PHASES)], rows)
    if sums["all"] > 0:
        share = lambda key: f"{100 * sums[key] / sums['all']:.0f} %"
        text += (f"\n\nOf these files' time, {share('Frontend')} is the frontend and {share('Backend')} the backend; headers take "
                 f"{share('Source')}, instantiations of functions {share('InstantiateFunction')}, of classes "
                 f"{share('InstantiateClass')}, the optimiser {share('Optimizer')}. Headers and instantiations contain each other in part. "
                 "The precompiled header was made before and is not in these times.")
    return text + "\n\nThe longest headers and instantiations of each:\n\n" + "\n".join(details)


def sizes_table(build):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(build.iterdir()):
            if not path.is_file() or path.is_symlink() or not (path.suffix == ".so" or (path.stat().st_mode & 0o111)):
                continue
            stripped = pathlib.Path(folder) / "stripped"
            done = subprocess.run(["strip", "-o", str(stripped), str(path)], capture_output=True, check=False)
            small = f"{stripped.stat().st_size / MiB:.2f}" if done.returncode == 0 else "?"
            rows.append([path.name, f"{path.stat().st_size / MiB:.2f}", small])
    return records.table(["file", "MiB", "stripped MiB"], rows) if rows else "Nothing was built there."


def test_seconds(build, junit):
    """{test: seconds} of the last run of ctest."""
    if junit:
        cases = xml.etree.ElementTree.parse(junit).getroot().iter("testcase")
        return {case.get("name"): float(case.get("time") or 0) for case in cases if case.get("status") in (None, "run", "fail")}
    path = build / "Testing/Temporary/CTestCostData.txt"
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n---")[0].splitlines()
    return {name: float(taken) for name, runs, taken in (line.rsplit(" ", 2) for line in lines if line) if int(runs) > 0}


def programs_of_tests(build):
    """{test: the program or script that it runs}"""
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = {}
    for test in json.loads(done.stdout)["tests"] if done.returncode == 0 else []:
        words = [pathlib.Path(word).name for word in test.get("command", []) if not word.startswith("-")]
        words = [word for word in words if not re.fullmatch(r"(python|bash|sh|env|mpirun).*", word) or word.endswith((".py", ".sh"))]
        found[test["name"]] = words[0] if words else "others"
    return found


def tests_table(build, junit):
    seconds = test_seconds(build, junit)
    if not seconds:
        return "No run of ctest is known there."
    programs = programs_of_tests(build)
    sums, counts, longest_one = collections.Counter(), collections.Counter(), {}
    for name, taken in seconds.items():
        program = programs.get(name)
        if program is None and not junit:
            continue  # of a test that is no more
        program = program or "others"
        sums[program] += taken
        counts[program] += 1
        longest_one[program] = max(longest_one.get(program, (0, "")), (taken, name))
    rows = [[program, counts[program], f"{taken:,.1f}", f"{longest_one[program][1]}: {longest_one[program][0]:.1f}"]
            for program, taken in sums.most_common()]
    return records.table(["program", "tests", "seconds", "the longest, seconds"],
                         rows + [["all", sum(counts.values()), f"{sum(sums.values()):,.1f}", ""]])


def make_small_build(folder):
    """A build folder of two files, one behind a precompiled header, for a dry run."""
    (folder / "a.cpp").write_text("#include <algorithm>\n#include <vector>\n"
                                  "int f(std::vector<int> v) { std::sort(v.begin(), v.end()); return v[0]; }\n")
    objects = [f"src/CMakeFiles/room_{room}.dir/{room}/a.cpp.o" for room in ("base", "nn")]
    (folder / "cmake_pch.hxx").write_text("#pragma once\n#include <algorithm>\n#include <vector>\n")
    flags = ["", f"-Winvalid-pch -fpch-preprocess -include {folder}/cmake_pch.hxx "]
    (folder / "compile_commands.json").write_text(json.dumps([
        {"directory": str(folder), "command": f"c++ -O2 -std=c++20 -Werror {more}-o {name} -c {folder}/a.cpp", "file": f"{folder}/a.cpp"}
        for name, more in zip(objects, flags)]))
    (folder / ".ninja_log").write_text("# ninja log v5\n" + "".join(
        f"{start}\t{end}\t1\t{name}\t{key}\n" for start, end, name, key in
        ((0, 900, objects[0], "a"), (5, 2000, objects[1], "b"), (2000, 2100, "libstretto_core.so", "c"))))
    shutil.copyfile("/bin/true", folder / "libstretto_core.so")
    return folder


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, help="build folder with .ninja_log and compile_commands.json")
    parser.add_argument("--trace", type=int, default=5, metavar="N", help="files that clang compiles once more; 0 for none")
    parser.add_argument("--clang", default="clang++")
    parser.add_argument("--slowest", type=int, default=15, help="files in the table of the slowest")
    parser.add_argument("--tests", type=pathlib.Path, metavar="BUILD", help="build folder in which ctest ran")
    parser.add_argument("--junit", type=pathlib.Path, metavar="FILE", help="what `ctest --output-junit FILE` wrote; with --tests")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--smoke", action="store_true", help="a made-up build of two files: tries the script, measures nothing")
    options = parser.parse_args()
    if not options.smoke and (options.build is None or not (options.build / ".ninja_log").is_file()):
        parser.error("BUILD has no .ninja_log: name a folder in which ninja built")
    if options.trace and not shutil.which(options.clang):
        parser.error(f"{options.clang} is no program: --clang NAME, or --trace 0")
    return options


def main():
    options = parse()
    temporary = pathlib.Path(tempfile.mkdtemp(prefix="stretto_small_build_")) if options.smoke else None
    try:
        build = make_small_build(temporary) if options.smoke else options.build.resolve()
        seconds, wall = read_log(build / ".ninja_log")
        seconds = known(seconds, build)
        notes = [f"Wall time of the build: {wall:,.0f} s, with {sum(seconds.values()) / wall:.1f} commands at a time." if wall else
                 "The log holds several builds: each file counts with its last compilation, and the wall time is unknown."]
        slow = [[content(build, output), f"{seconds[output]:.1f}"] for output in slowest(seconds, options.slowest)]
        parts = ["## By room", rooms_table(seconds), "## The slowest files", records.table(["file", "seconds"], slow)]
        if options.trace:
            parts += ["## What the compiler does", trace_section(options, build, seconds)]
        parts += ["## Sizes", sizes_table(build)]
        if options.tests:
            parts += ["## Tests", tests_table(options.tests.resolve(), options.junit)]
        records.publish(records.page("Build time", notes, "\n\n".join(parts), "minutes"), options.out)
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
