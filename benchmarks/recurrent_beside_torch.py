#!/usr/bin/env python3
"""Recurrent layers of Stretto beside torch.nn.LSTM and torch.nn.GRU, on sequences of unequal length.

    python benchmarks/recurrent_beside_torch.py --bench build/release/recurrent_bench --threads 2 \\
        --preload /tmp/peers/libmkl_any.so

needs torch in this Python. One layer in one direction with as many inputs as units, forward and
backward with the gradients of input and weights, fp32 on the CPU. For each size and batch both
programs get the same list of batches; a round measures, one after the other,

    packed    torch on pack_padded_sequence, sorted by length
    padded    torch on rectangles of batches that were cut from a pool sorted by length
    dense     Stretto on batches of as many tokens whose sequences all have one length
    stretto   Stretto on the batches of `packed`
    bucketed  Stretto on the batches of `padded`

The table has medians of the rounds, in microseconds for 1000 real tokens, and ratios round by
round. --preload names a library for torch's process alone, for instance one that shows MKL's fast
paths to a processor that is not Intel's; torch is also measured without it where --both is given.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

POOL = 8  # batches that are sorted together before they are cut


def lengths_of(kind: str, count: int, seed: int) -> list[int]:
    draw = random.Random(seed)
    if kind == "multi30k":  # words of a caption: 4 to 40, most near 12
        return [max(4, min(40, round(draw.lognormvariate(2.5, 0.33)))) for _ in range(count)]
    if kind == "spread":  # 10 to 100, most below 40
        return [max(10, min(100, round(draw.lognormvariate(3.3, 0.5)))) for _ in range(count)]
    return [int(kind)] * count


def batches_of(kind: str, batch: int, count: int, seed: int) -> dict[str, list[list[int]]]:
    pool = lengths_of(kind, batch * POOL, seed)
    as_they_come = [pool[i : i + batch] for i in range(0, len(pool), batch)][:count]
    pool.sort()
    cut = [pool[i : i + batch] for i in range(0, len(pool), batch)]
    random.Random(seed).shuffle(cut)
    return {"packed": as_they_come, "padded": cut[:count]}


def worker(arguments: argparse.Namespace) -> None:
    """Reads jobs as lines of JSON and answers each with seconds of every batch."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    for line in sys.stdin:
        job = json.loads(line)
        size = job["hidden"]
        layer = getattr(torch.nn, job["cell"].upper())(size, size, batch_first=job["form"] == "padded")
        seconds = []
        for lengths in job["batches"]:
            lengths = sorted(lengths, reverse=True)
            x = torch.randn(len(lengths), lengths[0], size)
            if job["form"] == "packed":
                data = pack_padded_sequence(x, lengths, batch_first=True)
                rows = data.data.detach().requires_grad_()
                data = torch.nn.utils.rnn.PackedSequence(rows, data.batch_sizes)
                slope = torch.randn(rows.shape[0], size)
            else:
                data = x.requires_grad_()
                inside = torch.arange(lengths[0]).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
                slope = torch.randn(x.shape) * inside.unsqueeze(2)
            taken = []
            for _ in range(job["repeats"]):
                layer.zero_grad()
                start = time.perf_counter()
                out = layer(data)[0]
                out = out.data if job["form"] == "packed" else out
                middle = time.perf_counter()
                out.backward(slope)
                taken.append((time.perf_counter() - start, middle - start))
            seconds.append([statistics.median(both) for both in zip(*taken)] + [taken[0][0]])
        print(json.dumps(seconds), flush=True)


class Process:
    def __init__(self, command: list[str], preload: str = "", environment: dict[str, str] | None = None):
        environment = dict(os.environ, **(environment or {}))
        if preload:
            environment["LD_PRELOAD"] = preload
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)

    def ask(self, job: dict) -> list[list[float]]:
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"error: {self.process.args[0]} ended before it answered")
        return json.loads(line)


def per_thousand(seconds: list[list[float]], tokens: int, column: int = 0) -> float:
    return sum(one[column] for one in seconds) / tokens * 1e9


def compare(arguments: argparse.Namespace, processes: dict[str, Process], cell: str, hidden: int,
            kind: str, batch: int) -> str:
    batches = batches_of(kind, batch, arguments.batches, arguments.seed)
    job = {"cell": cell, "hidden": hidden, "repeats": arguments.repeats}
    figures: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        def note(name: str, process: str, form: str, lengths: list[list[int]]) -> None:
            seconds = processes[process].ask({**job, "form": form, "batches": lengths})
            tokens = sum(map(sum, lengths))
            figures.setdefault(name, []).append(per_thousand(seconds, tokens))
        dense = [[max(1, round(sum(one) / len(one)))] * len(one) for one in batches["packed"]]
        for name in [n for n in processes if n.startswith("torch")]:
            note(name + " packed", name, "packed", batches["packed"])
            note(name + " padded", name, "padded", batches["padded"])
        note("dense", "stretto", "packed", dense)
        note("stretto", "stretto", "packed", batches["packed"])
        note("bucketed", "stretto", "packed", batches["padded"])
    middle = {name: statistics.median(values) for name, values in figures.items()}
    def ratio(above: str, below: str) -> float:
        return statistics.median(a / b for a, b in zip(figures[above], figures[below]))
    theirs = min((n for n in figures if n.startswith("torch")), key=lambda n: middle[n])
    cells = [cell, str(hidden), str(batch), kind]
    cells += [f"{middle[n]:.0f}" for n in figures if n.startswith("torch")]
    cells += [f"{middle[n]:.0f}" for n in ("dense", "stretto", "bucketed")]
    ours = "bucketed" if theirs.endswith("padded") else "stretto"
    cells += [f"{ratio('stretto', 'dense'):.2f}", f"{ratio(theirs, ours):.2f}", f"{ratio(theirs, 'stretto'):.2f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", help="the program recurrent_bench")
    parser.add_argument("--cells", nargs="+", default=["lstm", "gru"])
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--lengths", nargs="+", default=["multi30k", "spread"],
                        help="multi30k, spread, or one length for all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="of a batch in a round; the median counts")
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--preload", default="")
    parser.add_argument("--both", action="store_true", help="torch without --preload too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(arguments)
    if not arguments.bench:
        parser.error("--bench is missing: build/release/recurrent_bench")
    theirs = [sys.executable, __file__, "--worker", f"--threads={arguments.threads}"]
    # glibc would give large blocks back at each step; Stretto's programs keep them, torch may too.
    keeping = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
    processes = {"torch": Process(theirs, arguments.preload, keeping)}
    if arguments.both:
        processes["torch as it is"] = Process(theirs)
    processes["stretto"] = Process([arguments.bench, "--serve", f"--threads={arguments.threads}"])
    names = [f"{n} {form}" for n in processes if n.startswith("torch") for form in ("packed", "padded")]
    names += ["dense", "stretto", "bucketed", "stretto / dense", "torch's best / same batches",
              "torch's best / stretto"]
    print("| cell | hidden | batch | lengths | " + " | ".join(names) + " |")
    print("|" + "---|" * (len(names) + 4))
    for cell in arguments.cells:
        for hidden in arguments.hidden:
            for kind in arguments.lengths:
                for batch in arguments.batch:
                    print(compare(arguments, processes, cell, hidden, kind, batch), flush=True)


if __name__ == "__main__":
    main()
