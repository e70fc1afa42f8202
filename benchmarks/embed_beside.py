#!/usr/bin/env python3
"""Speed and memory of `stretto embed` beside sentence-transformers and transformers, in turn, with the same weights.

    python benchmarks/embed_beside.py build/release/stretto MODEL_DIR TEXT [--threads 2] [--rounds 7] [--lines 20000]
                                      [--preload libmkl_any.so] [--max-tokens 256] [--batch 32]

MODEL_DIR is a Hugging Face folder of an encoder; `stretto import` reads it into a temporary run. Each round starts, each in a
process of its own, with mean pooling and vectors of length 1:

- stretto: the whole command to a .npy file, less the command on no text;
- sentence-transformers, if installed: `encode` of all lines, which sorts by length and pads;
- transformers, sorted: lines sorted by length, batches of --batch, padded to the longest of each;
- transformers, as they come: the same without sorting.

For the last three, loading does not count. With --preload, each of them runs once more with this library in LD_PRELOAD: MKL takes a
slow path on AMD's processors unless mkl_serv_intel_cpu_true() says 1. Lines per second are medians with the least and the most;
ratios are taken round by round, memory is the peak of the process. Ends with 1 if vectors differ by more than 1e-4.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import records

PEER = """
import json, os, sys, time
import numpy, torch
kind, model, text, output, threads, batch, longest = sys.argv[1:]
torch.set_num_threads(int(threads))
batch, longest = int(batch), int(longest)
lines = open(text, encoding="utf-8", newline="\\n").read().split("\\n")[:-1]
if kind == "sentence_transformers":
    from sentence_transformers import SentenceTransformer, models
    body = models.Transformer(model, max_seq_length=longest)
    encoder = SentenceTransformer(modules=[body, models.Pooling(body.get_word_embedding_dimension(), "mean")], device="cpu")
    def encode(some):
        return encoder.encode(some, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
else:
    from transformers import AutoModel, AutoTokenizer
    tokenizer, network = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model).eval()
    def encode(some):
        order = sorted(range(len(some)), key=lambda i: -len(some[i])) if kind == "sorted" else list(range(len(some)))
        vectors = numpy.zeros((len(some), network.config.hidden_size), dtype=numpy.float32)
        with torch.inference_mode():
            for begin in range(0, len(order), batch):
                chosen = order[begin:begin + batch]
                inputs = tokenizer([some[i] for i in chosen], padding=True, truncation=True, max_length=longest, return_tensors="pt")
                rows = network(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(-1).to(rows.dtype)
                mean = (rows * mask).sum(1) / mask.sum(1)
                vectors[chosen] = torch.nn.functional.normalize(mean, dim=1).numpy()
        return vectors
encode(lines[:batch])
begin = time.perf_counter()
vectors = encode(lines)
seconds = time.perf_counter() - begin
numpy.save(output, vectors)
print(json.dumps(seconds))
"""


def run(command, threads, preload=None, text=None):
    """Seconds, output and peak memory in MiB of a command."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
    if preload:
        env["LD_PRELOAD"] = preload
    with open(text or os.devnull, "rb") as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(list(map(str, command)), stdin=stdin, stdout=out, stderr=err, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            sys.exit(f"error: {' '.join(map(str, command[:4]))} left with {process.returncode}:\n{err.read().decode()[-2000:]}")
        return seconds, out.read().decode(), usage.ru_maxrss / 1024


def ours(options, work):
    command = [options.stretto, "embed", work / "run", "--normalize", "--max-tokens", options.max_tokens, "--output", work / "stretto.npy",
               f"run.threads={options.threads}"]
    start, _, _ = run(command, options.threads)
    seconds, _, memory = run(command, options.threads, text=work / "lines")
    return seconds - start, memory


def theirs(kind, preload):
    def measure(options, work):
        _, output, memory = run([sys.executable, "-c", PEER, kind, options.model, work / "lines", work / f"{kind}.npy", options.threads,
                                 options.batch, options.max_tokens], options.threads, preload)
        return json.loads(output.splitlines()[-1]), memory
    return measure


def programs(options):
    kinds = {"transformers, sorted": "sorted", "transformers, as they come": "as_they_come"}
    if subprocess.run([sys.executable, "-c", "import sentence_transformers"], capture_output=True).returncode == 0:
        kinds = {"sentence-transformers": "sentence_transformers", **kinds}
    found = {"stretto": ours}
    for name, kind in kinds.items():
        found[name] = theirs(kind, None)
        if options.preload:
            found[f"{name}, preloaded"] = theirs(kind, options.preload)
    return found


def furthest(work):
    """The largest difference between our vectors and another program's, by its file."""
    own = numpy.load(work / "stretto.npy")
    return {path.stem: float(numpy.abs(own - numpy.load(path)).max()) for path in work.glob("*.npy") if path.stem != "stretto"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stretto")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--lines", type=int, default=20000)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32, help="texts of a batch of the others")
    parser.add_argument("--preload")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stretto_embed_") as folder:
        work = pathlib.Path(folder)
        lines = options.text.read_text(encoding="utf-8").split("\n")[:options.lines]
        (work / "lines").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        run([options.stretto, "import", options.model, "--run", work / "run"], options.threads)
        taken, memory = {}, {}
        for _ in range(options.rounds):
            for name, measure in programs(options).items():
                seconds, mebibytes = measure(options, work)
                taken.setdefault(name, []).append(seconds)
                memory.setdefault(name, []).append(mebibytes)
        differences = furthest(work)
    rows = []
    for name, seconds in taken.items():
        ratios = [other / own for other, own in zip(seconds, taken["stretto"])]
        rows.append([name, records.spread([len(lines) / value for value in seconds], decimals=0), records.spread(ratios, decimals=2),
                     f"{statistics.median(memory[name]):.0f}"])
    print(f"{len(lines)} lines, {options.threads} threads, {records.processor()}, {records.commit()}\n")
    print(records.table(["program", "lines/s", "times as long as stretto", "peak MiB"], rows))
    for name, value in differences.items():
        print(f"largest difference to {name}: {value:.2e}")
    sys.exit(0 if max(differences.values()) <= 1e-4 else 1)


if __name__ == "__main__":
    main()
