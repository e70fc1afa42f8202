#!/usr/bin/env python3
"""Determined's table at our size: gradient aggregation, AdamW against RAdam, and processes, on a question-answering set.

    python benchmarks/article_table.py --data DATA --model MODEL_DIR --work WORK --out PAGE.md
                 [--task qamr] [--windows 1600] [--batch 4] [--rates 1e-4 3e-4 1e-3] [--aggregation 1 2 10 100] [--processes 1 2 4] [--optimizers adamw radam] …

DATA is described in understanding.py; MODEL_DIR is a Hugging Face folder of an encoder, for instance all-MiniLM-L6-v2.

As in the article on BERT and SQuAD by Determined AI (2020), every cell sees the same number of windows, at a rate that falls linearly.
Each optimizer first tries all --rates with one process and without aggregation; the rate with the best F1 there is that of all its cells,
since RAdam begins with far smaller steps than AdamW at the same rate. A process has a batch of --batch windows, and the gradients of
`aggregation` batches of each process are summed for one update. The article's 15,000 batches are far fewer here: the table says how many
updates are left, and `stretto train` does at least one. Every process has one thread. Time is that of training alone, without start-up and
validation. Efficiency is the speed in windows a second over that of one process without aggregation, divided by the number of processes, or
of cores where they are fewer: processes that share a core cannot be faster.

Each finished cell is a line of WORK/article.jsonl, and another call goes on from there.
"""
import argparse
import itertools
import os
import pathlib
import shutil
import signal
import statistics
import sys

import records
import understanding
from understanding import TASKS, Failed

NAMES = {"adamw": "AdamW", "radam": "RAdam"}
RADAM_BEGINS = 6  # the first update in which RAdam with beta2 = 0.999 divides by the variance


def updates_of(options, aggregation, processes):
    return max(1, round(options.windows / (options.batch * aggregation * processes)))


def budget_key(options):
    return {"task": options.task, "windows": options.windows, "batch": options.batch, "valid": options.max_valid}


def cell_key(options, optimizer, rate, aggregation, processes, seed):
    return {**budget_key(options), "optimizer": optimizer, "lr": rate, "aggregation": aggregation, "processes": processes, "seed": seed}


def f1_by_rate(options, cells, optimizer):
    """Mean F1 with one process and without aggregation, by learning rate."""
    found = {}
    for cell in cells.all(**budget_key(options), optimizer=optimizer, aggregation=1, processes=1):
        found.setdefault(cell["key"]["lr"], []).append(cell["f1"])
    return {rate: statistics.mean(found[rate]) for rate in sorted(found) if rate in options.rates}


def best_rate(options, cells, optimizer):
    """None where nothing is measured."""
    found = f1_by_rate(options, cells, optimizer)
    return max(found, key=found.get) if found else None


def measured(options, files, optimizer, rate, aggregation, processes, seed):
    run = options.work / f"article/{optimizer}_{aggregation}_{processes}_{seed}"
    updates = updates_of(options, aggregation, processes)
    sections = understanding.fine_tuning(
        files, understanding.model_of(options.imported), options.batch, rate, run={"seed": seed, "threads": 1},
        data=understanding.data_section(files, options.batch, options.max_text_tokens),
        optim={"name": optimizer, "weight_decay": 0.0}, schedule={"warmup_ratio": None, "warmup_steps": 0},
        train={"init_from": options.imported, "update_freq": aggregation * processes, "max_steps": updates})
    recipe = understanding.write_recipe(run, sections)
    shutil.rmtree(run, ignore_errors=True)
    command = [options.stretto, "train", recipe, "--run", run, "--quiet", *options.key]
    if processes > 1:
        command += ["--processes", processes]
    understanding.call(command, understanding.environment(1))
    events = records.json_lines(run / "metrics.jsonl")
    trained = [event for event in events if event["event"] == "train"]
    score = [event for event in events if event["event"] == "valid"][-1]
    shutil.rmtree(run, ignore_errors=True)
    windows = sum(event[next(key for key in ("windows", "texts") if key in event)] for event in trained)
    return {"updates": updates, "windows": windows, "tokens": sum(event["tokens"] for event in trained), "seconds": trained[-1]["seconds"],
            "f1": score["f1"], "exact_match": score["exact_match"]}


def by_cell(cells, options):
    """Cells of this budget, at the best rate of each optimizer, by (optimizer, aggregation, processes), a list over seeds."""
    found = {}
    rates = {optimizer: best_rate(options, cells, optimizer) for optimizer in NAMES}
    for cell in cells.all(**budget_key(options)):
        key = cell["key"]
        if key["lr"] == rates[key["optimizer"]]:
            found.setdefault((key["optimizer"], key["aggregation"], key["processes"]), []).append(cell)
    return found


def rows_of(found, cores):
    speed = {key: statistics.median(cell["windows"] / cell["seconds"] for cell in cells) for key, cells in found.items()}
    rows = []
    for (optimizer, aggregation, processes), cells in sorted(found.items(), key=lambda item: (item[0][2], item[0][0], item[0][1])):
        base = speed.get((optimizer, 1, 1))
        key = (optimizer, aggregation, processes)
        rows.append([processes, NAMES[optimizer], aggregation, cells[0]["updates"],
                     f"{statistics.median(cell['seconds'] for cell in cells):.1f}", f"{speed[key]:.1f}",
                     f"{speed[key] / base / min(processes, cores):.2f}" if base else "",
                     understanding.mean_and_deviation([cell["f1"] for cell in cells]),
                     understanding.mean_and_deviation([cell["exact_match"] for cell in cells])])
    return rows


def verdict(found):
    """Whether RAdam keeps what AdamW loses, in numbers, for one process."""
    def f1(optimizer, aggregation):
        cells = found.get((optimizer, aggregation, 1))
        return statistics.mean(cell["f1"] for cell in cells) if cells else None

    words = []
    start = {optimizer: f1(optimizer, 1) for optimizer in NAMES}
    for aggregation in sorted({key[1] for key in found} - {1}):
        now = {optimizer: f1(optimizer, aggregation) for optimizer in NAMES}
        if None in (*start.values(), *now.values()):
            continue
        updates = found[("radam", aggregation, 1)][0]["updates"]
        falls = [f"{NAMES[optimizer]} from {start[optimizer]:.1f} to {now[optimizer]:.1f}" for optimizer in NAMES]
        lost = {optimizer: start[optimizer] - now[optimizer] for optimizer in NAMES}
        words.append(f"- Aggregation {aggregation}, {updates} updates: F1 goes, of {', of '.join(falls)}. "
                     f"{NAMES[min(lost, key=lost.get)]} keeps more.")
        if updates < 2 * RADAM_BEGINS:
            words[-1] += (f" RAdam with beta2 = 0.999 divides by the variance from update {RADAM_BEGINS} on; before, it steps along the mean "
                          "gradient, which is small. So few updates cannot show what the article's 150 do.")
    return "## What RAdam keeps\n\n" + "\n".join(words) if words else ""


def page(options, cells):
    cores = len(os.sched_getaffinity(0))
    found = by_cell(cells, options)
    if not found:
        return records.page("Aggregation, RAdam and processes", [], "Nothing is measured yet.", "half an hour", cells.head())
    notes = [f"{TASKS[options.task].title}: {options.windows} windows, batches of {options.batch} for each process, a learning rate "
             f"that falls linearly to 0, one thread a process, {cores} cores. F1 and exact match of {options.max_valid or 'all'} "
             "other questions. Efficiency is explained in the program's head."]
    for optimizer in NAMES:
        tried = f1_by_rate(options, cells, optimizer)
        if tried:
            notes.append(f"{NAMES[optimizer]}: F1 without aggregation at each rate, "
                         + ", ".join(f"{rate:g}: {f1:.1f}" for rate, f1 in tried.items())
                         + f". Its rows have the best of them, {best_rate(options, cells, optimizer):g}.")
    if any(processes > cores for _, _, processes in found):
        notes.append(f"More than {cores} processes share cores: their times say what that costs, not what more cores would bring.")
    table = records.table(["processes", "optimizer", "aggregation", "updates", "seconds", "windows/s", "efficiency", "F1", "exact match"],
                          rows_of(found, cores))
    return records.page("Aggregation, RAdam and processes", notes, table + "\n\n" + verdict(found), "half an hour", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for every training")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of data, runs and article.jsonl, kept")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--task", choices=[name for name, task in TASKS.items() if task.kind == "answers"], default="qamr")
    parser.add_argument("--windows", type=int, default=1600, help="that every cell trains on")
    parser.add_argument("--batch", type=int, default=4, help="windows of one process in a batch")
    parser.add_argument("--max-text-tokens", type=int, default=128)
    parser.add_argument("--max-valid", type=int, default=200, help="questions that are scored; 0 = all")
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-4, 3e-4, 1e-3], help="that each optimizer tries")
    parser.add_argument("--aggregation", type=int, nargs="+", default=[1, 2, 10, 100])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--optimizers", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--tiny", action="store_true", help="few windows: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    options.work = options.work.resolve()
    if options.tiny:
        options.windows, options.max_valid, options.aggregation, options.processes = 32, 20, [1, 10], [1, 2]
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cells, done = understanding.Cells(options.work / "article.jsonl"), True
    if not options.page:
        try:
            options.imported = understanding.imported(options.stretto, options.model, options.work)
        except Failed as failure:
            sys.exit(f"error: {failure}")
        files = understanding.prepare(options.data, options.work, options.task, options.windows, options.max_valid)
        seeds = range(1, options.seeds + 1)

        def measure(*cell):
            return cells.measure(cell_key(options, *cell), lambda: measured(options, files, *cell))

        for seed, rate, optimizer in itertools.product(seeds, options.rates, options.optimizers):
            done = measure(optimizer, rate, 1, 1, seed) and done
        for seed, processes, aggregation, optimizer in itertools.product(seeds, options.processes, options.aggregation, options.optimizers):
            rate = best_rate(options, cells, optimizer)
            done = rate is not None and measure(optimizer, rate, aggregation, processes, seed) and done
    records.publish(page(options, cells), options.out)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
