#!/usr/bin/env python3
"""Whether what a recogniser says depends on batches or processes, and losses of training on processes: one table.

    python benchmarks/speech_table.py --stretto STRETTO --sources SOURCES --work WORK [--out PAGE.md] [--updates 200]
                 [--recipes fsdd_wave2letter_small fsdd_deepspeech2_small fsdd_conformer] [--processes 1 2 3]

SOURCES has fsdd/fsdd_5speakers.tar.gz. 50 utterances of 0.3 to 15 s are made of clips that training does not have: digits in a row, the
lengths spread evenly on a logarithmic scale. Each recipe is trained for --updates updates of six micro-batches, on words instead of
characters: training has single digits, and no spaces. Then

- `stretto infer --log-probs` hears the utterances in batches of exactly 1, 8 and 50, in the order of the list and in the other one. Compared
  are texts, word error rates, and the log-probabilities of all classes in all rows (logits, normalised);
- `stretto eval` hears them on 1, 2 and 3 processes: texts, error rates, the loss of all, and of each utterance;
- training on 1, 2 and 3 processes: the order of data (the hash of each update's batches), the loss of each update, and the error rate behind
  it, with SGD, and with AdamW and dist.deterministic; there the hash of the weights, too. AdamW without it is only told: where a gradient
  is nearly zero, AdamW divides rounding errors by their own size, and the order of a sum over processes changes them.

A log-probability may differ by 1e-5 of 1 + its magnitude, the loss of an utterance too, other losses by 1e-5 of themselves; texts, error
rates and orders not at all. Leaves with 1 if one does. Trainings that are in WORK are not made again. Takes about half an hour on two quiet
cores; --smoke tries the script.
"""
import argparse
import itertools
import json
import pathlib
import random
import shutil
import sys
import wave

import ctc_search_beside
import perplexity_table
import records
import speech_files
import speech_recipes
import understanding

BOUND = 1e-5
SHORTEST, LONGEST, COUNT = 0.3, 15.0, 50
BATCHES = (1, 8, COUNT)
RECIPES = speech_recipes.RECIPES["fsdd"]
FORMS = {"AdamW, as the recipe has it": (), "SGD": ("optim.name=sgd", "optim.lr=0.001"),
         "AdamW with `dist.deterministic`": ("dist.deterministic=true",)}


# The utterances

def samples_of(path):
    with wave.open(str(path), "rb") as sound:
        return sound.readframes(sound.getnframes())


def utterances(options):
    """A list of FILE<tab>TEXT, in a drawn order."""
    folder = options.work / "utterances"
    manifest = folder / "list.tsv"
    if manifest.exists():
        return manifest
    folder.mkdir(parents=True, exist_ok=True)
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    clips = [(samples_of(path), words[int(path.stem.split("_")[0])]) for path in sorted((options.work / "data/fsdd/valid").iterdir())]
    draw, rows = random.Random(1), []
    for number in range(COUNT):
        left, parts = int(8000 * SHORTEST * (LONGEST / SHORTEST) ** (number / (COUNT - 1))), []
        while left > 0:
            # While much is left any clip will do; the last one fits best.
            found = draw.choice(clips) if left > 8000 else min(draw.sample(clips, 40), key=lambda clip: abs(len(clip[0]) // 2 - left))
            if parts and abs(left - len(found[0]) // 2) >= left:
                break
            parts.append(found)
            left -= len(found[0]) // 2
        path = folder / f"{number:02}.wav"
        with wave.open(str(path), "wb") as sound:
            sound.setparams((1, 2, 8000, 0, "NONE", ""))
            sound.writeframes(b"".join(samples for samples, _ in parts))
        rows.append((path, " ".join(word for _, word in parts)))
    draw.shuffle(rows)
    return speech_files.write_manifest(manifest, rows)


def seconds_of(manifest):
    return [(pathlib.Path(path).stat().st_size - 44) / 16000 for path, _ in speech_files.manifest_rows(manifest)]


# Trainings

def trained(options, recipe, processes, *keys):
    """The run folder of a training on so many processes."""
    run = options.work / "runs" / "_".join([recipe, str(options.updates), str(processes), *(key.split("=")[0] for key in keys)])
    if any(event["event"] == "end" for event in records.json_lines(run / "metrics.jsonl")):
        return run
    shutil.rmtree(run, ignore_errors=True)
    more = ["--processes", processes, "dist.timeout_seconds=600"] if processes > 1 else []
    understanding.call([options.stretto, "train", records.ROOT / f"configs/speech_recognition/{recipe}.toml", "--run", run, "--quiet",
                        *speech_recipes.data_words("fsdd", options.work / "data"), *common_keys(options), "tokenizer.type=word", "data.batch_seconds=10",
                        "train.update_freq=6", "train.max_epochs=0", f"train.max_steps={options.updates}", "train.save_every=1000000",
                        f"schedule.warmup_steps={min(50, options.updates // 2)}", "eval.every=1000000", "report.every=1",
                        "report.html=false", "report.tensorboard=false", *keys, *options.key, *more])
    return run


def common_keys(options):
    return [f"data.cache_dir={options.work}/cache", f"run.threads={options.threads}", "run.device=cpu"]


# What is heard

def heard(options, run, files, batch):
    """{file: (text, log-probabilities [T][L + 1])} of files in batches of exactly so many."""
    found = {}
    groups = [files] if batch == 1 else [files[i:i + batch] for i in range(0, len(files), batch)]
    for group in groups:
        # On one thread a batch is not shared out.
        text, _, _ = understanding.call([options.stretto, "infer", run, "--checkpoint", "last", "--json", "--log-probs", "run.threads=1",
                                         "run.device=cpu", f"eval.batch_seconds={0.001 if batch == 1 else 100000}", *group])
        for answer in map(json.loads, text.splitlines()):
            found[answer["file"]] = (answer["text"], answer["log_probs"])
    if set(found) != set(files):
        raise understanding.Failed(f"{run.name}: {len(found)} of {len(files)} utterances were answered")
    return found


def evaluated(options, run, manifest, processes):
    """Scores, and (loss, text) of each utterance by its id."""
    table = options.work / f"{run.name}_{processes}.tsv"
    more = ["--processes", processes, "dist.timeout_seconds=600"] if processes > 1 else []
    text, _, _ = understanding.call([options.stretto, "eval", run, "--checkpoint", "last", "--json", "--data", manifest, "--predictions", table,
                                     *common_keys(options), 'data.format="manifest"', "data.label_words=[]", "eval.batch_seconds=30", *more])
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
    columns = [rows[0].index(name) for name in ("id", "loss", "hypothesis")]
    return json.loads(text), {row[columns[0]]: (float(row[columns[1]]), row[columns[2]]) for row in rows[1:]}


def furthest(first, other):
    """The largest differences of log-probabilities: absolute, and of 1 + their magnitude."""
    if len(first) != len(other):
        return float("inf"), float("inf")
    pairs = [(abs(a - b), abs(a - b) / (1 + abs(a))) for one, two in zip(first, other) for a, b in zip(one, two, strict=True)]
    return tuple(max(values) for values in zip(*pairs)) if pairs else (0.0, 0.0)


# The table

class Table(perplexity_table.Table):
    def state(self, model, rule, over, runs, shown, well):
        """A row of what is equal or not."""
        self.well = self.well and well
        self.rows.append([model, rule, over, runs, shown, "", "equal", "yes" if well else "**no**"])
        print(f"{understanding.program_name()}: {model}, {rule}: {shown}", file=sys.stderr, flush=True)

    def told(self, model, rule, over, runs, shown, found=None):
        """A row without a bound."""
        self.rows.append([model, rule, over, runs, shown, "" if found is None else f"{found:.1e}", "", ""])
        print(f"{understanding.program_name()}: {model}, {rule}: {shown}", file=sys.stderr, flush=True)

    def bounded(self, model, rule, over, runs, shown, found, bound=BOUND):
        self.well = self.well and found <= bound
        self.rows.append([model, rule, over, runs, shown, f"{found:.1e}", f"{bound:.0e}", "yes" if found <= bound else "**no**"])
        print(f"{understanding.program_name()}: {model}, {rule}: {shown}, {found:.1e}", file=sys.stderr, flush=True)


def word_error_rate(texts, wanted):
    return 100 * ctc_search_beside.word_errors(texts, [text.split() for text in wanted]) / sum(len(text.split()) for text in wanted)


def batches(options, recipe, run, manifest, table):
    files, wanted = zip(*speech_files.manifest_rows(manifest))
    forms = {(batch, turned): heard(options, run, list(files[::-1] if turned else files), batch)
             for batch, turned in itertools.product(BATCHES, (False, True))}
    first = forms[1, False]
    over, count = "batch 1, 8 and 50, both orders", len(forms)
    others = sum(found[file][0] != first[file][0] for found in forms.values() for file in files)
    rates = {round(word_error_rate([found[file][0] for file in files], wanted), 6) for found in forms.values()}
    table.state(recipe, f"texts of {len(files)} utterances", over, count, f"{others} differ", others == 0)
    table.state(recipe, "WER", over, count, ", ".join(f"{rate:.2f} %" for rate in sorted(rates)), len(rates) == 1)
    absolute, relative = (max(values) for values in zip(*(furthest(first[file][1], found[file][1])
                                                          for found in forms.values() for file in files)))
    numbers = sum(len(row) for _, rows in first.values() for row in rows)
    table.bounded(recipe, f"{numbers:,} log-probabilities, that which differs most", over, count, f"by {absolute:.1e}", relative)


def processes_of_eval(options, recipe, run, manifest, table):
    found = [evaluated(options, run, manifest, count) for count in options.processes]
    over = f"{', '.join(map(str, options.processes))} processes"
    (_, first), scores = found[0], [one for one, _ in found]
    others = sum(rows[name][1] != text for _, rows in found for name, (_, text) in first.items())
    table.state(recipe, "texts, `eval`", over, len(found), f"{others} differ", others == 0)
    for name in ("wer", "cer"):
        table.state(recipe, f"{name.upper()}, `eval`", over, len(found), f"{scores[0][name]:.4f} %", len({one[name] for one in scores}) == 1)
    table.add(recipe, "loss, `eval`", over, [one["loss"] for one in scores], BOUND, f"{scores[0]['loss']:.6f}")
    # The table of utterances has six decimals.
    worst, difference = max(((name, abs(rows[name][0] - loss) / (1 + loss)) for _, rows in found for name, (loss, _) in first.items()),
                            key=lambda one: one[1])
    table.bounded(recipe, "loss of the utterance that differs most", over, len(found), f"{first[worst][0]:.6f}", difference)


def processes_of_training(options, recipe, first, table):
    """The order of data, losses and error rates; with dist.deterministic the weights too."""
    for words, keys in FORMS.items():
        runs = [trained(options, recipe, count, *keys) if keys or count != options.processes[0] else first for count in options.processes]
        events = [[event for event in records.json_lines(run / "metrics.jsonl") if event["event"] in ("train", "end")] for run in runs]
        losses, orders = ([tuple(event[name] for event in one if event["event"] == "train") for one in events] for name in ("loss", "batch_hash"))
        if len({len(one) for one in losses}) != 1:
            raise understanding.Failed(f"{recipe}: trainings have other numbers of updates")
        over, last = f"{', '.join(map(str, options.processes))} processes", losses[0][-1]
        table.state(recipe, f"{words}: order of data", over, len(runs), f"{len(set(orders))} of it", len(set(orders)) == 1)
        worst = max(range(len(losses[0])), key=lambda i: perplexity_table.difference([one[i] for one in losses]))
        values, what = [one[worst] for one in losses], f"{words}: loss of {len(losses[0])} updates, that which differs most (update {worst + 1})"
        rates = [speech_recipes.evaluated(options, run)["wer"] for run in runs]
        if not keys:  # told, and not judged
            table.told(recipe, what, over, len(runs), f"{last:.6f} at the end", perplexity_table.difference(values))
            table.told(recipe, f"{words}: WER of the validation clips", over, len(runs), ", ".join(f"{rate:.2f} %" for rate in rates))
            continue
        table.add(recipe, what, over, values, BOUND, f"{values[0]:.6f}")
        table.state(recipe, f"{words}: WER of the validation clips", over, len(runs), f"{rates[0]:.2f} %", len(set(rates)) == 1)
        if "dist.deterministic=true" in keys:
            hashes = {one[-1].get("weights_hash") for one in events}
            table.state(recipe, f"{words}: weights", over, len(runs), f"{len(hashes)} hash{'es' if len(hashes) > 1 else ''}", len(hashes) == 1)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for the trainings")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--sources", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--work", type=pathlib.Path, help="folder for clips, caches and runs; a second call goes on from it; default temporary")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="few updates of one network: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    if options.tiny:
        options.recipes, options.updates, options.processes = ["fsdd_wave2letter_small"], 4, options.processes[:2]
    return options


def main():
    options, table = parse(), Table()
    head = records.head_of_now()
    with records.work_folder(options, "stretto_speech_table_"):
        speech_recipes.cut_fsdd(options, options.work / "data")
        manifest = utterances(options)
        lengths = seconds_of(manifest)
        for recipe in options.recipes:
            run = trained(options, recipe, options.processes[0])
            batches(options, recipe, run, manifest, table)
            processes_of_eval(options, recipe, run, manifest, table)
            processes_of_training(options, recipe, run, table)
    body = table.text("recipe", "what")
    notes = [f"{COUNT} utterances of {min(lengths):.2f} to {max(lengths):.2f} s, spoken digits in a row, {sum(lengths):.0f} s together; networks "
             f"trained for {options.updates} updates, {options.threads} thread{'s' if options.threads > 1 else ''} for each process. Of "
             "log-probabilities and of utterances' losses the difference is relative to 1 + their magnitude. In training, differences come "
             "from the order in which processes add gradients, which `dist.deterministic` fixes. AdamW makes rounding errors of nearly vanishing "
             "gradients as large as a step; its first row is therefore without a bound."]
    records.publish(records.page("Recognition, batches and processes", notes, body, "half an hour", head), options.out)
    return 0 if table.well else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except understanding.Failed as failure:
        sys.exit(f"error: {failure}")
