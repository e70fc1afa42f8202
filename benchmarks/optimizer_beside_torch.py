#!/usr/bin/env python3
"""Optimizer steps of Stretto beside torch.optim (foreach, fused), interleaved, at one model size.

    python benchmarks/optimizer_beside_torch.py --bench build/release/optimizer_bench --threads 2

needs torch in this Python. Each round steps torch's variants and then starts optimizer_bench for
the same rule, number of elements and threads; the best step of all rounds counts. The model is that
of optimizer_bench.cpp: matrices [256, 1024] and vectors [1024] in turn. Prints milliseconds, the
share of the memory bandwidth that optimizer_bench measured in the same rounds, and how many times
longer torch takes.
"""

import argparse
import json
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


def parameters(elements: int) -> list[torch.Tensor]:
    made = []
    while elements > 0:
        tensor = torch.randn(256, 1024) if len(made) % 2 == 0 else torch.randn(1024)
        tensor.mul_(0.02).requires_grad_()
        tensor.grad = torch.randn_like(tensor) * 0.01
        elements -= tensor.numel()
        made.append(tensor)
    return made


def best_torch_step(rule: str, variant: str, elements: int, steps: int) -> float:
    make, options, _ = RULES[rule]
    optimizer = make(parameters(elements), **options, **{variant: True})
    optimizer.step()  # makes the state
    best = float("inf")
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.step()
        best = min(best, time.perf_counter() - start)
    return best


def stretto_step(arguments: argparse.Namespace, rule: str, elements: int) -> dict:
    command = [arguments.bench, f"--elements={elements}", f"--threads={arguments.threads}",
               f"--rounds={arguments.steps}", f"--names={rule}", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(arguments: argparse.Namespace, rule: str, elements: int) -> str:
    variants = RULES[rule][2]
    torch_best = dict.fromkeys(variants, float("inf"))
    ours, rate, bandwidth = float("inf"), 0.0, 0.0
    for _ in range(arguments.rounds):
        for variant in variants:
            torch_best[variant] = min(
                torch_best[variant], best_torch_step(rule, variant, elements, arguments.steps))
        line = stretto_step(arguments, rule, elements)
        ours = min(ours, line["seconds"])
        rate = max(rate, line["bytes_per_second"])
        bandwidth = max(bandwidth, line["bandwidth"])
    theirs = [f"{torch_best[v] * 1e3:.2f} ({torch_best[v] / ours:.2f}x)" if v in torch_best else "-"
              for v in ("foreach", "fused")]
    cells = [rule, f"{elements:,}", f"{ours * 1e3:.2f}", f"{rate / 1e9:.1f}",
             f"{100 * rate / bandwidth:.0f} %", *theirs]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program optimizer_bench")
    parser.add_argument("--elements", type=int, nargs="+", default=[60_000_000, 8_000_000])
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of all programs in turn")
    parser.add_argument("--steps", type=int, default=5, help="of each program in a round")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    print(f"torch {torch.__version__}, {arguments.threads} threads; milliseconds, best of "
          f"{arguments.rounds} x {arguments.steps}")
    print("| rule | elements | Stretto | GB/s | of bandwidth | foreach | fused |")
    print("|---|---|---|---|---|---|---|")
    for elements in arguments.elements:
        for rule in arguments.rules:
            print(compare(arguments, rule, elements), flush=True)


if __name__ == "__main__":
    main()
