#!/usr/bin/env python3
"""What `stretto plan --hours` predicts, beside what training then measures.

    plan_beside_runs.py CONFIG... [--hours H] [--held-out N] [--measure-seconds S] [--dir DIR]

For each configuration it makes a plan, takes N of its choices that were not measured, far from each
other in size, trains each for as many updates as the plan gives it, and prints a table: time of an
update, peak memory and the loss at the end, with the errors of the predictions. Needs
build/release/stretto and the data of the configurations.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRETTO = ROOT / "build" / "release" / "stretto"
WARM = 5  # updates that are left out


def plan_of(config: str, options: argparse.Namespace, folder: pathlib.Path) -> dict:
    words = [STRETTO, "plan", "--hours", str(options.hours), config, "--json", "--dir", folder / "sizes",
             "--measure-seconds", str(options.measure_seconds)]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def held_out(plan: dict, count: int) -> list[dict]:
    """Choices between and beside the sizes that were measured, from the smallest to the largest."""
    measured = {one["parameters"] for one in plan["measured"]}
    most = 2 * max(measured)
    others = sorted((choice for choice in plan["choices"] if choice["parameters"] not in measured
                     and choice["parameters"] <= most), key=lambda choice: choice["parameters"])
    if len(others) <= count:
        return others
    step = (len(others) - 1) / max(count - 1, 1)
    return [others[round(i * step)] for i in range(count)]


def trained(config: str, choice: dict, folder: pathlib.Path) -> dict:
    """Medians of time, the peak of memory, and the mean loss of the last tenth of the updates."""
    updates = max(int(choice["updates"]["value"]), 2 * WARM)
    words = [STRETTO, "train", config, *choice["overrides"], f"train.update_freq={choice['micro_batches']}",
             f"optim.lr={choice['learning_rate']:.6g}", f"train.max_steps={updates}", "train.patience=0",
             "report.every=1", "eval.every=1000000000", "--run", folder, "--quiet"]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
        events = [event for event in map(json.loads, lines) if event["event"] == "train"]
    times = [after["seconds"] - before["seconds"] for before, after in zip(events[WARM:], events[WARM + 1:])]
    tail = events[-max(1, len(events) // 10):]
    return {"seconds": statistics.median(times), "loss": statistics.fmean(event["loss"] for event in tail),
            "bytes": max(event.get("peak_device_memory_bytes") or event["peak_memory_bytes"] for event in events)}


def row(config: str, choice: dict, run: dict) -> str:
    cells = [pathlib.Path(config).stem, f"{choice['parameters'] / 1e6:.2f}M"]
    for name, key, scale in (("update_seconds", "seconds", 1e3), ("peak_bytes", "bytes", 1e-6), ("loss", "loss", 1)):
        predicted, measured = choice[name]["value"], run[key]
        cells.append(f"{predicted * scale:.4g} ± {choice[name]['error'] * scale:.2g} | {measured * scale:.4g} | "
                     f"{100 * (predicted / measured - 1):+.1f} %")
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", nargs="+")
    parser.add_argument("--hours", type=float, default=0.05)
    parser.add_argument("--held-out", type=int, default=3)
    parser.add_argument("--measure-seconds", type=float, default=60)
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("build/plan_beside_runs"))
    options = parser.parse_args()
    print("| recipe | parameters | ms an update | measured | error | MB at the peak | measured | error | loss | "
          "measured | error |\n|" + "---|" * 11, flush=True)
    for config in options.config:
        folder = options.dir / pathlib.Path(config).stem
        plan = plan_of(config, options, folder)
        for choice in held_out(plan, options.held_out):
            run = trained(config, choice, folder / f"run_{int(choice['parameters'])}")
            print(row(config, choice, run), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
