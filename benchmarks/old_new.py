#!/usr/bin/env python3
"""Two builds of Stretto on the same work, in turn: training and decoding of W1 (3+3 layers, d_model 256) and W2 (the base model).

    benchmarks/old_new.py OLD_PROGRAM NEW_PROGRAM --data data/multi30k [--out benchmarks/old_new_….md] [key=value …]

Training: each round starts both programs, the order changing from round to round. Target tokens a second are counted between the
arrival of the line of update --warm and that of the last one, as in beside_peers.py. Decoding: the old program first trains a model
for --model-updates; then both decode the same lines of the test set with a beam of 5, in turn. Seconds are those of `infer --stats`:
loading is not among them. The ratio is new over old, round by round; the table gives its median with the least and the most, and
whether both gave the same losses and translations. key=value goes to all trainings; --old-key key=value to those of the old program, for
keys that it knows by another name. --old-config is its recipe, if it cannot read the new one. --recipe measures the training of another
recipe of translation instead of the workloads. --together trains with both at once, each on one core, which they change from round to
round: what else happens on the machine then slows both alike.

Leaves with 1 if a median ratio is below --least.
"""
import argparse
import concurrent.futures
import gzip
import hashlib
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

import beside_peers
import records

SIZES = {"W1": (3, 256, 1024, 4), "W2": (6, 512, 2048, 8)}  # layers, d_model, ffn_dim, heads
RECIPE = "configs/translation/multi30k_beside_peers.toml"
STATS = re.compile(r"([\d,]+) lines? in .*?([\d,.]+) s\s*$", re.M)


class Build:
    def __init__(self, name, stretto, config, keys):
        self.name, self.stretto, self.config, self.keys = name, stretto, config, keys

    def training(self, options, workload, folder, updates):
        """The command of a training; `updates` may be {U}, `folder` {RUN}."""
        keys = []
        if workload in SIZES:
            layers, width, inner, heads = SIZES[workload]
            keys = [f"model.d_model={width}", *(f"model.{side}.{key}={value}" for side in ("encoder", "decoder") for key, value in
                                                (("num_layers", layers), ("ffn_dim", inner), ("num_heads", heads)))]
        if options.smoke:
            keys += ["tokenizer.vocab_size=300"]
        return [self.stretto, "train", self.config, "--run", folder, *keys, *records.text_keys(options.data),
                f"data.cache_dir={options.work}/cache", f"data.max_tokens={options.max_tokens}", f"train.max_steps={updates}",
                f"train.save_every={10**6}", f"eval.every={10**6}", "eval.bleu=false", f"schedule.warmup_steps={options.warm}",
                "report.every=1", "report.html=false", "report.tensorboard=false", *options.key, *self.keys]

    def train_window(self, options, workload, core=None):
        """Target tokens a second and memory of one window, on one core or on all, and the losses of all updates."""
        log = options.work / f"losses_{self.name}.txt"
        pin = [] if core is None else ["taskset", "--cpu-list", str(core)]
        follow = [*pin, sys.executable, str(records.ROOT / "benchmarks/follow_metrics.py"), "{RUN}", "--",
                  *self.training(options, workload, "{RUN}", "{U}")]
        # A shell keeps the lines too, so that the losses of both builds can be compared.
        command = f"bash -c {shlex.quote(f'set -o pipefail; {shlex.join(follow)} | tee {shlex.quote(str(log))}')}"
        window = beside_peers.run(command, options.warm, options.updates)
        window["losses"] = [line.split()[1:] for line in log.read_text().splitlines() if line.startswith("UPD")]
        return window

    def decode(self, options, run, lines):
        """Lines a second, and a hash of the output."""
        done = subprocess.run([self.stretto, "infer", str(run), str(lines), "--stats", "--beam", "5", *options.key_of_decoding],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        found = STATS.search(done.stderr)
        if done.returncode != 0 or not found:
            sys.exit(f"error: {self.name}: infer left with {done.returncode}\n{done.stderr}")
        count, seconds = (float(value.replace(",", "")) for value in found.groups())
        return {"rate": count / max(seconds, 1e-9), "hash": hashlib.sha256(done.stdout.encode()).hexdigest()}


def in_turn(number, builds):
    return builds if number % 2 == 0 else builds[::-1]


def train_round(options, builds, workload, number):
    """Each build and its window."""
    order = in_turn(number, builds)
    if not options.together:
        return ((build, build.train_window(options, workload)) for build in order)
    with concurrent.futures.ThreadPoolExecutor(len(order)) as pool:
        waiting = [pool.submit(build.train_window, options, workload, core) for core, build in enumerate(order)]
        return [(build, found.result()) for build, found in zip(order, waiting)]


def measure_training(options, builds, workload):
    windows = {build.name: [] for build in builds}
    for number in range(options.rounds):
        for build, window in train_round(options, builds, workload, number):
            windows[build.name].append(window)
            print(f"old_new.py: {workload} training, round {number + 1}, {build.name}: {windows[build.name][-1]['rate']:.0f} tokens/s",
                  file=sys.stderr, flush=True)
    same = all(a["losses"] == b["losses"] for a, b in zip(windows["old"], windows["new"]))
    return row(f"{workload}, training, target tokens/s", windows, "same losses" if same else "other losses") + [
        f"{max(w['rss'] for w in windows[build.name])}" for build in builds], ratio_of(windows)


def measure_decoding(options, builds, workload):
    run, lines = options.work / f"model_{workload}", options.work / "lines.en"
    if not (run / "metrics.jsonl").exists() or '"event":"end"' not in (run / "metrics.jsonl").read_text():
        done = subprocess.run([*builds[0].training(options, workload, str(run), options.model_updates), "--quiet"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(done.args)}\nleft with {done.returncode}:\n{done.stderr}")
    test = records.text_file(options.data, "test_2016_flickr.en")
    text = (gzip.open if test.suffix == ".gz" else open)(test, "rt", encoding="utf-8").read().splitlines(keepends=True)
    lines.write_text("".join(text[:options.sentences]), encoding="utf-8")
    windows = {build.name: [] for build in builds}
    for number in range(options.rounds):
        for build in in_turn(number, builds):
            windows[build.name].append(build.decode(options, run, lines))
            print(f"old_new.py: {workload} decoding, round {number + 1}, {build.name}: {windows[build.name][-1]['rate']:.1f} sentences/s",
                  file=sys.stderr, flush=True)
    same = len({window["hash"] for found in windows.values() for window in found}) == 1
    return row(f"{workload}, decoding, sentences/s", windows, "same output" if same else "other output", 1) + ["", ""], ratio_of(windows)


def ratios(windows):
    return [new["rate"] / old["rate"] for old, new in zip(windows["old"], windows["new"])]


def ratio_of(windows):
    return statistics.median(ratios(windows))


def row(name, windows, same, decimals=0):
    return [name, *(records.spread([w["rate"] for w in windows[build]], decimals=decimals) for build in ("old", "new")),
            records.spread(ratios(windows)), same]


def page_of(options, rows, head):
    manner = "both at once, each on a core of its own, changed from round to round" if options.together else "in turn"
    notes = [f"{options.rounds} rounds, {manner}; a window of training has {options.updates} updates after {options.warm}, decoding "
             f"{options.sentences} sentences with a beam of 5. Medians, with the least and the most. The ratio is new over old, round by "
             "round."]
    body = records.table(["what", "old", "new", "new / old", "results", "peak RSS MiB, old", "new"], rows)
    return records.page("An old and a new build", notes, body, "half an hour", head)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("key", nargs="*", metavar="key=value")
    parser.add_argument("--data", type=pathlib.Path, default=records.ROOT / "data/multi30k")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="folder for the decoded models, which a second call takes as they are; default temporary")
    parser.add_argument("--workloads", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--recipe", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=5, help="updates before the window")
    parser.add_argument("--updates", type=int, default=20, help="of a window")
    parser.add_argument("--max-tokens", type=int, default=1890, help="data.max_tokens")
    parser.add_argument("--model-updates", type=int, default=150, help="of the model that is decoded")
    parser.add_argument("--sentences", type=int, default=300, help="that are decoded in a round")
    parser.add_argument("--together", action="store_true", help="trains with both at once, each on a core of its own")
    parser.add_argument("--only", choices=("training", "decoding"))
    parser.add_argument("--least", type=float, default=0.98, help="smallest median ratio that is accepted")
    parser.add_argument("--old-config", default=records.ROOT / RECIPE, type=pathlib.Path)
    parser.add_argument("--old-key", action="append", default=[], metavar="key=value")
    parser.add_argument("--smoke", action="store_true", help="made-up text and two rounds of few updates: tries the script, measures nothing")
    options = parser.parse_args()
    options.old, options.new = records.program(parser, options.old), records.program(parser, options.new)
    if options.recipe:
        options.workloads, options.only, options.old_config = [options.recipe.stem], "training", options.recipe
    options.key_of_decoding = [key for key in options.key if key.startswith("run.threads=")]
    if options.smoke:
        SIZES["W1"] = (1, 32, 64, 2)
        options.workloads, options.rounds, options.warm, options.updates = ["W1"], 2, 2, 3
        options.max_tokens, options.model_updates, options.sentences, options.least = 200, 4, 5, 0
    return options


def main():
    options = parse()
    head, rows, slow = records.head_of_now(), [], []
    with records.work_folder(options, "stretto_old_new_"):
        builds = [Build("old", options.old, str(options.old_config), options.old_key),
                  Build("new", options.new, str(options.recipe or records.ROOT / RECIPE), [])]
        for workload in options.workloads:
            for kind, measure in (("training", measure_training), ("decoding", measure_decoding)):
                if options.only in (None, kind):
                    cells, ratio = measure(options, builds, workload)
                    rows.append(cells)
                    if options.out:
                        records.write_whole(options.out, page_of(options, rows, head))
                    slow += [f"{workload}, {kind}: {ratio:.3f}"] if ratio < options.least else []
    records.publish(page_of(options, rows, head), options.out)
    for line in slow:
        print(f"old_new.py: below {options.least}: {line}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
