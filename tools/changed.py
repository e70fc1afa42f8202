#!/usr/bin/env python3
"""What a change can reach: files that differ from a commit, and programs whose includes lead to one of them.

    changed.py                      the base commit, and the files that differ from it
    changed.py FILE...              of these programs' main files, those that the change reaches

A file reaches what it includes, the source beside each header (`a/b.h` and `a/b.cpp`), and what that includes in turn. A source
without a header of its name is reached with every header of its folder, since one of them declares it. Rooms that a program is not
linked with are headers alone. A changed build file reaches everything. A fuzzer is reached by its seeds, too.

The base is STRETTO_CI_BASE, or the last commit that passed the whole of CI here (a file in the cache of ./dev), or where this branch
left origin/main. Without any of them, everything counts as changed.
"""

import os
import pathlib
import re
import subprocess
import sys

from check_layers import room_of

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
SOURCES = (".cpp", ".cu", ".cc")
BUILD_FILES = re.compile(r"(cmake/.*|((src|src/kernels|tests|benchmarks)/)?CMakeLists\.txt|CMakePresets\.json|dev)")
FUZZER = re.compile(r"tests/fuzz/fuzz_(\w+)\.cpp")
MORE_SEEDS = {"config_fuzz": "configs"}  # the recipes, in which it makes mistakes


def git(root, *arguments):
    """What git prints, or None if it fails."""
    answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else None


def green_file():
    """Where CI notes the last commit that passed on this machine."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("STRETTO_CACHE") or pathlib.Path(cache) / "stretto") / "ci-green"


def base_commit(root):
    """(commit, where it is from), or (None, why there is none)."""
    head = git(root, "rev-parse", "HEAD")
    candidates = [(os.environ.get("STRETTO_CI_BASE"), "STRETTO_CI_BASE")]
    try:
        candidates.append((green_file().read_text(encoding="utf-8").strip(), "the last commit that passed here"))
    except OSError:
        pass
    # A clone of what is to be merged has it as origin/main, which then says nothing.
    merge_base = git(root, "merge-base", "HEAD", "origin/main")
    if merge_base != head:
        candidates.append((merge_base, "origin/main"))
    for commit, origin in candidates:
        if commit and git(root, "merge-base", "--is-ancestor", commit, "HEAD") is not None:
            return git(root, "rev-parse", commit), origin
    return None, "no commit is known to have passed"


def changed_files(root, base):
    """Paths relative to root that differ from base, deleted and untracked ones included."""
    listed = (git(root, "diff", "--name-only", base) or "").splitlines()
    listed += (git(root, "ls-files", "--others", "--exclude-standard") or "").splitlines()
    return sorted(set(listed))


def newest_files(root, days):
    """Paths that the commits of so many days up to the newest one changed."""
    newest = int(git(root, "log", "-1", "--format=%ct"))
    listed = git(root, "log", f"--since={newest - days * 86400}", "--name-only", "--format=") or ""
    return sorted({line for line in listed.splitlines() if (pathlib.Path(root) / line).is_file()})


# Functions that a header declares for others to define: a room does not include those above it.
DEFINED_ABOVE = {"src/experiment/family_spec.h": "src/families/registry.cpp", "src/tasks/registry.h": "src/families/engine_registry.cpp"}


def seed_folders(source):
    """The folders of files with which a fuzzer begins; none for another program."""
    match = FUZZER.fullmatch(str(source))
    if not match:
        return []
    name = match[1] + "_fuzz"
    return [f"tests/fuzz/corpus/{name}", *([MORE_SEEDS[name]] if name in MORE_SEEDS else [])]


class Includes:
    """Who includes whom, read from the files once each."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.direct = {}   # of a file: what it includes
        self.orphans = {}  # of a folder: its sources without a header of their name

    def resolved(self, name, folder):
        for path in (folder / name, self.root / "src" / name, self.root / name):
            if path.is_file():
                return path
        return None

    def included_by(self, path):
        if path not in self.direct:
            text = path.read_text(encoding="utf-8", errors="replace")
            found = (self.resolved(name, path.parent) for name in INCLUDE.findall(text))
            self.direct[path] = [file for file in found if file]
        return self.direct[path]

    def sources_of(self, header):
        """The sources that define what a header declares, as far as names tell."""
        folder = header.parent
        if folder not in self.orphans:
            self.orphans[folder] = [file for file in sorted(folder.iterdir()) if file.suffix in SOURCES
                                    and not file.with_suffix(".h").is_file() and not file.name.endswith("_test.cpp")
                                    and not file.name.startswith("fuzz_")]
        own = [header.with_suffix(suffix) for suffix in SOURCES if header.with_suffix(suffix).is_file()]
        above = DEFINED_ABOVE.get(header.relative_to(self.root).as_posix())
        own += [self.root / above] if above and (self.root / above).is_file() else []
        return own + (self.orphans[folder] if "src" in folder.relative_to(self.root).parts[:1] else [])

    def reached(self, *starts, unlinked=frozenset()):
        """All files that the given ones are made of, relative to root; of `unlinked` rooms headers alone."""
        waiting = [self.root / start for start in starts]
        found = set()
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            found.add(path)
            waiting += self.included_by(path)
            name = path.relative_to(self.root).as_posix()
            if path.suffix == ".h" and not (name.startswith("src/") and room_of(name.removeprefix("src/")) in unlinked):
                waiting += self.sources_of(path)
        return {path.relative_to(self.root).as_posix() for path in found}


class Change:
    """The difference from the last good commit, and whom it reaches."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.base, self.origin = base_commit(root)
        self.files = changed_files(root, self.base) if self.base else []
        self.build_file = next((file for file in self.files if BUILD_FILES.fullmatch(file)), None)
        self.includes = Includes(root)

    def why_everything(self):
        """Why everything counts as changed; empty where it does not."""
        if not self.base:
            return self.origin
        return f"{self.build_file} differs" if self.build_file else ""

    def reaches(self, *starts, unlinked=frozenset()):
        if self.why_everything():
            return True
        folders = tuple(folder + "/" for start in starts for folder in seed_folders(start))
        return (any(file.startswith(folders) for file in self.files) or
                not self.includes.reached(*starts, unlinked=unlinked).isdisjoint(self.files))

    def words(self):
        if not self.base:
            return f"everything counts as changed: {self.origin}"
        everything = self.why_everything()
        return (f"{len(self.files)} files differ from {self.base[:8]} ({self.origin})"
                + (f"; everything counts as changed, since {everything}" if everything else ""))


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    change = Change(root)
    print(change.words(), file=sys.stderr)
    print("\n".join(sys.argv[1:] and [start for start in sys.argv[1:] if change.reaches(start)] or
                    ([] if sys.argv[1:] else change.files)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
