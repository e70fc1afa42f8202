#!/usr/bin/env python3
"""Optimizer steps of Stretto beside the machine's memory bandwidth and torch.optim (foreach, fused).

    python benchmarks/optimizer_beside_torch.py --bench build/release/optimizer_bench --threads 2

needs torch in this Python; --device=cuda compares on a GPU. Each round steps torch's variants and
then starts optimizer_bench for the same rule, number of elements and threads; a round's figure is
the median of its steps, and the table gives the median of the rounds with the least and the most.
The bandwidth is the better of a triad and an update in place, measured by optimizer_bench before
each of its steps; the share is that of the same moment. Ratios are torch's time over Stretto's,
round by round. The model is that of optimizer_bench.cpp: matrices [256, 1024] and vectors [1024] in
turn.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch

RULES = {
    "adam": (torch.optim.Adam, {"lr": 1e-4, "weight_decay": 0.01}, ("foreach", "fused")),
    "adamw": (torch.optim.AdamW, {"lr": 1e-4, "weight_decay": 0.01}, ("foreach", "fused")),
    "radam": (torch.optim.RAdam, {"lr": 1e-4, "weight_decay": 0.01, "decoupled_weight_decay": True},
              ("foreach",)),
    "sgd": (torch.optim.SGD, {"lr": 1e-4, "momentum": 0.9, "weight_decay": 0.01},
            ("foreach", "fused")),
    "adagrad": (torch.optim.Adagrad, {"lr": 1e-4, "weight_decay": 0.01}, ("foreach", "fused")),
    "rmsprop": (torch.optim.RMSprop, {"lr": 1e-4, "momentum": 0.9, "weight_decay": 0.01},
                ("foreach",)),
    "adafactor": (torch.optim.Adafactor, {"lr": 1e-4, "weight_decay": 0.01}, ("foreach",)),
}


def parameters(elements: int, device: str) -> list[torch.Tensor]:
    made = []
    while elements > 0:
        shape = (256, 1024) if len(made) % 2 == 0 else (1024,)
        tensor = torch.randn(shape, device=device).mul_(0.02).requires_grad_()
        tensor.grad = torch.randn_like(tensor) * 0.01
        elements -= tensor.numel()
        made.append(tensor)
    return made


def now(device: str) -> float:
    """The clock, when a GPU has done all that it was handed."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def torch_step(rule: str, variant: str, elements: int, steps: int, device: str) -> float:
    make, options, _ = RULES[rule]
    optimizer = make(parameters(elements, device), **options, **{variant: True})
    optimizer.step()  # makes the state
    seconds = []
    for _ in range(steps):
        start = now(device)
        optimizer.step()
        seconds.append(now(device) - start)
    return statistics.median(seconds)


def stretto_step(arguments: argparse.Namespace, rule: str, elements: int) -> tuple[float, float, float]:
    """Seconds, bytes a second and bandwidth, each the median of one start of optimizer_bench."""
    command = [arguments.bench, f"--elements={elements}", f"--threads={arguments.threads}",
               f"--rounds={arguments.steps}", f"--names={rule}", f"--device={arguments.device}", "--json"]
    line = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds = statistics.median(line["seconds"])
    return seconds, line["bytes"] / seconds, statistics.median(line["bandwidth"])


def spread(values: list[float], unit: float = 1, decimals: int = 2) -> str:
    least, middle, most = (f"{f(values) / unit:.{decimals}f}" for f in (min, statistics.median, max))
    return f"{middle} ({least} – {most})"


def compare(arguments: argparse.Namespace, rule: str, elements: int) -> str:
    variants = RULES[rule][2]
    theirs: dict[str, list[float]] = {variant: [] for variant in variants}
    ours, rates, bandwidths = [], [], []
    for _ in range(arguments.rounds):
        for variant in variants:
            theirs[variant].append(torch_step(rule, variant, elements, arguments.steps, arguments.device))
        for values, value in zip((ours, rates, bandwidths), stretto_step(arguments, rule, elements)):
            values.append(value)
    shares = [rate / bandwidth for rate, bandwidth in zip(rates, bandwidths)]
    columns = []
    for variant in ("foreach", "fused"):
        if variant in theirs:
            ratio = statistics.median(t / o for t, o in zip(theirs[variant], ours))
            columns.append(f"{spread(theirs[variant], 1e-3)}, {ratio:.2f}x")
        else:
            columns.append("-")
    cells = [rule, f"{elements:,}", spread(ours, 1e-3), spread(rates, 1e9, 1), spread(bandwidths, 1e9, 1),
             f"{spread(shares, 0.01, 0)} %", *columns]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program optimizer_bench")
    parser.add_argument("--elements", type=int, nargs="+", default=[8_000_000, 60_000_000])
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=5, help="of all programs in turn")
    parser.add_argument("--steps", type=int, default=5, help="of each program in a round")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else f"{arguments.threads} threads"
    print(f"torch {torch.__version__}, {where}; milliseconds and GB/s: median of "
          f"{arguments.rounds} rounds (least – most), each the median of {arguments.steps} steps\n")
    print("| rule | elements | Stretto ms | GB/s | bandwidth GB/s | of bandwidth | foreach ms | fused ms |")
    print("|---|---|---|---|---|---|---|---|")
    for elements in arguments.elements:
        for rule in arguments.rules:
            print(compare(arguments, rule, elements), flush=True)


if __name__ == "__main__":
    main()
