#!/usr/bin/env python3
"""The CTC loss of Stretto beside torch.nn.functional.ctc_loss, forward and backward, on ragged batches.

    python benchmarks/ctc_beside_torch.py --bench build/release/ctc_bench --threads 2 [--preload LIBRARY] [--out PAGE.md]

needs torch in this Python. Both begin at scores in fp32 and end at their gradients: PyTorch with log_softmax on a rectangle [T, B, C] and
ctc_loss, Stretto on packed rows (ctc_bench, of -DSTRETTO_BENCHMARKS=ON). For each kind of utterances and batch size both programs get the
same lengths; a round measures, one after the other,

    torch      batches in the order in which utterances come
    bucketed   torch on batches that were cut from a pool sorted by length
    stretto    the batches of `torch`
    sorted     Stretto on the batches of `bucketed`

Kinds: characters, 20 ms a frame and 14 letters a second; words, 40 ms and 4 pieces a second of 1,000 classes; digits, 0.3 to 1 s of one
word. The table has medians of rounds, in microseconds for 1,000 real frames, and ratios round by round. Takes some five minutes.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import records

POOL = 8  # batches that are sorted together before they are cut
# Seconds of utterances (least, most), frames a second, labels a second, classes.
KINDS = {"characters": (2, 16, 50, 14, 29), "words": (2, 16, 25, 4, 1001), "digits": (0.3, 1, 50, 7, 29)}


def utterances_of(kind, count, seed):
    """(frames, labels) of each; a pair has frames enough even if all labels are alike."""
    least, most, frame_rate, label_rate, _ = KINDS[kind]
    draw, found = random.Random(seed), []
    for _ in range(count):
        seconds = draw.triangular(least, most, least + 0.8 * (most - least))
        frames, labels = max(3, round(seconds * frame_rate)), max(1, round(seconds * label_rate * draw.uniform(0.7, 1.2)))
        found.append((frames, min(labels, (frames + 1) // 2)))
    return found


def batches_of(kind, batch, count, seed):
    def cut(pool):
        return [pool[i:i + batch] for i in range(0, len(pool), batch)]

    pool = utterances_of(kind, batch * POOL, seed)
    by_length = cut(sorted(pool))
    random.Random(seed).shuffle(by_length)
    return {"ragged": cut(pool)[:count], "by length": by_length[:count]}


def worker(options):
    """Reads jobs as lines of JSON, and answers each with the seconds of every batch: [both directions, forward]."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    for line in sys.stdin:
        job, answer = json.loads(line), []
        for batch in job["batches"]:
            frames, labels = torch.tensor(batch["frames"]), torch.tensor(batch["labels"])
            scores = torch.randn(int(frames.max()), len(frames), job["classes"], requires_grad=True)
            targets, taken = torch.randint(job["classes"] - 1, (int(labels.sum()),)), []
            for _ in range(job["repeats"] + 1):
                scores.grad = None
                begin = time.perf_counter()
                loss = functional.ctc_loss(scores.log_softmax(2), targets, frames, labels, blank=job["classes"] - 1, reduction="sum",
                                           zero_infinity=True)
                middle = time.perf_counter()
                loss.backward()
                taken.append((time.perf_counter() - begin, middle - begin))
            answer.append([statistics.median(both) for both in zip(*taken[1:])])
        print(json.dumps(answer), flush=True)


class Process:
    def __init__(self, command, preload=""):
        # glibc would give large blocks back at each step; Stretto's programs keep them.
        env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**env, "LD_PRELOAD": preload} if preload else env)

    def ask(self, job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else sys.exit(f"error: {self.process.args[0]} ended before it answered")


def compare(options, processes, kind, batch):
    classes, batches = KINDS[kind][4], batches_of(kind, batch, options.batches, options.seed)
    figures = {}
    for number in range(options.rounds):
        measured = [("torch", "torch", "ragged"), ("bucketed", "torch", "by length"), ("stretto", "stretto", "ragged"),
                    ("sorted", "stretto", "by length")]
        for name, process, form in measured if number % 2 else measured[::-1]:
            given = [{"frames": [frames for frames, _ in one], "labels": [labels for _, labels in one]} for one in batches[form]]
            seconds = processes[process].ask({"classes": classes, "repeats": options.repeats, "batches": given})
            frames = sum(sum(one["frames"]) for one in given)
            figures.setdefault(name, []).append(sum(both for both, _ in seconds) / frames * 1e9)
    middle = {name: statistics.median(values) for name, values in figures.items()}
    best = min(("torch", "bucketed"), key=lambda name: middle[name])
    ratios = [a / b for a, b in zip(figures[best], figures["stretto"])]
    return [kind, batch, classes, *(f"{middle[name]:,.0f}" for name in ("torch", "bucketed", "stretto", "sorted")), records.spread(ratios)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/ctc_bench")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 32, 128], help="utterances")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="of a batch in a round; the median counts")
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--preload", default="", help="a library for torch's process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, help="file for the page")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.worker:
        options.bench = records.program(parser, options.bench)
    return options


def main():
    options = parse()
    if options.worker:
        return worker(options)
    processes = {"torch": Process([sys.executable, __file__, "--worker", f"--threads={options.threads}"], options.preload),
                 "stretto": Process([options.bench, "--serve", f"--threads={options.threads}"])}
    rows = [compare(options, processes, kind, batch) for kind in options.kinds for batch in options.batch]
    titles = ["utterances", "batch", "classes", "torch", "torch, bucketed", "Stretto", "Stretto, bucketed", "torch's best / Stretto"]
    notes = [f"{options.threads} threads, forward and backward, microseconds for 1,000 real frames. Medians of {options.rounds} rounds; "
             "the ratio is that of the faster form of PyTorch to Stretto on ragged batches. The goal is 2."]
    records.publish(records.page("CTC beside PyTorch", notes, records.table(titles, rows), "minutes"), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
