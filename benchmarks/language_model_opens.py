#!/usr/bin/env python3
"""How soon a large n-gram model opens: ARPA text the first time, its memory-mapped form from then on, and KenLM's binary files.

    python benchmarks/language_model_opens.py --tool build/release/ngram_tool --data DATA --work WORK [--out PAGE.md]
                 [--order 3] [--build-binary FILE] [--starts 20]

DATA has public_domain_books/. A model of their words is counted (absolute discounting), some 4 million n-grams as ARPA text. `ngram_tool`
opens it and ends: the tests' program, with the reader that recognition uses. Reading ARPA leaves a file in the cache in the layout of
KenLM's probing form, which is mapped from the next time on. With --build-binary, KenLM's program of that name makes its probing, trie and
quantised trie forms, which are mapped as they are. The head of tests/text/ngram/check_with_kenlm.py says how to compile it.

Times are those of a process less that of one with a model of a single word. Of the mapped forms each is opened --starts times in turn, with
its pages in the memory of the system, and five times after these were dropped (posix_fadvise). The goal is 0.1 s; leaves with 1 if a median
is above it. The counting takes some three minutes and 3 GiB; --smoke takes a small part of the text.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import sys

import ctc_search_beside
import language_texts
import records
import understanding

GOAL_SECONDS = 0.1
COLD_STARTS = 5
FORMS = {"KenLM, probing": ["probing"], "KenLM, trie": ["trie"], "KenLM, quantised trie": ["-q", "8", "-b", "8", "-a", "255", "trie"]}
ONE_WORD = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-1\t</s>\n-1\ta\n\n\\end\\\n"


def counted_model(options):
    """The ARPA file, and its number of n-grams."""
    path = options.work / f"books_{options.order}{'_small' if options.tiny else ''}.arpa"
    if not path.exists():
        train, _ = language_texts.books(options.data, options.work, 20_000 if options.tiny else 0)
        sentences = [words for book in train for words in ctc_search_beside.read_sentences(book)]
        beside = path.with_suffix(".part")
        ctc_search_beside.write_arpa(beside, sentences, options.order)
        beside.rename(path)
    with path.open(encoding="utf-8") as file:
        counts = [next(file) for _ in range(options.order + 1)][1:]
    return path, sum(int(line.split("=")[1]) for line in counts)


def seconds_to_open(options, path):
    """Of the process, with its caches in WORK."""
    return understanding.call([options.tool, path], {**os.environ, "STRETTO_CACHE": str(options.work / "cache")})[1]


def forget(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def built_forms(options, arpa):
    """{name: file} of KenLM's binary forms."""
    found = {}
    for name, words in FORMS.items() if options.build_binary else ():
        found[name] = options.work / f"{arpa.stem}_{name.split(', ')[1].replace(' ', '_')}.bin"
        if not found[name].exists():
            understanding.call([options.build_binary, *words, arpa, found[name]])
    return found


def mapped_times(options, models, small):
    """{name: ([seconds in memory], [seconds after its pages were dropped])}, each less the time of a small model."""
    found = {name: ([], []) for name in models}
    for number in range(options.starts + COLD_STARTS):
        is_cold = number >= options.starts
        for name, (path, mapped) in models.items():
            if is_cold:
                forget(mapped)
            found[name][is_cold].append(seconds_to_open(options, path) - seconds_to_open(options, small))
    return found


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/release/ngram_tool")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with public_domain_books/")
    parser.add_argument("--work", type=pathlib.Path, help="folder for texts, models and caches; default temporary")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--build-binary", help="KenLM's program")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--smoke", dest="tiny", action="store_true")
    options = parser.parse_args()
    options.tool = records.program(parser, options.tool)
    if options.build_binary:
        options.build_binary = records.program(parser, options.build_binary)
    return options


def main():
    options = parse()
    head = records.head_of_now()
    with records.work_folder(options, "stretto_language_model_"):
        arpa, count = counted_model(options)
        small = options.work / "small.arpa"
        small.write_text(ONE_WORD, encoding="utf-8")
        shutil.rmtree(options.work / "cache", ignore_errors=True)
        seconds_to_open(options, small)
        first = seconds_to_open(options, arpa)
        [kept] = sorted((options.work / "cache/ngrams").glob("*.kenlm"), key=lambda path: path.stat().st_size)[-1:]
        models = {"ARPA, the form in the cache": (arpa, kept), **{name: (path, path) for name, path in built_forms(options, arpa).items()}}
        found = mapped_times(options, models, small)
        rows = [[name, f"{models[name][1].stat().st_size / 2**20:,.0f}", *(records.spread(seconds, decimals=3) for seconds in both)]
                for name, both in found.items()]
        size = arpa.stat().st_size / 2**20
    missed = [name for name, both in found.items() if statistics.median(both[0]) > GOAL_SECONDS]
    notes = [f"{count:,} n-grams of orders 1 to {options.order}, {size:,.0f} MiB of ARPA text, "
             f"which is read in {first:.2f} s the first time. Medians (least – most); the goal is {GOAL_SECONDS:g} s."]
    table = records.table(["model", "MiB", "opens in s", "after its pages were dropped, s"], rows)
    records.publish(records.page("Opening a language model", notes, table, "ten minutes", head), options.out)
    for name in missed:
        print(f"{understanding.program_name()}: {name}: above {GOAL_SECONDS:g} s", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except understanding.Failed as failure:
        sys.exit(f"error: {failure}")
