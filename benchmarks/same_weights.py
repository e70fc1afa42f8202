#!/usr/bin/env python3
"""Whether two builds train to the same weights: the smoke recipes that both know, for their first updates.

    benchmarks/same_weights.py OLD_PROGRAM NEW_PROGRAM [--old-configs DIR] [--out PAGE] [key=value …]

Both programs train every recipe of configs/smoke (--configs) for --updates updates, with a short warm-up and one thread. At equal steps,
their events of metrics.jsonl must agree to the last digit: losses, rates, norms, the order of data, validations, and the hash of the
weights. The first step that differs is named.

A run has the hash of its weights at its last step alone. Two runs may end at different steps: a program either counts an update that was
skipped for overflow towards train.max_steps, or makes up for it. The shorter run is then trained once more, to the other's last step.

If the old program cannot read the recipes of today, --old-configs is the folder of its own (configs/smoke of its checkout); they train on
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
import tomllib

import records

EVENTS = ("train", "valid", "end")  # as they follow each other in a step
FIELDS = ("loss", "nll", "ppl", "bleu", "lr", "grad_norm", "target_tokens", "batch_hash", "weights_hash")
USAGE = 2  # exit code of a program that does not know a recipe
TITLES = ["recipe", "step", "loss, old", "new", "weights_hash, old", "new", "events"]
NO_CELLS = [""] * (len(TITLES) - 2)


def task_of(recipe):
    """What a recipe trains. One that is none is the program's to refuse."""
    try:
        return tomllib.loads(recipe.read_text(encoding="utf-8")).get("task", {}).get("name", "translation")
    except tomllib.TOMLDecodeError:
        return "translation"


class Side:
    """One of the programs, with the folder of its recipes."""

    def __init__(self, name, program, configs, keys):
        self.name, self.program, self.configs, self.keys = name, program, configs, keys

    def train(self, options, recipe, *more):
        """(events, None) of a run, or (None, (exit code, what went wrong)). `more` are further keys."""
        run = self.run(options, recipe)
        shutil.rmtree(run, ignore_errors=True)
        file = self.configs / f"{recipe}.toml"
        unscored = ["eval.bleu=false"] if task_of(file) == "translation" else []
        command = [self.program, "train", str(file), "--run", str(run), "--quiet",
                   f"train.max_steps={options.updates}", f"schedule.warmup_steps={options.updates * 2 // 3}", "report.every=1",
                   "report.html=false", "report.tensorboard=false", *unscored, "run.threads=1", *options.key, *self.keys, *more]
        done = subprocess.run(command, env={**os.environ, "STRETTO_CACHE": str(options.work / f"cache.{self.name}")},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
            return None, (done.returncode, lines[0] if lines else "without an error message")
        return [event for event in records.json_lines(run / "metrics.jsonl") if event.get("event") in EVENTS], None

    def train_longer(self, options, recipe, steps):
        """Trains anew what train() did, for so many steps more, by the same schedule: one without a length of its own has max_steps."""
        config = tomllib.loads((self.run(options, recipe) / "config.toml").read_text(encoding="utf-8"))
        limit, length = config["train"]["max_steps"], config["schedule"]["total_steps"]
        return self.train(options, recipe, f"train.max_steps={limit + steps}", f"schedule.total_steps={length or limit}")

    def run(self, options, recipe):
        return options.work / f"{recipe}.{self.name}"


def by_step(events):
    """Events by (step, kind)."""
    return {(event["step"], event["event"]): event for event in events}


def last_step(events):
    return max((event["step"] for event in events), default=0)


def first_difference(old, new):
    """What differs at the first step that differs, in words; "" if nothing does. A field counts where both have it."""
    before, after = by_step(old), by_step(new)
    for step, kind in sorted(before.keys() | after.keys(), key=lambda place: (place[0], EVENTS.index(place[1]))):
        sides = [events.get((step, kind)) for events in (before, after)]
        if None in sides:
            return f"only the {'new' if sides[0] is None else 'old'} program has the {kind} event of step {step}"
        fields = [name for name in FIELDS if all(name in event for event in sides) and sides[0][name] != sides[1][name]]
        if fields:
            return f"{', '.join(fields)} first in the {kind} event of step {step}"
    hashed = [{place for place, event in events.items() if "weights_hash" in event} for events in (before, after)]
    return "" if hashed[0] & hashed[1] else "no step has a hash of the weights from both programs"


def cells_of(old, new):
    """The last step that both trained, its losses, and the hashes of the weights where a run ends there."""
    before, after = by_step(old), by_step(new)
    step = max((step for step, kind in before.keys() & after.keys() if kind == "train"), default=None)
    values = [events.get((step, kind), {}).get(field, "") for kind, field in (("train", "loss"), ("end", "weights_hash"))
              for events in (before, after)]
    return ["" if step is None else step, *values]


def to_equal_steps(options, sides, recipe, runs):
    """Where two runs end at different steps, the shorter one in `runs` is trained once more; says so in words, "" if nothing was done."""
    if any(error for _, error in runs.values()):
        return ""
    steps = {side: last_step(runs[side.name][0]) for side in sides}
    shorter, longer = sorted(sides, key=steps.get)
    if steps[shorter] == steps[longer]:
        return ""
    runs[shorter.name] = shorter.train_longer(options, recipe, steps[longer] - steps[shorter])
    return f"; the {shorter.name} program ended at step {steps[shorter]} and trained once more to reach {steps[longer]}"


def compare(options, sides, recipe):
    """A row of the table, and whether it is "equal", "different" or "not compared"."""
    runs = {side.name: side.train(options, recipe) for side in sides}
    error = runs["old"][1]
    if error and error[0] == USAGE:
        return [recipe, *NO_CELLS, f"not compared: the old program says: {error[1]}"], "not compared"
    again = to_equal_steps(options, sides, recipe, runs)
    for name, (_, error) in runs.items():
        if error:
            return [recipe, *NO_CELLS, f"**the {name} program left with {error[0]}**: {error[1]}{again}"], "different"
    old, new = runs["old"][0], runs["new"][0]
    difference = first_difference(old, new)
    verdict = f"**different**: {difference}" if difference else "equal"
    return [recipe, *cells_of(old, new), verdict + again], "different" if difference else "equal"


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
    found = sorted(path.stem for path in options.configs.glob("*.toml") if path.stem not in ("search", "compress"))  # no recipes
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
                cells, verdict = [recipe, *NO_CELLS, "not compared: the old program has no such recipe"], "not compared"
            else:
                cells, verdict = compare(options, sides, recipe)
            print(f"same_weights.py: {recipe}: {cells[-1]}", file=sys.stderr, flush=True)
            rows.append(cells)
            verdicts.append(verdict)
    count = {word: verdicts.count(word) for word in ("equal", "different", "not compared")}
    notes = [f"{options.updates} updates of each recipe, one thread, compared at equal steps. {count['equal']} equal, "
             f"{count['different']} different, {count['not compared']} not compared."]
    body = records.table(TITLES, rows)
    records.publish(records.page("Weights of an old and a new build", notes, body, "minutes", head), options.out)
    return 1 if count["different"] or not count["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
