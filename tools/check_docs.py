#!/usr/bin/env python3
"""Checks the command blocks of README.md and docs/*.md, and runs those that can be run.

    check_docs.py            every ```bash block carries a tag, every relative link has a target
    check_docs.py --run      also runs the blocks tagged `run`, in order, file by file
    check_docs.py --full     also those tagged `run-full`

A block begins with ```bash run, ```bash run-full or ```bash skip: REASON. Blocks run in the root
of the checkout with build/release first in PATH, under `set -euo pipefail`; a non-zero exit fails.
"""

import os
import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^```(\S*)[ \t]*(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
SHELLS = {"bash", "sh", "shell", "console"}


def blocks(path: pathlib.Path) -> list[tuple[int, str, str, str]]:
    """(line, language, tag, text) of each fenced block."""
    found, start = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = FENCE.match(line)
        if start is None and match:
            start, language, tag, text = number, match[1], match[2].strip(), []
        elif start is not None and line.startswith("```"):
            found.append((start, language, tag, "\n".join(text)))
            start = None
        elif start is not None:
            text.append(line)
    if start is not None:
        found.append((start, "unclosed", "", ""))
    return found


def problem(language: str, tag: str) -> str:
    if language == "unclosed":
        return "block is never closed"
    if language not in SHELLS or tag in {"run", "run-full"} or re.match(r"skip: \S", tag):
        return ""
    return f"```{language} needs a tag: run, run-full or skip: REASON" + (f", got {tag!r}" if tag else "")


def broken_links(path: pathlib.Path) -> list[str]:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    return [target for target in LINK.findall(text)
            if "://" not in target and not (path.parent / target).exists()]


def run_block(root: pathlib.Path, text: str) -> int:
    environment = dict(os.environ, PATH=f"{root}/build/release:{os.environ['PATH']}")
    return subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=root, env=environment,
                          stdin=subprocess.DEVNULL, check=False).returncode


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    wanted = {"--run": {"run"}, "--full": {"run", "run-full"}}.get(" ".join(sys.argv[1:]), set())
    passed = failed = 0
    for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]:
        name = path.relative_to(root)
        for target in broken_links(path):
            print(f"{name}: link to {target}, which does not exist")
            failed += 1
        for line, language, tag, text in blocks(path):
            if trouble := problem(language, tag):
                print(f"{name}:{line}: {trouble}")
                failed += 1
            elif tag in wanted:
                print(f"== {name}:{line}\n{text}", flush=True)
                code = run_block(root, text)
                passed += code == 0
                failed += code != 0
                if code:
                    print(f"{name}:{line}: block left with {code}")
    print(f"docs: {passed} blocks ran, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
