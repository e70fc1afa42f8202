#!/usr/bin/env python3
"""Checks the command blocks of the documentation, and runs those that can be run.

    check_docs.py            every block names its language, every ```bash block carries a tag, every
                             ```cpp block is what the file says that it quotes, every relative link
                             has a target, every key in `code` is in docs/config.md, no sentence
                             of a paragraph or list has more than 25 words, none of the changelog
                             either
    check_docs.py --quote    writes the files anew into the blocks that quote all of one
    check_docs.py --run      also runs the blocks tagged `run`, in order, file by file
    check_docs.py --full     also those tagged `run-full`, which take minutes: outside CI

A block begins with ```bash run, ```bash run-full or ```bash skip: REASON; what is no command is
```text, ```toml or the like. A block of any language may quote: ```cpp file: PATH is all of a file,
```cpp lines of: PATH lines of it that follow each other. Commands run in the root of the checkout
with build/release first in PATH, without a terminal, under `set -euo pipefail`; a non-zero exit
fails. What the quickstart promises is checked too.
"""

import os
import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^ {0,3}```(\S*)[ \t]*(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
KEY = re.compile(r"[a-z]\w*(?:\.[a-z]\w*)+")
FILES = {"html", "json", "onnx", "onnx_data", "jsonl", "safetensors", "toml", "txt", "md", "cpp", "h", "py", "pl", "perl", "en", "de", "fr"}  # model.safetensors is no key
QUOTE = re.compile(r"(file|lines of): (\S+)")
SHELLS = {"bash", "sh", "shell", "console"}
LEAST_BLEU = 90  # of the quickstart
MOST_WORDS = 25  # of a sentence
ITEM = re.compile(r"(?:[-*+]|\d+\.) +")
SENTENCE_END = re.compile(r"[.!?][)\]*\"]*$")
ABBREVIATIONS = {"al.", "e.g.", "i.e."}
GENERATED = "config.md"


def documents(root: pathlib.Path) -> list[pathlib.Path]:
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md")),
            *sorted((root / "examples").glob("*/README.md"))]


def with_short_sentences(root: pathlib.Path) -> list[pathlib.Path]:
    """Documents, but for the generated one, and the changelog, which names keys of before."""
    return [*(path for path in documents(root) if path.name != GENERATED), root / "CHANGELOG.md"]


def blocks(path: pathlib.Path) -> list[tuple[int, str, str, str]]:
    """(line, language, tag, text) of each fenced block."""
    found, start = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = FENCE.match(line)
        if start is None and match:
            start, language, tag, text = number, match[1], match[2].strip(), []
        elif start is not None and line.lstrip(" ").startswith("```"):
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
    if not language:
        return "a block without a language: ```bash run for commands, ```text for what they print"
    if language == "cpp" and not QUOTE.fullmatch(tag):
        return "```cpp needs a tag: file: PATH, or lines of: PATH"
    if language not in SHELLS or tag in {"run", "run-full"} or re.match(r"skip: \S", tag):
        return ""
    return f"```{language} needs a tag: run, run-full or skip: REASON" + (f", got {tag!r}" if tag else "")


def misquoted(root: pathlib.Path, tag: str, text: str) -> str:
    """What is wrong with a block that quotes a file; empty when nothing, or when it quotes none."""
    quote = QUOTE.fullmatch(tag)
    if quote is None:
        return ""
    path = root / quote[2]
    if not path.is_file():
        return f"quotes {quote[2]}, which does not exist"
    lines, quoted = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    if quote[1] == "file":
        return "" if lines == quoted else f"is not the text of {quote[2]}: tools/check_docs.py --quote"
    starts = range(len(lines) - len(quoted) + 1)
    found = quoted and any(lines[start:start + len(quoted)] == quoted for start in starts)
    return "" if found else f"quotes lines that {quote[2]} does not have"


def quote_anew(root: pathlib.Path, path: pathlib.Path) -> None:
    """Writes the present text of files into the blocks that quote all of one."""
    before = path.read_text(encoding="utf-8")
    lines = before.split("\n")
    for start, _, tag, text in reversed(blocks(path)):
        quote = QUOTE.fullmatch(tag)
        if quote and quote[1] == "file" and (root / quote[2]).is_file():
            lines[start:start + len(text.splitlines())] = (root / quote[2]).read_text(encoding="utf-8").splitlines()
    after = "\n".join(lines)
    if after != before:
        path.write_text(after, encoding="utf-8")


def broken_links(path: pathlib.Path) -> list[str]:
    text = re.sub(r"^ {0,3}```.*?^ {0,3}```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [target for target in LINK.findall(text)
            if "://" not in target and not (path.parent / target).exists()]


def known_keys(reference: str) -> set[str]:
    """All keys of docs/config.md, which a test holds to what `stretto describe` says."""
    keys, section = set(), ""
    for line in reference.splitlines():
        if head := re.match(r"##+ `\[\[?([\w.]+)\]", line):
            section = head[1]
        elif section and (row := re.match(r"\| `(\w+)` \|", line)):
            keys.add(f"{section}.{row[1]}")
    return keys


def unknown_keys(path: pathlib.Path, known: set[str]) -> list[tuple[int, str]]:
    """(line, key) of each `section.key` or `section.key = value` in prose that names no key, of a known section."""
    sections = {key.rsplit(".", 1)[0] for key in known}
    tops = {section.split(".")[0] for section in sections}
    found, fenced = [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fenced ^= bool(FENCE.match(line))  # blocks show messages too, wrong keys among them
        for code in [] if fenced else CODE.findall(line):
            match = KEY.match(code)
            if not match or code[match.end():match.end() + 1] not in ("", " ", "="):
                continue
            key = match[0]
            if key.split(".")[0] in tops and key.rsplit(".", 1)[1] not in FILES and key not in known | sections:
                found.append((number, key))
    return found


def paragraphs(path: pathlib.Path) -> list[tuple[int, str]]:
    """(line, text) of each paragraph and list item; headings, tables, blocks and HTML are left out."""
    found, fenced, inside = [], False, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text, fence = line.strip(), bool(FENCE.match(line))
        fenced ^= fence
        if fence or fenced or not text or text[0] in "#|<":
            inside = False
            continue
        item = ITEM.match(text)
        if inside and not item:
            found[-1][1].append(text)
        else:
            found.append((number, [text[item.end():] if item else text]))
        inside = True
    return [(number, "\n".join(lines)) for number, lines in found]


def long_sentences(path: pathlib.Path) -> list[tuple[int, int]]:
    """(line, words) of each sentence above MOST_WORDS. `Code` is one word, a link counts as its text."""
    found = []
    for first, text in paragraphs(path):
        text = re.sub(r"`[^`]+`", lambda code: "code" + "\n" * code[0].count("\n"), text)
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        sentence = []  # the line of each word
        words = [(first + down, word) for down, line in enumerate(text.split("\n")) for word in line.split()]
        for place, (line, word) in enumerate(words, 1):
            if re.search(r"\w", word):
                sentence.append(line)
            if place == len(words) or SENTENCE_END.search(word) and word not in ABBREVIATIONS:
                if len(sentence) > MOST_WORDS:
                    found.append((sentence[0], len(sentence)))
                sentence = []
    return found


def quickstart_problem(output: str) -> str:
    """What a quickstart's output lacks of what it promises; empty when nothing."""
    scores = re.findall(r"^(?=.*BLEU).*$", output, flags=re.M)
    last = re.fullmatch(r"BLEU (\d+\.\d)", scores[-1]) if scores else None
    if last is None:
        return "the last line with BLEU is not `BLEU <number with one decimal>`"
    if float(last[1]) < LEAST_BLEU:
        return f"BLEU {last[1]}, at least {LEAST_BLEU} is promised"
    report = re.search(r"^report: (/.*/report\.html)$", output, flags=re.M)
    if report is None or not pathlib.Path(report[1]).is_file():
        return "no path of a report.html that is there"
    return ""


def run_block(root: pathlib.Path, text: str) -> str:
    """Runs a block and shows its output; what was wrong with it, or nothing."""
    environment = dict(os.environ, PATH=f"{root}/build/release:{os.environ['PATH']}")
    output = ""
    with subprocess.Popen(["bash", "-euo", "pipefail", "-c", text], cwd=root, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace") as block:
        for line in block.stdout:
            print(line, end="", flush=True)
            output += line
    if block.returncode:
        return f"block left with {block.returncode}"
    return quickstart_problem(output) if "./dev quickstart" in text else ""


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    wanted = {"--run": {"run"}, "--full": {"run", "run-full"}}.get(" ".join(sys.argv[1:]), set())
    passed = failed = 0
    if sys.argv[1:] == ["--quote"]:
        for path in documents(root):
            quote_anew(root, path)
    known = known_keys((root / "docs/config.md").read_text(encoding="utf-8"))
    for path in with_short_sentences(root):
        for line, words in long_sentences(path):
            print(f"{path.relative_to(root)}:{line}: a sentence of {words} words, where {MOST_WORDS} are the most")
            failed += 1
    for path in documents(root):
        name = path.relative_to(root)
        for line, key in unknown_keys(path, known):
            print(f"{name}:{line}: there is no key {key}")
            failed += 1
        for target in broken_links(path):
            print(f"{name}: link to {target}, which does not exist")
            failed += 1
        for line, language, tag, text in blocks(path):
            if trouble := problem(language, tag) or misquoted(root, tag, text):
                print(f"{name}:{line}: {trouble}")
                failed += 1
            elif tag in wanted:
                print(f"== {name}:{line}\n{text}", flush=True)
                trouble = run_block(root, text)
                passed += not trouble
                failed += bool(trouble)
                if trouble:
                    print(f"{name}:{line}: {trouble}")
    print(f"docs: {passed} blocks ran, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
