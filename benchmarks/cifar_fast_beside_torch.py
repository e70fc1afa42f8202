#!/usr/bin/env python3
"""CIFAR-10 in eight epochs beside PyTorch: configs/image_classification/cifar10_fast.toml, and airbench94_muon.py on a CPU
(torch_airbench.py), on the same JPEG files: top-1 and seconds over seeds.

    python benchmarks/cifar_fast_beside_torch.py --stretto STRETTO --data DATA --python PYTHON --work WORK [--preload LIBRARY]
                 [--out PAGE.md] [--parts whole speed] [--seeds 3] [--rounds 3] [--updates 4] [--epochs 8] [--forms compiled] [--bf16]

- whole: each training to its end. Seconds from the start of the process to the line of the last update: reading the files and compiling
  included, testing not. Top-1 with the views of test time, six of a picture; and the share of it that one view reaches.
- speed: only --updates updates behind --warm ones, at the rates of the whole: seconds an update, and minutes that all updates would take.

PYTHON has torch, torchvision and Pillow. On AMD, --preload names the library that opens MKL's fast path. Each finished cell is a line of
WORK/cifar_fast.jsonl: a second call goes on. A training has 0.29 PFLOP: 16 minutes at 300 GFLOP/s, half an hour to an hour on two cores of
Zen 3, so three seeds of both programs take three hours and more; speed takes about ten minutes.
"""
import argparse
import shutil
import statistics
import subprocess
import sys

import language_texts
import picture_files
import records
import understanding

SCRIPT = records.ROOT / "benchmarks/torch_airbench.py"
RECIPE = records.ROOT / "configs/image_classification/cifar10_fast.toml"
FORMS = {"compiled": ["--compile"], "eager": []}


def started(options, program, seed, updates, *, whole):
    """A training that is followed to its last update; and the run, of Stretto."""
    train, test = picture_files.cifar10(options.data, 2_000 if options.tiny else 50_000)
    if program == "Stretto":
        run = options.work / f"{'whole' if whole else 'speed'}_{seed}"
        shutil.rmtree(run, ignore_errors=True)
        smaller = [f"data.max_samples={options.batch}"] if options.tiny else []
        until = [] if whole else ["--until", updates]
        command = [*picture_files.training(options, RECIPE, run, *picture_files.data_keys(train, test if whole else ()), f"run.seed={seed}",
                                           f"train.max_epochs={options.epochs}", *smaller), *until]
        return language_texts.Followed(command, understanding.environment(options.threads), updates), run
    limit = [] if whole else ["--updates", updates]
    command = [options.python, SCRIPT, "--train", *train, "--test", *test, "--seed", seed, "--threads", options.threads, "--epochs",
               options.epochs, "--batch", options.batch, *FORMS[program.removeprefix("PyTorch, ")], *limit,
               *(["--bf16"] if options.bf16 else [])]
    return language_texts.Followed(command, understanding.environment(options.threads, options.preload), updates), None


def whole(options, program, seed):
    total = options.epochs * (options.pictures // options.batch)
    followed, run = started(options, program, seed, total, whole=True)
    if run:
        valid = language_texts.evaluation(options, run)
        plain = language_texts.evaluation(options, run, "augment.test_flip=false", "augment.test_shift=0")["accuracy"]
        waits = [event["data_wait_seconds"] for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
        more = {"waiting": sum(waits)}
    else:
        valid, more = followed.valid[-1][2], {}
        plain = valid["plain"]
    return {"accuracy": valid["accuracy"], "plain": plain, "pictures": valid["pictures"], "seconds": followed.updates[total][0],
            "first": followed.updates[1][0], "loss": followed.updates[total][2], "peak_mib": followed.peak_mib, **more}


def speed(options, program, number):
    updates = options.warm + options.updates
    followed, _ = started(options, program, number, updates, whole=False)
    seconds = options.batch / followed.rate(options.warm)
    return {"seconds_an_update": seconds, "first": followed.updates[1][0], "peak_mib": followed.peak_mib}


def programs(options, number):
    names = ["Stretto", *(f"PyTorch, {form}" for form in options.forms)]
    return names if number % 2 else names[::-1]


def measure(options, cells):
    share, well = {"epochs": options.epochs, "bf16": options.bf16}, True
    for number in range(1, options.rounds + 1) if "speed" in options.parts else []:
        for program in programs(options, number):
            key = {"part": "speed", "program": program, "round": number, "updates": options.updates, **share}
            well = cells.measure(key, lambda: speed(options, program, number)) and well
    for seed in range(1, options.seeds + 1) if "whole" in options.parts else []:
        for program in programs(options, seed):
            key = {"part": "whole", "program": program, "seed": seed, **share}
            well = cells.measure(key, lambda: whole(options, program, seed)) and well
    return well


def names_of(found):
    return ["Stretto", *sorted({cell["key"]["program"] for cell in found} - {"Stretto"})]


def ratios_of(found, program, turn, value):
    """How many times as long as Stretto a program takes, in each turn that both have."""
    own = {cell["key"][turn]: cell[value] for cell in found if cell["key"]["program"] == "Stretto"}
    return [cell[value] / own[cell["key"][turn]] for cell in found if cell["key"]["program"] == program and cell["key"][turn] in own]


def whole_section(cells):
    found, rows = cells.all(part="whole"), []
    for program in names_of(found):
        mine = [cell for cell in found if cell["key"]["program"] == program]
        if mine:
            scores = [cell["accuracy"] for cell in mine]
            deviation = f" ± {statistics.stdev(scores):.2%}" if len(mine) > 1 else ""
            ratios = ratios_of(found, program, "seed", "seconds")
            rows.append([program, len(mine), f"{statistics.mean(scores):.2%}{deviation}", records.spread(scores, 0.01),
                         records.spread([cell["plain"] for cell in mine], 0.01),
                         records.spread([cell["loss"] for cell in mine], decimals=3),
                         records.spread([cell["seconds"] for cell in mine], 60, 1),
                         records.spread(ratios) if ratios and program != "Stretto" else "",
                         records.spread([cell["first"] for cell in mine], decimals=1),
                         f"{statistics.median(cell['peak_mib'] for cell in mine):,.0f}"])
    titles = ["program", "seeds", "top-1, mean", "median", "one view", "last training loss", "minutes to the last update",
              "Stretto is faster by", "seconds to the first", "peak MiB"]
    pictures = f"{found[0]['pictures']:,} test pictures. " if found else ""
    return ("## Whole trainings\n\n" + records.table(titles, rows) + f"\n\n{pictures}"
            "The goals: 94 % in 30 minutes on Zen 5, and 1.3 times as fast as PyTorch, compiled.") if rows else ""


def speed_section(options, cells):
    found, rows = cells.all(part="speed"), []
    for program in names_of(found):
        mine = [cell for cell in found if cell["key"]["program"] == program]
        if mine:
            ratios = ratios_of(found, program, "round", "seconds_an_update")
            times = [cell["seconds_an_update"] for cell in mine]
            total = mine[0]["key"]["epochs"] * (50_000 // 2000)
            rows.append([program, records.spread(times), records.spread([total * seconds for seconds in times], 60, 1),
                         records.spread(ratios) if ratios and program != "Stretto" else "",
                         f"{statistics.median(cell['peak_mib'] for cell in mine):,.0f}"])
    titles = ["program", "seconds an update", "minutes of all updates", "Stretto is faster by", "peak MiB"]
    return "## Speed\n\n" + records.table(titles, rows) if rows else ""


def page_of(options, cells):
    notes = [f"{options.threads} threads, {'products in bf16' if options.bf16 else 'fp32'}, batches of {options.batch:,}. "
             "Median (least – most), in turn. PyTorch is channels-last" +
             (", with a library preloaded that opens MKL's fast path." if options.preload else ".")]
    body = "\n\n".join(filter(None, [whole_section(cells), speed_section(options, cells)])) or "Nothing is measured yet."
    return records.page("CIFAR-10 in eight epochs, beside PyTorch", notes, body, "three hours", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=("whole", "speed"), default=["whole", "speed"])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=["compiled"], help="of PyTorch")
    parser.add_argument("--seeds", type=int, default=3, help="of whole")
    parser.add_argument("--rounds", type=int, default=3, help="of speed")
    parser.add_argument("--warm", type=int, default=2, help="updates before a window; torch.compile works in them")
    parser.add_argument("--updates", type=int, default=4, help="of a window")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--bf16", action="store_true", help="products in bf16, in both programs")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="2,000 pictures, one epoch: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if not options.page and subprocess.run([options.python, "-c", "import torch, torchvision, PIL"], capture_output=True).returncode != 0:
        parser.error(f"{options.python} lacks torch, torchvision or Pillow: --python NAME")
    options.key += ["train.precision=mixed_bf16"] if options.bf16 else []
    options.batch, options.pictures = 2000, 50_000
    if options.tiny:
        options.batch, options.pictures, options.epochs, options.seeds, options.rounds = 250, 2_000, 1, 1, 1
        options.warm, options.updates = 1, 2
    return options


def main():
    return understanding.run_cells(parse(), "stretto_cifar_fast_", "cifar_fast.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
