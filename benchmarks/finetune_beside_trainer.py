#!/usr/bin/env python3
"""Fine-tuning of an imported encoder by `stretto train` beside transformers' Trainer: scores, speed and memory.

    python benchmarks/finetune_beside_trainer.py --data DATA --model MODEL_DIR --python PYTHON --work WORK --out PAGE.md
                 [--tasks sst2 rte sick qamr policyqa] [--part scores|speed] [--max-samples 1000] [--seeds 3] [--rounds 3] …

DATA is described in understanding.py; MODEL_DIR is a Hugging Face folder of an encoder, for instance all-MiniLM-L6-v2; PYTHON has torch,
transformers and accelerate. Equal in both: weights at the start, tokenizer, texts, --lr, a warm-up over a tenth and linear decay, batches of
--batch texts (--question-batch windows), --epochs, longest text, AdamW without weight decay of biases and norms, dropout, clipping.

Scores: each seed is trained by both programs, without a choice among checkpoints. One function scores the predictions of both on the same
texts (SQuAD's scores: `stretto score`). Trainer has Stretto's loss and batches there (transformers_peer.py: equal); --grouped adds the form
whose speed is measured. The machine may be busy meanwhile. Noise is the deviation over seeds.

Speed: rounds of short trainings in turn, on texts of the real lengths, without validation. Real tokens a second are those of the updates
after --warm; padding never counts. Trainer runs as experts run it (transformers_peer.py: grouped; --compile adds compiled), and padded as
the example scripts of transformers begin (first round only, --padded-updates updates, at the mean length of all texts). --preload is for
Trainer: a library whose mkl_serv_intel_cpu_true() returns 1 on AMD's processors. Memory is the peak of the process. --precisions fp32 bf16
measures both, as train.precision and as autocast.

Each finished cell is a line of WORK/finetune.jsonl, and another call goes on from there.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import sys

import records
import understanding
from understanding import TASKS, Failed

GOAL, MEMORY_GOAL = 1.5, 0.6
FORMS = {"stretto": "Stretto", "grouped": "Trainer, grouped by length", "compiled": "Trainer, grouped, compiled",
         "padded": "Trainer, padded to the longest allowed"}


def batch_of(options, task):
    return options.question_batch if task.kind == "answers" else options.batch


def train_stretto(options, files, run, seed, precision, updates=0):
    """Peak MiB. Without `updates`: --epochs, and the run can be evaluated."""
    model = understanding.model_of(options.imported)
    length = {"max_steps": updates} if updates else {"max_epochs": options.epochs}
    sections = understanding.fine_tuning(
        files, model, batch_of(options, files.task), options.lr, run={"seed": seed, "threads": options.threads},
        data=understanding.data_section(files, batch_of(options, files.task), validate=not updates),
        train={"init_from": options.imported, "precision": "mixed_bf16" if precision == "bf16" else "fp32", **length})
    recipe = understanding.write_recipe(run, sections)
    shutil.rmtree(run, ignore_errors=True)
    _, seconds, memory = understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet", *options.key],
                                            understanding.environment(options.threads))
    return {"peak_mib": memory, "process_seconds": seconds}


def train_peer(options, files, place, seed, precision, form, *more):
    """What transformers_peer.py prints, and peak MiB."""
    task = files.task
    command = [options.python, records.ROOT / "benchmarks/transformers_peer.py", "train", options.model, "--kind", task.kind, "--train",
               files.train, "--valid", files.valid, "--form", form, "--output", place, "--seed", seed, "--lr", options.lr, "--batch",
               batch_of(options, task), "--max-tokens", task.max_text_tokens, "--threads", options.threads, *more]
    if precision == "bf16":
        command.append("--bf16")
    output, seconds, memory = understanding.call(command, understanding.environment(options.threads, options.preload, keep=form != "padded"))
    return {**json.loads(output.splitlines()[-1]), "peak_mib": memory, "process_seconds": seconds}


def scored(options, files, program, seed, precision):
    """Trains, predicts and scores."""
    place = options.work / f"scores/{files.task.name}_{program}_{seed}_{precision}"
    predictions = place.with_suffix(".json" if files.task.kind == "answers" else ".tsv")
    place.parent.mkdir(parents=True, exist_ok=True)
    if program == "stretto":
        values = train_stretto(options, files, place, seed, precision)
        understanding.call([options.stretto, "eval", place, "--checkpoint", "last", "--predictions", predictions, "--json"],
                           understanding.environment(options.threads))
    else:
        values = train_peer(options, files, place, seed, precision, program, "--epochs", options.epochs, "--predictions", predictions)
    # One run of Stretto of each data set stays, for inference_beside_transformers.py.
    if program != "stretto" or seed != 1:
        shutil.rmtree(place, ignore_errors=True)
    return {"scores": understanding.scores_of(options.stretto, files, predictions), **values}


def timed(options, files, program, precision):
    place = options.work / f"speed/{files.task.name}_{program}"
    place.parent.mkdir(parents=True, exist_ok=True)
    updates = options.warm + options.updates
    try:
        if program == "stretto":
            values = train_stretto(options, files, place, 1, precision, updates)
            return {**values, **understanding.train_rate(place, options.warm)}
        if program == "padded":
            found = train_peer(options, files, place, 1, precision, program, "--updates", 1 + options.padded_updates, "--warm", 1)
            return {**found, "tokens_per_second": found["samples_per_second"] * found["mean_tokens"]}
        warm = options.warm + (options.compile_warm if program == "compiled" else 0)
        return train_peer(options, files, place, 1, precision, program, "--updates", warm + options.updates, "--warm", warm)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def score_key(options, name, program):
    return {"part": "scores", "task": name, "program": program, "precision": options.precisions[0], "samples": options.max_samples,
            "valid": options.max_valid, "epochs": options.epochs, "lr": options.lr, "batch": batch_of(options, TASKS[name])}


def speed_key(options, name, program, precision):
    return {"part": "speed", "task": name, "program": program, "precision": precision, "preload": bool(options.preload),
            "batch": batch_of(options, TASKS[name]), "updates": options.padded_updates if program == "padded" else options.updates}


def measure_scores(options, cells):
    done = True
    for seed in range(1, options.seeds + 1):
        for name in options.tasks:
            files = understanding.prepare(options.data, options.work, name, options.max_samples, options.max_valid)
            for program in ("stretto", "equal", *(["grouped"] if name in options.grouped else [])):
                key = {**score_key(options, name, program), "seed": seed}
                done = cells.measure(key, lambda: scored(options, files, program, seed, options.precisions[0])) and done
    return done


def measure_speed(options, cells):
    done = True
    for number in range(1, options.rounds + 1):
        for name in options.tasks:
            task = TASKS[name]
            # As many texts as the updates take, so that both programs see the same ones, once.
            texts = batch_of(options, task) * (options.warm + options.updates)
            files = understanding.prepare(options.data, options.work, name, texts, 50)
            for precision in options.precisions:
                programs = ["stretto", "grouped"] + (["compiled"] if options.compile else [])
                programs = programs if number % 2 else programs[::-1]
                for program in programs + (["padded"] if number == 1 and options.padded_updates else []):
                    key = {**speed_key(options, name, program, precision), "round": number}
                    done = cells.measure(key, lambda: timed(options, files, program, precision)) and done
    return done


def score_table(options, cells):
    rows, far = [], []
    for name, task in TASKS.items():
        found = {program: [cell["scores"][task.metric] for cell in cells.all(**score_key(options, name, program))]
                 for program in ("stretto", "equal", "grouped")}
        if not (found["stretto"] and found["equal"]):
            continue
        ours, theirs, grouped = ([understanding.percent(value, task.metric) for value in values] for values in found.values())
        difference = statistics.mean(ours) - statistics.mean(theirs)
        verdict = ""
        if min(len(ours), len(theirs)) > 1:
            noise = (statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs)) ** 0.5
            verdict = f"{noise:.1f}"
            if abs(difference) > 3 * noise:
                far.append(task.title)
        rows.append([task.title, task.metric, options.max_samples or "all", understanding.mean_and_deviation(ours),
                     understanding.mean_and_deviation(theirs), f"{difference:+.1f}", verdict, min(len(ours), len(theirs)),
                     understanding.mean_and_deviation(grouped) if grouped else ""])
    if not rows:
        return ""
    table = records.table(["data set", "score", "training samples", "Stretto", "Trainer", "difference", "its standard error", "seeds",
                           FORMS["grouped"]], rows)
    words = "Trainer has the loss and the batches of Stretto; in the last column it has its own. "
    words += f"Beyond three standard errors: {', '.join(far)}." if far else "No difference is beyond three standard errors."
    return f"## Scores\n\nMean ± deviation over seeds; fractions are shown in percent.\n\n{table}\n\n{words}"


def by_round(options, cells, name, program, precision):
    return {cell["key"]["round"]: cell for cell in cells.all(**speed_key(options, name, program, precision))}


def speed_table(options, cells, precision):
    rows, best_ratios, memories, padded = [], [], [], []
    for name, task in TASKS.items():
        own = by_round(options, cells, name, "stretto", precision)
        if not own:
            continue
        fastest = {}
        for program, title in FORMS.items():
            found = by_round(options, cells, name, program, precision)
            if not found:
                continue
            both = sorted(found.keys() & own.keys())
            ratios = [own[number]["tokens_per_second"] / found[number]["tokens_per_second"] for number in both]
            memory = statistics.median(cell["peak_mib"] for cell in found.values())
            rows.append([task.title, title, records.spread([cell["tokens_per_second"] for cell in found.values()], decimals=0),
                         f"{statistics.mean(cell['mean_tokens'] for cell in found.values()):.1f}",
                         records.spread(ratios) if ratios and program != "stretto" else "", f"{memory:,.0f}"])
            if program == "padded":
                padded += ratios
            elif program != "stretto":
                memories.append(statistics.median(cell["peak_mib"] for cell in own.values()) / memory)
                for number, ratio in zip(both, ratios):
                    fastest[number] = min(ratio, fastest.get(number, ratio))
        if fastest:
            best_ratios.append(statistics.median(fastest.values()))
    if not rows:
        return ""
    parts = [f"## Speed, {precision}",
             records.table(["data set", "program", "real tokens/s", "tokens a text", "Stretto is faster by", "peak MiB"], rows)]
    if best_ratios:
        parts.append(f"Beside the fastest form of Trainer, median of each data set: {min(best_ratios):.2f} to {max(best_ratios):.2f} times as "
                     f"fast, {statistics.geometric_mean(best_ratios):.2f} in the geometric mean; the goal is {GOAL}. "
                     f"Memory: {min(memories):.2f} to {max(memories):.2f} of Trainer's; the goal is at most {MEMORY_GOAL}.")
    if padded:
        parts.append(f"Beside Trainer padded to the longest allowed: {min(padded):.2f} to {max(padded):.2f} times as fast.")
    return "\n\n".join(parts)


def page(options, cells):
    precisions = sorted({cell["key"]["precision"] for cell in cells.all(part="speed")}, reverse=True)
    body = [score_table(options, cells), *(speed_table(options, cells, precision) for precision in precisions)]
    notes = [f"{options.threads} threads. Learning rate {options.lr:g}, batches of {options.batch} texts or {options.question_batch} windows, "
             f"{options.epochs} epochs for scores. Scores came from {options.precisions[0]}.",
             f"Speed is that of {options.updates} updates after {options.warm}; median (least – most) of rounds, in turn."]
    return records.page("Fine-tuning beside Trainer", notes, "\n\n".join(part for part in body if part) or "Nothing is measured yet.",
                        "an hour", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for every training of Stretto")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, transformers and accelerate")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of data, runs and finetune.jsonl, kept")
    parser.add_argument("--out", type=pathlib.Path, help="the page; always on the screen too")
    parser.add_argument("--part", choices=("scores", "speed"), action="append", help="default: both")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["sst2", "rte", "sick", "qamr", "policyqa"])
    parser.add_argument("--max-samples", type=int, default=1000, help="training texts or questions for scores; 0 = all")
    parser.add_argument("--max-valid", type=int, default=500, help="of validation; 0 = all")
    parser.add_argument("--grouped", nargs="*", choices=TASKS, default=[], help="data sets whose scores the grouped form gives too")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--question-batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=3, help="updates before the window")
    parser.add_argument("--updates", type=int, default=12, help="of a window")
    parser.add_argument("--padded-updates", type=int, default=3, help="of the padded form's window; 0: it is left out")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32"])
    parser.add_argument("--compile", action="store_true", help="Trainer with torch_compile too")
    parser.add_argument("--compile-warm", type=int, default=5, help="more updates before the window of the compiled form")
    parser.add_argument("--preload", default="")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--tiny", action="store_true", help="few texts, one seed and round: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    options.work = options.work.resolve()
    options.preload = str(pathlib.Path(options.preload).resolve()) if options.preload else ""
    if options.tiny:
        options.max_samples, options.max_valid, options.seeds, options.epochs = 64, 40, 2, 1
        options.rounds, options.warm, options.updates, options.padded_updates = 1, 1, 2, 1
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cells, done = understanding.Cells(options.work / "finetune.jsonl"), True
    if not options.page:
        try:
            options.imported = understanding.imported(options.stretto, options.model, options.work)
        except Failed as failure:
            sys.exit(f"error: {failure}")
        parts = options.part or ["scores", "speed"]
        done = measure_scores(options, cells) if "scores" in parts else True
        done = (measure_speed(options, cells) if "speed" in parts else True) and done
    records.publish(page(options, cells), options.out)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
