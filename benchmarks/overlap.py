#!/usr/bin/env python3
"""Step time with and without overlap of communication and backward, over links of a stated speed.

    sudo benchmarks/overlap.py --stretto build/release/stretto --processes 2 --rates 1000,200 [--rounds 2] CONFIG [key=value …]

Each process lives in a network namespace of its own; the namespaces are joined by a bridge, and every end is held to the
rate in Mbit/s by `tc tbf` (no delay is added). Needs root, iproute2 and Open MPI; removes what it made. Per rate and compression:

  compute   median step of as many independent processes at once, each with one micro-batch and nothing to send
  sending   median time that the gradients of a step were on their way, without overlap
  limit     max(compute, sending): what perfect overlap would give

With the rate `local` there are no namespaces: processes of one machine, and compute / overlap is the efficiency of scaling.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

NET = "10.99.0."


def sh(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.DEVNULL,
                          stderr=None if check else subprocess.DEVNULL)


class Namespaces:
    """n namespaces st1..stn with addresses 10.99.0.1..n on one bridge."""

    def __init__(self, count):
        self.count = count
        self.remove()
        sh("ip", "link", "add", "stbr", "type", "bridge")
        sh("ip", "link", "set", "stbr", "up")
        for i in range(1, count + 1):
            sh("ip", "netns", "add", f"st{i}")
            sh("ip", "link", "add", f"stv{i}", "type", "veth", "peer", "name", "eth0", "netns", f"st{i}")
            sh("ip", "link", "set", f"stv{i}", "master", "stbr", "up")
            self.inside(i, "ip", "addr", "add", f"{NET}{i}/24", "dev", "eth0")
            self.inside(i, "ip", "link", "set", "eth0", "up")
            self.inside(i, "ip", "link", "set", "lo", "up")

    def inside(self, i, *command):
        sh("ip", "netns", "exec", f"st{i}", *command)

    def limit(self, mbit):
        burst = max(32_000, int(mbit * 1e6 / 8 / 250) * 2)  # bytes of two timer ticks
        shape = ["root", "tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "100ms"]
        for i in range(1, self.count + 1):
            self.inside(i, "tc", "qdisc", "replace", "dev", "eth0", *shape)
            sh("tc", "qdisc", "replace", "dev", f"stv{i}", *shape)

    def remove(self):
        for i in range(1, 17):
            sh("ip", "netns", "del", f"st{i}", check=False)
            sh("ip", "link", "del", f"stv{i}", check=False)
        sh("ip", "link", "del", "stbr", check=False)


def steps(run, skip):
    """Seconds of each update after the first `skip`, and the time of communication that each states."""
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    train = [e for e in events if e["event"] == "train"]
    seconds = [b["seconds"] - a["seconds"] for a, b in zip(train, train[1:])][skip - 1:]
    sending = [e.get("comm_seconds", 0.0) for e in train][skip:]
    return statistics.median(seconds), statistics.median(sending), train[-1]["loss"]


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.agent = folder / "agent.sh"
        self.agent.write_text('#!/bin/sh\nhost=$1; shift\nexec ip netns exec "st${host##*.}" sh -c "$*"\n')
        self.agent.chmod(0o755)
        self.number = 0
        self.local = False  # shared memory instead of namespaces

    def overrides(self, update_freq):
        o = self.options
        return ["run.threads=1", f"train.update_freq={update_freq}", f"train.max_steps={o.updates + o.skip}",
                f"schedule.warmup_steps={o.skip}", "report.every=1", "report.html=false", "report.tensorboard=false",
                "eval.every=1000000", "eval.bleu=false", "train.save_every=1000000", "train.noise_scale=false", *o.override]

    def command(self, run, overrides):
        return [self.options.stretto, "train", self.options.config, "--run", str(run), "--quiet", *overrides]

    def new_run(self):
        self.number += 1
        return self.folder / f"run{self.number}"

    def together(self, *extra):
        """One job over the namespaces; its median step and sending time."""
        n = self.options.processes
        run = self.new_run()
        if self.local:
            command = [*self.command(run, [*self.overrides(n), *extra]), "--processes", str(n)]
            return self.finished(command, run)
        hosts = ",".join(f"{NET}{i}:1" for i in range(1, n + 1))
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["ip", "netns", "exec", "st1", "mpirun", *root, "--mca", "plm_rsh_agent", str(self.agent),
                   "--host", hosts, "-n", str(n), "--bind-to", "none", "--mca", "btl", "tcp,self",
                   "--mca", "btl_tcp_if_include", f"{NET}0/24", "--mca", "oob_tcp_if_include", f"{NET}0/24",
                   *self.command(run, [*self.overrides(n), *extra])]
        return self.finished(command, run)

    def finished(self, command, run):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{result.stdout}")
        return steps(run, self.options.skip)

    def alone(self):
        """As many processes at once that know nothing of each other; the median of their steps."""
        runs = [self.new_run() for _ in range(self.options.processes)]
        jobs = [subprocess.Popen(self.command(run, self.overrides(1)), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for run in runs]
        for job in jobs:
            if job.wait() != 0:
                sys.exit("a process by itself failed")
        return statistics.mean(steps(run, self.options.skip)[0] for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rates", default="1000,200", help="Mbit/s, or `local`: one machine, shared memory")
    parser.add_argument("--compress", default="none,bf16")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--skip", type=int, default=3, help="first updates that are not counted")
    parser.add_argument("config", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("override", nargs="*")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_overlap_"))
    spaces = Namespaces(options.processes)
    try:
        bench = Bench(options, folder)
        print("| Mbit/s | compress | compute s | sending s | sending / step | no overlap s | overlap s | speed-up | "
              "limit s | limit / overlap |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for rate in options.rates.split(","):
            bench.local = rate == "local"
            if not bench.local:
                spaces.limit(int(rate))
            for compress in options.compress.split(","):
                alone, without, sending, overlapped = [], [], [], []
                for _ in range(options.rounds):
                    alone.append(bench.alone())
                    step, comm, loss = bench.together(f"dist.compress={compress}", "dist.overlap=false")
                    without.append(step)
                    sending.append(comm)
                    step, _, other = bench.together(f"dist.compress={compress}")
                    overlapped.append(step)
                    if abs(loss - other) > 2e-3 * abs(loss):
                        sys.exit(f"overlap changes the loss: {other}, without it {loss}")
                compute, send, plain, over = map(statistics.median, (alone, sending, without, overlapped))
                limit = max(compute, send)
                print(f"| {rate} | {compress} | {compute:.3f} | {send:.3f} | {send / plain:.0%} | {plain:.3f} | {over:.3f} | "
                      f"{plain / over:.2f} | {limit:.3f} | {limit / over:.0%} |", flush=True)
    finally:
        spaces.remove()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
