#!/usr/bin/env python3
"""Two builds of Stretto on the same work, in turn: fine-tuning of an imported encoder on SST-2, and inference with what it became.

    benchmarks/old_new_text.py OLD_PROGRAM NEW_PROGRAM --data DATA --model MODEL_DIR --work WORK [--out benchmarks/old_new_….md]

DATA is described in understanding.py; MODEL_DIR is a Hugging Face folder of an encoder, for instance all-MiniLM-L6-v2. Each round starts
both programs, the order changing from round to round. Fine-tuning: real tokens a second of the updates after --warm, by the run's own
clock, and whether all losses are the same. Inference: the old program's first run answers --lines texts; seconds of the whole process, less
those of the same command on one text. --together starts both at once, each on one core, which they change from round to round: what else
happens on the machine then slows both alike. The ratio is new over old, round by round. Leaves with 1 if a median ratio is below --least.
"""
import argparse
import concurrent.futures
import hashlib
import pathlib
import shutil
import statistics
import sys

import records
import understanding


def fine_tune(options, program, name, files, imported):
    """Tokens a second, losses, and the run. `program` is the beginning of a command."""
    run = options.work / f"run_{name}"
    shutil.rmtree(run, ignore_errors=True)
    sections = understanding.fine_tuning(
        files, understanding.model_of(imported), options.batch, 2e-5, run={"seed": 1, "threads": options.threads},
        data=understanding.data_section(files, options.batch, validate=False),
        train={"init_from": imported, "max_steps": options.warm + options.updates})
    understanding.call([*program, "train", understanding.write_recipe(run, sections), "--run", run, "--quiet"],
                       understanding.environment(options.threads))
    losses = [event["loss"] for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
    return {"rate": understanding.train_rate(run, options.warm)["tokens_per_second"], "results": losses, "run": run}


def infer(options, program, name, lines, one):
    """Texts a second of the old program's run, and a hash of the answers."""
    env, output, run = understanding.environment(options.threads), options.work / f"answers_{name}.tsv", options.work / "run_old"
    _, least, _ = understanding.call([*program, "infer", run, one], env, output=output)
    _, seconds, _ = understanding.call([*program, "infer", run, lines], env, output=output)
    return {"rate": options.lines / (seconds - least), "results": hashlib.sha256(output.read_bytes()).hexdigest()}


def windows_of_round(options, number, of_program):
    """Each name and its window: in turn, or at once on cores that change from round to round."""
    order = sorted(("old", "new"), reverse=number % 2 == 0)
    programs = {"old": [options.old], "new": [options.new]}
    if not options.together:
        return ((name, of_program(programs[name], name)) for name in order)
    with concurrent.futures.ThreadPoolExecutor(len(order)) as pool:
        waiting = [pool.submit(of_program, ["taskset", "--cpu-list", str(core), *programs[name]], name) for core, name in enumerate(order)]
        return [(name, window.result()) for name, window in zip(order, waiting)]


def measure(options, title, of_program):
    """A row of the table, and the median ratio."""
    found = {"old": [], "new": []}
    for number in range(options.rounds):
        for name, window in windows_of_round(options, number, of_program):
            found[name].append(window)
            print(f"old_new_text.py: {title}, round {number + 1}, {name}: {found[name][-1]['rate']:.0f}", file=sys.stderr, flush=True)
    ratios = [new["rate"] / old["rate"] for old, new in zip(found["old"], found["new"])]
    same = all(window["results"] == found["old"][0]["results"] for windows in found.values() for window in windows)
    rates = [records.spread([window["rate"] for window in found[name]], decimals=0) for name in ("old", "new")]
    return [title, *rates, records.spread(ratios), "same" if same else "other"], statistics.median(ratios)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--warm", type=int, default=5, help="updates before the window")
    parser.add_argument("--updates", type=int, default=30, help="of a window")
    parser.add_argument("--lines", type=int, default=2000, help="texts of a round of inference")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--together", action="store_true", help="starts both at once, each on a core of its own, with a thread")
    parser.add_argument("--least", type=float, default=0.98, help="smallest median ratio that is accepted")
    options = parser.parse_args()
    options.old, options.new = records.program(parser, options.old), records.program(parser, options.new)
    options.work = options.work.resolve()
    options.threads = 1 if options.together else options.threads
    return options


def main():
    options = parse()
    head = records.head_of_now()
    options.work.mkdir(parents=True, exist_ok=True)
    files = understanding.prepare(options.data, options.work, "sst2", options.batch * (options.warm + options.updates), 50)
    imported = understanding.imported(options.old, options.model, options.work)
    texts = [row[0] for row in understanding.labelled_rows(options.data, "sst2")[0]][:options.lines]
    lines, one = options.work / "texts.txt", options.work / "one.txt"
    records.write_whole(lines, "".join(text + "\n" for text in texts))
    records.write_whole(one, texts[0] + "\n")
    rows = [measure(options, "fine-tuning on SST-2, real tokens/s",
                    lambda program, name: fine_tune(options, program, name, files, imported))]
    rows.append(measure(options, "inference, texts/s", lambda program, name: infer(options, program, name, lines, one)))
    manner = "both at once, each on a core of its own, changed from round to round" if options.together else "in turn"
    notes = [f"{options.rounds} rounds, {manner}; a window has {options.updates} updates of {options.batch} texts after {options.warm}, or "
             f"{options.lines} texts. Medians, with the least and the most. The ratio is new over old, round by round."]
    body = records.table(["what", "old", "new", "new / old", "losses or answers"], [row for row, _ in rows])
    records.publish(records.page("An old and a new build, encoders of text", notes, body, "minutes", head), options.out)
    slow = [f"{row[0]}: {ratio:.3f}" for row, ratio in rows if ratio < options.least]
    for line in slow:
        print(f"old_new_text.py: below {options.least}: {line}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
