#!/usr/bin/env python3
"""Whether perplexity depends on batches, stretches or processes, and the losses of training on processes: one table.

    python benchmarks/perplexity_table.py --data DATA [--work WORK] [--out PAGE.md] [--updates 60] [--lines 3000] [--processes 1 2 3]

Trains two small models on the first lines of the Penn Treebank, an LSTM on words and a Transformer on sub-words, and evaluates each:

- the whole text with the LSTM's state carried on, in parts of --batches lanes, read in stretches of 35 and of 350 words, on each number
  of processes. Each number of lanes is a rule of its own, since each lane begins with a state of zero: 1 is exact;
- the text with the Transformer in windows of 35 and of 350 tokens, --batches of them at a time, on each number of processes; a window's
  length is a rule too;
- each line by itself (`--per-line`), with both, --batches lines at a time;
- training: the losses of all updates on each number of processes, and with dist.deterministic.

Within a rule, the largest relative difference of a perplexity is to be below 1e-6, of a training loss below 1e-5. Leaves with 1 if one is
not. Trainings and evaluations that are in WORK are not made again. Takes some minutes on two quiet cores.
"""
import argparse
import shutil
import sys

import language_texts
import records
import understanding

PPL_BOUND, LOSS_BOUND = 1e-6, 1e-5
STRETCHES = (35, 350)
LANES_TOGETHER = 8  # how many lanes `eval` reads at once


def sections(options, name, train, valid):
    """A recipe whose updates are six micro-batches, for one to three processes and more."""
    common = {"run": {"seed": 1, "threads": options.threads, "device": "cpu"}, "task": {"name": "language_model"},
              "data": {"train": [train], "valid": [valid], "format": "lines", "cache_dir": options.work / "cache"},
              "schedule": {"name": "constant", "warmup_steps": 10},
              "optim": {"name": "adamw", "lr": 2e-3, "clip_norm": 1.0},
              "train": {"max_steps": options.updates, "update_freq": 6, "save_every": 10**6},
              "dist": {"timeout_seconds": 600.0}, "eval": {"every": 10**6}, "report": {"every": 1, "html": False, "tensorboard": False}}
    if name == "LSTM":
        common["data"] |= {"lanes": 12, "bptt": 35}
        common["tokenizer"] = {"type": "word", "vocab_size": 10002}
        common["model"] = {"name": "lstm", "num_layers": 2, "d_model": 64, "hidden_dim": 96}
    else:
        common["data"] |= {"max_text_tokens": 350, "max_tokens": 700}
        common["tokenizer"] = {"type": "byte_bpe", "vocab_size": 1000}
        common["model"] = {"name": "transformer", "preset": "none", "num_layers": 2, "d_model": 64, "num_heads": 4, "max_positions": 512}
    return common


def trained(options, name, processes, *keys):
    """The run folder of a training on so many processes."""
    train, valid = language_texts.words(options.data, options.work, "ptb", options.lines)
    run = options.work / "_".join([name, str(options.updates), str(options.lines), str(processes), *(key.split("=")[0] for key in keys)])
    if any(event["event"] == "end" for event in records.json_lines(run / "metrics.jsonl")):
        return run
    shutil.rmtree(run, ignore_errors=True)
    recipe = understanding.write_recipe(run, sections(options, name, train, valid))
    more = ["--processes", processes] if processes > 1 else []
    understanding.call([options.stretto, "train", recipe, "--run", run, "--quiet", *keys, *options.key, *more])
    return run


def scored(options, run, processes, *keys, per_line=False):
    """Perplexity, number of tokens and log-probabilities of lines, by an evaluation or from a line of WORK."""
    key = {"run": run.name, "processes": processes, "keys": list(keys), "per_line": per_line, "updates": options.updates, "lines": options.lines}
    place = options.work / "lines.tsv" if per_line else None

    def one():
        found = language_texts.evaluation(options, run, *keys, processes=processes, per_line=place)
        rows = place.read_text(encoding="utf-8").splitlines() if place else []
        return {"ppl": found["ppl"], "tokens": found["tokens"], "lines": [float(row.split("\t")[0]) for row in rows]}
    cells = understanding.Cells(options.work / "perplexity.jsonl")
    if not any(cell["key"] == key for cell in cells.all()) and not cells.measure(key, one):
        raise understanding.Failed("an evaluation failed")
    return next(cell for cell in cells.all() if cell["key"] == key)


def losses(run):
    return [event["loss"] for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]


def difference(values):
    """The largest relative distance from the first of them."""
    return max(abs(value / values[0] - 1) for value in values)


class Table:
    def __init__(self):
        self.rows, self.well = [], True

    def text(self, first, second):
        """In Markdown, with the titles of the first two columns."""
        return records.table([first, second, "the same over", "runs", "value", "largest relative difference", "bound", "within"], self.rows)

    def add(self, model, rule, over, values, bound, shown):
        found = difference(values)
        self.well = self.well and found <= bound
        self.rows.append([model, rule, over, len(values), shown, f"{found:.1e}" if found else "0", f"{bound:.0e}",
                          "yes" if found <= bound else "**no**"])
        print(f"{understanding.program_name()}: {model}, {rule}: {self.rows[-1][4]}, largest difference {self.rows[-1][5]}", file=sys.stderr, flush=True)


def text_perplexities(options, name, run, table):
    """Sums over the whole text."""
    for first in options.batches if name == "LSTM" else STRETCHES:
        values, tokens = [], set()
        for second in STRETCHES if name == "LSTM" else options.batches:
            for processes in options.processes:
                lanes, stretch, batch = (first, second, None) if name == "LSTM" else (None, first, second)
                keys = ([f"eval.lanes={lanes}", f"eval.max_tokens={stretch * min(lanes, LANES_TOGETHER)}"] if name == "LSTM" else
                        [f"eval.window={stretch}", f"eval.max_samples={batch}", f"eval.max_tokens={stretch * batch}"])
                found = scored(options, run, processes, *keys)
                values.append(found["ppl"])
                tokens.add(found["tokens"])
        if len(tokens) != 1:
            table.well = False
        batches, procs = (", ".join(map(str, found)) for found in (options.batches, options.processes))
        rule = (f"state carried, {first} lane{'s' if first > 1 else ''}" if name == "LSTM" else f"disjoint windows of {first}")
        over = f"stretches of 35 and 350; {procs} processes" if name == "LSTM" else f"batch {batches}; {procs} processes"
        table.add(name, f"{rule}, {tokens.pop():,} tokens", over, values, PPL_BOUND, f"ppl {values[0]:.6f}")


def line_perplexities(options, name, run, table):
    """Each line by itself: the sum of all, and the line that differs most."""
    lines, sums = [], []
    for batch in options.batches:
        for processes in options.processes:
            lines.append(scored(options, run, processes, f"eval.max_samples={batch}", "eval.max_tokens=100000", per_line=True)["lines"])
            sums.append(sum(lines[-1]))
    over = f"batch {', '.join(map(str, options.batches))}; {', '.join(map(str, options.processes))} processes"
    table.add(name, f"{len(lines[0]):,} lines, each by itself: sum of log-probabilities", over, sums, PPL_BOUND, f"{sums[0]:,.3f}")
    worst = max(zip(*lines), key=difference)
    table.add(name, "the line that differs most", over, list(worst), PPL_BOUND, f"{worst[0]:.6f}")


def training_losses(options, name, table, first):
    """The update whose loss differs most, as trainings are and with equal bits."""
    runs = [first, *(trained(options, name, processes) for processes in options.processes[1:])]
    exact = [trained(options, name, processes, "dist.deterministic=true") for processes in options.processes]
    for words, found in (("training", runs), ("training with `dist.deterministic`", exact)):
        of_runs = [losses(run) for run in found]
        if len({len(values) for values in of_runs}) != 1:
            raise understanding.Failed(f"{name}: trainings have other numbers of updates")
        worst = max(range(len(of_runs[0])), key=lambda i: difference([values[i] for values in of_runs]))
        table.add(name, f"{words}: loss of {len(of_runs[0])} updates, that which differs most (update {worst + 1})",
                  f"{', '.join(map(str, options.processes))} processes", [values[worst] for values in of_runs], LOSS_BOUND,
                  f"{of_runs[0][worst]:.6f}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, python=False)
    parser.add_argument("--models", nargs="+", choices=("LSTM", "Transformer"), default=["LSTM", "Transformer"])
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--lines", type=int, default=3000, help="of the training text; a fifth as many are evaluated")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 7, 64])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2, 3])
    parser.set_defaults(threads=1)
    return language_texts.checked(parser, parser.parse_args())


def main():
    options, table = parse(), Table()
    head = records.head_of_now()
    with records.work_folder(options, "stretto_perplexity_"):
        for name in options.models:
            run = trained(options, name, options.processes[0])
            text_perplexities(options, name, run, table)
            line_perplexities(options, name, run, table)
            training_losses(options, name, table, run)
    body = table.text("model", "rule")
    threads = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    notes = [f"Small models, trained for {options.updates} updates on {options.lines:,} lines of the Penn Treebank; {threads} for each "
             "process. Differences are to the first of the runs of a row. An LSTM's lanes each begin with a state of zero, and a window has "
             "no tokens before its own, so each number of lanes and each length of windows is a rule of its own; the words of "
             "`stretto eval` say which."]
    records.publish(records.page("Perplexity and batches", notes, body, "some minutes", head), options.out)
    return 0 if table.well else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except understanding.Failed as failure:
        sys.exit(f"error: {failure}")
