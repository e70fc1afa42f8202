"""Prints tests/optim/torch_values.inc: weights after some steps of torch.optim, in double.

    python tests/optim/torch_values.py > tests/optim/torch_values.inc

A matrix [2, 3] with weight decay and a vector [3] without; element i of both, counted together,
begins at cos(i) and has gradient sin(0.7 step + 1.3 i); the rate of step s is 0.01 s.
"""

import math
import textwrap

import torch

EPSILON = torch.finfo(torch.float32).eps
BETAS = {"betas": (0.9, 0.98), "eps": 1e-8}
DECAY = 0.1
CASES = {
    "adam": lambda groups: torch.optim.Adam(groups, **BETAS),
    "adamw": lambda groups: torch.optim.AdamW(groups, **BETAS),
    "radam": lambda groups: torch.optim.RAdam(groups, decoupled_weight_decay=True, **BETAS),
    "sgd": lambda groups: torch.optim.SGD(groups, lr=1, momentum=0.9),
    "sgd_nesterov": lambda groups: torch.optim.SGD(groups, lr=1, momentum=0.9, nesterov=True),
    "adagrad": lambda groups: torch.optim.Adagrad(groups, eps=1e-8),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, alpha=0.98, eps=1e-8, momentum=0.9),
    "adafactor": lambda groups: torch.optim.Adafactor(groups, eps=(EPSILON, 1e-3)),
}


def run(make) -> dict[int, list[float]]:
    values = torch.tensor([math.cos(i) for i in range(9)], dtype=torch.float64)
    matrix, vector = values[:6].view(2, 3).clone(), values[6:].clone()
    optimizer = make([{"params": [matrix], "weight_decay": DECAY},
                      {"params": [vector], "weight_decay": 0.0}])
    after = {}
    for step in range(1, 11):
        slopes = torch.tensor([math.sin(0.7 * step + 1.3 * i) for i in range(9)],
                              dtype=torch.float64)
        matrix.grad, vector.grad = slopes[:6].view(2, 3), slopes[6:]
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * step
        optimizer.step()
        after[step] = matrix.flatten().tolist() + vector.tolist()
    return after


def main() -> None:
    version = torch.__version__.split("+")[0]
    print(f"// torch {version}; printed by torch_values.py, as its head says.")
    for name, make in CASES.items():
        after = run(make)
        for step in (1, 3, 10):
            numbers = ", ".join(f"{value:.10f}" for value in after[step])
            line = f'{{"{name}", {step}, {{{numbers}}}}},'
            print(textwrap.fill(line, 98, subsequent_indent=" "))


if __name__ == "__main__":
    main()
