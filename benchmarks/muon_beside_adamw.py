#!/usr/bin/env python3
"""Muon beside AdamW: updates and time to the same validation loss of a small Transformer on books.

    python benchmarks/muon_beside_adamw.py --data DATA --work WORK [--out PAGE.md] [--updates 600] [--every 25] [--model nano]

The text is the books of DATA, whose last twentieths are held out; tokens are a byte-level BPE of 4,000. Model: rotary positions, norms of
queries and keys, squared ReLU, no biases, and the layers of --model. Each optimizer trains at each of its rates (--adamw, --muon), all with
one seed, equal batches, a warm-up of a twentieth and a line down to zero over --updates. The target is the lowest loss that AdamW comes to
at any of its rates; for each training the first validation at or below it counts. What Muon leaves to AdamW (embeddings, norms) has the
rate that was best for AdamW. Validations count in the seconds, and are equally many. The best rate of each is trained again, in turn, and
its seconds are those of these --rounds: they want quiet cores, while the others may share them. Each finished cell is a line of
WORK/muon.jsonl. On two cores, with --model nano, a training of 600 updates takes about two minutes.
"""
import argparse
import math
import shutil
import sys

import language_texts
import records
import understanding

SIZES = {"tiny": (1, 32, 2), "nano": (4, 128, 4), "small": (4, 256, 4), "mini": (6, 384, 6)}  # layers, width, heads


def train(options, optimizer, lr, adam_lr=None):
    """Validation losses by update, with seconds."""
    texts = language_texts.books(options.data, options.work, 20_000 if options.tiny else options.characters)
    layers, width, heads = SIZES[options.model]
    run = options.work / f"{optimizer}_{lr:g}"
    shutil.rmtree(run, ignore_errors=True)
    optim = {"name": optimizer, "lr": lr, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "clip_norm": 1.0}
    if optimizer == "muon":
        optim |= {"muon_adam_lr": adam_lr}
    length = 64 if options.tiny else 256
    recipe = understanding.write_recipe(run, {
        "run": {"seed": 1, "threads": options.threads, "device": "cpu"}, "task": {"name": "language_model"},
        "data": {"train": texts[0], "valid": texts[1], "max_text_tokens": length, "max_tokens": options.max_tokens,
                 "cache_dir": options.work / "cache"},
        "tokenizer": tokenizer_of(options),
        "model": {"name": "transformer", "preset": "none", "num_layers": layers, "d_model": width, "num_heads": heads, "positions": "rotary",
                  "qk_norm": True, "norm_layer": "rms_norm", "activation": "relu_squared", "biases": "none", "dropout": 0.0},
        "optim": optim,
        "schedule": {"name": "linear", "warmup_steps": max(1, options.updates // 20), "min_lr": 0.0},
        "train": {"max_steps": options.updates, "save_every": 10**6},
        "eval": {"every": options.every}, "report": {"every": options.every, "html": False, "tensorboard": False}})
    understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet", *options.key], understanding.environment(options.threads))
    kept = options.work / "tokenizer.json"
    if not kept.exists():
        shutil.copy(run / "tokenizer/tokenizer.json", kept)
    events = records.json_lines(run / "metrics.jsonl")
    valid = [(event["step"], event["nll"], event["seconds"]) for event in events if event["event"] == "valid"]
    if not valid or not all(math.isfinite(nll) for _, nll, _ in valid):
        raise understanding.Failed(f"{run.name}: no validation, or one that is not finite")
    rate = [event["tokens_per_second"] for event in events if event["event"] == "train"]
    return {"valid": valid, "tokens_per_second": sorted(rate)[len(rate) // 2]}


def tokenizer_of(options):
    """The first training makes it, all others take it."""
    kept = options.work / "tokenizer.json"
    return {"type": "byte_bpe", **({"model": kept} if kept.exists() else {"vocab_size": 400 if options.tiny else 4000})}


def best(cells, optimizer, updates):
    """The cell with the lowest loss at any update; None without one."""
    found = cells.all(optimizer=optimizer, updates=updates)
    return min(found, key=lambda cell: min(nll for _, nll, _ in cell["valid"]), default=None)


def measure(options, cells):
    well = True
    for lr in options.adamw:
        well = cells.measure(key_of(options, "adamw", lr), lambda: train(options, "adamw", lr)) and well
    first = best(cells, "adamw", options.updates)
    if first is None:
        return False
    for lr in options.muon:
        well = cells.measure(key_of(options, "muon", lr), lambda: train(options, "muon", lr, first["key"]["lr"])) and well
    # The best of both again, in turn: for their seconds.
    for number in range(2, options.rounds + 1):
        for optimizer in (("muon", "adamw") if number % 2 == 0 else ("adamw", "muon")):
            lr = best(cells, optimizer, options.updates)["key"]["lr"]
            key = {**key_of(options, optimizer, lr), "round": number}
            well = cells.measure(key, lambda: train(options, optimizer, lr, first["key"]["lr"])) and well
    return well


def key_of(options, optimizer, lr):
    return {"optimizer": optimizer, "lr": lr, "updates": options.updates, "model": options.model, "round": 1}


def reached(cell, target):
    """(update, seconds) of the first validation at or below the target."""
    return next(((step, seconds) for step, nll, seconds in cell["valid"] if nll <= target), None)


def body_of(options, cells):
    first = best(cells, "adamw", options.updates)
    if first is None:
        return "Nothing is measured yet."
    target = min(nll for _, nll, _ in first["valid"])
    rows, to_target = [], {}
    for optimizer in ("adamw", "muon"):
        found = cells.all(optimizer=optimizer, updates=options.updates)
        for lr in sorted({cell["key"]["lr"] for cell in found}):
            mine = [cell for cell in found if cell["key"]["lr"] == lr]
            again = [cell for cell in mine if cell["key"]["round"] > 1]  # in turn
            times = [time for cell in again or mine if (time := reached(cell, target))]
            lowest = min(nll for cell in mine for _, nll, _ in cell["valid"])
            rows.append([optimizer, f"{lr:g}", len(mine), f"{lowest:.4f}", times[0][0] if times else "–",
                         records.spread([time[1] for time in times], decimals=0) if times else "–",
                         records.spread([cell["tokens_per_second"] for cell in again or mine], decimals=0)])
            if times:
                median = sorted(time[1] for time in times)[len(times) // 2]
                to_target[optimizer] = min(to_target.get(optimizer, (math.inf, math.inf)), (median, times[0][0]))
    words = [f"The target is a loss of {target:.4f}, AdamW's lowest."]
    if "muon" in to_target:
        (seconds, updates), (own_seconds, own_updates) = to_target["adamw"], to_target["muon"]
        words.append(f"Muon comes to it after {own_updates:,} updates and {own_seconds:,.0f} s, AdamW after {updates:,} and {seconds:,.0f}: "
                     f"{updates / own_updates:.2f} times as few updates, {seconds / own_seconds:.2f} times the time.")
    else:
        words.append("Muon does not come to it.")
    titles = ["optimizer", "rate", "trainings", "lowest validation loss", "updates to the target", "seconds to the target", "tokens/s"]
    return records.table(titles, rows) + "\n\n" + " ".join(words)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, python=False)
    parser.add_argument("--model", choices=SIZES, default="nano")
    parser.add_argument("--adamw", type=float, nargs="+", default=[2e-3, 4e-3, 8e-3], metavar="RATE")
    parser.add_argument("--muon", type=float, nargs="+", default=[4e-3, 8e-3, 1.6e-2], metavar="RATE")
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--every", type=int, default=25, help="updates between validations")
    parser.add_argument("--rounds", type=int, default=3, help="trainings of the best rate of each; the first one chooses it")
    parser.add_argument("--max-tokens", type=int, default=4096, help="of an update")
    parser.add_argument("--characters", type=int, default=300_000, help="of each book; 0: all. What is held out is read at each validation")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="a tiny model, few updates: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if options.tiny:
        options.model, options.updates, options.every, options.max_tokens = "tiny", 8, 2, 256
        options.adamw, options.muon = options.adamw[:1], options.muon[:1]
    return options


def page_of(options, cells):
    layers, width, _ = SIZES[options.model]
    notes = [f"{layers} layers of width {width}, {options.updates} updates of {options.max_tokens:,} tokens; {options.threads} threads, fp32."]
    return records.page("Muon beside AdamW on books", notes, body_of(options, cells), "twenty minutes", cells.head())


def main():
    return understanding.run_cells(parse(), "stretto_muon_", "muon.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
