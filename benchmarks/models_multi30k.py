#!/usr/bin/env python3
"""Six models on Multi30k, English to German: test BLEU, speed, memory and parameters in one table.

    benchmarks/models_multi30k.py --data data/multi30k --work runs/multi30k [--out benchmarks/models_multi30k_….md] [key=value …]

The recipes are configs/translation/multi30k_{transformer,gnmt,convs2s,lightconv,transformer_lstm,lstm_transformer}.toml: 7.4 to 7.9
million parameters each, the same text, optimizer and schedule. --width W makes all of them narrower, feed-forward blocks four times as
wide as that. The budget is the same for every run:

    --updates N   N updates of about 3,600 target tokens, with a warm-up of a third of them (default: 600)
    --minutes M   M minutes of training time, validations included, with the recipe's warm-up

Each model is trained with seeds 1 to 3 (--seeds N; --only NAME and --seed N choose some). After a training, `stretto eval` scores the test set
from the best checkpoint by validation loss, and `stretto infer --stats` decodes it --decodings times.

A finished run is a line of WORK/results.jsonl and is not repeated; a run that was interrupted goes on from its last checkpoint. Seeds
are the outer loop, so that a page of partial results compares all models. --page writes the page from what is there, without a run.
Times need a machine that does nothing else; scores do not. --untimed runs only for the scores: beside other work, or several at once.

  target tokens/s   real ones, of all updates but the first five: their sum over the sum of their times, without validations
  memory            peak resident memory of the training process, validations included, without decoding
  sentences/s       lines of the test set over the seconds of `infer --stats`, beam of the recipe, without loading; median of --decodings
"""
import argparse
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

import records

NAMES = {"transformer": "Transformer", "gnmt": "GNMT, small", "convs2s": "ConvS2S", "lightconv": "LightConv",
         "transformer_lstm": "Transformer encoder, LSTM decoder (TR)", "lstm_transformer": "LSTM encoder, Transformer decoder (RT)"}
# The sides that have a feed-forward block, whose width is not d_model.
FEED_FORWARD = {"transformer": ("encoder", "decoder"), "lightconv": ("encoder", "decoder"), "transformer_lstm": ("encoder",),
                "lstm_transformer": ("decoder",)}
WARM = 5  # updates that count for no speed
STATS = re.compile(r"([\d,]+) lines? in .*?([\d,.]+) s\s*$", re.M)
# What a dry run makes of every recipe.
SMALL = ["tokenizer.vocab_size=300", "data.max_tokens=300", "train.save_every=2", "eval.every=4"]


class Failed(Exception):
    pass


def call(command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\nleft with {done.returncode}:\n{done.stderr[-3000:]}")
    return done


def budget_of(options):
    """What makes two results comparable: budget, overrides and the dry run's sizes."""
    kind = f"{options.minutes:g} minutes" if options.minutes else f"{options.updates} updates"
    width = [f"width {options.width}"] if options.width else []
    return " ".join([kind, *width, *options.key, *(["smoke"] if options.smoke else [])])


def width_keys(options, name):
    if not options.width:
        return []
    return [f"model.d_model={options.width}", *(f"model.{side}.ffn_dim={4 * options.width}" for side in FEED_FORWARD.get(name, ()))]


def keys_of(options, seed):
    keys = [*records.text_keys(options.data), f"data.cache_dir={options.work}/cache", f"run.seed={seed}", "report.every=1",
            "report.html=false", "report.tensorboard=false", "eval.bleu=false"]
    if options.minutes:
        keys += [f"train.max_hours={options.minutes / 60:.6f}", "train.max_steps=0"]
    else:
        third = max(1, options.updates // 3)
        keys += [f"train.max_steps={options.updates}", f"schedule.warmup_steps={third}", f"eval.every={third}",
                 f"train.save_every={max(1, min(100, third))}"]
    return [*keys, *(SMALL if options.smoke else []), *options.key]


def speed_of(events):
    """Target tokens a second. An update that a resume repeated counts once, as it was the last time."""
    updates = {event["step"]: event for event in events if event["event"] == "train" and event.get("tokens_per_second", 0) > 0}
    counted = [event for step, event in sorted(updates.items())][WARM:] or list(updates.values())
    tokens = sum(event["target_tokens"] for event in counted)
    return tokens / sum(event["target_tokens"] / event["tokens_per_second"] for event in counted)


def decode(options, run):
    """Sentences a second of the whole test set, the median of some decodings."""
    rates = []
    for _ in range(options.decodings):
        text = str(records.text_file(options.data, "test_2016_flickr.en"))
        found = STATS.search(call([options.stretto, "infer", str(run), text, "--checkpoint", "best", "--stats", *options.threads]).stderr)
        if not found:
            raise Failed("infer --stats said nothing of lines and seconds")
        lines, seconds = (float(value.replace(",", "")) for value in found.groups())
        rates.append(lines / max(seconds, 1e-9))
    return statistics.median(rates)


def measure(options, name, seed):
    """Trains, or goes on, scores and decodes: the run's line of results.jsonl."""
    # A run of another budget has other keys, and a folder of its own.
    folder = re.sub(r"[^\w.=-]+", "_", f"{name}_{seed}_{budget_of(options)}")
    run = options.work / folder
    recipe = str(records.ROOT / f"configs/translation/multi30k_{name}.toml")
    begin = time.monotonic()
    call([options.stretto, "train", recipe, "--run", str(run), "--quiet", *width_keys(options, name), *keys_of(options, seed),
          *options.threads])
    score = json.loads(call([options.stretto, "eval", str(run), "--checkpoint", "best", "--json", "eval.bleu=true", *options.threads]).stdout)
    events = records.json_lines(run / "metrics.jsonl")
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    updates = [event for event in events if event["event"] == "train"]
    return {"name": name, "seed": seed, "budget": budget_of(options), "bleu": score["bleu"], "nll": score["nll"],
            "updates": updates[-1]["step"], "tokens_per_update": statistics.mean(event["target_tokens"] for event in updates),
            "timed": not options.untimed, "rate": speed_of(events), "memory": max(event.get("peak_memory_bytes", 0) for event in events),
            "decoding": 0.0 if options.untimed else decode(options, run), "parameters": dict(report["facts"])["parameters"],
            "training_seconds": updates[-1]["seconds"], "wall_seconds": time.monotonic() - begin, "head": records.head_of_now(),
            "machine": dict(report["machine"])}


def rows_of(results):
    """A row for each model that has a result, in the order of NAMES."""
    rows = []
    for name, title in NAMES.items():
        found = [result for result in results if result["name"] == name]
        if not found:
            continue
        timed = [result for result in found if result.get("timed", True)]
        column = lambda key, unit=1.0, of=found: [result[key] / unit for result in of]
        times = lambda key, unit=1.0, decimals=0: records.spread(column(key, unit, timed), decimals=decimals) if timed else "–"
        bleu = column("bleu")
        mean = f"{statistics.mean(bleu):.1f}" + (f" ({min(bleu):.1f} – {max(bleu):.1f})" if len(bleu) > 1 else "")
        rows.append([title, found[0]["parameters"], len(found), mean, f"{statistics.mean(column('nll')):.3f}",
                     records.spread(column("updates"), decimals=0) if len(set(column("updates"))) > 1 else f"{found[0]['updates']:,}",
                     times("rate"), f"{max(column('memory', 2**20, timed or found)):,.0f}", times("decoding"),
                     times("training_seconds", 60, 1)])
    return rows


def page_of(options, results):
    """The page of all results of this budget; None without one."""
    results = [result for result in results if result["budget"] == budget_of(options)]
    if not results:
        return None
    results = sorted({(result["name"], result["seed"]): result for result in results}.values(), key=lambda result: result["seed"])
    heads = [result["head"] for result in results]
    head = dict(heads[-1], commit=", ".join(sorted({head["commit"] for head in heads})), date=max(head["date"] for head in heads))
    tokens = statistics.mean(result["tokens_per_update"] for result in results)
    timed = [result for result in results if result.get("timed", True)]
    machine = (timed or results)[-1]["machine"]
    kind = "time" if options.minutes else "number of updates"
    notes = [f"Threads: {machine.get('threads', '?')}; {machine.get('precision', '?')}, libtorch {machine.get('libtorch', '?')}. "
             f"Budget: {budget_of(options)}, the same {kind} for every run, with {tokens:,.0f} real target tokens an update. "
             "Rate and warm-up were tuned for no model, and none has converged: the table compares models early in training.",
             "BLEU is that of the test set (test_2016_flickr), mean over seeds with the least and the most; nll is in nats a token there. "
             "Other columns are medians over seeds. Memory is that of training; sentences/s are those of decoding the test set."]
    if len(timed) < len(results):
        seeds = sorted({result["seed"] for result in timed})
        notes.append(f"Times are those of seed {', '.join(map(str, seeds)) or 'none'}, whose runs had the machine to themselves; the others ran "
                     "on one thread each, beside other work.")
    body = records.table(["model", "parameters", "seeds", "BLEU", "nll", "updates", "target tokens/s, training", "peak RSS MiB",
                          "sentences/s, decoding", "minutes of training"], rows_of(results))
    missing = len(NAMES) * options.seeds - len(results)
    return records.page("Models on Multi30k", notes, body + (f"\n\n{missing} runs are missing." if missing > 0 else ""), "three hours", head)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for every training, as in train.precision=mixed_bf16")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, default=records.ROOT / "data/multi30k",
                        help="folder with train, val and test_2016_flickr, .en and .de")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of runs and results.jsonl, kept")
    parser.add_argument("--out", type=pathlib.Path, help="the page, written anew after every run")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--updates", type=int, default=600)
    budget.add_argument("--minutes", type=float)
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}; may be repeated")
    parser.add_argument("--seed", action="append", type=int, help="only this seed; may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 1 to N")
    parser.add_argument("--decodings", type=int, default=3)
    parser.add_argument("--width", type=int, help="of all models; default that of the recipes, 256")
    parser.add_argument("--untimed", action="store_true", help="these runs are for their scores; their times are not taken")
    parser.add_argument("--threads", type=int, help="run.threads; default all cores, with --untimed one")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", action="store_true", help="made-up text and eight updates: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = None if options.page else records.program(parser, options.stretto)
    if options.untimed and not options.threads:
        options.threads = 1
    options.threads = [f"run.threads={options.threads}"] if options.threads else []
    options.work = options.work.resolve()
    if options.smoke:
        options.updates, options.decodings, options.seeds, options.data = 8, 1, 1, options.work / "text"
    return options


def main():
    options = parse()
    # An exception ends the child too; the run then goes on from its last checkpoint.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    options.work.mkdir(parents=True, exist_ok=True)
    results = options.work / "results.jsonl"
    if options.smoke and not options.data.exists():
        records.made_up_text(options.data)
    failed = []
    wanted = [] if options.page else [(name, seed) for seed in options.seed or range(1, options.seeds + 1) for name in options.only or NAMES]
    for name, seed in wanted:
        if any((r["name"], r["seed"], r["budget"]) == (name, seed, budget_of(options)) for r in records.json_lines(results)):
            continue
        print(f"models_multi30k.py: {name}, seed {seed}", file=sys.stderr, flush=True)
        try:
            records.append_json(results, measure(options, name, seed))
        except (Failed, OSError, LookupError, ValueError) as failure:
            print(f"models_multi30k.py: {name}, seed {seed}: {failure}", file=sys.stderr, flush=True)
            failed.append(f"{name} {seed}")
            continue
        if options.out:
            records.write_whole(options.out, page_of(options, records.json_lines(results)))
    text = page_of(options, records.json_lines(results))
    if text:
        records.publish(text, options.out)
    else:
        print(f"models_multi30k.py: {results} has no result of {budget_of(options)}", file=sys.stderr)
    if failed:
        print(f"models_multi30k.py: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed or not text else 0


if __name__ == "__main__":
    sys.exit(main())
