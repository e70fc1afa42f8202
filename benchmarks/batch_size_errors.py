#!/usr/bin/env python3
"""Error against batch size: the large-batch claim of Goyal et al. 2017 (arXiv:1706.02677, figure 1 and section 5.1) at our size.

    python benchmarks/batch_size_errors.py --stretto STRETTO --data DATA --work WORK [--out PAGE.md] [--epochs 12] [--seeds 3]
                 [--factors 1 4 16 64] [--warmups none constant gradual] [--pictures 20000] [--beyond lars=RATE lamb=RATE]

A ResNet (--net) on CIFAR-10, JPEG files. Batches of k times --batch pictures, k in --factors: k micro-batches an update, so that batch
norm takes its statistics from --batch pictures for every k, as from a worker of the article. The rate is --lr for k = 1, and k times that
else (optim.lr_scaling = "linear"). Warm-ups of --warmup-epochs epochs, of the same number of epochs for every k:

- none: the scaled rate from the first update on;
- constant: the rate of k = 1 until the warm-up ends;
- gradual: a line from the rate of k = 1 to the scaled one.

All train for --epochs epochs, with a tenth of the rate after 1/3, 2/3 and 8/9 of them, as the article's 30, 60 and 80 of 90; decay 1e-4,
not of norms and biases; last gains of blocks start at 0. For k = 1 the three warm-ups are one training. --beyond trains with other
optimizers at the largest k, with a gradual warm-up from zero to RATE.

Each training is a run folder in WORK; a second call goes on in the middle of one that was stopped. Finished ones are lines of
WORK/batch_sizes.jsonl. At the end `stretto report` draws the curves of each seed in WORK/comparison_seed_N.html. If an epoch of 20,000
pictures takes half a minute with ResNet-20, as estimated for two cores, then twelve epochs, four factors and three seeds (30 trainings)
take about three hours.
"""
import argparse
import functools
import statistics
import sys

import language_texts
import picture_files
import records
import understanding

WARMUPS = ("none", "constant", "gradual")
DECAYS = (1 / 3, 2 / 3, 8 / 9)  # shares of the epochs


class Training:
    """One cell: the factor of the batch, the kind of warm-up, the seed, and another optimizer with its rate."""

    def __init__(self, factor, warmup, seed, optimizer="sgd", lr=None):
        self.factor, self.warmup, self.seed, self.optimizer, self.lr = factor, warmup, seed, optimizer, lr

    def name(self):
        rate = f"_{self.lr:g}" if self.lr else ""
        return f"{self.optimizer}{rate}_k{self.factor}_{self.warmup}_seed{self.seed}"

    def key(self, options):
        return {"optimizer": self.optimizer, "lr": self.lr or options.lr, "factor": self.factor, "warmup": self.warmup, "seed": self.seed,
                "net": options.net, "batch": options.batch, "epochs": options.epochs, "warmup_epochs": options.warmup_epochs,
                "pictures": options.pictures}


def trainings(options):
    """Seeds one after the other, so that an early end leaves a whole figure."""
    for seed in range(1, options.seeds + 1):
        for factor in options.factors:
            for warmup in options.warmups if factor > 1 else ["none"]:
                yield Training(factor, warmup, seed)
        for optimizer, rate in options.beyond:
            yield Training(max(options.factors), "gradual", seed, optimizer, rate)


def recipe(options, training):
    """The configuration of a training, beside its run folder."""
    per_epoch = options.pictures // options.batch / training.factor  # updates
    updates = max(1, round(options.epochs * per_epoch))
    warmup = 0 if training.warmup == "none" else max(1, round(options.warmup_epochs * per_epoch))
    train, test = picture_files.cifar10(options.data, options.pictures)
    boundaries = sorted({max(1, round(share * updates)) for share in DECAYS})
    optim = {"name": training.optimizer, "lr": training.lr or options.lr, "weight_decay": 1e-4}
    if training.optimizer == "sgd":
        optim |= {"momentum": 0.9, "lr_scaling": "linear", "reference_batch": options.batch}
    kind = "constant" if training.warmup == "constant" else "gradual"
    first = options.lr if training.optimizer == "sgd" else 0.0
    return updates, understanding.write_recipe(options.work / training.name(), {
        "run": {"name": training.name().replace("_", " "), "seed": training.seed}, "task": {"name": "image_classification"},
        "data": {"train": train, "valid": test, "max_samples": options.batch, "drop_last": True},
        "augment": {"image_size": 32, "crop": "pad", "padding": 4, "padding_mode": "zero", "mean": list(picture_files.MEAN),
                    "std": list(picture_files.DEVIATION)},
        "model": {"name": "resnet", "preset": options.net, "zero_gamma": True}, "optim": optim,
        "schedule": {"name": "piecewise", "warmup_steps": warmup, "warmup": kind if warmup else None,
                     "warmup_init_lr": first if warmup else None, "min_lr": 0.0, "boundaries": boundaries,
                     "multipliers": [0.1 ** (i + 1) for i in range(len(boundaries))]},
        "train": {"max_steps": updates, "update_freq": training.factor, "noise_scale": False, "save_every": max(1, round(2 * per_epoch))},
        "eval": {"every": max(1, round(per_epoch)), "max_samples": 500},
        "report": {"every": max(1, updates // 300), "html": False, "tensorboard": False}})


def trained(options, training):
    """Goes on where the run stands. A training that did not stay finite is a result as well: an error of a guess."""
    updates, config = recipe(options, training)
    run = options.work / training.name()
    try:
        understanding.call([options.stretto, "train", config, "--run", run, "--quiet", f"run.threads={options.threads}", "run.device=cpu",
                            f"data.cache_dir={options.work}/cache", *options.key], understanding.environment(options.threads))
    except understanding.Failed as failure:
        if "finite" not in str(failure):
            raise
        return {"error": 0.9, "lost": True, "updates": updates, "run": training.name()}
    scores = language_texts.evaluation(options, run)
    events = records.json_lines(run / "metrics.jsonl")
    losses = [event["loss"] for event in events if event["event"] == "train"]
    return {"error": 1 - scores["accuracy"], "loss": scores["loss"], "training_loss": statistics.mean(losses[-10:]), "lost": False,
            "updates": updates, "seconds": events[-1]["seconds"], "run": training.name()}


def draw(options, cells):
    """A page of curves for each seed: all runs of all seeds could not be told apart on one."""
    for seed in range(1, options.seeds + 1):
        runs = [options.work / cell["run"] for cell in mine(options, cells, seed=seed)]
        if len(runs) > 1:
            understanding.call([options.stretto, "report", *runs, "--output", options.work / f"comparison_seed_{seed}.html"])


def mine(options, cells, **key):
    """Cells of this setting; others may stand in the same folder."""
    setting = Training(0, "", 0).key(options)
    same = {name: setting[name] for name in ("net", "batch", "epochs", "warmup_epochs", "pictures")}
    return cells.all(**same, **key)


def error_text(found):
    errors = [100 * cell["error"] for cell in found]
    lost = sum(cell["lost"] for cell in found)
    deviation = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
    return f"{statistics.mean(errors):.2f}{deviation}" + (f" ({lost} of {len(found)} lost)" if lost else "")


def body_of(options, cells):
    found = mine(options, cells)
    if not found:
        return "Nothing is measured yet."
    rows = []
    for factor in sorted({cell["key"]["factor"] for cell in found}):
        row = [factor, f"{factor * options.batch:,}"]
        for warmup in WARMUPS:
            some = mine(options, cells, optimizer="sgd", factor=factor, warmup=warmup if factor > 1 else "none")
            row.append(error_text(some) if some else "")
        updates = next(cell["updates"] for cell in found if cell["key"]["factor"] == factor)
        rows.append([*row, f"{updates:,}"])
    parts = [records.table(["k", "batch", "no warm-up", "constant", "gradual", "updates"], rows),
             "Top-1 error in %, mean ± deviation over seeds. A training that did not stay finite counts as 90 %, a guess."]
    others = sorted({(cell["key"]["optimizer"], cell["key"]["lr"], cell["key"]["factor"]) for cell in found
                     if cell["key"]["optimizer"] != "sgd"})
    if others:
        parts.append(records.table(["optimizer, gradual warm-up", "k", "rate", "error %"], [
            [name, factor, f"{rate:g}", error_text(mine(options, cells, optimizer=name, lr=rate, factor=factor))]
            for name, rate, factor in others]))
    return "\n\n".join([*parts, *claims(options, cells)])


def claims(options, cells):
    """What the article says of its figure, beside what is found here: an error is the same within twice the deviation of k = 1."""
    base = [100 * cell["error"] for cell in mine(options, cells, optimizer="sgd", factor=1)]
    if len(base) < 2:
        return []
    mean, noise = statistics.mean(base), 2 * statistics.stdev(base)
    words = [f"The error of k = 1 is {mean:.2f} ± {noise / 2:.2f}."]
    for warmup in WARMUPS:
        holds, fails = [], []
        for factor in sorted(factor for factor in options.factors if factor > 1):
            some = [100 * cell["error"] for cell in mine(options, cells, optimizer="sgd", factor=factor, warmup=warmup)]
            if some:
                (holds if statistics.mean(some) <= mean + noise else fails).append(str(factor))
        if holds or fails:
            words.append(f"Warm-up {warmup}: as good within two deviations at k = {', '.join(holds) or '–'}; worse at "
                         f"{', '.join(fails) or '–'}.")
    return [" ".join(words)]


def beyond(text):
    name, _, rate = text.partition("=")
    if name not in ("lars", "larc", "lamb"):
        raise argparse.ArgumentTypeError(f"{text}: lars=RATE, larc=RATE or lamb=RATE")
    return name, float(rate)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, python=False)
    parser.add_argument("--net", default="resnet20", help="a preset of model.name = \"resnet\"")
    parser.add_argument("--factors", type=int, nargs="+", default=[1, 4, 16, 64], metavar="K")
    parser.add_argument("--warmups", nargs="+", choices=WARMUPS, default=list(WARMUPS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128, help="pictures of k = 1, and of a micro-batch")
    parser.add_argument("--lr", type=float, default=0.1, help="of k = 1")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--warmup-epochs", type=float, default=0, help="0: 5 of 90 epochs, as in the article, and at least one")
    parser.add_argument("--pictures", type=int, choices=(20_000, 50_000), default=20_000, help="for training")
    parser.add_argument("--beyond", type=beyond, nargs="+", default=[], metavar="NAME=RATE")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="few pictures and epochs: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if options.tiny:
        options.pictures, options.epochs, options.factors, options.seeds, options.batch = 2_000, 1, [1, 4], 1, 32
    options.warmup_epochs = options.warmup_epochs or max(1.0, options.epochs * 5 / 90)
    return options


def measure(options, cells):
    well = cells.measure_all((training.key(options), functools.partial(trained, options, training)) for training in trainings(options))
    draw(options, cells)
    return well


def page_of(options, cells):
    notes = [f"{options.net} on {options.pictures:,} pictures of CIFAR-10 as JPEG, {options.epochs} epochs, "
             f"{options.warmup_epochs:g} of them warm-up; {options.threads} threads."]
    return records.page("Error against batch size", notes, body_of(options, cells), "three hours", cells.head())


def main():
    return understanding.run_cells(parse(), "stretto_batch_sizes_", "batch_sizes.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
