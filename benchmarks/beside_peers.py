#!/usr/bin/env python3
"""Training speed of several trainers, one after the other in each round, measured in the same way.

    benchmarks/beside_peers.py --rounds 5 --tool 'stretto=COMMAND' --tool 'fairseq=COMMAND' …

Each COMMAND trains for {U} updates and logs every update; `{RUN}` is a fresh folder. Three kinds of log lines are
understood: `UPD n ntok …` (benchmarks/follow_metrics.py prints them), fairseq's `--log-format json --log-interval 1`,
and OpenNMT-py's `report_every: 1`. A window is the time between the arrival of the line of update WARM and that of
WARM + UPDATES; tokens are real (non-padding) target tokens, end-of-sentence included. The table gives, for each tool, the
median of its windows with minimum and maximum, and the median over rounds of the ratio to the first tool.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time

UPD = re.compile(r"^UPD (\d+) (\d+)")
ONMT = re.compile(r"Step\s+(\d+)/.*bsz:\s*(\d+)/\s*(\d+)/")


def parse(line):
    """(update, its real target tokens), or None for a line of another kind."""
    if match := UPD.match(line):
        return int(match[1]), float(match[2])
    if '"num_updates"' in line and "train_inner" in line:
        event = json.loads(line[line.index("{"):])
        return int(event["num_updates"]), float(event["wpb"])
    if match := ONMT.search(line):
        return int(match[1]), float(match[3])
    return None


def busy():
    """Seconds of processor time spent by anybody, from /proc/stat."""
    values = list(map(int, open("/proc/stat").readline().split()[1:9]))
    return (sum(values[:3]) + sum(values[5:8])) / os.sysconf("SC_CLK_TCK")


def run(command, warm, updates):
    folder = tempfile.mkdtemp(prefix="beside_peers_")
    command = command.replace("{U}", str(warm + updates)).replace("{RUN}", folder + "/run")
    start, first, marks, tokens = time.monotonic(), None, {}, 0.0
    cpu_start = busy()
    process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last = ""
    for line in process.stdout:
        last = line.strip() or last
        if not (event := parse(line)):
            continue
        now = time.monotonic()
        first = first or now - start
        tokens += event[1]
        if event[0] in (warm, warm + updates):
            marks[event[0]] = (now, tokens)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    foreign = max(0.0, (busy() - cpu_start) - (usage.ru_utime + usage.ru_stime)) / wall
    shutil.rmtree(folder, ignore_errors=True)
    if len(marks) < 2:
        raise SystemExit(f"no window from: {command}\nexit {status}, last line: {last}")
    (t1, n1), (t2, n2) = marks[warm], marks[warm + updates]
    return {"rate": (n2 - n1) / (t2 - t1), "tokens": (n2 - n1) / updates, "first": first,
            "rss": usage.ru_maxrss // 1024, "foreign": foreign}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", required=True, metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--log", type=pathlib.Path, help="append each window as JSON to this file")
    args = parser.parse_args()
    tools = dict(tool.split("=", 1) for tool in args.tool)
    results = {name: [] for name in tools}
    for round_number in range(args.rounds):
        for name, command in tools.items():
            result = run(command, args.warm, args.updates)
            results[name].append(result)
            line = json.dumps({"round": round_number, "tool": name, **{k: round(v, 2) for k, v in result.items()}})
            print(line, flush=True)
            if args.log:
                with open(args.log, "a") as file:
                    file.write(line + "\n")
    base = next(iter(tools))
    print("\n| tool | target tokens/s: median (min – max) | ratio to", base, "| tokens an update | peak RSS MiB |"
          " start to first update s | foreign cores |")
    print("|---|---|---|---|---|---|---|")
    for name, windows in results.items():
        column = lambda key: [w[key] for w in windows]
        ratios = [w["rate"] / b["rate"] for w, b in zip(windows, results[base])]
        print(f"| {name} | {statistics.median(column('rate')):.0f} ({min(column('rate')):.0f} – {max(column('rate')):.0f}) "
              f"| {statistics.median(ratios):.2f} | {statistics.mean(column('tokens')):.0f} | {max(column('rss'))} "
              f"| {statistics.median(column('first')):.1f} | {statistics.median(column('foreign')):.2f} |")


if __name__ == "__main__":
    main()
