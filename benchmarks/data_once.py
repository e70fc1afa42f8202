#!/usr/bin/env python3
"""Time from the start of training on texts to the end of its first update, with two builds in turn, and memory.

    benchmarks/data_once.py OLD NEW FOLDER [--sst2 glue_train.tsv] [--questions squad.json] [--lines 1000000] [--rounds 3]

FOLDER gets a labelled file of so many lines, a tokenizer and runs. Each round starts OLD, NEW without a cache, and NEW with the
cache of the start before, first with a tokenizer that is trained, then with one that is named. With `--sst2 FILE` the same is done
for that file (`label TAB sentence` below a header), with `--questions FILE` for a file in the form of SQuAD; `--lines 0` leaves
the labelled file out. Seconds are those of the clock and of the processor (user and system).
"""
import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import time

CONFIG = """[run]
seed = 1
[task]
name = "text_classification"
[data]
train = ["{train}"]
text = "{text}"
label = "{label}"
max_text_tokens = 64
max_tokens = 1024
[tokenizer]
type = "wordpiece"
vocab_size = 8000
[model]
preset = "none"
num_layers = 1
d_model = 32
num_heads = 2
max_positions = 64
[schedule]
warmup_steps = 0
[train]
max_steps = 1
save_every = 1
[report]
html = false
"""


QUESTIONS = (CONFIG.replace("text_classification", "question_answering").replace('text = "{text}"\nlabel = "{label}"\n', "")
             .replace("max_text_tokens = 64", "max_text_tokens = 128\nmax_question_tokens = 24\nstride = 64")
             .replace("max_positions = 64", "max_positions = 128"))


def write_lines(path, count):
    """Texts of 4 to 20 words, the frequent ones often, and one of three labels."""
    generator = random.Random(3)
    words = ["".join(generator.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(generator.randint(2, 9))) for _ in range(20000)]
    with path.open("w") as file:
        file.write("text\tlabel\n")
        for _ in range(count):
            picks = [words[int(20000 * generator.random() ** 3)] for _ in range(generator.randint(4, 20))]
            file.write(" ".join(picks) + "\t" + generator.choice(("positive", "negative", "neutral")) + "\n")


def start(program, config, run, cache, *keys):
    """Seconds of the clock, of the processor, and MiB at most."""
    shutil.rmtree(run, ignore_errors=True)
    before = time.monotonic()
    process = subprocess.Popen([program, "train", str(config), "--run", str(run), "--quiet", *keys],
                               env={**os.environ, "STRETTO_CACHE": str(cache)}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{program} ended with {process.returncode}")
    return time.monotonic() - before, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(options, name, config):
    for tokenizer in ("trained", "named"):
        keys = () if tokenizer == "trained" else (f"tokenizer.model={options.folder}/{name}_run/tokenizer/tokenizer.json",)
        results = {"before": [], "now, first start": [], "now, second start": []}
        for _ in range(options.rounds):
            for what in results:
                cache = options.folder / ("cache_before" if what == "before" else "cache")
                if what == "now, first start":
                    shutil.rmtree(cache, ignore_errors=True)
                run = options.folder / f"{name}_{'run' if tokenizer == 'trained' else 'named'}"
                results[what].append(start(options.old if what == "before" else options.new, config, run, cache, *keys))
        for what, runs in results.items():
            wall, cpu, memory = (statistics.median(values) for values in zip(*runs))
            print(f"| {name}, tokenizer {tokenizer} | {what} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("folder", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--sst2")
    parser.add_argument("--questions")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    lines = options.folder / "lines.tsv"
    if options.lines and not lines.exists():
        write_lines(lines, options.lines)
        time.sleep(3)  # a younger file is hashed by each start
    print("| data | start | seconds | seconds of the processor | MiB |\n|---|---|---|---|---|")
    sets = {"lines": (lines, "text", "label")} if options.lines else {}
    if options.sst2:
        sets["SST-2"] = (pathlib.Path(options.sst2).resolve(), "2", "1")
    for name, (train, text, label) in sets.items():
        config = options.folder / f"{name}.toml"
        config.write_text(CONFIG.format(train=train, text=text, label=label))
        measure(options, name, config)
    if options.questions:
        config = options.folder / "questions.toml"
        config.write_text(QUESTIONS.format(train=pathlib.Path(options.questions).resolve()))
        measure(options, "questions", config)


if __name__ == "__main__":
    main()
