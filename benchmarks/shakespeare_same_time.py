#!/usr/bin/env python3
"""The lowest loss on Shakespeare by characters in the time that nanoGPT's setting for CPUs takes: its form with AdamW, and the parts that
small models have today with Muon.

    python benchmarks/shakespeare_same_time.py --data DATA --work WORK [--out PAGE.md] [--adamw 1e-3 2e-3 4e-3] [--muon 4e-3 8e-3 1.6e-2]

First comes the pace of both forms: short trainings in turn, which want quiet cores. Then nanoGPT's form (configs/language_model/
shakespeare_char_cpu.toml) gets its 2,000 updates, and the modern one (shakespeare_char_modern.toml) as many as take the same time at these
paces; each schedule ends with its last update. Both have blocks of 64 characters, 12 an update. The loss is that of the whole validation
tenth in order, in disjoint blocks; it depends on no clock. Each finished cell is a line of WORK/same_time.jsonl: a second call goes on, with
another number of threads too. A training takes one to two minutes on two cores.
"""
import argparse
import math
import shutil
import statistics
import sys

import language_texts
import records
import understanding

FORMS = {"adamw": ("nanoGPT's form, AdamW", "language_model/shakespeare_char_cpu.toml"),
         "muon": ("modern form, Muon", "language_model/shakespeare_char_modern.toml")}


def train(options, form, lr, updates, name):
    """A training to its last update: the run, and its milliseconds an update behind the first ones."""
    run, begun = options.work / name, min(10, updates - 1)
    shutil.rmtree(run, ignore_errors=True)
    rates = [f"optim.lr={lr}", f"schedule.min_lr={lr / 10}"] + ([f"optim.muon_adam_lr={lr / 2}"] if form == "muon" else [])
    keys = [*language_texts.text_keys(*language_texts.shakespeare(options.data, options.work)), *rates, "train.save_every=1000000",
            "eval.every=1000000", f"train.max_steps={updates}", f"schedule.warmup_steps={min(100, updates // 2)}", "report.every=1"]
    followed = language_texts.Followed(language_texts.training(options, FORMS[form][1], run, *keys),
                                       understanding.environment(options.threads), updates)
    return run, 1000 * (followed.updates[updates][0] - followed.updates[begun][0]) / (updates - begun)


def whole(options, form, lr, updates):
    run, _ = train(options, form, lr, updates, f"{form}_{lr:g}")
    valid = language_texts.evaluation(options, run, "eval.count_ends=false")
    return {"nll": valid["nll"], "tokens": valid["tokens"]}


def pace(cells, form):
    """Median milliseconds an update."""
    return statistics.median(cell["milliseconds"] for cell in cells.all(part="pace", form=form))


def measure(options, cells):
    well, rates = True, {"adamw": options.adamw, "muon": options.muon}
    for number in range(1, options.rounds + 1):
        for form in list(FORMS)[::1 if number % 2 else -1]:
            well = cells.measure({"part": "pace", "form": form, "round": number, "updates": options.pace}, lambda: {
                "threads": options.threads, "milliseconds": train(options, form, rates[form][0], options.pace, "pace")[1]}) and well
    if not well or options.only_pace:
        return well
    for form in FORMS:
        updates = int(options.updates * pace(cells, "adamw") / pace(cells, form))
        for lr in rates[form]:
            well = cells.measure({"part": "whole", "form": form, "lr": lr, "updates": updates},
                                 lambda: whole(options, form, lr, updates)) and well
    return well


def body_of(cells):
    found = cells.all(part="whole")
    if not found:
        return "Nothing is measured yet."
    paces = records.table(["form", "short trainings", "threads", "milliseconds an update"], [
        [title, len(short), short[0]["threads"], records.spread([cell["milliseconds"] for cell in short], decimals=1)]
        for form, (title, _) in FORMS.items() if (short := cells.all(part="pace", form=form))])
    rows = [[FORMS[cell["key"]["form"]][0], f"{cell['key']['lr']:g}", f"{cell['key']['updates']:,}",
             f"{cell['key']['updates'] * pace(cells, cell['key']['form']) / 1000:.1f}", f"{cell['nll']:.4f}",
             f"{cell['nll'] / math.log(2):.4f}"] for cell in found]
    best = {form: min((cell["nll"] for cell in cells.all(part="whole", form=form)), default=None) for form in FORMS}
    words = ""
    if all(best.values()):
        words = f"\n\nLowest: {best['muon']:.4f} in the modern form with Muon, {best['adamw']:.4f} in nanoGPT's with AdamW."
    return paces + "\n\n" + records.table(
        ["form", "rate", "updates", "seconds at this pace", f"validation loss, nats a character ({found[0]['tokens']:,} in order)", "bits"],
        rows) + words


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, python=False)
    parser.add_argument("--adamw", type=float, nargs="+", default=[1e-3, 2e-3, 4e-3], metavar="RATE")
    parser.add_argument("--muon", type=float, nargs="+", default=[4e-3, 8e-3, 1.6e-2], metavar="RATE")
    parser.add_argument("--updates", type=int, default=2000, help="of nanoGPT's form")
    parser.add_argument("--pace", type=int, default=200, help="updates of a short training")
    parser.add_argument("--rounds", type=int, default=3, help="short trainings of each form")
    parser.add_argument("--only-pace", action="store_true", help="end behind the short trainings")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="few updates: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if options.tiny:
        options.adamw, options.muon = options.adamw[:1], options.muon[:1]
        options.updates, options.pace, options.rounds = 20, 15, 1
    return options


def page_of(options, cells):
    return records.page("Shakespeare by characters, equal time", ["fp32."], body_of(cells), "fifteen minutes", cells.head())


def main():
    return understanding.run_cells(parse(), "stretto_same_time_", "same_time.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
