#!/usr/bin/env python3
"""Whole training steps of GNMT and the convolutional models beside plain PyTorch, and the time of a real token beside a dense batch.

    python benchmarks/training_beside_torch.py --data data/multi30k --preload libmkl_any.so [--out benchmarks/training_….md]

needs torch in this Python, or in --python. Forward, loss, backward, clipping and Adam, fp32, on Multi30k. GNMT and ConvS2S have 7.4 million
parameters, LightConv 7.9 and DynamicConv 8.0. A model of PyTorch ends with an error unless it has those that `stretto plan` counts; nn.LSTM
has 8,192 more, a second bias for each layer.

Beside PyTorch: each round starts Stretto with the recipe multi30k_gnmt.toml, multi30k_convs2s.toml or multi30k_lightconv.toml (DynamicConv:
with dynamic_conv for light_conv on either side), then the models of benchmarks/torch_translation.py in their forms. All read the same
sub-words, and cut batches of as many real tokens by the same rule. Target tokens a second are counted between the arrival of the line of
update --warm and that of the last one, as in beside_peers.py. The ratio is Stretto's rate over the fastest form of the same round; --goal is
what its median should reach.

    packed, bucketed        nn.LSTM on PackedSequence, and on padded batches of nearly one length
    padded                  nn.Conv1d on padded batches
    convolution, unfold     F.conv1d with a group for each channel, or windows times filters: torch_light_convolutions.py
    band                    filters as a band of [T, T], as fairseq does below 512 tokens
    …, rows                 each row drops taps of its own, as in Stretto; LightConv's other forms have one mask a batch, which is cheaper
    …, compiled             with torch.compile: the whole model, of GNMT the scores of attention (nn.LSTM is not compiled). It takes minutes
                            the first time, and again where a batch crosses 4,096 padded positions: TORCH_LOGS=recompiles tells whether
                            a window has such a batch
    …, fed back             with GNMT's own first decoder layer, in a loop over steps; the others have one that suits PyTorch better and
                            has 262,144 parameters fewer

--preload names a library for PyTorch's processes, for instance one whose mkl_serv_intel_cpu_true() returns 1, without which MKL takes a
slow path on AMD's processors; --both measures PyTorch without it too.

Beside a dense batch: a text that is a single batch, whose sentences have many lengths with a given mean, and one of as many sentences that
all have the mean length. Stretto trains on each, in turn; the ratio of the times of a real token should be at most 1.1 at every length.
Lengths are log-normal with a deviation of 0.5, from a third to 2.4 times the mean, and those of a source and its target are equal. The
pairs of positions that attention compares grow with the squares of lengths: 1.2 times as many as in the dense batch.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

import beside_peers
import records

RECIPES = {"lstm": "gnmt", "conv": "convs2s", "lightconv": "lightconv", "dynamicconv": "lightconv"}
TITLES = {"lstm": "GNMT", "conv": "ConvS2S", "lightconv": "LightConv", "dynamicconv": "DynamicConv"}
KEYS = {"dynamicconv": ["model.encoder.name=dynamic_conv", "model.decoder.name=dynamic_conv"]}
FORMS = {"lstm": {"packed": "--form packed", "bucketed": "--form bucketed", "bucketed, compiled": "--form bucketed --compile",
                  "bucketed, fed back": "--form bucketed --feed"},
         "conv": {"padded": "--form padded", "padded, compiled": "--form padded --compile"},
         "lightconv": {"convolution": "--form convolution", "band": "--form band", "band, compiled": "--form band --compile",
                       "band, rows": "--form band --rows"},
         "dynamicconv": {"unfold": "--form unfold", "band": "--form band", "band, compiled": "--form band --compile"}}


def call(command, **more):
    done = subprocess.run(list(map(str, command)), stdin=more.pop("stdin", subprocess.DEVNULL), capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}\nleft with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def read_lines(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


class Text:
    """The data set, a tokenizer of it, and its sub-words as ids for PyTorch."""

    def __init__(self, options):
        self.options, self.model = options, options.work / f"joint_{options.vocab}.model"
        files = [records.text_file(options.data, f"train.{side}") for side in ("en", "de")]
        if not self.model.exists():
            call([options.stretto, "tokenizer", "train", "--vocab-size", options.vocab, "--output", self.model, *files])
        for side, path in zip(("source", "target"), files):
            made = options.work / f"{side}_{options.vocab}.ids"
            if not made.exists():
                plain = options.work / f"{side}_{options.vocab}.txt"
                plain.write_text("\n".join(read_lines(path)) + "\n", encoding="utf-8")
                with open(plain, encoding="utf-8") as lines:
                    records.write_whole(made, call([options.stretto, "tokenizer", "encode", "--ids", self.model], stdin=lines))

    def single_pieces(self):
        """Words that are one piece, so that a line of N of them has N tokens and the end of the sentence."""
        counts = {}
        for word in " ".join(read_lines(self.options.work / f"source_{self.options.vocab}.txt")).split():
            counts[word] = counts.get(word, 0) + 1
        words = sorted((word for word in counts if word.isalpha()), key=counts.get, reverse=True)[:2000]
        asked = self.options.work / "words.txt"
        asked.write_text("\n".join(words) + "\n", encoding="utf-8")
        with open(asked, encoding="utf-8") as lines:
            encoded = call([self.options.stretto, "tokenizer", "encode", "--ids", self.model], stdin=lines).splitlines()
        found = [word for word, pieces in zip(words, encoded) if len(pieces.split()) == 1]
        return found or sys.exit("error: no word of the text is a single piece")


def model_of(options, model):
    """The recipe of a model, and its keys."""
    smaller = [f"model.d_model={options.d_model}"] if options.smoke else []
    return [str(records.ROOT / f"configs/translation/multi30k_{RECIPES[model]}.toml"), *KEYS.get(model, []), *smaller]


def parameters_of(options, model):
    """As Stretto counts them."""
    planned = call([options.stretto, "plan", *model_of(options, model), *options.key, "--scaling", "--world-size", 1, "--vocab-rows",
                    options.rows, "--json"])
    return json.loads(planned)["inputs"]["parameters"]


def training(options, text, model, run, updates, *keys):
    """The command of a training by Stretto."""
    return [options.stretto, "train", *model_of(options, model), "--run", run,
            *records.text_keys(options.data), f"tokenizer.model={text.model}", f"data.cache_dir={options.work}/cache",
            f"data.max_tokens={options.max_tokens}", f"train.max_steps={updates}", f"train.save_every={10**6}", f"eval.every={10**6}",
            "eval.bleu=false", f"schedule.warmup_steps={options.warm}", "report.every=1", "report.html=false", "report.tensorboard=false",
            f"run.threads={options.threads}", *options.key, *keys]


def tools_of(options, text, model):
    """{name: command} for beside_peers, Stretto first."""
    follow = [sys.executable, str(records.ROOT / "benchmarks/follow_metrics.py"), "{RUN}", "--"]
    tools = {"Stretto": shlex.join([*follow, *training(options, text, model, "{RUN}", "{U}")])}
    script, parameters = str(records.ROOT / "benchmarks/torch_translation.py"), parameters_of(options, model)
    for form, flags in FORMS[model].items():
        if ("compiled" in form and options.no_compile) or (options.forms and form not in options.forms):
            continue
        command = [options.python, script, "--model", model, *flags.split(), "--source", str(options.work / f"source_{options.vocab}.ids"),
                   "--target", str(options.work / f"target_{options.vocab}.ids"), "--vocab", str(options.rows), "--d-model",
                   str(options.d_model), "--parameters", str(parameters), "--max-tokens", str(options.max_tokens), "--updates", "{U}",
                   "--threads", str(options.threads)]
        # glibc would give large blocks back at each step; Stretto keeps them, PyTorch may too.
        keep = [f"MALLOC_MMAP_THRESHOLD_={2**30}", f"MALLOC_TRIM_THRESHOLD_={2**30}", f"OMP_NUM_THREADS={options.threads}"]
        if options.preload:
            tools[form] = shlex.join(["env", f"LD_PRELOAD={options.preload}", *keep, *command])
        if options.both or not options.preload:
            tools[form + (", as it is" if options.preload else "")] = shlex.join(["env", *keep, *command])
    return tools


def beside_torch(options, text, model):
    """A table of all forms of a model, and the median ratio to the fastest."""
    tools, failed = tools_of(options, text, model), {}
    windows = {name: [] for name in tools}
    for number in range(options.rounds):
        for name in (list(tools) if number % 2 == 0 else list(reversed(tools))):
            try:
                windows[name].append(beside_peers.run(tools[name], options.warm, options.updates))
            except SystemExit as failure:
                if name == "Stretto":
                    raise
                # A form that cannot run here, for instance without a compiler, does not end the comparison.
                print(f"training_beside_torch.py: {TITLES[model]}, {name}: {failure}", file=sys.stderr, flush=True)
                failed[name] = str(failure).splitlines()[-1]
                del tools[name], windows[name]
                continue
            print(f"training_beside_torch.py: {TITLES[model]}, round {number + 1}, {name}: {windows[name][-1]['rate']:.0f} tokens/s",
                  file=sys.stderr, flush=True)
    if len(tools) == 1:
        sys.exit("error: no form of PyTorch ran")
    rates = {name: [window["rate"] for window in found] for name, found in windows.items()}
    best = [max(rates[name][number] for name in rates if name != "Stretto") for number in range(options.rounds)]
    ratios = [ours / theirs for ours, theirs in zip(rates["Stretto"], best)]
    rows = []
    for name, found in windows.items():
        times = [ours / theirs for ours, theirs in zip(rates["Stretto"], rates[name])]
        tokens = statistics.mean(window["tokens"] for window in found)
        foreign = statistics.median(window["foreign"] for window in found)
        rows.append([name if name == "Stretto" else f"PyTorch, {name}", records.spread(rates[name], decimals=0), records.spread(times),
                     f"{tokens:.0f}", max(window["rss"] for window in found), f"{foreign:.2f}"])
    table = records.table([TITLES[model], "target tokens/s", "Stretto is faster by", "tokens an update", "peak RSS MiB", "foreign cores"], rows)
    words = [f"Beside the fastest form of each round: {records.spread(ratios)} times; the goal is {options.goal}."]
    words += [f"Not measured: {name} ({message})." for name, message in failed.items()]
    return table + "\n\n" + " ".join(words), statistics.median(ratios)


def lengths_around(mean, count, seed):
    """Log-normal lengths whose sum is exactly that of as many sentences of the mean length."""
    draw, least, most = random.Random(seed), max(3, mean // 3), int(2.4 * mean)
    lengths = [max(least, min(most, round(mean * draw.lognormvariate(-0.125, 0.5)))) for _ in range(count)]
    while (missing := mean * count - sum(lengths)) != 0:
        i, change = draw.randrange(count), 1 if missing > 0 else -1
        if least <= lengths[i] + change <= most:
            lengths[i] += change
    return lengths


def write_batch(folder, lengths, words, seed):
    """A parallel text whose lines have these numbers of tokens on either side, the end of the sentence counted."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for side in ("en", "de"):
        lines = [" ".join(draw.choices(words, k=length - 1)) for length in lengths]
        (folder / f"batch.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def token_time(options, text, model, folder):
    """Seconds of a real target token: the median of the updates after the first ones; and the tokens of an update."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="stretto_dense_"))
    try:
        keys = [f"data.{kind}_{side}={folder}/batch.{language}" for kind in ("train", "valid", "test")
                for side, language in (("src", "en"), ("tgt", "de"))]
        call([*training(options, text, model, str(place / "run"), options.warm + options.updates, *keys), "--quiet"])
        events = [event for event in records.json_lines(place / "run/metrics.jsonl") if event["event"] == "train"]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    times = [1 / event["tokens_per_second"] for event in events[options.warm:]]
    return statistics.median(times), events[-1]["target_tokens"]


def beside_dense(options, text, model, words):
    """A table over mean lengths, and the largest median ratio."""
    rows, worst = [], 0.0
    for mean in options.lengths:
        count = max(2, int(options.max_tokens / mean * 0.9))
        mixed = lengths_around(mean, count, 1)
        dense = [mean] * count
        times, tokens = {"mixed": [], "dense": []}, {}
        for name, lengths in (("mixed", mixed), ("dense", dense)):
            write_batch(options.work / f"{name}_{mean}", lengths, words, mean)
        for number in range(options.rounds):
            for name in (("dense", "mixed") if number % 2 == 0 else ("mixed", "dense")):
                taken, tokens[name] = token_time(options, text, model, options.work / f"{name}_{mean}")
                times[name].append(taken)
        ratios = [mixed_time / dense_time for mixed_time, dense_time in zip(times["mixed"], times["dense"])]
        worst = max(worst, statistics.median(ratios))
        rows.append([mean, f"{min(mixed)} – {max(mixed)}", tokens["mixed"], tokens["dense"], records.spread(times["dense"], 1e-6, 1),
                     records.spread(times["mixed"], 1e-6, 1), records.spread(ratios)])
        print(f"training_beside_torch.py: {TITLES[model]}, length {mean}: {rows[-1][-1]}", file=sys.stderr, flush=True)
    return records.table([f"{TITLES[model]}, mean length", "lengths", "target tokens, mixed", "dense", "dense, µs a token", "mixed, µs a token",
                          "mixed / dense"], rows), worst


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for Stretto's trainings")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch")
    parser.add_argument("--data", type=pathlib.Path, default=records.ROOT / "data/multi30k")
    parser.add_argument("--work", type=pathlib.Path, help="folder for tokenizer, sub-words and cache, which a second call takes as they are")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", choices=("torch", "dense"))
    parser.add_argument("--models", nargs="+", choices=RECIPES, default=list(RECIPES))
    forms = list(dict.fromkeys(form for each in FORMS.values() for form in each))
    parser.add_argument("--forms", nargs="+", choices=forms, metavar="FORM", help=f"of PyTorch, all by default: {'; '.join(forms)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=5, help="updates before the window; torch.compile works in them")
    parser.add_argument("--updates", type=int, default=15, help="of a window")
    parser.add_argument("--max-tokens", type=int, default=4096, help="real tokens of either side in a batch")
    parser.add_argument("--lengths", nargs="+", type=int, default=[5, 10, 20, 40, 80])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--preload", default="")
    parser.add_argument("--both", action="store_true", help="PyTorch without --preload too")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--goal", type=float, default=1.5)
    parser.add_argument("--smoke", action="store_true", help="made-up text, tiny models, two updates: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    options.preload = str(pathlib.Path(options.preload).resolve()) if options.preload else ""
    if options.preload and not pathlib.Path(options.preload).is_file():
        parser.error(f"--preload: there is no file {options.preload}")
    if options.only != "dense" and subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode != 0:
        parser.error(f"{options.python} has no torch: --python NAME, or --only dense")
    options.vocab, options.d_model = 8000, 256
    if options.smoke:
        options.vocab, options.d_model, options.max_tokens, options.rounds = 300, 32, 200, 1
        options.warm, options.updates, options.lengths, options.no_compile = 1, 2, [10], True
    options.rows = -(-options.vocab // 8) * 8  # of Stretto's table: tokenizer.vocab_multiple
    return options


def sections(options):
    """After each table: all tables so far, and a sentence for each."""
    text, parts, summary = Text(options), [], []
    if options.only != "dense":
        parts.append("## Beside PyTorch")
        for model in options.models:
            table, ratio = beside_torch(options, text, model)
            parts.append(table)
            summary.append(f"{TITLES[model]} trains {ratio:.2f} times as many tokens a second as the fastest form of PyTorch.")
            yield parts, summary
    if options.only != "torch":
        words = text.single_pieces()
        parts.append("## Beside a dense batch")
        for model in options.models:
            table, worst = beside_dense(options, text, model, words)
            parts.append(table)
            summary.append(f"{TITLES[model]} takes at most {worst:.2f} times a dense batch's time for each real token.")
            yield parts, summary


def page_of(options, head, parts, summary):
    preloaded = "PyTorch has a library preloaded that opens MKL's fast path" + (", but in the rows «as it is»." if options.both else ".")
    notes = [" ".join(summary), f"{options.rounds} rounds; threads: {options.threads}; fp32; windows of {options.updates} updates after "
             f"{options.warm}, with at most {options.max_tokens:,} real tokens on either side of a batch. Medians of rounds, with the least "
             f"and the most. {preloaded if options.preload else ''}"]
    return records.page("Training beside PyTorch", notes, "\n\n".join(parts), "two hours", head)


def main():
    options = parse()
    head, page = records.head_of_now(), ""
    with records.work_folder(options, "stretto_beside_torch_"):
        try:
            for parts, summary in sections(options):
                page = page_of(options, head, parts, summary)
                if options.out:
                    records.write_whole(options.out, page)
        finally:
            print(page, end="", flush=True)  # of what was measured, after Ctrl-C too
    return 0


if __name__ == "__main__":
    sys.exit(main())
