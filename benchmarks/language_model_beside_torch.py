#!/usr/bin/env python3
"""Training of language models beside plain PyTorch, in turn: Shakespeare by characters beside nanoGPT's form, LSTMs by words beside
`nn.LSTM` as an AWD-LSTM has it.

    python benchmarks/language_model_beside_torch.py --data DATA --python PYTHON --work WORK [--preload LIBRARY] [--out PAGE.md]
                 [--parts chars speed curve] [--rounds 3] [--windows 200] [--recipes ptb_lstm_200 ptb_awd_lstm …] [--updates 1328]
                 [--bf16]

- chars: configs/language_model/shakespeare_char_cpu.toml to its end, 2,000 updates, beside torch_language_models.py, eager and compiled.
  Seconds from the start of the process to the line of the last update, compiling included; and the loss of the whole validation tenth, in
  order and in the same disjoint windows for all. No program validates in between.
- speed: tokens a second of windows of --windows updates, --rounds of them, the order of programs changing from round to round; of
  --recipes too, with stretches of one length.
- curve: each of --recipes for --updates updates: perplexity of the validation text at equal updates, every --every updates.

--bf16: all programs train with products in bf16, Stretto by train.precision, PyTorch by autocast; a work folder of its own then.

PYTHON has torch. On AMD, --preload names the library that opens MKL's fast path (--both: PyTorch without it as well). All programs have
--threads threads. Each finished cell is a line of WORK/language_models.jsonl: a second call goes on. On two cores of Zen 4, chars takes some
minutes a round, speed a minute a round, and curve three minutes for an epoch of ptb_lstm_200.
"""
import argparse
import math
import shutil
import statistics
import subprocess
import sys

import language_texts
import records
import understanding

CHARS = "language_model/shakespeare_char_cpu.toml"
SCRIPT = records.ROOT / "benchmarks/torch_language_models.py"
FORMS = {"PyTorch, eager": [], "PyTorch, compiled": ["--compile"], "PyTorch, compiled, fused AdamW": ["--compile", "--fused"]}
AWD = ["--locked", "--embedding", "400", "--widths", "1150", "1150", "400", "--weight-drop", "0.5", "--embedding-dropout", "0.1",
       "--output-dropout", "0.4", "--activation-reg", "2", "--temporal-reg", "1", "--lr", "30", "--weight-decay", "1.2e-6", "--bptt", "70"]


class Recipe:
    def __init__(self, title, text, epoch, deviation, arguments):
        self.title, self.text, self.epoch, self.deviation, self.arguments = title, text, epoch, deviation, arguments


RECIPES = {
    "ptb_lstm_200": Recipe("Penn Treebank, tied LSTM of 2 × 200", "ptb", 1328, 0,
                           ["--lr", "20", "--batch", "20", "--bptt", "35", "--quarter"]),
    "ptb_awd_lstm": Recipe("Penn Treebank, AWD-LSTM", "ptb", 682, 5,
                           [*AWD, "--batch", "20", "--input-dropout", "0.4", "--hidden-dropout", "0.25"]),
    "wikitext2_lstm_650": Recipe("WikiText-2, tied LSTM of 2 × 650", "wikitext2", 2984, 0,
                                 ["--embedding", "650", "--widths", "650", "650", "--input-dropout", "0.5", "--hidden-dropout", "0.5",
                                  "--output-dropout", "0.5", "--lr", "20", "--batch", "20", "--bptt", "35", "--quarter"]),
    "wikitext2_awd_lstm": Recipe("WikiText-2, AWD-LSTM", "wikitext2", 383, 5,
                                 [*AWD, "--batch", "80", "--input-dropout", "0.65", "--hidden-dropout", "0.2"])}


def programs(options, forms):
    """Names of the programs of a part, Stretto first."""
    kinds = [name + ending for ending in (["", ", as it is"] if options.both and options.preload else [""]) for name in forms
             if not (options.no_compile and "compiled" in name)]
    return ["Stretto", *kinds]


def start(options, program, command, updates):
    bare = program.endswith(", as it is")
    env = understanding.environment(options.threads, "" if program == "Stretto" or bare else options.preload)
    return language_texts.Followed(command, env, updates)


def peer(options, kind, texts, updates, *arguments):
    half = ["--bf16"] if options.bf16 else []
    return [options.python, SCRIPT, kind, *texts, "--threads", options.threads, "--updates", updates, *half, *arguments]


def new_run(options, name):
    run = options.work / name
    shutil.rmtree(run, ignore_errors=True)
    return run


# Shakespeare by characters

def char_keys(options, texts):
    size = (["model.preset=none", "model.num_layers=1", "model.d_model=32", "model.num_heads=2"] if options.tiny else [])
    return [*language_texts.text_keys(*texts), "train.save_every=1000000", "eval.every=1000000", f"train.max_steps={options.char_updates}",
            f"schedule.warmup_steps={min(100, options.char_updates // 2)}", *size]


def char_arguments(options):
    small = ["--layers", 1, "--heads", 2, "--width", 32] if options.tiny else []
    return [*small, "--warmup", min(100, options.char_updates // 2)]


def whole_chars(options, program, seed):
    """A training to its end."""
    texts, updates = language_texts.shakespeare(options.data, options.work), options.char_updates
    if program == "Stretto":
        run = new_run(options, "chars")
        followed = start(options, program, language_texts.training(options, CHARS, run, *char_keys(options, texts), "report.every=10",
                                                                   f"run.seed={seed}"), updates)
        valid = language_texts.evaluation(options, run, "eval.count_ends=false")
    else:
        form = FORMS[program.removesuffix(", as it is")]
        followed = start(options, program, peer(options, "chars", texts, updates, "--seed", seed, *char_arguments(options), *form), updates)
        valid = followed.valid[-1][2]
    first, last = followed.updates[1][0], followed.updates[updates][0]
    return {"seconds": last, "first": first, "nll": valid["nll"], "tokens": valid["tokens"], "peak_mib": followed.peak_mib,
            "milliseconds": 1000 * (last - first) / (updates - 1)}


def char_window(options, program):
    texts, updates = language_texts.shakespeare(options.data, options.work), options.warm + options.windows
    if program == "Stretto":
        run = new_run(options, "chars_window")
        keys = [*char_keys(options, texts), "report.every=1", "train.max_steps=1000000", "schedule.warmup_steps=100"]
        command = [*language_texts.training(options, CHARS, run, *keys), "--until", updates]
    else:
        command = peer(options, "chars", texts, updates, "--report", 1, *char_arguments(options), *FORMS[program.removesuffix(", as it is")])
    followed = start(options, program, command, updates)
    return {"rate": followed.rate(options.warm), "peak_mib": followed.peak_mib}


# LSTMs by words

def smoke_sizes(options, kind):
    """Tiny sizes for a dry run: arguments of the peer, or keys."""
    if not options.tiny:
        return []
    return (["--embedding", 16, "--widths", 16, 16] if kind == "peer" else ["model.num_layers=2", "model.d_model=16", "model.hidden_dim=16"])


def word_command(options, program, name, updates, every, deviation):
    recipe = RECIPES[name]
    texts = language_texts.words(options.data, options.work, recipe.text, 1500 if options.tiny else 0)
    if program != "Stretto":
        return peer(options, "words", texts, updates, *recipe.arguments, "--deviation", deviation, "--every", every, "--eval-lanes", 10,
                    *smoke_sizes(options, "peer"))
    run = new_run(options, f"{name}_{'curve' if every else 'window'}")
    keys = [*language_texts.text_keys(*texts), f"data.bptt_deviation={deviation}", "train.save_every=1000000",
            f"eval.every={every or 1000000}", "eval.lanes=10", "report.every=1", "train.average_nonmono=0", *smoke_sizes(options, "own")]
    return [*language_texts.training(options, f"language_model/{name}.toml", run, *keys), "--until", updates]


def word_window(options, program, name):
    updates = options.warm + options.windows
    followed = start(options, program, word_command(options, program, name, updates, 0, 0), updates)
    return {"rate": followed.rate(options.warm), "peak_mib": followed.peak_mib}


def word_curve(options, program, name):
    updates, every = options.updates or RECIPES[name].epoch, options.every or max(1, RECIPES[name].epoch // 2)
    if name in ("ptb_lstm_200", "wikitext2_lstm_650") and not options.tiny:
        every = options.every or RECIPES[name].epoch  # validations decide about the rate
    followed = start(options, program, word_command(options, program, name, updates, every, RECIPES[name].deviation), updates)
    numbers = sorted(followed.updates)
    curve = {}
    for step, seconds, event in followed.valid:
        part = [followed.updates[number][2] for number in numbers if step - 100 < number <= step]
        curve[step] = {"nll": event["nll"], "seconds": seconds, "training": statistics.mean(part)}
    return {"curve": curve, "seconds": followed.updates[numbers[-1]][0], "rate": followed.rate(options.warm), "peak_mib": followed.peak_mib}


# Cells and the page

def in_turn(number, names):
    return names if number % 2 else names[::-1]


def measure(options, cells):
    well = True
    if "speed" in options.parts:
        for number in range(1, options.rounds + 1):
            for program in in_turn(number, programs(options, FORMS)):
                key = {"part": "speed", "text": "chars", "round": number, "program": program, "updates": options.windows}
                well = cells.measure(key, lambda: char_window(options, program)) and well
            for name in options.recipes:
                for program in in_turn(number, programs(options, ["PyTorch"])):
                    key = {"part": "speed", "text": name, "round": number, "program": program, "updates": options.windows}
                    well = cells.measure(key, lambda: word_window(options, program, name)) and well
    if "chars" in options.parts:
        for number in range(1, options.full_rounds + 1):
            for program in in_turn(number, programs(options, FORMS)):
                key = {"part": "chars", "round": number, "program": program, "updates": options.char_updates}
                well = cells.measure(key, lambda: whole_chars(options, program, 1336 + number)) and well
    if "curve" in options.parts:
        for name in options.recipes:
            for program in programs(options, ["PyTorch"])[:2]:
                key = {"part": "curve", "text": name, "program": program, "updates": options.updates or RECIPES[name].epoch}
                well = cells.measure(key, lambda: word_curve(options, program, name)) and well
    return well


def names_of(found):
    return ["Stretto", *sorted({cell["key"]["program"] for cell in found} - {"Stretto"})]


def chars_section(cells):
    found, rows = cells.all(part="chars"), []
    own = {cell["key"]["round"]: cell for cell in found if cell["key"]["program"] == "Stretto"}
    for program in names_of(found):
        mine = [cell for cell in found if cell["key"]["program"] == program]
        if not mine:
            continue
        ratios = [cell["seconds"] / own[cell["key"]["round"]]["seconds"] for cell in mine if cell["key"]["round"] in own]
        rows.append([program, records.spread([cell["seconds"] for cell in mine], decimals=1),
                     records.spread(ratios) if ratios and program != "Stretto" else "",
                     *(records.spread([cell[column] for cell in mine], decimals=1) for column in ("milliseconds", "first")),
                     *(records.spread([cell["nll"] for cell in mine], unit, 4) for unit in (1, math.log(2))),
                     f"{statistics.median(cell['peak_mib'] for cell in mine):,.0f}"])
    updates = found[0]["key"]["updates"]
    return f"## Shakespeare by characters, {updates:,} updates\n\n" + records.table(
        ["program", "seconds to the last update", "Stretto is faster by", "milliseconds an update", "seconds to the first line",
         f"validation loss, nats a character ({found[0]['tokens']:,} in order)", "bits", "peak MiB"], rows)


def speed_section(cells):
    rows, words = [], []
    for text in dict.fromkeys(cell["key"]["text"] for cell in cells.all(part="speed")):
        found = cells.all(part="speed", text=text)
        own = {cell["key"]["round"]: cell["rate"] for cell in found if cell["key"]["program"] == "Stretto"}
        best = {}
        title = "Shakespeare by characters" if text == "chars" else RECIPES[text].title
        for program in names_of(found):
            mine = [cell for cell in found if cell["key"]["program"] == program]
            ratios = {cell["key"]["round"]: own[cell["key"]["round"]] / cell["rate"] for cell in mine if cell["key"]["round"] in own}
            if program != "Stretto":
                for number, ratio in ratios.items():
                    best[number] = min(ratio, best.get(number, ratio))
            if mine:
                rows.append([title, program, records.spread([cell["rate"] for cell in mine], decimals=0),
                             records.spread(list(ratios.values())) if ratios and program != "Stretto" else "",
                             f"{statistics.median(cell['peak_mib'] for cell in mine):,.0f}"])
        if best:
            words.append(f"{title}: {records.spread(list(best.values()))} times the fastest form of each round.")
    table = records.table(["model", "program", "tokens/s", "Stretto is faster by", "peak MiB"], rows)
    return "## Tokens a second\n\n" + table + "\n\n" + " ".join(words) + " The goal is 1.5."


def curve_section(cells):
    parts = []
    for text in dict.fromkeys(cell["key"]["text"] for cell in cells.all(part="curve")):
        found = cells.all(part="curve", text=text)
        names, rows = names_of(found), []
        curves = {cell["key"]["program"]: cell["curve"] for cell in found}
        for step in sorted({int(step) for curve in curves.values() for step in curve}):
            row = [f"{step:,}"]
            for name in names:
                point = curves.get(name, {}).get(str(step))
                row += [f"{math.exp(point['nll']):.1f}", f"{math.exp(point['training']):.1f}",
                        f"{point['seconds']:.0f}"] if point else ["", "", ""]
            rows.append(row)
        titles = ["updates", *(f"{name}: {what}" for name in names for what in ("valid ppl", "training ppl", "seconds"))]
        parts.append(f"### {RECIPES[text].title}\n\n" + records.table(titles, rows))
    return "## At equal updates\n\n" + "\n\n".join(parts) + (
        "\n\nValidation reads ten lanes side by side, each from a state of zero; training is the mean of the last hundred updates, under "
        "dropout. Weights are not averaged (NT-ASGD) in either program.")


def page_of(options, cells):
    parts = [section(cells) for part, section in (("chars", chars_section), ("speed", speed_section), ("curve", curve_section))
             if cells.all(part=part)]
    notes = [f"{options.threads} threads, {'products in bf16' if options.bf16 else 'fp32'}. Median (least – most) of rounds, in turn. " +
             (f"PyTorch has a library preloaded that opens MKL's fast path{', but in the rows «as it is»' if options.both else ''}."
              if options.preload else "")]
    return records.page("Language models beside PyTorch", notes, "\n\n".join(parts) or "Nothing is measured yet.", "half an hour", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=("chars", "speed", "curve"), default=["chars", "speed", "curve"])
    parser.add_argument("--recipes", nargs="*", choices=RECIPES, default=["ptb_lstm_200", "ptb_awd_lstm"])
    parser.add_argument("--rounds", type=int, default=3, help="of speed")
    parser.add_argument("--full-rounds", type=int, default=1, help="of chars, each with a seed of its own")
    parser.add_argument("--warm", type=int, default=5, help="updates before a window; torch.compile works in them")
    parser.add_argument("--windows", type=int, default=30, help="updates of a window")
    parser.add_argument("--char-updates", type=int, default=2000)
    parser.add_argument("--updates", type=int, default=0, help="of curve; 0: an epoch")
    parser.add_argument("--every", type=int, default=0, help="updates between validations of curve; 0: an epoch, of AWD-LSTM half of one")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="products in bf16, in all programs")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="tiny models, few updates: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if options.bf16:
        options.key = [*options.key, "train.precision=mixed_bf16"]
    if not options.page and subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode != 0:
        parser.error(f"{options.python} has no torch: --python NAME")
    if options.tiny:
        options.rounds = options.full_rounds = 1
        options.warm, options.windows, options.char_updates, options.updates, options.every = 1, 3, 20, 4, 2
    return options


def main():
    return understanding.run_cells(parse(), "stretto_language_models_", "language_models.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
