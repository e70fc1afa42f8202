#!/usr/bin/env python3
"""Train large, then compress (Li et al. 2020): are large models, compressed, better than small ones of the same memory?

    python benchmarks/compress_sweep.py --data DATA --work WORK --out PAGE.md [--parts text translation] [--seeds 3]
                 [--minutes 10 | --hours 12] [--sizes 2x128 4x64 …] [--bits 32 8 6 4 3] [--sparsity 0 0.15 … 0.9] [--retrain 100] …

text         masked language models of the sizes (LAYERSxWIDTH) are pretrained for --minutes each on the text of depth_width.py, and
             fine-tuned on each of --tasks with each seed, all for the same number of updates
translation  Transformers of the sizes (so many layers on either side) are trained on Multi30k for --minutes with each seed

Then `stretto compress --grid` makes, from every model, a point for each number of bits with each share of zeros, and scores it: on the
data that DATA has for validation, or for tests where it has any. Nothing is trained between pruning and scoring, but for --retrain UPDATES: then
each model is also pruned share by share, with so many updates behind each, a share on top of the one before (`iterative`). With
`--arms iterative once` it is also pruned once to each share and trained for as many updates as iterative pruning had come to there.

The page has the best size at every memory budget, with mean and deviation over seeds, what each size loses by each compression, and which
is better within a budget, width or depth. Memory is that of the model file as it is stored, where a zero takes as much as any weight.
A second reckoning leaves zeros out, and takes a bit for each weight that says whether it is one. A figure of each task stands
beside the page as SVG.

--hours H chooses the minutes so that all is done in H hours on this machine. For that, and for the estimate that is printed first, each size
trains for a few updates. --estimate stops there. To add seeds or tasks later, repeat the --minutes that were chosen: models of
another number of minutes are other models. DATA is described in understanding.py, and has multi30k/ beside it. Each finished model and
grid is a line of WORK/compress_sweep.jsonl, and another call goes on from there. --smoke tries everything on a small made-up text.
"""
import argparse
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import shutil
import signal
import sys

import compress_sweep_page
import compress_sweep_text
import depth_width
import records
import understanding
from understanding import Failed

HEAD_WIDTH = 32
SPEED_UPDATES = 6
TEXT_SIZES = "2x128 4x64 4x128 4x256 4x512 8x128 12x128"
TRANSLATION_SIZES = "1x128 2x64 2x128 2x256 2x512 4x128 6x128"
TRANSLATION_RECIPE = records.ROOT / "configs/translation/multi30k_transformer.toml"


@dataclasses.dataclass(frozen=True)
class Size:
    layers: int
    width: int

    def __str__(self):
        return f"{self.layers}x{self.width}"

    def heads(self):
        return self.width // HEAD_WIDTH


def read_size(word):
    layers, _, width = word.partition("x")
    if not (layers.isdigit() and width.isdigit() and int(layers) and int(width) and int(width) % HEAD_WIDTH == 0):
        raise argparse.ArgumentTypeError(f"{word!r} is no size: write LAYERSxWIDTH, the width a multiple of {HEAD_WIDTH}, as in 4x128")
    return Size(int(layers), int(width))


def digest(key):
    """Part of a folder's name: runs of other settings have other folders."""
    return hashlib.sha1(json.dumps(key, sort_keys=True).encode()).hexdigest()[:8]


def train(options, recipe, run, *keys):
    """Trains, or goes on where a run was stopped. @return its events"""
    run.parent.mkdir(parents=True, exist_ok=True)
    understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet", *keys], understanding.environment(options.threads))
    return records.json_lines(run / "metrics.jsonl")


def trained_facts(events):
    updates = [event for event in events if event["event"] == "train"]
    scores = [event for event in events if event["event"] == "valid"]
    if not updates:
        raise Failed("not one update was made in the time: give more --minutes")
    known = {name: value for name, value in (scores[-1] if scores else {}).items() if isinstance(value, (int, float))}
    return {"updates": updates[-1]["step"], "seconds": updates[-1]["seconds"], "valid": known}


class TextTask:
    """Texts with labels: a pretrained encoder, fine-tuned."""

    def __init__(self, options, name):
        self.options, self.name, self.title = options, name, understanding.TASKS[name].title
        self.metric, self.sizes, self.part = understanding.TASKS[name].metric, options.sizes, "text"
        self.eval_keys = [f"run.threads={options.threads}"]

    def files(self):
        options = self.options
        return understanding.prepare(options.data, options.work, self.name, options.max_samples, options.max_valid)

    def facts(self):
        return {"largest_label": understanding.largest_label(self.files())}

    def pretraining_key(self, seed):
        options = self.options
        return {"part": "pretraining", "minutes": options.minutes, "lr": options.lr, "vocab": options.vocab, "tokens": options.max_tokens,
                "keys": options.key, "seed": (seed - 1) % options.pretrainings + 1}

    def key(self, seed):
        options = self.options
        return {"part": "fine-tuning", "task": self.name, "seed": seed, "updates": options.updates, "batch": options.batch,
                "lr": options.tune_lr, "samples": options.max_samples, "pretrained": digest(self.pretraining_key(seed)),
                "minutes": options.minutes}

    def pretrained(self, size, seed):
        return self.options.work / "pretrained" / digest(self.pretraining_key(seed)) / str(size)

    def run(self, size, seed):
        return self.options.work / "trained" / f"{self.name}_{seed}_{digest(self.key(seed))}" / str(size)

    def make(self, cells, size, seed):
        """Trains what is not there yet. @return whether the run is there"""
        first, last = self.pretraining_key(seed), self.key(seed)
        return made(cells, {**first, "size": str(size)}, self.pretrained(size, seed), lambda run: self.pretrain(size, first["seed"], run)) and \
            made(cells, {**last, "size": str(size)}, self.run(size, seed), lambda run: self.tune(seed, run, self.pretrained(size, seed), size))

    def pretrain(self, size, seed, run):
        options = self.options
        recipe = compress_sweep_text.pretraining_recipe(options, size, run, run={"seed": seed, "threads": options.threads},
                                                        train={"max_hours": options.minutes / 60, "save_every": 200})
        return trained_facts(train(options, recipe, run, *options.key))

    def tune(self, seed, run, begin, size, updates=None, **more):
        options, files = self.options, self.files()
        sections = understanding.fine_tuning(
            files, compress_sweep_text.model_section(size, options.max_text_tokens, options.dropout, pooling=options.pooling), options.batch,
            options.tune_lr, data={**understanding.data_section(files, options.batch, options.max_text_tokens), "cache_dir": options.work / "cache"},
            run={"seed": seed, "threads": options.threads}, tokenizer={"type": "wordpiece", "model": options.tokenizer},
            train={"max_steps": updates or options.updates, "init_from": begin}, report={"every": 20}, **more)
        return trained_facts(train(options, understanding.write_recipe(run, sections), run))

    def train_again(self, size, seed, run, begin, updates, pruning):
        return self.tune(seed, run, begin, size, updates, **{"compress.prune": pruning})

    def training_seconds(self, speed, updates):
        files = self.files()
        return speed["start"] + updates * self.options.batch * compress_sweep_text.tokens_of(files.train) * speed["per_token"]

    def scoring_seconds(self, speed):
        files = self.files()
        return len(understanding.rows_of(files.valid)) * compress_sweep_text.tokens_of(files.valid) * speed["per_token"] / 3


class TranslationTask:
    """Multi30k, English to German."""
    name, title, metric, part = "multi30k", "Multi30k, English to German", "bleu", "translation"

    def __init__(self, options):
        self.options, self.sizes = options, options.translation_sizes
        self.eval_keys = ["eval.bleu=true", f"eval.bleu_sentences={options.bleu_sentences}", f"decode.beam_size={options.beam}",
                          f"run.threads={options.threads}"]

    def facts(self):
        return {}

    def key(self, seed):
        options = self.options
        return {"part": "translation", "task": self.name, "seed": seed, "minutes": options.translation_minutes, "lr": options.lr,
                "vocab": options.vocab, "tokens": options.translation_tokens, "keys": options.key}

    def run(self, size, seed):
        return self.options.work / "trained" / f"{self.name}_{seed}_{digest(self.key(seed))}" / str(size)

    def make(self, cells, size, seed):
        return made(cells, {**self.key(seed), "size": str(size)}, self.run(size, seed), lambda run: self.train(size, seed, run))

    def keys(self, size, seed):
        options = self.options
        sides = [f"model.{side}.{key}={value}" for side in ("encoder", "decoder")
                 for key, value in (("num_layers", size.layers), ("num_heads", size.heads()), ("ffn_dim", 4 * size.width))]
        return [*records.text_keys(options.data), *sides, f"model.d_model={size.width}", f"run.seed={seed}", f"run.threads={options.threads}",
                f"optim.lr={options.lr * math.sqrt(256 / size.width):.6g}", f"tokenizer.vocab_size={options.vocab}",
                f"data.max_tokens={options.translation_tokens}", f"data.cache_dir={options.work}/cache", "train.noise_scale=false",
                "train.keep_last=1", "eval.every=1000000", "eval.bleu=false", "report.every=1", "report.html=false", "report.tensorboard=false"]

    def train(self, size, seed, run, *keys):
        options = self.options
        hours = [] if keys else [f"train.max_hours={options.translation_minutes / 60:.6f}", "train.max_steps=0"]
        return trained_facts(train(options, TRANSLATION_RECIPE, run, *self.keys(size, seed), *hours, *keys, *options.key))

    def train_again(self, size, seed, run, begin, updates, pruning):
        return self.train(size, seed, run, f"train.init_from={begin}", f"train.max_steps={updates}", "schedule.name=linear",
                          "schedule.warmup_steps=0", "schedule.warmup_ratio=0.1", "schedule.min_lr=0",
                          *(f"compress.prune.{name}={value}" for name, value in pruning.items()))

    def training_seconds(self, speed, updates):
        return speed["start"] + updates * self.options.translation_tokens * speed["per_token"]

    # Decoding a text is assumed to take as long as training on it.
    def scoring_seconds(self, speed):
        path = records.text_file(self.options.data, "test_2016_flickr.de")
        lines = understanding.read_text(path).splitlines()
        share = min(1, self.options.bleu_sentences / len(lines)) if self.options.bleu_sentences else 1
        return share * compress_sweep_text.PIECES_PER_WORD * sum(len(line.split()) for line in lines) * speed["per_token"]


def made(cells, key, run, function):
    """True if a run is there, trained by `function(run)` unless its cell says that it was."""
    if not cells.measure(key, lambda: function(run)):
        return False
    if (run / "checkpoints").is_dir():
        return True
    print(f"{understanding.program_name()}: {run} is gone, but {cells.path} has its line: bring the folder back, or remove the line",
          file=sys.stderr, flush=True)
    return False


# Compression

def matrix_weights(run):
    """Weights of matrices and tables in a run's newest checkpoint."""
    path = max((run / "checkpoints").glob("*/model.safetensors"), key=lambda path: path.stat().st_mtime)
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__" and len(tensor["shape"]) > 1)


def bytes_without_zeros(stored, bits, zeros, weights):
    """Bytes of a file if zeros were left out, and a bit for each weight said where they are; never more than are stored."""
    return stored - max(0, zeros * weights * bits / 8 - weights / 8)


def write_grid(options, task, path, sparsity):
    keys = {"bits": options.bits, "sparsity": sparsity, "group": options.group, "rounding": options.rounding, "scope": options.scope,
            "metric": task.metric, "eval": task.eval_keys, "time": options.time > 0, "seconds": options.time or None}
    lines = [f"{name} = {understanding.toml_value(value)}" for name, value in keys.items() if value is not None]
    records.write_whole(path, "\n".join(["[grid]", *lines, ""]))


def call_grid(options, task, folder, runs, sparsity):
    """(points, what failed, '' if nothing did) of a grid over runs; what is there already is kept."""
    write_grid(options, task, folder / "grid.toml", sparsity)
    answer, failure = folder / "answer.json", ""
    answer.unlink(missing_ok=True)
    try:
        understanding.call([options.stretto, "compress", *runs, "--grid", folder / "grid.toml", "--dir", folder, "--json"],
                           understanding.environment(options.threads), output=answer)
    except Failed as failed:
        failure = str(failed)
    text = answer.read_text(encoding="utf-8")
    if "{" not in text:
        raise Failed(failure or f"{folder.name}: the grid printed no points")
    return json.loads(text[text.index("{"):])["points"], failure


def points_of(options, task, folder, runs, sparsity):
    """A cell's points. `runs`: (folder, share of zeros that training has given it)."""
    found, failure = call_grid(options, task, folder, [run for run, _ in runs], sparsity)
    shares, weights, points = {run.name: share for run, share in runs}, matrix_weights(runs[0][0]), []
    for point in found:
        trained = shares[point["run"]]
        zeros = max(point["zeros"], trained)
        points.append({"bits": point["bits"], "sparsity": trained or point["sparsity"], "zeros": zeros, "bytes": point["bytes"],
                       "bytes_without_zeros": bytes_without_zeros(point["bytes"], point["bits"], zeros, weights), "score": point["score"],
                       "rate": point["rate"], "unit": point["unit"]})
    if not options.keep_points:
        shutil.rmtree(folder / "points", ignore_errors=True)
    return {"points": points, "matrix_weights": weights, "parameters": max((point["weights"] for point in found), default=weights), **task.facts()}, failure


def grid_folder(options, task, seed, arm):
    key = {**task.key(seed), **grid_key(options, task, arm)}
    return options.work / "grids" / f"{task.name}_{seed}_{arm.replace(' ', '_')}_{digest(key)}"


def grid_key(options, task, arm):
    key = {"arm": arm, "bits": options.bits, "sparsity": options.sparsity, "group": options.group, "rounding": options.rounding,
           "scope": options.scope, "eval": [word for word in task.eval_keys if not word.startswith("run.threads=")], "timed": options.time > 0}
    return key if arm == compress_sweep_page.ONE_SHOT else {**key, "retrain": options.retrain}


def cell_key(options, task, size, seed, arm):
    return {**task.key(seed), **grid_key(options, task, arm), "part": "grid", "size": str(size)}


def measure_grid(options, cells, task, size, seed, arm, runs):
    """A cell of one model's points. Where some are missing, those that are there are kept aside for the page, and the next call tries again."""
    key = cell_key(options, task, size, seed, arm)
    sparsity = options.sparsity if arm == compress_sweep_page.ONE_SHOT else [0]

    def points():
        values, failure = points_of(options, task, grid_folder(options, task, seed, arm), runs, sparsity)
        if failure:
            records.append_json(cells.path, {"key": {**key, "part": "incomplete grid"}, **values, "head": records.head_of_now()})
            raise Failed(failure)
        return values

    return cells.measure(key, points)


def shares_of(options):
    return sorted(share for share in set(options.sparsity) if share > 0)


def pruned_runs(options, cells, task, size, seed, arm):
    """[(run, share)] of models that were pruned with training behind it; None where one failed."""
    runs, begin = [], task.run(size, seed)
    for step, share in enumerate(shares_of(options), 1):
        updates = options.retrain * (step if arm == "once" else 1)
        key = {**task.key(seed), "part": "re-training", "arm": arm, "retrain": options.retrain, "scope": options.scope,
               "steps": shares_of(options)[:step], "share": share, "size": str(size)}
        folder = digest({name: value for name, value in key.items() if name not in ("share", "steps", "size")})
        run = options.work / "retrained" / f"{task.name}_{seed}_{arm}_{folder}" / f"{size}-{share:g}"
        pruning = {"sparsity": share, "scope": options.scope, "schedule": "once", "begin": 0}
        if not made(cells, key, run, lambda run: task.train_again(size, seed, run, begin, updates, pruning)):
            return None
        runs.append((run, share))
        if arm == "iterative":
            begin = run
    return runs


def measure_model(options, cells, task, size, seed):
    """One model, and its points by every arm. @return whether nothing failed"""
    arms = compress_sweep_page.arms_of(options)
    if all(cells.all(**cell_key(options, task, size, seed, arm)) for arm in arms):
        return True
    if not task.make(cells, size, seed):
        return False
    done = True
    for arm in arms:
        if cells.all(**cell_key(options, task, size, seed, arm)):
            continue
        runs = [(task.run(size, seed), 0)] if arm == compress_sweep_page.ONE_SHOT else pruned_runs(options, cells, task, size, seed, arm)
        done = runs is not None and measure_grid(options, cells, task, size, seed, arm, runs) and done
    return done


def page_of_grid(options, task, seed):
    """All sizes of a task and seed on one sweep.html. Its points are there already."""
    runs = [task.run(size, seed) for size in task.sizes]
    folder = grid_folder(options, task, seed, compress_sweep_page.ONE_SHOT)
    if folder.is_dir() and all((run / "checkpoints").is_dir() for run in runs):
        call_grid(options, task, folder, runs, options.sparsity)
        print(f"{understanding.program_name()}: {folder / 'sweep.html'}", file=sys.stderr, flush=True)


def measure(options, cells, tasks):
    done = True
    for seed in range(1, options.seeds + 1):
        for task in tasks:
            well = [measure_model(options, cells, task, size, seed) for size in task.sizes]
            done = all(well) and done
            if options.out:
                records.write_whole(options.out, compress_sweep_page.page(options, cells, tasks, cell_key))
            if all(well):
                page_of_grid(options, task, seed)
    return done


# Time

def speed_key(options, part, size):
    tokens = options.max_tokens if part == "text" else options.translation_tokens
    return {"part": "speed", "kind": part, "size": str(size), "threads": options.threads, "tokens": tokens, "vocab": options.vocab}


def measured_speed(options, task, size):
    """Seconds of a start, of a token in training, and of rounding the weights to 4 bits with a start."""
    run = options.work / "speed" / f"{task.part}_{size}"
    shutil.rmtree(run.parent, ignore_errors=True)
    try:
        run.parent.mkdir(parents=True)
        if task.part == "text":
            recipe = compress_sweep_text.pretraining_recipe(options, size, run, data={"valid": None}, train={"max_steps": SPEED_UPDATES},
                                                            schedule={"warmup_steps": 0})
            words = [recipe, "--run", run, "--quiet"]
        else:
            words = [TRANSLATION_RECIPE, "--run", run, "--quiet", *task.keys(size, 1), f"train.max_steps={SPEED_UPDATES}", "schedule.warmup_steps=0"]
        _, whole, _ = understanding.call([options.stretto, "train", *words], understanding.environment(options.threads))
        events = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
        half = len(events) // 2
        tokens = sum(event.get("tokens", event.get("target_tokens", 0)) for event in events[half:])
        rounding = [options.stretto, "compress", run, "--bits", 4, "--rounding", options.rounding, "--run", run.with_name(run.name + "_4bit")]
        _, rounded, _ = understanding.call(rounding, understanding.environment(options.threads))
        return {"start": max(0, whole - events[-1]["seconds"]), "per_token": (events[-1]["seconds"] - events[half - 1]["seconds"]) / tokens,
                "compress": rounded}
    finally:
        shutil.rmtree(run.parent, ignore_errors=True)


def measure_speeds(options, cells, tasks):
    """{(part, size): speed}; None where a measurement failed."""
    speeds = {}
    for task in tasks:
        for size in task.sizes:
            key = speed_key(options, task.part, size)
            if not cells.measure(key, lambda: measured_speed(options, task, size)):
                return None
            speeds[task.part, size] = cells.all(**key)[-1]
    return speeds


def estimate(options, tasks, speeds):
    """{what: seconds} of all but the training that --minutes bounds, and how many such trainings there are."""
    costs, trainings, scorings = {}, 0, len(options.bits) * len(options.sparsity)
    for task in tasks:
        for size in task.sizes:
            speed = speeds[task.part, size]
            score = speed["start"] + task.scoring_seconds(speed) + options.time
            points = scorings * (speed["compress"] + score)
            if task.part == "text":
                costs["fine-tuning"] = costs.get("fine-tuning", 0) + options.seeds * task.training_seconds(speed, options.updates)
            for arm in compress_sweep_page.arms_of(options)[1:]:
                steps = len(shares_of(options))
                times = steps * (steps + 1) // 2 if arm == "once" else steps
                again = task.training_seconds(speed, times * options.retrain) + (steps - 1) * speed["start"]
                costs["re-training"] = costs.get("re-training", 0) + options.seeds * again
                points += steps * len(options.bits) * (speed["compress"] + score)
            what = f"points of {task.title}"
            costs[what] = costs.get(what, 0) + options.seeds * points
    if "text" in options.parts:
        trainings += len(options.sizes) * min(options.pretrainings, options.seeds)
    if "translation" in options.parts:
        trainings += len(options.translation_sizes) * options.seeds
    return costs, trainings


def choose_minutes(options, costs, trainings):
    """Sets --minutes by --hours."""
    left = options.hours * 3600 - sum(costs.values())
    minutes = float(f"{left / 60 / trainings:.2g}")
    if minutes < options.least_minutes:
        sys.exit(f"error: {options.hours:g} hours are too few: without training, it takes {sum(costs.values()) / 3600:.1f} hours, and {trainings} models then have "
                 f"{max(0, minutes):g} minutes each\n  give more --hours, or fewer --seeds, --sizes, --bits, --sparsity or --updates")
    options.minutes = options.translation_minutes = minutes


def tell_estimate(options, costs, trainings):
    bounded = {}
    if "text" in options.parts:
        count = len(options.sizes) * min(options.pretrainings, options.seeds)
        bounded[f"pretraining: {count} models of {options.minutes:g} minutes"] = count * options.minutes * 60
    if "translation" in options.parts:
        count = len(options.translation_sizes) * options.seeds
        bounded[f"translation: {count} models of {options.translation_minutes:g} minutes"] = count * options.translation_minutes * 60
    everything = {**bounded, **costs}
    lines = [f"  {seconds / 3600:7.2f} h  {what}" for what, seconds in everything.items()]
    print("\n".join(["Estimate, from a few updates of each size; what is there already counts too:", *lines,
                     f"  {sum(everything.values()) / 3600:7.2f} h  together"]), file=sys.stderr, flush=True)


# The program

def numbers(parser):
    own = parser.add_argument
    own("--minutes", type=float, default=10, help="of pretraining, and of training a translation")
    own("--translation-minutes", type=float, help="of training a translation, if they are other ones")
    own("--hours", type=float, help="all together; chooses --minutes")
    own("--least-minutes", type=float, default=0.5, help="with fewer, --hours is refused")
    own("--vocab", type=int, default=8000)
    own("--lr", type=float, default=1e-3, help="of pretraining and of translation, at width 256; falls with the square root of the width")
    own("--warmup", type=int, default=50, help="of pretraining")
    own("--max-text-tokens", type=int, default=128)
    own("--max-tokens", type=int, default=2048, help="of an update of pretraining")
    own("--translation-tokens", type=int, default=4096, help="of an update of translation")
    own("--valid-paragraphs", type=int, default=120, help="of pretraining")
    own("--pretrainings", type=int, default=1, help="how many of the seeds have a pretraining of their own; the others share them")
    own("--updates", type=int, default=600, help="of fine-tuning")
    own("--batch", type=int, default=32, help="of fine-tuning")
    own("--tune-lr", type=float, default=3e-4, help="of fine-tuning, the same for all sizes")
    own("--dropout", type=float, default=0.1, help="of fine-tuning")
    own("--max-samples", type=int, default=0, help="training texts of a task; 0 = all")
    own("--max-valid", type=int, default=0, help="validation texts of a task; 0 = all")
    own("--beam", type=int, default=1, help="of translation")
    own("--bleu-sentences", type=int, default=0, help="of the test set that are decoded; 0 = all")
    own("--time", type=float, default=0, help="seconds of measuring the speed of each point, for sweep.html; 0 = no speed")
    own("--seeds", type=int, default=3)
    own("--threads", type=int, default=len(os.sched_getaffinity(0)))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = parser.add_argument
    own("key", nargs="*", metavar="key=value", help="for pretraining and for translation")
    own("--stretto", default="build/release/stretto")
    own("--data", type=pathlib.Path, help="needed but for --smoke and --page")
    own("--work", type=pathlib.Path, required=True, help="folder of text, runs, grids and compress_sweep.jsonl, kept")
    own("--out", type=pathlib.Path, help="the page, written anew after each task and seed; figures have its name, the task's and .svg")
    own("--parts", nargs="+", choices=("text", "translation"), default=["text", "translation"])
    own("--tasks", nargs="+", choices=[task.name for task in understanding.TASKS.values() if task.kind != "answers"],
        default=["sst2", "sick_entailment"])
    own("--sizes", nargs="+", type=read_size, default=list(map(read_size, TEXT_SIZES.split())), help=f"default {TEXT_SIZES}")
    own("--translation-sizes", nargs="+", type=read_size, default=list(map(read_size, TRANSLATION_SIZES.split())),
        help=f"default {TRANSLATION_SIZES}")
    own("--pooling", default="mean", choices=("cls_tanh", "cls", "mean"), help="of texts, in fine-tuning")
    own("--bits", nargs="+", type=int, default=[32, 8, 6, 4, 3], help="32: not rounded")
    own("--sparsity", nargs="+", type=float, default=[0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
    own("--group", type=int, default=32, help="weights that share a scale; 0 = a row has one")
    own("--rounding", default="least_error", choices=("nearest", "least_error", "calibrated"))
    own("--scope", default="layer", choices=("global", "layer", "block"), help="of pruning")
    own("--retrain", type=int, default=0, metavar="UPDATES", help="behind each pruning; 0 = pruned weights are not trained again")
    own("--arms", nargs="+", choices=("iterative", "once"), default=["iterative"], help="of --retrain")
    own("--budgets", nargs="+", type=float, metavar="MB", help="default: powers of two between the smallest point and the largest")
    numbers(parser)
    own("--keep-points", action="store_true", help="keep the run folders of points, which may take many gigabytes")
    own("--estimate", action="store_true", help="only say how long it will take")
    own("--page", action="store_true", help="only make the page and the figures of what is there")
    own("--smoke", action="store_true", help="made-up text, seconds of training: tries the script, measures nothing")
    return checked(parser, parser.parse_args())


def checked(parser, options):
    options.stretto = None if options.page else records.program(parser, options.stretto)
    options.work = options.work.resolve()
    if options.smoke:
        options.sizes, options.translation_sizes = ([Size(1, 32), Size(2, 64)] for _ in range(2))
        options.minutes, options.hours, options.vocab, options.updates, options.batch, options.seeds = 0.05, None, 300, 4, 8, 2
        options.max_text_tokens, options.max_tokens, options.translation_tokens, options.valid_paragraphs = 32, 256, 300, 5
        options.bits, options.sparsity, options.warmup, options.data = [32, 8, 4], [0, 0.5], 2, options.work / "made_up"
    elif not options.data and not options.page:
        parser.error("--data is missing: name the folder of the data sets, or give --smoke")
    if not options.page:
        options.data = options.data.resolve()
    for share in options.sparsity:
        if not 0 <= share < 1:
            parser.error(f"--sparsity {share:g} is not from 0 to below 1")
    # Both are what all other points are compared with.
    if 32 not in options.bits or 0 not in options.sparsity:
        parser.error("--bits needs 32 and --sparsity 0: the models as they are")
    if options.retrain and not any(options.sparsity):
        parser.error("--retrain needs a --sparsity above 0")
    if min(options.seeds, options.pretrainings, options.minutes) <= 0:
        parser.error("--seeds, --pretrainings and --minutes have to be above 0")
    # A value that is named twice is one point.
    options.bits, options.sparsity = sorted(set(options.bits), reverse=True), sorted(set(options.sparsity))
    options.translation_minutes = options.translation_minutes or options.minutes
    return options


def tasks_of(options):
    tasks = [TextTask(options, name) for name in options.tasks] if "text" in options.parts else []
    return tasks + ([TranslationTask(options)] if "translation" in options.parts else [])


def prepare(options):
    if options.smoke:
        compress_sweep_text.make_up(options.data)
    if "text" in options.parts:
        depth_width.prepare(options)
    if "translation" in options.parts:
        records.text_keys(options.data)  # ends the program if a file is missing


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cells, tasks, done = understanding.Cells(options.work / "compress_sweep.jsonl"), tasks_of(options), True
    if options.page and options.hours:
        sys.exit("error: --page takes the --minutes that were chosen, not --hours")
    if not options.page:
        try:
            prepare(options)
        except Failed as failure:
            sys.exit(f"error: {failure}")
        speeds = measure_speeds(options, cells, tasks)
        if speeds is None:
            return 1
        costs, trainings = estimate(options, tasks, speeds)
        if options.hours:
            choose_minutes(options, costs, trainings)
        tell_estimate(options, costs, trainings)
        if options.estimate:
            return 0
        done = measure(options, cells, tasks)
    records.publish(compress_sweep_page.page(options, cells, tasks, cell_key), options.out)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
