#!/usr/bin/env python3
"""Tacotron 2 beside torchaudio's, in turn: mel frames a second of training and of free running.

    python benchmarks/tacotron_beside_torch.py --bench build/release/tacotron_bench --python PYTHON [--threads 2]
                 [--preload LIBRARY] [--batches 1 8 32] [--reductions 1 2] [--rounds 3] [--repeats 3] [--works train speak]
                 [--compile] [--device cuda] [--out PAGE.md]

PYTHON has torch and torchaudio. Both have the paper's sizes (28 million numbers, 80 bands) and random weights, and get the same
list of sentences: frames and characters as short read sentences have them, 65 to 560 frames of 11.6 ms.

- train: forward, losses and backward of one batch, no optimizer. torchaudio's batch is padded to its longest sentence, and frames of padding
  are left out of the loss. Its own `mask_padding` writes into tensors that backward needs, and fails in training.
- speak: every sentence writes --limit frames, before and behind the post-net; neither stops by itself.

A round measures each program once, in an order that alternates; the first of the repeats is left out. On AMD, --preload names the
library that opens MKL's fast path for torch alone. Two cores and the defaults take about half an hour.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

import records

SYMBOLS, MELS = 148, 80
GOALS = {"train": 1.5, "speak": 3.0}


def sentences(batch, seed=1):
    """(frames, characters) of each sentence of a batch."""
    draw = random.Random(seed * 1000 + batch)
    frames = [max(65, min(560, round(draw.lognormvariate(5.5, 0.45)))) for _ in range(batch)]
    return [(length, max(5, round(length / draw.uniform(5, 8)))) for length in frames]


def worker(options):
    """Torchaudio's side: one job, seconds of each repeat on lines of their own."""
    import time

    import torch
    import torchaudio

    job = json.loads(options.worker)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    device = torch.device(options.device)
    lengths = sorted(job["lengths"], key=lambda one: -one[1])  # pack_padded_sequence wants them so
    model = torchaudio.models.Tacotron2(n_mels=MELS, n_symbol=SYMBOLS, n_frames_per_step=job["reduction"],
                                        decoder_max_step=job["limit"] // job["reduction"], gate_threshold=1.0).to(device)
    reduction = job["reduction"]
    texts = torch.tensor([length for _, length in lengths], device=device)
    frames = torch.tensor([length for length, _ in lengths], device=device)
    longest = -(-max(length for length, _ in lengths) // reduction) * reduction
    tokens = torch.randint(1, SYMBOLS, (len(lengths), int(texts.max())), device=device)
    # With several frames a step, it wants memory in the order of frames.
    mels = torch.randn(len(lengths), longest, MELS, device=device).transpose(1, 2)
    gates = (torch.arange(longest, device=device)[None] >= frames[:, None] - 1).float()
    inside = (torch.arange(longest, device=device)[None] < frames[:, None]).float()

    def train():
        model.train()
        model.zero_grad(set_to_none=True)
        before, after, stop, _ = forward(tokens, texts, mels, frames)
        loss = sum((((made - mels) ** 2).mean(1) * inside).sum() for made in (before, after)) / inside.sum()
        stops = gates[:, reduction - 1::reduction] if reduction > 1 else gates
        loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(stop, stops[:, :stop.shape[1]])
        loss.backward()

    def speak():
        model.eval()
        with torch.inference_mode():
            model.infer(tokens, texts)

    forward = torch.compile(model) if options.compile else model
    for _ in range(job["repeats"] + 1):
        if options.device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        train() if job["work"] == "train" else speak()
        if options.device == "cuda":
            torch.cuda.synchronize()
        print(f"{time.perf_counter() - start:.6f}", flush=True)


def seconds_of(command, preload=""):
    """The median of all repeats but the first."""
    environment = dict(os.environ)
    if preload:
        environment["LD_PRELOAD"] = preload
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {command[0]} failed\n{done.stderr[-2000:]}")
    return statistics.median([float(line) for line in done.stdout.split()][1:])


def measured(options, program, work, batch, reduction):
    """Mel frames a second."""
    lengths = sentences(batch)
    limit = options.limit - options.limit % reduction
    if program == "Stretto":
        listed = ",".join(f"{frames}:{symbols}" for frames, symbols in lengths)
        seconds = seconds_of([options.bench, f"--lengths={listed}", f"--work={work}", f"--reduction={reduction}", f"--limit={limit}",
                              f"--repeats={options.repeats + 1}", f"--threads={options.threads}", f"--device={options.device}"])
    else:
        job = {"lengths": lengths, "work": work, "reduction": reduction, "limit": limit, "repeats": options.repeats}
        compiled = ["--compile"] if options.compile else []
        seconds = seconds_of([options.python, pathlib.Path(__file__).resolve(), "--worker", json.dumps(job), "--threads", options.threads,
                              "--device", options.device, *compiled], options.preload)
    return (sum(frames for frames, _ in lengths) if work == "train" else batch * limit) / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=pathlib.Path, help="the program tacotron_bench")
    parser.add_argument("--python", default=sys.executable, help="has torch and torchaudio")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--preload", default="")
    parser.add_argument("--works", nargs="+", choices=sorted(GOALS), default=["train", "speak"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--reductions", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200, help="frames that a sentence writes")
    parser.add_argument("--compile", action="store_true", help="torch.compile for training")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)
    if not options.bench:
        parser.error("--bench is missing: build/release/tacotron_bench")
    options.bench, rows, head = records.program(parser, options.bench), [], records.head_of_now()
    for work in options.works:
        for reduction in options.reductions:
            for batch in options.batches:
                rates = {"Stretto": [], "torchaudio": []}
                for number in range(options.rounds):
                    for program in list(rates)[:: 1 if number % 2 else -1]:
                        rates[program].append(measured(options, program, work, batch, reduction))
                ratios = [own / other for own, other in zip(rates["Stretto"], rates["torchaudio"])]
                rows.append([work, reduction, batch, *(records.spread(rates[name], decimals=0) for name in rates), records.spread(ratios),
                             GOALS[work]])
                print(rows[-1], file=sys.stderr, flush=True)
    titles = ["work", "frames a step", "sentences", "Stretto, mel frames/s", "torchaudio, mel frames/s", "faster by", "goal"]
    notes = [f"{options.device}, {options.threads} threads, fp32{', torchaudio compiled for training' if options.compile else ''}"
             f"{'; a library is preloaded for torch that opens the fast path of MKL' if options.preload else ''}. Medians (least – most) of "
             f"{options.rounds} rounds."]
    records.publish(records.page("Tacotron 2 beside torchaudio's", notes, records.table(titles, rows), "half an hour", head), options.out)


if __name__ == "__main__":
    main()
