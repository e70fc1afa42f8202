#!/usr/bin/env python3
"""A smoke recipe trains as it did when its curve was stored.

    tests/runs/smoke_test.py build/release/stretto [TEST...]
    tests/runs/smoke_test.py build/release/stretto --store [RECIPE...]      writes these curves anew, or all

Curves: tests/assets/losses/NAME.txt, `step loss batch_hash` a line. The order of data must be equal to the bit. Losses may
differ by rounding between processors: 1e-4 relative in the first 20 updates, 2 % at the end. CI trains these 20 updates of each
recipe; with STRETTO_TESTS_FULL=1 each is trained to its end. For the recipes of the reversal task that is update 60: it is
benchmarks/reversal.py that trains them on.
"""
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from harness import FULL, check, check_no_warning, main

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CURVES = ROOT / "tests/assets/losses"
IN_CI = 20  # updates
# Recipes that translate nothing.
TEXT = ("language_model", "language_model_lstm", "masked_lm", "text_classification", "question_answering",
        "image_classification", "speech_recognition", "speech_synthesis")


def first_updates(until, name=""):
    """Words for a run that pauses after so many updates, and does not decode then."""
    return ("--until", str(until), "report.every=1", *(() if name in TEXT else ("eval.bleu=false",)))


@dataclasses.dataclass(frozen=True)
class Curve:
    """What is trained, and how near it must come to what was stored."""
    overrides: tuple = ()
    early: float = 1e-4  # of the stored loss, in the first updates
    early_updates: int = 20
    late: float = 0.02  # and after them
    followed: int = 10**6  # updates that are compared at all
    means: float = 0  # of the stored means of ten updates, behind the first ones; 0 = not compared
    falls_to: float = 0.6  # of the first loss, by the last update
    reaches: float = 0  # accuracy of the last validation; 0 = not looked at
    wer: float = 0  # the most of the last validation, in percent; 0 = not looked at


# Half precision differs by its own rounding between processors that have bf16 products and those that have not.
RECIPES = {"translation": Curve(), "mixed_fp16": Curve(early=2e-3, late=0.04), "mixed_bf16": Curve(early=5e-3, late=0.05),
           "large_batch": Curve(), "batch_norm": Curve(), "modern_blocks": Curve(), "modern_attention": Curve(),
           "shaw_positions": Curve(), "light_conv": Curve(), "dynamic_conv": Curve(), "gnmt": Curve(), "norm_lstm": Curve(),
           "alibi": Curve(), "muon": Curve(), "masked_lm": Curve(), "language_model": Curve(), "language_model_lstm": Curve(falls_to=0.65),
           # Losses near zero differ by a rounding from update 225 on. A model that learns only one word has 0.72.
           "text_classification": Curve(followed=200, reaches=0.95),
           # It has 600 updates: where an answer becomes all but certain, a rounding grows to a percent, by update 124 on Zen 3.
           "question_answering": Curve(followed=100),
           # Sums of convolutions are added up in another order on other processors.
           "image_classification": Curve(early=2e-3, late=0.1, followed=100, reaches=0.9),
           # So are those of convolutions in time; logarithms of spectra differ by a rounding, too.
           "speech_recognition": Curve(early=5e-3, late=0.15, followed=100, wer=5),
           "speech_synthesis": Curve(early=2e-3, late=0.1, followed=100),
           "regularised": Curve(falls_to=0.75)}  # what keeps from learning by heart slows the start

# Guessing which of ten symbols comes next costs ln 10 = 2.30 while nothing is known of their order, and the first loss is about
# 2.8: in 60 updates a model learns little more than that there are ten.
FIRST_UPDATES = Curve(first_updates(60), falls_to=0.95)
PARTS = ("transformer", "lstm", "conv")
RECIPES |= {f"reversal_{encoder}_{decoder}": FIRST_UPDATES for encoder, decoder in itertools.product(PARTS, PARTS)}
# ConvS2S does not scale its scores: over rows of a Transformer its attention begins almost hard, and a rounding grows to
# a percent within ten updates. Losses of single updates then lie up to a fifth apart, means of ten a twelfth.
RECIPES["reversal_transformer_conv"] = dataclasses.replace(FIRST_UPDATES, early=1e-3, early_updates=5, late=0.4, means=0.15)
RECIPES["two_heads"] = FIRST_UPDATES
RECIPES["two_sources"] = FIRST_UPDATES


def run_recipe(stretto, name, until=0):
    """The events of a run that pauses after so many updates; 0 = as long as its recipe says."""
    with tempfile.TemporaryDirectory(prefix="stretto_smoke_") as folder:
        command = [stretto, "train", str(ROOT / f"configs/smoke/{name}.toml"), "--run", folder + "/run",
                   *(first_updates(until, name) if until else RECIPES[name].overrides)]
        result = subprocess.run(command, env={**os.environ, "STRETTO_CACHE": folder + "/cache"}, timeout=300,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        lines = (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()
        for file in ("report.html", "config.toml", "log.txt"):
            check((pathlib.Path(folder) / "run" / file).exists(), f"the run folder has no {file}")
    return list(map(json.loads, lines))


def updates_of(events):
    return [event for event in events if event["event"] == "train"]


def compare_means(losses, stored, allowed):
    """Compares the means of each ten updates."""
    for at in range(0, len(losses), 10):
        mean, expected = statistics.mean(losses[at:at + 10]), statistics.mean(stored[at:at + 10])
        check(abs(mean - expected) <= allowed * expected, f"steps {at + 1} to {at + 10}: mean loss {mean:.6f}, stored {expected:.6f}")


def store(stretto, names):
    unknown = [name for name in names if name not in RECIPES]
    if unknown:
        sys.exit(f"no recipe {', '.join(unknown)}; there are {', '.join(RECIPES)}")
    CURVES.mkdir(parents=True, exist_ok=True)
    for name in names or RECIPES:
        events = updates_of(run_recipe(stretto, name))
        text = "".join(f"{e['step']} {e['loss']:.6f} {e['batch_hash']}\n" for e in events)
        (CURVES / f"{name}.txt").write_text(text)
        print(f"{name}: stored {len(events)} steps, last loss {events[-1]['loss']:.4f}", flush=True)


def follows_its_stored_curve(stretto, name):
    curve, file = RECIPES[name], CURVES / f"{name}.txt"
    check(file.exists(), f"no curve {file}; smoke_test.py PROGRAM --store {name} writes it")
    stored = [line.split() for line in file.read_text().splitlines()]
    until = 0 if FULL else IN_CI
    all_events = run_recipe(stretto, name, until)
    events = updates_of(all_events)
    made = sum(not event.get("skipped") for event in events)
    check(made == until if until else len(events) == len(stored), f"{len(events)} updates, {len(stored)} stored")
    for event, (step, loss, batch_hash) in zip(events, stored):
        check(event["step"] == int(step), f"step {event['step']}, expected {step}")
        check(event["batch_hash"] == batch_hash, f"step {step}: other data than stored")
        if event["step"] > curve.followed:
            continue
        allowed = curve.early if event["step"] <= curve.early_updates else curve.late
        check(abs(event["loss"] - float(loss)) <= allowed * float(loss),
              f"step {step}: loss {event['loss']:.6f}, stored {loss}")
    if curve.means:
        compare_means([event["loss"] for event in events], [float(loss) for _, loss, _ in stored[:len(events)]], curve.means)
    check_no_warning(all_events)  # a pause adds none: what a short run warns of, a whole one does
    if until:
        return
    check(events[-1]["loss"] < curve.falls_to * events[0]["loss"], "the loss hardly fell")
    if curve.reaches:
        accuracy = [event["accuracy"] for event in all_events if event["event"] == "valid"][-1]
        check(accuracy >= curve.reaches, f"an accuracy of {accuracy} at the end; {curve.reaches} is wanted")
    if curve.wer:
        wer = [event["wer"] for event in all_events if event["event"] == "valid"][-1]
        check(wer <= curve.wer, f"a word error rate of {wer} % at the end; at most {curve.wer} is wanted")


if __name__ == "__main__":
    if sys.argv[2:3] == ["--store"]:
        store(sys.argv[1], sys.argv[3:])
    else:
        main({f"{name}_follows_its_stored_curve": functools.partial(follows_its_stored_curve, name=name) for name in RECIPES})
