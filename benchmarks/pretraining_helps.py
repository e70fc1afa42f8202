#!/usr/bin/env python3
"""Whether pretraining helps: a masked language model trained here for a stated time, fine-tuned beside random weights on six data sets.

    python benchmarks/pretraining_helps.py --data DATA --work WORK --out PAGE.md
                 [--minutes 10] [--preset mini] [--max-samples 3000] [--max-questions 1000] [--tasks sst2 rte sick qamr policyqa jaquad] [--seeds 2] …

DATA is described in understanding.py. The text is public_domain_books and WikiText-2's validation part, of which a twentieth is held out.
One WordPiece vocabulary, trained on this text and on JaQuAD's training paragraphs, serves all: the Japanese pieces are known to it, but
pretraining sees no Japanese. Pretraining masks whole words of packed sequences of --max-text-tokens tokens for --minutes of training
(train.max_hours), with a linear warm-up and then a constant rate. The encoder is pre-norm.

Both arms of fine-tuning are equal but for train.init_from: data, order, rate, updates, dropout, seeds. --rates gives several learning
rates; each arm and data set then takes the one with the better mean, as random weights may want a larger one. No checkpoint is chosen: scores
are those of the last weights. Beside them: the most frequent label of training.

Each finished cell is a line of WORK/pretraining.jsonl, and another call goes on from there.
"""
import argparse
import os
import pathlib
import shutil
import signal
import statistics
import sys

import records
import understanding
from understanding import TASKS, Failed

ARMS = {"random": "random weights", "pretrained": "pretrained"}


def tokenizer_of(options, train):
    """The vocabulary's file."""
    path = options.work / f"wordpiece_{options.vocab}.json"
    if not path.exists():
        japanese = options.work / "text/jaquad.txt"
        articles, _ = understanding.articles(options.data, "jaquad")
        records.write_whole(japanese, "".join(" ".join(paragraph["context"].split()) + "\n" for article in articles
                                              for paragraph in article["paragraphs"]))
        understanding.call([options.stretto, "tokenizer", "train", "--type", "wordpiece", "--vocab-size", options.vocab, "--output", path,
                            train, japanese], understanding.environment(options.threads))
    return path


def model_section(options):
    positions = {"positions": options.positions}
    if options.positions == "learned":
        positions["max_positions"] = options.max_text_tokens
    return {"preset": options.preset, "norm": "pre", **positions, "dropout": options.dropout, "attention_dropout": options.dropout,
            "head_dropout": options.dropout}


def tokenizer_section(options):
    return {"type": "wordpiece", "model": options.tokenizer}


def pretrained_run(options):
    return options.work / f"pretrained_{options.preset}_{options.minutes:g}"


def pretrain(options, train, valid):
    run = pretrained_run(options)
    model = {**model_section(options), "dropout": 0.0, "attention_dropout": 0.0}
    sections = understanding.pretraining(options, train, valid, options.tokenizer, model, train={"max_hours": options.minutes / 60},
                                         eval={"at_start": True})
    recipe = understanding.write_recipe(run, sections)
    understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet", *options.key], understanding.environment(options.threads))
    events = records.json_lines(run / "metrics.jsonl")
    trained = [event for event in events if event["event"] == "train"]
    valid_events = [event for event in events if event["event"] == "valid"]
    return {"updates": trained[-1]["step"], "seconds": trained[-1]["seconds"], "epoch": trained[-1]["epoch"],
            "tokens": sum(event["tokens"] for event in trained),
            "nll": [event["nll"] for event in valid_events]}


def samples_of(options, name):
    return options.max_questions if TASKS[name].kind == "answers" else options.max_samples


def tuned_model(options, task):
    """[model] of fine-tuning: texts may be pooled another way than BERT does."""
    return {**model_section(options), **({} if task.kind == "answers" else {"pooling": options.pooling})}


def fine_tune(options, name, arm, seed, rate):
    files = understanding.prepare(options.data, options.work, name, samples_of(options, name), options.max_valid)
    run = options.work / f"fine_tuned/{name}_{arm}_{seed}_{rate:g}"
    sections = understanding.fine_tuning(
        files, tuned_model(options, files.task), options.batch, rate, run={"seed": seed, "threads": options.threads},
        data=understanding.data_section(files, options.batch, options.max_text_tokens),
        train={"max_epochs": options.epochs, "init_from": pretrained_run(options) if arm == "pretrained" else None},
        tokenizer=tokenizer_section(options), report={"every": 20})
    recipe = understanding.write_recipe(run, sections)
    shutil.rmtree(run, ignore_errors=True)
    understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet"], understanding.environment(options.threads))
    events = records.json_lines(run / "metrics.jsonl")
    shutil.rmtree(run, ignore_errors=True)
    score = [event for event in events if event["event"] == "valid"][-1]
    return {"score": score[files.task.metric], "loss": score["loss"], "seconds": score["seconds"], "updates": score["step"],
            "largest_label": understanding.largest_label(files)}


def pretraining_key(options):
    return {"part": "pretraining", "preset": options.preset, "positions": options.positions, "minutes": options.minutes, "lr": options.lr}


def tuning_key(options, name, arm, seed, rate):
    return {"part": "fine-tuning", "preset": options.preset, "positions": options.positions,
            "minutes": options.minutes if arm == "pretrained" else 0, "task": name, "arm": arm, "seed": seed, "lr": rate,
            "samples": samples_of(options, name), "valid": options.max_valid, "epochs": options.epochs, "pooling": options.pooling}


def best_scores(options, cells, name, arm):
    """(rate, cells over seeds) of the better rate; None without any."""
    task, found = TASKS[name], []
    for rate in options.rates:
        key = tuning_key(options, name, arm, 0, rate)
        del key["seed"]
        over_seeds = cells.all(**key)
        if over_seeds:
            found.append((statistics.mean(cell["score"] for cell in over_seeds), rate, over_seeds))
    if not found:
        return None
    _, rate, over_seeds = max(found)
    return rate, [understanding.percent(cell["score"], task.metric) for cell in over_seeds], over_seeds[0]


def page(options, cells):
    rows, helped, hurt = [], [], []
    for name in options.tasks:
        task, arms = TASKS[name], {arm: best_scores(options, cells, name, arm) for arm in ARMS}
        if None in arms.values():
            continue
        means = {arm: statistics.mean(scores) for arm, (_, scores, _) in arms.items()}
        difference = means["pretrained"] - means["random"]
        (helped if difference > 0 else hurt).append(task.title)
        largest = arms["random"][2]["largest_label"]
        rows.append([task.title, task.metric, f"{arms['random'][2]['updates']:,}", "" if largest is None else f"{100 * largest:.1f}",
                     *(understanding.mean_and_deviation(arms[arm][1]) for arm in ARMS), f"{difference:+.1f}",
                     *([", ".join(f"{arms[arm][0]:g}" for arm in ARMS)] if len(options.rates) > 1 else [])])
    parts, notes = [], []
    known = cells.all(**pretraining_key(options))
    if known:
        told = known[0]
        notes.append(f"Pretraining: {options.preset}, {options.positions} positions, {told['seconds'] / 60:.1f} minutes of training on "
                     f"{options.threads} threads, {told['updates']:,} updates, {told['tokens'] / 1e6:.1f} million tokens (epoch {told['epoch']}). The nll of "
                     f"held-out hidden tokens fell from {told['nll'][0]:.2f} to {told['nll'][-1]:.2f}.")
    notes.append("Text: the English books of public_domain_books and WikiText-2's validation part; every twentieth paragraph is held out.")
    notes.append(f"Fine-tuning: at most {options.max_samples or 'all'} training texts or {options.max_questions or 'all'} questions, "
                 f"{options.epochs} epochs, batches of {options.batch}, "
                 f"learning rate {', '.join(f'{rate:g}' for rate in options.rates)}, {options.seeds} seeds; windows of "
                 f"{options.max_text_tokens} tokens; texts are pooled by {options.pooling}. Fractions are shown in percent, mean ± deviation.")
    if rows:
        titles = ["data set", "score", "updates", "most frequent label", *ARMS.values(), "difference"]
        parts.append(records.table(titles + (["rates taken"] if len(options.rates) > 1 else []), rows))
        parts.append(f"Pretrained means are above random ones on {len(helped)} of {len(rows)} data sets" + (f"; they are not on {', '.join(hurt)}." if hurt else "."))
    return records.page("Pretraining against random weights", notes, "\n\n".join(parts) or "Nothing is measured yet.", "half an hour",
                        cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for pretraining")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of data, runs and pretraining.jsonl, kept")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--preset", default="mini", choices=("tiny", "mini", "small", "medium", "base"))
    parser.add_argument("--positions", default="learned", choices=("learned", "rotary"))
    parser.add_argument("--vocab", type=int, default=12000)
    parser.add_argument("--max-text-tokens", type=int, default=256)
    parser.add_argument("--max-tokens", type=int, default=4096, help="of an update of pretraining")
    parser.add_argument("--lr", type=float, default=1e-3, help="of pretraining")
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["sst2", "rte", "sick", "qamr", "policyqa", "jaquad"])
    parser.add_argument("--max-samples", type=int, default=3000, help="training texts of classification; 0 = all")
    parser.add_argument("--max-questions", type=int, default=1000, help="training questions; 0 = all")
    parser.add_argument("--max-valid", type=int, default=400, help="validation texts or questions; 0 = all")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rates", type=float, nargs="+", default=[3e-4], help="of fine-tuning")
    parser.add_argument("--pooling", default="cls_tanh", choices=("cls_tanh", "cls", "mean"), help="of texts, in fine-tuning")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--tiny", action="store_true", help="seconds of pretraining, few samples: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    options.work = options.work.resolve()
    if options.tiny:
        options.minutes, options.preset, options.vocab = 0.2, "tiny", 3000
        options.max_samples, options.max_questions, options.max_valid, options.epochs, options.seeds = 64, 32, 32, 1, 1
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cells, done = understanding.Cells(options.work / "pretraining.jsonl"), True
    if not options.page:
        train, valid = understanding.books_and_wikipedia(options.data, options.work)
        try:
            options.tokenizer = tokenizer_of(options, train)
        except Failed as failure:
            sys.exit(f"error: {failure}")
        done = cells.measure(pretraining_key(options), lambda: pretrain(options, train, valid))
        wanted = [(seed, name, arm, rate) for seed in range(1, options.seeds + 1) for name in options.tasks for arm in ARMS
                  for rate in options.rates] if done else []
        for seed, name, arm, rate in wanted:
            done = cells.measure(tuning_key(options, name, arm, seed, rate), lambda: fine_tune(options, name, arm, seed, rate)) and done
    records.publish(page(options, cells), options.out)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
