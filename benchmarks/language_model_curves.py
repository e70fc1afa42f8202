#!/usr/bin/env python3
"""Whole trainings of LSTMs by words in Stretto and in plain PyTorch, side by side: perplexity of the validation text at equal updates.

    python benchmarks/language_model_curves.py --data DATA --python PYTHON --work WORK [--preload LIBRARY] [--out PAGE.md]
                 [--recipes ptb_lstm_200 …] [--hours 3] [--epochs 40] [--page]

Both programs train at the same time, each with a core and a thread of its own, until the recipe's --epochs or until --hours are over. A
second call goes on where both were. What runs beside them costs time and changes no number: this is no measure of speed, for which
language_model_beside_torch.py takes turns.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import language_model_beside_torch as beside
import language_texts
import records
import understanding

REPORT = 100  # updates between two losses that are compared


class Place:
    """Files of a recipe."""
    def __init__(self, options, name):
        folder = options.work / name
        self.run, self.log, self.kept, self.words = folder / "run", folder / "torch.log", folder / "torch.pt", folder / "stretto.log"


def last_update(options, name):
    return options.updates or beside.RECIPES[name].epoch * options.epochs


def every(options, name):
    return max(1, options.updates // 2) if options.tiny else beside.RECIPES[name].epoch


def commands(options, name):
    """Of Stretto and of PyTorch."""
    recipe, place, updates = beside.RECIPES[name], Place(options, name), last_update(options, name)
    texts = language_texts.words(options.data, options.work, recipe.text, 1500 if options.tiny else 0)
    keys = [*language_texts.text_keys(*texts), "run.threads=1", "run.device=cpu", f"data.cache_dir={options.work}/cache",
            *beside.smoke_sizes(options, "own"), *options.key]
    if recipe.deviation:  # an AWD-LSTM: PyTorch's form here averages no weights
        keys += [f"eval.every={every(options, name)}", "eval.lanes=10", "train.average_nonmono=0"]
    if options.tiny:
        keys += ["report.every=1", f"eval.every={every(options, name)}", "schedule.name=constant"]
    own = [options.stretto, "train", records.ROOT / f"configs/language_model/{name}.toml", "--run", place.run, "--quiet", "--until", updates,
           *keys]
    peer = [options.python, beside.SCRIPT, "words", *texts, "--threads", 1, "--updates", updates, *recipe.arguments, "--deviation",
            recipe.deviation, "--every", every(options, name), "--eval-lanes", 10, "--keep", place.kept,
            *beside.smoke_sizes(options, "peer")]
    return own, peer


def train_both(options, name):
    """True where both ended well, by themselves or since their time was over."""
    place = Place(options, name)
    place.log.parent.mkdir(parents=True, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))
    environments = understanding.environment(1), understanding.environment(1, options.preload)
    started, deadline = [], time.monotonic() + 3600 * options.hours
    with contextlib.ExitStack() as stack:
        for number, (command, env, log) in enumerate(zip(commands(options, name), environments, (place.words, place.log))):
            core = cores[number % len(cores)]
            started.append(subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.DEVNULL,
                                            stdout=stack.enter_context(open(log, "a", encoding="utf-8")), stderr=subprocess.STDOUT,
                                            preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})))
        try:
            while time.monotonic() < deadline and any(process.poll() is None for process in started):
                time.sleep(1)
        finally:
            for process in started:
                if process.poll() is None:
                    process.terminate()
            codes = [process.wait() for process in started]
    ends = (0, 75), (0,)  # Stretto ends with 75 where it stopped for a signal
    well = [code in known for code, known in zip(codes, ends)]
    for right, code, log in zip(well, codes, (place.words, place.log)):
        if not right:
            print(f"error: {name}: a training ended with {code}; its words are in {log}", file=sys.stderr)
    return all(well)


def own_curve(place):
    """{update: loss} of training, and {update: {nll, lr}} of validation."""
    losses, valid, lr = {}, {}, None
    for event in records.json_lines(place.run / "metrics.jsonl"):
        if event["event"] == "train" and not event.get("unscheduled"):
            losses[event["step"]], lr = event["nll"], event["lr"]
        elif event["event"] == "valid":
            valid[event["step"]] = {"nll": event["nll"], "lr": lr}
    return losses, valid


def peer_curve(place):
    """The same of PyTorch. What was made anew after a stop stands there twice, in equal numbers."""
    losses, valid = {}, {}
    for line in place.log.read_text(encoding="utf-8").splitlines() if place.log.exists() else ():
        kind, _, rest = line.partition(" ")
        with contextlib.suppress(ValueError):
            if kind == "UPD":
                number, _, loss = rest.split()
                losses[int(number)] = float(loss)
            elif kind == "VALID":
                event = json.loads(rest)
                valid[event["step"]] = {"nll": event["nll"]}
    return losses, valid


def section(options, name):
    place, recipe = Place(options, name), beside.RECIPES[name]
    (own_losses, own), (peer_losses, peer) = own_curve(place), peer_curve(place)
    steps = sorted(set(own) & set(peer))
    if not steps:
        return ""
    rows, before = [], 0
    for step in steps:
        compared = [number for number in own_losses if before < number <= step and number in peer_losses]
        means = [f"{statistics.mean(losses[number] for number in compared):.3f}" if compared else "" for losses in (own_losses, peer_losses)]
        rows.append([f"{step:,}", f"{step / recipe.epoch:.3g}", *means, *(f"{math.exp(valid[step]['nll']):.2f}" for valid in (own, peer)),
                     f"{own[step]['lr']:.3g}" if own[step]["lr"] is not None else ""])
        before = step
    best = [min(valid[step]["nll"] for step in steps) for valid in (own, peer)]
    told = (f"Best perplexity of these validations: {math.exp(best[0]):.2f} in Stretto, {math.exp(best[1]):.2f} in PyTorch.")
    return (f"## {recipe.title}\n\n" + records.table(["update", "epoch", "training loss, Stretto", "PyTorch", "validation perplexity, Stretto",
                                                     "PyTorch", "rate, Stretto"], rows) + f"\n\n{told}")


def page_of(options, cells):
    notes = [f"Side by side, a core and a thread each, fp32. Training losses are means over each {REPORT}th update, with dropout."]
    parts = [part for part in (section(options, name) for name in beside.RECIPES if name in options.recipes) if part]
    return records.page("Language models beside PyTorch at equal updates", notes, "\n\n".join(parts) or "Nothing is measured yet.", "hours",
                        cells.head())


def measure(options, cells):
    well = True
    for name in options.recipes:
        if all(last_update(options, name) in curve(Place(options, name))[0] for curve in (own_curve, peer_curve)):
            continue
        key = {"recipe": name, "updates": last_update(options, name), "hours": options.hours, "call": len(cells.all(recipe=name))}

        def trained(name=name):
            if not train_both(options, name):
                raise understanding.Failed(f"{name} did not end well")
            return {"updates": max(own_curve(Place(options, name))[0], default=0)}

        well = cells.measure(key, trained) and well
    return well


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser)
    parser.add_argument("--recipes", nargs="+", choices=beside.RECIPES, default=["ptb_lstm_200"])
    parser.add_argument("--hours", type=float, default=3, help="of each recipe in this call")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="tiny models, few updates: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    options.updates = 8 if options.tiny else 0
    if options.work:
        options.work = pathlib.Path(options.work).resolve()
    return options


def main():
    return understanding.run_cells(parse(), "stretto_language_curves_", "curves.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
