#!/usr/bin/env python3
"""Whether two builds train to the same weights: the smoke recipes that both know, for their first updates.

    benchmarks/same_weights.py OLD_PROGRAM NEW_PROGRAM [--old-configs DIR] [--out PAGE] [key=value …]

Both programs train every recipe of configs/smoke (--configs) for --updates updates, with a short warm-up and one thread. Their events of
metrics.jsonl must agree to the last digit: losses, rates, norms, the order of data, validations, and the hash of the final weights. If the
old program cannot read the recipes of today, --old-configs is the folder of its own (configs/smoke of its checkout); they train on
build/ of this checkout. key=value goes to all trainings; --old-key key=value to those of the old program, for keys that it knows by
another name. --recipe NAME chooses recipes.

A recipe is not compared if the old program refuses it with exit code 2, or has none of that name; the table says so. Leaves with 1 if a
recipe differs, if a program fails, or if no recipe was compared.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import records

EVENTS = ("train", "valid", "end")
FIELDS = ("loss", "nll", "ppl", "bleu", "lr", "grad_norm", "target_tokens", "batch_hash", "weights_hash")
USAGE = 2  # exit code of a program that does not know a recipe


class Side:
    """One of the programs, with the folder of its recipes."""

    def __init__(self, name, program, configs, keys):
        self.name, self.program, self.configs, self.keys = name, program, configs, keys

    def train(self, options, recipe):
        """(events, "") of a run, or (None, what went wrong) with an exit code in front."""
        run = options.work / f"{recipe}.{self.name}"
        shutil.rmtree(run, ignore_errors=True)
        command = [self.program, "train", str(self.configs / f"{recipe}.toml"), "--run", str(run), "--quiet",
                   f"train.max_steps={options.updates}", f"schedule.warmup_steps={options.updates * 2 // 3}", "report.every=1",
                   "report.html=false", "report.tensorboard=false", "eval.bleu=false", "run.threads=1", *options.key, *self.keys]
        done = subprocess.run(command, env={**os.environ, "STRETTO_CACHE": str(options.work / f"cache.{self.name}")},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
            return None, (done.returncode, lines[0] if lines else "without an error message")
        return [event for event in records.json_lines(run / "metrics.jsonl") if event.get("event") in EVENTS], None


def first_difference(old, new):
    """What differs first, in words; "" if nothing does. A field counts where both have it."""
    for before, after in zip(old, new):
        place = f"{after['event']} event of step {after['step']}"
        if (before["event"], before["step"]) != (after["event"], after["step"]):
            return f"other events from the {place} on"
        fields = [name for name in FIELDS if name in before and name in after and before[name] != after[name]]
        if fields:
            return f"{', '.join(fields)} from the {place} on"
    if len(old) != len(new):
        return f"{len(old)} and {len(new)} events"
    return "" if "weights_hash" in (old[-1] if old else {}) else "no hash of the weights"


def compare(options, sides, recipe):
    """A row of the table, and whether it is "equal", "different" or "not compared"."""
    runs = {side.name: side.train(options, recipe) for side in sides}
    (old, old_error), (new, new_error) = runs["old"], runs["new"]
    if old_error and old_error[0] == USAGE:
        return [recipe, "", "", "", "", f"not compared: the old program says: {old_error[1]}"], "not compared"
    for name, error in (("old", old_error), ("new", new_error)):
        if error:
            return [recipe, "", "", "", "", f"**the {name} program left with {error[0]}**: {error[1]}"], "different"

    def last(events, kind, field):
        return next((event[field] for event in reversed(events) if event["event"] == kind and field in event), "")

    cells = [recipe, last(old, "train", "loss"), last(new, "train", "loss"), last(old, "end", "weights_hash"),
             last(new, "end", "weights_hash")]
    difference = first_difference(old, new)
    return cells + [f"**different**: {difference}" if difference else "equal"], "different" if difference else "equal"


def own_copy(options):
    """The old recipes in a tree of their own, whose build/ is that of this checkout: both programs read the same text."""
    tree = options.work / "old_configs"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(options.old_configs, tree / "configs/smoke")
    if (options.old_configs.parent / "parts").is_dir():
        shutil.copytree(options.old_configs.parent / "parts", tree / "configs/parts")
    (tree / "build").symlink_to(records.ROOT / "build")
    return tree / "configs/smoke"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("key", nargs="*", metavar="key=value")
    parser.add_argument("--configs", type=pathlib.Path, default=records.ROOT / "configs/smoke", help="recipes of the new program")
    parser.add_argument("--old-configs", type=pathlib.Path, help="recipes of the old program; default: those of the new one")
    parser.add_argument("--old-key", action="append", default=[], metavar="key=value")
    parser.add_argument("--recipe", dest="recipes", action="append", default=[], metavar="NAME", help="one of the recipes; may be repeated")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="folder for the runs; default temporary")
    options = parser.parse_intermixed_args(arguments)
    options.old, options.new = records.program(parser, options.old), records.program(parser, options.new)
    if options.updates < 3:
        parser.error("--updates must be at least 3: a warm-up is shorter than a run")
    found = sorted(path.stem for path in options.configs.glob("*.toml") if path.stem != "search")  # a search file
    unknown = [name for name in options.recipes if name not in found]
    if unknown or not found:
        parser.error(f"no recipe {', '.join(unknown) or '*.toml'} in {options.configs}: there are {', '.join(found) or 'none'}")
    options.recipes = options.recipes or found
    return options


def main(arguments=None):
    options = parse(arguments)
    head, rows, verdicts = records.head_of_now(), [], []
    with records.work_folder(options, "stretto_same_weights_"):
        old_configs = own_copy(options) if options.old_configs else options.configs
        sides = [Side("old", options.old, old_configs, options.old_key), Side("new", options.new, options.configs, [])]
        for recipe in options.recipes:
            if not (old_configs / f"{recipe}.toml").is_file():
                cells, verdict = [recipe, "", "", "", "", "not compared: the old program has no such recipe"], "not compared"
            else:
                cells, verdict = compare(options, sides, recipe)
            print(f"same_weights.py: {recipe}: {cells[-1]}", file=sys.stderr, flush=True)
            rows.append(cells)
            verdicts.append(verdict)
    count = {word: verdicts.count(word) for word in ("equal", "different", "not compared")}
    notes = [f"{options.updates} updates of each recipe, one thread. {count['equal']} equal, {count['different']} different, "
             f"{count['not compared']} not compared."]
    body = records.table(["recipe", "last loss, old", "new", "weights_hash, old", "new", "events"], rows)
    records.publish(records.page("Weights of an old and a new build", notes, body, "minutes", head), options.out)
    return 1 if count["different"] or not count["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
