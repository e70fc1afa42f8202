#!/usr/bin/env python3
"""Convolutions in time of Stretto beside PyTorch's, for each real token of the same batches.

    python benchmarks/convolutions_beside_torch.py --bench build/release/kernels_bench --threads 2 \\
        --preload libmkl_any.so

needs torch in this Python. Each round starts kernels_bench and then, in processes of their own,
torch.nn.functional.conv1d on [B, C, T] and torch.conv_tbc on [T, B, C] (what fairseq's ConvS2S calls),
plainly and with the library of --preload in LD_PRELOAD: MKL takes a slow path on AMD's processors unless
mkl_serv_intel_cpu_true() says 1. Figures are microseconds of forward and backward for each real token,
medians of the rounds with the least and the most; the ratio is the fastest of PyTorch's over Stretto's,
round by round.

The batches are those of convolutions_bench.cpp, made by the same rule: sources with a centred window,
targets with a causal one, padded to the longest of the batch.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

PAIRS, BATCHES = 29_000, 3
WORD = (1 << 64) - 1
Batch = tuple[list[int], bool]


def mix64(a: int, b: int) -> int:
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def normal_number(stream: int, index: int) -> float:
    start = mix64(stream, index)
    return sum((mix64(start, i) >> 11) * 2.0**-53 for i in range(12)) - 6


def length(mean: float, deviation: float, x: float) -> int:
    return min(max(math.floor(math.exp(mean + deviation * x) + 0.5), 3), 46)


def pair_of(index: int) -> tuple[int, int]:
    a, b = normal_number(1, index), normal_number(2, index)
    return length(2.61, 0.28, a), length(2.57, 0.30, 0.86 * a + math.sqrt(1 - 0.86**2) * b)


def some_batches(most_tokens: int) -> list[Batch]:
    """(lengths, causal) of every n-th batch, sources and targets."""
    batches: list[list[tuple[int, int]]] = [[]]
    longest = 0
    for pair in sorted(map(pair_of, range(PAIRS))):
        longest = max(longest, *pair)
        if (len(batches[-1]) + 1) * longest > most_tokens:
            batches.append([])
            longest = max(pair)
        batches[-1].append(pair)
    chosen = [batches[len(batches) * (2 * i + 1) // (2 * BATCHES)] for i in range(BATCHES)]
    return [([pair[side] for pair in batch], side == 1) for batch in chosen for side in (0, 1)]


def measure(name: str, channels: int, kernel: int, batches: list[Batch], steps: int) -> float:
    """Seconds of all batches: the sum of the medians of their steps."""
    import torch
    from torch.nn import functional

    bias = torch.randn(channels, requires_grad=True)
    shape = (channels, channels, kernel) if name == "conv1d" else (kernel, channels, channels)
    weight = (torch.randn(shape) / math.sqrt(channels * kernel)).requires_grad_()
    total = 0.0
    for lengths, causal in batches:
        count, longest = len(lengths), max(lengths)
        left, both = (kernel - 1, 0) if causal else (0, kernel // 2)
        if name == "conv1d":
            x = torch.randn(count, channels, longest, requires_grad=True)
            call = lambda: functional.conv1d(functional.pad(x, (left, 0)) if causal else x, weight, bias,
                                             padding=both)
        else:
            x = torch.randn(longest, count, channels, requires_grad=True)
            call = lambda: torch.conv_tbc(functional.pad(x, (0, 0, 0, 0, left, 0)) if causal else x,
                                          weight, bias, both)
        slope = torch.randn_like(call())
        seconds = []
        for _ in range(steps + 2):
            start = time.perf_counter()
            torch.autograd.grad(call(), (x, weight, bias), slope)
            seconds.append(time.perf_counter() - start)
        total += statistics.median(seconds[2:])
    return total


def measure_all(arguments: argparse.Namespace) -> None:
    """What a child does: one JSON object of microseconds for each real token."""
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    found = {}
    for tokens in arguments.tokens:
        batches = some_batches(tokens)
        real = sum(sum(lengths) for lengths, _ in batches)
        for channels in arguments.channels:
            for kernel in arguments.kernels:
                for name in ("conv1d", "conv_tbc"):
                    seconds = measure(name, channels, kernel, batches, arguments.steps)
                    found[f"{tokens}/{channels}/{kernel}/{name}"] = seconds / real * 1e6
    print(json.dumps({"torch": torch.__version__, "found": found}))


def run_child(arguments: argparse.Namespace, preload: str) -> dict:
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    if preload:
        environment["LD_PRELOAD"] = os.path.abspath(preload)
    command = [sys.executable, __file__, "--measure", *sys.argv[1:]]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


def run_stretto(arguments: argparse.Namespace) -> dict[str, float]:
    command = [arguments.bench, f"--threads={arguments.threads}", "--benchmark_format=json",
               "--benchmark_filter=^time_convolution", "--benchmark_min_time=1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = {}
    for line in json.loads(done.stdout)["benchmarks"]:
        _, shape, tokens = line["name"].split("/")[:3]
        channels, kernel = shape.split("_k")
        found[f"{tokens}/{channels}/{kernel}"] = line["us_token"]
        found[f"{tokens}/{channels}/{kernel}/dense"] = line["dense_x"]
    return found


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} – {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program kernels_bench")
    parser.add_argument("--preload", default="", help="a library for LD_PRELOAD of a second PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of all programs in turn")
    parser.add_argument("--steps", type=int, default=7, help="of each batch in a round")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048], choices=(1024, 2048))
    parser.add_argument("--channels", type=int, nargs="+", default=[256, 512], choices=(256, 512))
    parser.add_argument("--kernels", type=int, nargs="+", default=[3, 5, 7], choices=(3, 5, 7))
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure_all(arguments)

    variants = {"": ""} | ({" preloaded": arguments.preload} if arguments.preload else {})
    rounds = []
    for _ in range(arguments.rounds):
        ours = run_stretto(arguments)
        theirs = {}
        for label, preload in variants.items():
            child = run_child(arguments, preload)
            theirs |= {key + label: value for key, value in child["found"].items()}
        rounds.append((ours, theirs))
    names = [name + label for name in ("conv1d", "conv_tbc") for label in variants]
    print(f"torch {child['torch']}, {arguments.threads} threads; µs for each real token, {arguments.rounds} rounds\n")
    print("| tokens | C | k | Stretto | of equal lengths | " + " | ".join(names) + " | ratio |")
    print("|---" * (6 + len(names)) + "|")
    for tokens in arguments.tokens:
        for channels in arguments.channels:
            for kernel in arguments.kernels:
                key = f"{tokens}/{channels}/{kernel}"
                best = [min(theirs[f"{key}/{name}"] for name in names) / ours[key] for ours, theirs in rounds]
                columns = [spread([ours[key] for ours, _ in rounds]),
                           spread([ours[key + "/dense"] for ours, _ in rounds]) + "x",
                           *(spread([theirs[f"{key}/{name}"] for _, theirs in rounds]) for name in names),
                           spread(best) + "x"]
                print(f"| {tokens} | {channels} | {kernel} | " + " | ".join(columns) + " |")


if __name__ == "__main__":
    main()
