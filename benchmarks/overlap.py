#!/usr/bin/env python3
"""Step time with and without overlap of communication and backward, over links of a stated speed or on one machine.

    sudo benchmarks/overlap.py --stretto build/release/stretto --processes 2 --rates 1000,200 [--rounds 3] CONFIG [key=value …]
    benchmarks/overlap.py --stretto build/release/stretto --processes 2 --rates local [--rounds 5] CONFIG [key=value …]

Rates in Mbit/s: each process lives in a network namespace of its own; the namespaces are joined by a bridge, and every end is held
to the rate by `tc tbf` (no delay is added). Needs root, iproute2 and Open MPI; removes what it made. Per rate and compression:

  compute   step of as many independent processes at once, each with one micro-batch and nothing to send
  sending   time that the gradients of a step were on their way, without overlap
  waited    the part of it that training waited for after backward
  limit     max(compute, sending): what perfect overlap would give

The rate `local` is this machine without namespaces: processes of one thread that share its memory.

  alone       step of one process of one thread while nothing else runs
  efficiency  compute over the step of the processes together: what talking costs
  plain ratio target tokens a second of the processes together over those of one process alone: what a user gets, shared caches,
              memory and clock included

Figures are medians of the updates, then medians over rounds, in which all take turns, with (least – most). Losses of all updates are
compared: overlap must not change them, and the processes must follow one process with the same batches (1e-5 in the first 20 updates,
without compression).
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


class Measured:
    """What a run's metrics.jsonl says: seconds of each update after the first `skip`, of sending and of waiting, all losses."""

    def __init__(self, run, skip):
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        train = [e for e in events if e["event"] == "train"]
        counted = train[skip:]
        self.step = statistics.median([b["seconds"] - a["seconds"] for a, b in zip(train, train[1:])][skip - 1:])
        self.sending = statistics.median(e.get("comm_seconds", 0.0) for e in counted)
        self.waited = statistics.median(e.get("comm_wait_seconds", 0.0) for e in counted)
        self.losses = [e["loss"] for e in train]
        self.hashes = [e["batch_hash"] for e in train]


def largest_difference(one, other, updates=None):
    """The largest relative difference of two loss curves; they must be of the same batches."""
    if one.hashes != other.hashes:
        sys.exit("the runs saw other batches")
    return max(abs(a - b) / abs(a) for a, b in zip(one.losses[:updates], other.losses[:updates]))


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
                "eval.every=1000000", "eval.bleu=false", "train.save_every=1000000", *o.override]

    def command(self, run, overrides):
        return [self.options.stretto, "train", self.options.config, "--run", str(run), "--quiet", *overrides]

    def new_run(self):
        self.number += 1
        return self.folder / f"run{self.number}"

    def together(self, *extra):
        """One job of all processes."""
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
        return Measured(run, self.options.skip)

    def one(self, update_freq=1):
        """One process while nothing else runs."""
        run = self.new_run()
        return self.finished(self.command(run, self.overrides(update_freq)), run)

    def independent(self):
        """The median step of as many processes at once that know nothing of each other."""
        runs = [self.new_run() for _ in range(self.options.processes)]
        jobs = [subprocess.Popen(self.command(run, self.overrides(1)), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for run in runs]
        for job in jobs:
            if job.wait() != 0:
                sys.exit("a process by itself failed")
        return statistics.mean(Measured(run, self.options.skip).step for run in runs)


class Rounds:
    """Rounds of one compression: independent processes, processes together without and with overlap, in turn."""

    def __init__(self, bench, compress, reference):
        self.alone, self.compute, self.without, self.overlapped = [], [], [], []
        self.overlap_changes, self.from_one, self.from_one_early = 0.0, 0.0, 0.0
        for _ in range(bench.options.rounds):
            if bench.local:
                self.alone.append(bench.one().step)
            self.compute.append(bench.independent())
            self.without.append(bench.together(f"dist.compress={compress}", "dist.overlap=false"))
            self.overlapped.append(bench.together(f"dist.compress={compress}"))
            self.compare(reference, compress)

    def compare(self, reference, compress):
        without, overlapped = self.without[-1], self.overlapped[-1]
        self.overlap_changes = max(self.overlap_changes, largest_difference(without, overlapped))
        for run in (without, overlapped):
            self.from_one = max(self.from_one, largest_difference(reference, run))
            self.from_one_early = max(self.from_one_early, largest_difference(reference, run, 20))
        if compress == "none" and max(self.overlap_changes, self.from_one_early) > 1e-5:
            sys.exit(f"losses differ: {self.overlap_changes:.1e} by overlap, {self.from_one_early:.1e} from one process")

    def of(self, runs, name):
        return [getattr(run, name) for run in runs]


def spread(values, decimals=3):
    return f"{statistics.median(values):.{decimals}f} ({min(values):.{decimals}f} – {max(values):.{decimals}f})"


NETWORK_HEAD = """
| Mbit/s | compress | compute s | sending s | sending / step | no overlap s | overlap s | waited s, no overlap | waited s, overlap \
| speed-up | limit s | limit / overlap | losses: largest difference from one process |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def network_row(rate, compress, rounds):
    without, over = rounds.of(rounds.without, "step"), rounds.of(rounds.overlapped, "step")
    sending = rounds.of(rounds.without, "sending")
    limits = [max(c, s) for c, s in zip(rounds.compute, sending)]
    return " | ".join([f"| {rate}", compress, spread(rounds.compute), spread(sending),
                       f"{statistics.median(s / w for s, w in zip(sending, without)):.0%}", spread(without), spread(over),
                       spread(rounds.of(rounds.without, "waited")), spread(rounds.of(rounds.overlapped, "waited")),
                       spread([w / o for w, o in zip(without, over)], 2), spread(limits),
                       spread([limit / o for limit, o in zip(limits, over)], 2), f"{rounds.from_one:.1e} |"])


LOCAL_HEAD = """
| compress | alone s | compute s | no overlap s | overlap s | efficiency, no overlap | efficiency, overlap | plain ratio, overlap \
| losses: largest difference from one process |
|---|---|---|---|---|---|---|---|---|"""


def local_row(processes, compress, rounds):
    without, over = rounds.of(rounds.without, "step"), rounds.of(rounds.overlapped, "step")
    efficiency = lambda steps: spread([c / s for c, s in zip(rounds.compute, steps)], 2)
    return " | ".join([f"| {compress}", spread(rounds.alone), spread(rounds.compute), spread(without), spread(over),
                       efficiency(without), efficiency(over),
                       spread([processes * a / o for a, o in zip(rounds.alone, over)], 2), f"{rounds.from_one:.1e} |"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rates", default="1000,200", help="Mbit/s, or `local`: one machine, shared memory")
    parser.add_argument("--compress", default="none,bf16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--skip", type=int, default=3, help="first updates that are not counted")
    parser.add_argument("config", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("override", nargs="*")
    options = parser.parse_args()
    rates, compressions = options.rates.split(","), options.compress.split(",")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_overlap_"))
    spaces = Namespaces(options.processes) if any(rate != "local" for rate in rates) else None
    try:
        bench = Bench(options, folder)
        reference = bench.one(options.processes)  # the same batches in one process
        head = None
        for rate in rates:
            bench.local = rate == "local"
            if not bench.local:
                spaces.limit(int(rate))
            wanted = LOCAL_HEAD if bench.local else NETWORK_HEAD
            if wanted != head:
                head = wanted
                print(head, flush=True)
            for compress in compressions:
                rounds = Rounds(bench, compress, reference)
                print(local_row(options.processes, compress, rounds) if bench.local else network_row(rate, compress, rounds),
                      flush=True)
    finally:
        if spaces:
            spaces.remove()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
