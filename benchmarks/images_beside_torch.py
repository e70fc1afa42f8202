#!/usr/bin/env python3
"""Classes of pictures beside plain PyTorch, in turn: training, inference, accuracy, and decoding with augmentation.

    python benchmarks/images_beside_torch.py --stretto STRETTO --data DATA --python PYTHON --work WORK [--preload LIBRARY] [--out PAGE.md]
                 [--parts train infer accuracy decode] [--nets resnet20 resnet18 resnet50] [--rounds 3] [--updates N] [--bf16]

- train: pictures a second of training ResNet-20 at 32 × 32, ResNet-18 and -50 at 224 × 224, beside the same network in PyTorch
  (torch_images.py), channels-last, eager and compiled. Both read the same idx files of noise, which stay in memory: loading costs neither
  anything. Padding, windows and mirror images are drawn by both.
- infer: pictures a second of `stretto eval` with the same networks: the difference of two sets of pictures, so that the start does not
  count; beside PyTorch in inference mode, eager, compiled, and compiled with constant weights.
- accuracy: ResNet-20 on CIFAR-10 (JPEG files), parts of MNIST and of Fashion-MNIST, the same recipe in both, --seeds trainings of each.
- decode: photographs to 224 × 224 by a random resized crop, pictures a second of one core: images_bench (the target of that name, beside
  the program; or --bench) beside torchvision with Pillow, torchvision with tensors; and decoding alone beside Pillow and simplejpeg. And
  the share of a step for which a training of ResNet-18 on them waits for data.

PYTHON has torch, torchvision and Pillow, and may have simplejpeg. On AMD, --preload names the library that opens MKL's fast path. All
programs have --threads threads, decode one core each. Each finished cell is a line of WORK/images.jsonl: a second call goes on. Estimated
for two cores and three rounds: train half an hour (resnet20 alone five minutes), infer twenty minutes, accuracy forty minutes with three
seeds, decode five minutes; --updates and --rounds lower them.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import language_texts
import picture_files
import records
import understanding

SCRIPT = records.ROOT / "benchmarks/torch_images.py"
PARTS = ("train", "infer", "accuracy", "decode")
NETS = {"resnet20": (32, 128, 1.3), "resnet18": (224, 32, 1.0), "resnet50": (224, 16, 1.0)}  # side, batch of training, goal
UPDATES = {"resnet20": 60, "resnet18": 12, "resnet50": 8}  # of a window
TRAINING_FORMS = {"PyTorch, eager": [], "PyTorch, compiled": ["--compile"]}
INFERENCE_FORMS = {**TRAINING_FORMS, "PyTorch, compiled, constant weights": ["--compile", "--freeze"]}
SETS = {"cifar10": ("CIFAR-10 as JPEG", 1500, 4, True), "mnist": ("MNIST, 7,000 pictures", 400, 2, False),
        "fashion_mnist": ("Fashion-MNIST, 720 pictures", 300, 2, True)}  # title, updates, padding, mirror images
PIPELINES = {"augment": {"Stretto": ["--work=augment"], "Stretto, scaled decoding": ["--work=augment", "--decoding=scaled"],
                         "torchvision, Pillow": "pillow", "torchvision, tensors": "tensors"},
             "decode alone": {"Stretto": ["--work=decode"], "Pillow": "pillow_decode", "simplejpeg": "simplejpeg"}}


def start(options, program, command, updates, threads=None):
    preload = "" if program.startswith("Stretto") else options.preload
    return language_texts.Followed(command, understanding.environment(threads or options.threads, preload), updates)


def recipe(options, name, net, batch, side, augment, optim, updates):
    """A configuration in the work folder, and a run beside it that does not exist yet."""
    run = options.work / name
    shutil.rmtree(run, ignore_errors=True)
    return run, understanding.write_recipe(run, {
        "run": {"seed": 1}, "task": {"name": "image_classification"}, "data": {"max_samples": batch},
        "augment": {"image_size": side, "mean": list(picture_files.MEAN), "std": list(picture_files.DEVIATION), **augment},
        "model": {"name": "resnet", "preset": net}, "optim": {"name": "sgd", "momentum": 0.9, "weight_decay": 1e-4, **optim},
        "schedule": {"name": "linear", "warmup_steps": 0, "min_lr": 0.0}, "train": {"max_steps": updates}})


def peer(options, kind, net, files, *arguments):
    half = ["--bf16"] if options.bf16 else []
    return [options.python, SCRIPT, kind, net, *files, "--threads", options.threads, *half, *arguments]


def spread_augment(side):
    return {"crop": "pad", "padding": 4, "padding_mode": "zero"} if side == 32 else {"crop": "center"}


# Training and inference

def train_window(options, program, net):
    side, batch, _ = NETS[net]
    updates = options.warm + (options.updates or UPDATES[net])
    files = picture_files.made_up(options.work, side, batch * (2 if options.tiny else 16 if side == 224 else 80))
    if program == "Stretto":
        run, config = recipe(options, f"train_{net}", net, batch, side, spread_augment(side), {"lr": 0.01}, updates)
        command = picture_files.training(options, config, run, *picture_files.data_keys(files))
    else:
        padding = ["--padding", 4] if side == 32 else []
        command = peer(options, "train", net, files, "--batch", batch, "--updates", updates, "--lr", 0.01, "--flip", *padding,
                       *TRAINING_FORMS[program])
    followed = start(options, program, command, updates)
    return {"rate": followed.rate(options.warm), "peak_mib": followed.peak_mib}


def evaluated_seconds(options, run, files, batch):
    """(pictures, seconds of the process, peak MiB) of `stretto eval`."""
    command = [options.stretto, "eval", run, "--checkpoint", "last", "--json", "--data", files[0], "--data", files[1],
               f"eval.max_samples={batch}", f"run.threads={options.threads}", "run.device=cpu", f"data.cache_dir={options.work}/cache",
               *options.eval_keys]
    text, seconds, peak = understanding.call(command, understanding.environment(options.threads))
    return json.loads(text)["pictures"], seconds, peak


def infer_window(options, program, net, batch):
    side, _, _ = NETS[net]
    batches = options.updates or max(4, (8192 if side == 32 else 512) // batch)
    sets = [picture_files.made_up(options.work, side, batch * number) for number in (2, 2 + batches)]
    if program != "Stretto":
        command = peer(options, "infer", net, sets[1], "--batch", batch, "--updates", options.warm + batches, *INFERENCE_FORMS[program])
        followed = start(options, program, command, options.warm + batches)
        return {"rate": followed.rate(options.warm), "peak_mib": followed.peak_mib}
    run = options.work / f"infer_{net}"
    if not (run / "metrics.jsonl").exists():
        run, config = recipe(options, f"infer_{net}", net, 16, side, {"crop": "center"}, {"lr": 1e-4}, 1)
        understanding.call([options.stretto, "train", config, "--run", run, "--quiet", *picture_files.quiet_keys(options),
                            *picture_files.data_keys(picture_files.made_up(options.work, side, 32)), *options.key])
    (few, short, _), (many, long, peak) = (evaluated_seconds(options, run, files, batch) for files in sets)
    if options.tiny:
        long = max(long, short + 1e-3)
    if long <= short:
        raise understanding.Failed(f"{many} pictures took no longer than {few}: raise --updates")
    return {"rate": (many - few) / (long - short), "peak_mib": peak}


# Accuracy

def sets_of(options, name):
    if name == "cifar10":
        return picture_files.cifar10(options.data, 2_000 if options.tiny else 50_000)
    return picture_files.idx_parts(options.data, options.work, name)


def accuracy(options, program, name, seed):
    title, usual, padding, flip = SETS[name]
    train, test = sets_of(options, name)
    updates, side, batch = options.accuracy_updates or usual, 32 if name == "cifar10" else 28, 128
    if program == "Stretto":
        augment = {"crop": "pad", "padding": padding, "padding_mode": "zero", "flip": "random" if flip else "none"}
        run, config = recipe(options, f"{name}_{seed}", "resnet20", batch, side, augment, {"lr": 0.1}, updates)
        followed = start(options, program, picture_files.training(options, config, run, *picture_files.data_keys(train, test),
                                                                  f"run.seed={seed}"), updates)
        valid = language_texts.evaluation(options, run)
    else:
        command = peer(options, "train", "resnet20", train, "--test", *test, "--batch", batch, "--updates", updates, "--lr", 0.1,
                       "--padding", padding, "--seed", seed, *(["--flip"] if flip else []))
        followed = start(options, program, command, updates)
        valid = followed.valid[-1][2]
    return {"accuracy": valid["accuracy"], "loss": valid["loss"], "pictures": valid["pictures"], "seconds": followed.updates[updates][0]}


# Decoding

def decode_window(options, program, work):
    folder, passes = picture_files.photographs(options.data, options.work), 1 + (options.updates or 3)
    how = PIPELINES[work][program]
    if program.startswith("Stretto"):
        command = [options.bench, f"--folder={folder}", f"--passes={passes}", *how]
    else:
        command = [options.python, SCRIPT, "decode", folder, "--pipeline", how, "--updates", passes, "--threads", 1]
    followed = start(options, program, command, passes, threads=1)
    return {"rate": followed.rate(1), "peak_mib": followed.peak_mib}


def waiting(options):
    """The share of its time for which a training on photographs waits for them."""
    folder, updates = picture_files.photographs(options.data, options.work), options.warm + (options.updates or 12)
    run, config = recipe(options, "waiting", "resnet18", 32, 224, {"crop": "random_resized"}, {"lr": 0.01}, updates)
    understanding.call(picture_files.training(options, config, run, *picture_files.data_keys([folder])),
                       understanding.environment(options.threads))
    events = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
    seconds = events[-1]["seconds"] - events[options.warm - 1]["seconds"]
    return {"share": sum(event["data_wait_seconds"] for event in events[options.warm:]) / seconds}


# Cells

def forms_of(options, forms):
    return ["Stretto", *(name for name in forms if not (options.no_compile and "compiled" in name))]


def in_turn(number, names):
    return names if number % 2 else names[::-1]


def cells_of(options):
    """(key, what measures it), in the order of measuring."""
    share = {"updates": options.updates, "bf16": options.bf16}
    for number in range(1, options.rounds + 1):
        for net in options.nets if "train" in options.parts else []:
            for program in in_turn(number, forms_of(options, TRAINING_FORMS)):
                yield ({"part": "train", "net": net, "program": program, "round": number, **share},
                       lambda program=program, net=net: train_window(options, program, net))
        for net in options.nets if "infer" in options.parts else []:
            for batch in options.infer_batches:
                for program in in_turn(number, forms_of(options, INFERENCE_FORMS)):
                    yield ({"part": "infer", "net": net, "batch": batch, "program": program, "round": number, **share},
                           lambda program=program, net=net, batch=batch: infer_window(options, program, net, batch))
        for work, programs in PIPELINES.items() if "decode" in options.parts else []:
            for program in in_turn(number, [name for name in programs if name not in options.missing]):
                yield ({"part": "decode", "work": work, "program": program, "round": number, "updates": options.updates},
                       lambda program=program, work=work: decode_window(options, program, work))
        if "decode" in options.parts:
            yield {"part": "waiting", "round": number, "updates": options.updates}, lambda: waiting(options)
    for name in options.sets if "accuracy" in options.parts else []:
        for seed in range(1, options.seeds + 1):
            for program in in_turn(seed, ["Stretto", "PyTorch"]):
                updates = options.accuracy_updates or SETS[name][1]
                yield ({"part": "accuracy", "set": name, "program": program, "seed": seed, "updates": updates},
                       lambda program=program, name=name, seed=seed: accuracy(options, program, name, seed))


# The page

def rates_table(title, found, goal):
    """Rows of programs with their rates, and the ratio to the fastest other program of each round."""
    own = {cell["key"]["round"]: cell["rate"] for cell in found if cell["key"]["program"] == "Stretto"}
    rows, best = [], {}
    for program in dict.fromkeys(cell["key"]["program"] for cell in sorted(found, key=lambda cell: cell["key"]["program"] != "Stretto")):
        mine = [cell for cell in found if cell["key"]["program"] == program]
        ratios = {cell["key"]["round"]: own[cell["key"]["round"]] / cell["rate"] for cell in mine if cell["key"]["round"] in own}
        if not program.startswith("Stretto"):
            for number, ratio in ratios.items():
                best[number] = min(ratio, best.get(number, ratio))
        rows.append([title, program, records.spread([cell["rate"] for cell in mine], decimals=1),
                     records.spread(list(ratios.values())) if ratios and program != "Stretto" else "",
                     f"{statistics.median(cell['peak_mib'] for cell in mine):,.0f}"])
    words = f"{title}: {records.spread(list(best.values()))} times the fastest of each round; the goal is {goal}." if best else ""
    return rows, words


def rates_section(cells, part, heading, groups, goal_of):
    """A table of all groups of cells of a part; `groups` are the names in a key that tell them apart."""
    rows, words = [], []
    found = cells.all(part=part)
    for group in dict.fromkeys(tuple(cell["key"][name] for name in groups) for cell in found):
        mine = [cell for cell in found if tuple(cell["key"][name] for name in groups) == group]
        some, word = rates_table(", ".join(map(str, group)), mine, goal_of(group))
        rows, words = rows + some, [*words, word]
    titles = [" and ".join(groups), "program", "pictures/s", "Stretto is faster by", "peak MiB"]
    return f"## {heading}\n\n{records.table(titles, rows)}\n\n{' '.join(words)}" if rows else ""


def accuracy_section(cells):
    rows = []
    for name in SETS:
        for program in ("Stretto", "PyTorch"):
            mine = cells.all(part="accuracy", set=name, program=program)
            if mine:
                rows.append([SETS[name][0], program, mine[0]["key"]["updates"], len(mine),
                             records.spread([cell["accuracy"] for cell in mine], 0.01),
                             f"{statistics.mean(cell['accuracy'] for cell in mine):.2%}",
                             records.spread([cell["loss"] for cell in mine], decimals=3), f"{mine[0]['pictures']:,}",
                             records.spread([cell["seconds"] for cell in mine], decimals=0)])
    titles = ["pictures", "program", "updates", "seeds", "top-1 %", "mean", "loss", "test pictures", "seconds to the last update"]
    return "## Accuracy of ResNet-20\n\n" + records.table(titles, rows) if rows else ""


def page_of(options, cells):
    shares = [cell["share"] for cell in cells.all(part="waiting")]
    parts = [rates_section(cells, "train", "Training", ["net"], lambda group: NETS[group[0]][2]),
             rates_section(cells, "infer", "Inference", ["net", "batch"], lambda group: 1.2),
             accuracy_section(cells),
             rates_section(cells, "decode", "Photographs, one core", ["work"], lambda group: 2 if group[0] == "augment" else 1.0),
             f"A training of ResNet-18 on these files waits for data {records.spread(shares, 0.01)} % of its time; the goal is 3 %."
             if shares else ""]
    notes = [f"{options.threads} threads, {'products in bf16' if options.bf16 else 'fp32'}. Median (least – most) of rounds, in turn. "
             f"PyTorch is channels-last{', with a library preloaded that opens the fast path of MKL' if options.preload else ''}."]
    notes += [f"Not installed: {', '.join(options.missing)}."] if options.missing else []
    return records.page("Pictures beside PyTorch", notes, "\n\n".join(filter(None, parts)) or "Nothing is measured yet.", "two hours",
                        cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--bench", help="images_bench; beside the program by default")
    parser.add_argument("--rounds", type=int, default=3, help="of train, infer and decode")
    parser.add_argument("--warm", type=int, default=4, help="updates before a window; torch.compile works in them")
    parser.add_argument("--updates", type=int, default=0, help=f"of a window, batches of infer, passes of decode; 0: of training {UPDATES}")
    parser.add_argument("--infer-batches", type=int, nargs="+", default=[64], metavar="PICTURES")
    parser.add_argument("--seeds", type=int, default=3, help="of accuracy")
    usual = ", ".join(f"{value[1]} ({name})" for name, value in SETS.items())
    parser.add_argument("--accuracy-updates", type=int, default=0, help=f"0: {usual}")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="products in bf16, in both programs")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="few updates, ResNet-20: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    options.bench = options.bench or str(pathlib.Path(options.stretto).with_name("images_bench"))
    options.eval_keys = ["eval.precision=mixed_bf16"] if options.bf16 else []
    options.key += ["train.precision=mixed_bf16"] if options.bf16 else []
    if options.tiny:
        options.nets, options.rounds, options.seeds, options.warm, options.updates, options.accuracy_updates = ["resnet20"], 1, 1, 1, 2, 3
        options.infer_batches = [16]
    options.missing = [] if options.page else missing(parser, options)
    return options


def missing(parser, options):
    """Programs of PIPELINES that are not there; an error where too much is not."""
    def imports(name):
        return subprocess.run([options.python, "-c", f"import {name}"], capture_output=True).returncode == 0

    if not imports("torch, torchvision, PIL"):
        parser.error(f"{options.python} lacks torch, torchvision or Pillow: --python NAME")
    if "decode" not in options.parts:
        return []
    if not os.access(options.bench, os.X_OK):
        parser.error(f"there is no {options.bench}: build it with -DSTRETTO_BENCHMARKS=ON, or name it with --bench")
    return [] if imports("simplejpeg") else ["simplejpeg"]


def main():
    return understanding.run_cells(parse(), "stretto_images_", "images.jsonl",
                                   lambda options, cells: cells.measure_all(cells_of(options)), page_of)


if __name__ == "__main__":
    sys.exit(main())
