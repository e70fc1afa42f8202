#!/usr/bin/env python3
"""Speed of `stretto tokenizer encode` beside Hugging Face's package `tokenizers`, one core each, in turn.

    benchmarks/tokenizers_beside.py build/release/stretto TEXT [--tokenizer FILE ...] [--rounds 7]
    benchmarks/tokenizers_beside.py build/release/stretto --smoke

Without --tokenizer, Stretto trains WordPiece and byte-level BPE of 30,000 pieces on the text. FILE is a tokenizer.json, or
BERT's vocab.txt. The Python that runs this needs the package. Both see the same lines, on the first core of this process:

- stretto: the whole command, from file to printed ids, less the command on no text;
- tokenizers: `encode_batch_fast` of all lines without special tokens, with TOKENIZERS_PARALLELISM=false; neither loading
  nor reading. The second column of each has offsets: `--offsets`, and `encode_batch`.

Ends with 1 if ids differ in number, or if Stretto is slower in the median.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import records

PEER = """
import json, sys, time
from tokenizers import BertWordPieceTokenizer, Tokenizer
path, text = sys.argv[1:]
tokenizer = Tokenizer.from_file(path) if path.endswith(".json") else BertWordPieceTokenizer(path, lowercase="uncased" in path)._tokenizer
lines = open(text, encoding="utf-8", newline="\\n").read().split("\\n")[:-1]
seconds, count = [], 0
for encode in (tokenizer.encode_batch_fast, tokenizer.encode_batch):
    encode(lines[:100], add_special_tokens=False)
    begin = time.perf_counter()
    encodings = encode(lines, add_special_tokens=False)
    seconds.append(time.perf_counter() - begin)
    count = sum(map(len, encodings))
print(json.dumps({"seconds": seconds, "count": count}))
"""


def on_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run(command, text=None):
    """Seconds and output."""
    with open(text or os.devnull, "rb") as stdin:
        begin = time.perf_counter()
        done = subprocess.run(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=on_one_core,
                              env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})
        seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\nleft with {done.returncode}:\n{done.stderr.decode()}")
    return seconds, done.stdout


def ours(stretto, tokenizer, text):
    """Seconds without and with offsets, and the number of ids."""
    command = [stretto, "tokenizer", "encode", str(tokenizer)]
    start, _ = run(command)
    seconds, output = run([*command, "--ids"], text)
    with_offsets, _ = run([*command, "--offsets"], text)
    return [seconds - start, with_offsets - start], len(output.split())


def theirs(tokenizer, text):
    _, output = run([sys.executable, "-c", PEER, str(tokenizer), str(text)])
    found = json.loads(output)
    return found["seconds"], found["count"]


def trained(stretto, text, folder, size):
    for kind in ("wordpiece", "byte_bpe"):
        path = folder / f"{kind}.json"
        run([stretto, "tokenizer", "train", "--type", kind, "--vocab-size", str(size), "--output", str(path), str(text)])
        yield path


def measure(options, tokenizer, megabytes):
    """Rows of the table, and whether ids and speed are as they should be."""
    speeds = {"stretto": ([], []), "tokenizers": ([], [])}
    counts = set()
    for _ in range(options.rounds):
        for name, (seconds, count) in (("stretto", ours(options.stretto, tokenizer, options.text)), ("tokenizers", theirs(tokenizer, options.text))):
            counts.add(count)
            for column, taken in zip(speeds[name], seconds):
                column.append(megabytes / taken)
    rows = [[tokenizer.name, name, *(records.spread(column, decimals=1) for column in columns)] for name, columns in speeds.items()]
    faster = all(statistics.median(a) >= statistics.median(b) for a, b in zip(speeds["stretto"], speeds["tokenizers"]))
    if len(counts) != 1:
        print(f"{tokenizer.name}: {sorted(counts)} ids", file=sys.stderr)
    return rows, len(counts) == 1 and (faster or options.smoke)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stretto")
    parser.add_argument("text", type=pathlib.Path, nargs="?")
    parser.add_argument("--tokenizer", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--smoke", action="store_true", help="a small text, one round, no verdict on speed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stretto_tokenizers_") as folder:
        folder = pathlib.Path(folder)
        if options.smoke:
            options.rounds, options.text = 1, folder / "text"
            pages = [page.read_text(encoding="utf-8") for page in sorted((records.ROOT / "docs").glob("*.md"))]
            options.text.write_text("".join(pages), encoding="utf-8")
        if options.text is None:
            parser.error("TEXT is missing")
        megabytes = options.text.stat().st_size / 1e6
        size = 1000 if options.smoke else 30000
        rows, well = [], True
        for tokenizer in options.tokenizer or trained(options.stretto, options.text, folder, size):
            more, right = measure(options, tokenizer, megabytes)
            rows += more
            well = well and right
    print(f"{megabytes:.1f} MB, {records.processor()}, {records.commit()}\n")
    print(records.table(["tokenizer", "program", "MB/s", "MB/s with offsets"], rows))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
