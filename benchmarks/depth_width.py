#!/usr/bin/env python3
"""Depth and width of masked language models that all train for the same wall-clock time (Li et al. 2020, "Train Large, Then Compress").

    python benchmarks/depth_width.py --data DATA --work WORK --out PAGE.md
                 [--minutes 2] [--depths 2 4 8] [--widths 64 128 256] [--grid cross|full] [--validations 12] …

DATA is described in understanding.py. Every model trains on the same text, vocabulary, batches and masks for --minutes of training time, on
one seed, without dropout, pre-norm, a warm-up over the first updates and then a constant rate: a curve then does not depend on where it was
stopped. The rate is --lr at width 256, and falls with the square root of the width. `cross` varies depth at the middle width, and width
at the middle depth, as the paper does; `full` has all pairs.

The page has each model's validation loss (nll of hidden tokens) at equal times, and which model is the best then; beside it stands an SVG of
all curves, which opens in any browser. Losses between two validations are drawn, and read, on a straight line. Validation is not counted
as time, nor are start-up and the measurement of speed that decides after how many updates to validate.

Each finished model is a line of WORK/depth_width.jsonl, and another call goes on from there.
"""
import argparse
import html
import json
import math
import os
import pathlib
import shutil
import signal
import sys

import records
import understanding
from understanding import Failed

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e")
SPEED_UPDATES = 8
HEAD_WIDTH = 32


def sizes(options):
    """(layers, width) of all models, small ones first."""
    pairs = {(depth, width) for depth in options.depths for width in options.widths}
    if options.grid == "cross":
        depth, width = (sorted(values)[len(values) // 2] for values in (options.depths, options.widths))
        pairs = {pair for pair in pairs if pair[0] == depth or pair[1] == width}
    return sorted(pairs, key=lambda pair: (pair[0] * pair[1] ** 2, pair))


def recipe_of(options, run, depth, width, **more):
    model = {"preset": "none", "num_layers": depth, "d_model": width, "num_heads": max(1, width // HEAD_WIDTH), "norm": "pre",
             "max_positions": options.max_text_tokens, "num_segments": 0, "dropout": 0.0, "attention_dropout": 0.0}
    more["optim"] = {"lr": options.lr * math.sqrt(256 / width)}
    return understanding.write_recipe(run, understanding.pretraining(options, options.train, options.valid, options.tokenizer, model, **more))


def train(options, run, recipe):
    shutil.rmtree(run, ignore_errors=True)
    understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet", *options.key], understanding.environment(options.threads))
    return records.json_lines(run / "metrics.jsonl")


def measured(options, depth, width):
    run = options.work / f"depth_width/{depth}x{width}"
    trial = run.with_name(run.name + "_speed")
    recipe = recipe_of(options, trial, depth, width, data={"valid": None}, train={"max_steps": SPEED_UPDATES},
                       schedule={"warmup_steps": 0})
    clock = [event["seconds"] for event in train(options, trial, recipe) if event["event"] == "train"]
    seconds = (clock[-1] - clock[len(clock) // 2 - 1]) / (len(clock) - len(clock) // 2)
    every = max(1, round(options.minutes * 60 / options.validations / seconds))
    recipe = recipe_of(options, run, depth, width, train={"max_hours": options.minutes / 60}, eval={"every": every, "at_start": True})
    events = train(options, run, recipe)
    trained = [event for event in events if event["event"] == "train"]
    curve = [[event["seconds"], event["nll"]] for event in events if event["event"] == "valid"]
    facts = dict(json.loads((run / "report.json").read_text(encoding="utf-8")).get("facts", []))
    shutil.rmtree(trial, ignore_errors=True)
    return {"curve": curve, "updates": trained[-1]["step"], "tokens_per_second": sum(event["tokens"] for event in trained) / trained[-1]["seconds"],
            "parameters": facts.get("parameters", "?")}


def at(curve, seconds):
    """The loss at a time, on the line between two validations; None after the last one."""
    for (begin, before), (end, after) in zip(curve, curve[1:]):
        if begin <= seconds <= end:
            return before + (after - before) * (seconds - begin) / max(end - begin, 1e-9)
    return None


def picture(title, named):
    """An SVG of named curves."""
    width, height, left, bottom, top, right = 860, 460, 64, 48, 44, 150
    points = [point for _, curve in named for point in curve[1:]]
    most = max(seconds for seconds, _ in points)
    low, high = (round(f(loss for _, loss in points), 4) for f in (min, max))
    low, high = low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1)

    def x(seconds):
        return left + (width - left - right) * seconds / most

    def y(loss):
        return top + (height - top - bottom) * (high - loss) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="24" font-size="16">{html.escape(title)}</text>']
    for number in range(6):
        loss, seconds = low + (high - low) * number / 5, most * number / 5
        parts.append(f'<path d="M{left} {y(loss):.1f}H{width - right}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:.2f}</text>'
                     f'<text x="{x(seconds):.1f}" y="{height - bottom + 20}" text-anchor="middle">{seconds:.0f}</text>')
    parts.append(f'<text x="{(left + width - right) / 2:.0f}" y="{height - 8}" text-anchor="middle">seconds of training</text>')
    for number, (name, curve) in enumerate(named):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(seconds):.1f},{y(loss):.1f}" for seconds, loss in curve[1:])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(seconds):.1f}" cy="{y(loss):.1f}" r="2.5" fill="{colour}"/>' for seconds, loss in curve[1:]]
        line = top + 12 + 20 * number
        parts.append(f'<path d="M{width - right + 12} {line - 4}h18" stroke="{colour}" stroke-width="3"/>'
                     f'<text x="{width - right + 36}" y="{line}">{html.escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def larger_wins(found, times):
    """Sentences: which model is the best at each time, and from when on the largest beats the smallest, along depth and along width."""
    words = []
    for seconds in times:
        losses = {size: loss for size, cell in found.items() if (loss := at(cell["curve"], seconds)) is not None}
        if losses:
            depth, width = min(losses, key=losses.get)
            words.append(f"- At {seconds:.0f} s, {depth} layers of width {width} have the lowest loss, {losses[depth, width]:.3f}.")
    for axis, name in ((0, "depth"), (1, "width")):
        for fixed in sorted({size[1 - axis] for size in found}):
            line = sorted((size for size in found if size[1 - axis] == fixed), key=lambda size: size[axis])
            if len(line) < 3:
                continue
            small, large = found[line[0]]["curve"], found[line[-1]]["curve"]
            end = min(small[-1][0], large[-1][0])
            steps = [min(end, end * number / 200) for number in range(1, 201)]
            ahead = [at(large, seconds) < at(small, seconds) for seconds in steps]
            fixed_words = f"{fixed} layers" if axis else f"width {fixed}"
            if not ahead[-1]:
                words.append(f"- With {fixed_words}, {name} {line[-1][axis]} does not overtake {name} {line[0][axis]} in {end:.0f} s.")
                continue
            since = steps[max((number + 1 for number, is_ahead in enumerate(ahead) if not is_ahead), default=0)]
            words.append(f"- With {fixed_words}, {name} {line[-1][axis]} is ahead of {name} {line[0][axis]} from {since:.0f} s on.")
    return "\n".join(words)


def page(options, cells):
    found = {(cell["key"]["depth"], cell["key"]["width"]): cell
             for cell in cells.all(minutes=options.minutes, lr=options.lr, vocab=options.vocab, tokens=options.max_tokens)}
    found = {size: found[size] for size in sorted(found, key=lambda size: (size[0] * size[1] ** 2, size))}
    if not found:
        return records.page("Depth and width under equal time", [], "Nothing is measured yet.", "half an hour", cells.head())
    times = [options.minutes * 60 * share for share in (0.125, 0.25, 0.5, 0.75, 0.97)]
    rows = []
    for (depth, width), cell in found.items():
        losses = [at(cell["curve"], seconds) for seconds in times]
        rows.append([depth, width, cell["parameters"], f"{cell['updates']:,}", f"{cell['tokens_per_second']:,.0f}",
                     *("" if loss is None else f"{loss:.3f}" for loss in losses), f"{cell['curve'][-1][1]:.3f}"])
    table = records.table(["layers", "width", "parameters", "updates", "tokens/s", *(f"nll at {seconds:.0f} s" for seconds in times),
                           "at the end"], rows)
    parts = [table, "## What holds at this size", larger_wins(found, times)]
    title = f"nll of hidden tokens, {options.minutes:g} minutes each"
    drawn = picture(title, [(f"{depth} × {width}", cell["curve"]) for (depth, width), cell in found.items()])
    drawing = (options.out or options.work / "depth_width.md").with_suffix(".svg")
    records.write_whole(drawing, drawn)
    parts.insert(1, f"![Curves of validation loss against seconds of training, one for each model]({drawing.name})")
    notes = [f"Masked language models on books and WikiText-2, {options.vocab:,} pieces, sequences of {options.max_text_tokens} tokens, "
             f"{options.max_tokens:,} tokens an update, {options.threads} threads, {options.minutes:g} minutes of training each. Rate {options.lr:g} × √(256 / width)."]
    return records.page("Depth and width under equal time", notes, "\n\n".join(part for part in parts if part), "half an hour", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for every training")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of text, runs and depth_width.jsonl, kept")
    parser.add_argument("--out", type=pathlib.Path, help="the page; the picture has its name and .svg")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256], help="multiples of 32")
    parser.add_argument("--grid", choices=("cross", "full"), default="cross")
    parser.add_argument("--validations", type=int, default=12, help="of each model")
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--max-text-tokens", type=int, default=128)
    parser.add_argument("--max-tokens", type=int, default=2048, help="of an update")
    parser.add_argument("--valid-paragraphs", type=int, default=120)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--page", action="store_true", help="only make the page and the picture of what is there")
    parser.add_argument("--tiny", action="store_true", help="seconds of training: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    options.work = options.work.resolve()
    if options.tiny:
        options.minutes, options.depths, options.widths, options.vocab = 0.15, [1, 2], [64, 128], 1000
        options.validations, options.max_tokens, options.valid_paragraphs = 3, 1024, 20
    return options


def prepare(options):
    options.train, valid = understanding.books_and_wikipedia(options.data, options.work)
    options.valid = options.work / f"text/valid_{options.valid_paragraphs}.txt"
    lines = [line for line in valid.read_text(encoding="utf-8").split("\n") if line]
    step = max(1, len(lines) // options.valid_paragraphs)
    records.write_whole(options.valid, "\n\n".join(lines[::step][:options.valid_paragraphs]) + "\n")
    options.tokenizer = options.work / f"wordpiece_english_{options.vocab}.json"
    if not options.tokenizer.exists():
        understanding.call([options.stretto, "tokenizer", "train", "--type", "wordpiece", "--vocab-size", options.vocab, "--output",
                            options.tokenizer, options.train], understanding.environment(options.threads))


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cells, done = understanding.Cells(options.work / "depth_width.jsonl"), True
    if not options.page:
        try:
            prepare(options)
        except Failed as failure:
            sys.exit(f"error: {failure}")
        for depth, width in sizes(options):
            key = {"depth": depth, "width": width, "minutes": options.minutes, "lr": options.lr, "vocab": options.vocab,
                   "tokens": options.max_tokens}
            done = cells.measure(key, lambda: measured(options, depth, width)) and done
    records.publish(page(options, cells), options.out)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
