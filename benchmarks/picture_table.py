#!/usr/bin/env python3
"""Whether the losses of a network with batch norms depend on the number of processes, where its statistics are synchronised: one table.

    python benchmarks/picture_table.py --stretto STRETTO --data DATA [--work WORK] [--out PAGE.md] [--updates 20] [--processes 1 2 3]

Trains configs/image_classification/cifar10_resnet20.toml for some updates of 192 pictures: one process has a micro-batch of 192, two have
96 each, three 64. `dist.batch_norm = "all"` joins their statistics. With SGD of a small rate, the largest relative difference of a loss is
to be below 1e-5; leaves with 1 if it is not. At the recipe's own rate differences are shown beside those of a rate that is a millionth
larger. A training that is in WORK is not made again. Takes some minutes on two quiet cores.
"""
import argparse
import pathlib
import shutil
import sys

import perplexity_table
import picture_files
import records
import understanding

BATCH = 192
RECIPE = records.ROOT / "configs/image_classification/cifar10_resnet20.toml"
SLOW = ["optim.lr=0.01", "optim.momentum=0"]
FORMS = {"SGD of rate 0.01": SLOW, "the same with `dist.deterministic`": [*SLOW, "dist.deterministic=true"]}
# The recipe's own rate and momentum let a rounding grow, whatever it comes from: a rate that is a millionth larger shows how fast.
RATE, SHOWN = 0.1, (1, 2, 3, 5, 10, 20)


def trained(options, processes, keys):
    """The run folder of a training on so many processes."""
    train, _ = picture_files.cifar10(options.data, 20_000)
    run = options.work / "_".join([str(options.updates), str(processes), *(key.replace("=", "-") for key in keys)])
    if any(event["event"] == "end" for event in records.json_lines(run / "metrics.jsonl")):
        return run
    shutil.rmtree(run, ignore_errors=True)
    more = ["--processes", processes, "dist.timeout_seconds=600"] if processes > 1 else []
    understanding.call([options.stretto, "train", RECIPE, "--run", run, "--quiet", *picture_files.data_keys(train), "run.threads=1",
                        "run.device=cpu", f"data.cache_dir={options.work}/cache", f"data.max_samples={BATCH // processes}",
                        f"train.update_freq={processes}", "dist.batch_norm=all", f"train.max_steps={options.updates}",
                        "train.save_every=1000000", "eval.every=1000000", "report.every=1", "report.html=false", "report.tensorboard=false",
                        *keys, *options.key, *more])
    return run


def losses_of(options, keys):
    found = [perplexity_table.losses(trained(options, processes, keys)) for processes in options.processes]
    if len({len(losses) for losses in found}) != 1:
        raise understanding.Failed("trainings have other numbers of updates")
    return found


def measure(options, table):
    for form, keys in FORMS.items():
        of_runs = losses_of(options, keys)
        worst = max(range(len(of_runs[0])), key=lambda i: perplexity_table.difference([losses[i] for losses in of_runs]))
        table.add("ResNet-20", f"{form}: loss of {len(of_runs[0])} updates, that which differs most (update {worst + 1})",
                  f"{', '.join(map(str, options.processes))} processes", [losses[worst] for losses in of_runs], perplexity_table.LOSS_BOUND,
                  f"{of_runs[0][worst]:.6f}")


def growth(options):
    """How far losses are apart, by updates, at the recipe's own rate."""
    of_runs = losses_of(options, [f"optim.lr={RATE}"])
    moved = [of_runs[0], perplexity_table.losses(trained(options, options.processes[0], [f"optim.lr={RATE * (1 + 1e-6)}"]))]
    shown = [i for i in SHOWN if i <= len(of_runs[0])]
    far = [[f"{perplexity_table.difference([losses[i - 1] for losses in some]):.1e}" for i in shown] for some in (of_runs, moved)]
    return records.table(["update", *map(str, shown)], [[f"{', '.join(map(str, options.processes))} processes", *far[0]],
                                                        ["a rate that is a millionth larger", *far[1]]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for the trainings")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, help="folder for runs; a second call goes on from it; default temporary")
    parser.add_argument("--out", type=pathlib.Path, help="file for the page")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2, 3], choices=[1, 2, 3, 4, 6])
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    with records.work_folder(options, "stretto_pictures_"):
        table = perplexity_table.Table()
        measure(options, table)
        grown = growth(options)
        notes = [f"ResNet-20 on CIFAR-10 as JPEG files, updates of {BATCH} pictures that the processes share, one thread each, statistics of "
                 "batch norms over all of them. Differences are relative to one process."]
        body = (table.text("model", "training") + f"\n\nAt the recipe's own rate, {RATE} with momentum, a rounding grows from update to update, and so "
                "does any other change. Relative differences of losses:\n\n" + grown)
        records.publish(records.page("Pictures on several processes", notes, body, "minutes"), options.out)
    return 0 if table.well else 1


if __name__ == "__main__":
    sys.exit(main())
