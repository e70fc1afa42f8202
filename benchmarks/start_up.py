#!/usr/bin/env python3
"""Time from the command to the first training step, cold and with caches, and memory, as the corpus grows.

    benchmarks/start_up.py build/release/stretto [PAIRS...]        default: 30000 1000000

Text: the phrasebook's training pairs (build/phrasebook) repeated to the wanted number of lines. Anonymous memory is
what the process owns (RssAnon); peak resident memory counts mapped cache pages too.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = ROOT / "configs/smoke/translation.toml"


def repeat(side, pairs, path):
    lines = (ROOT / f"build/phrasebook/train.{side}").read_bytes().splitlines(keepends=True)
    with open(path, "wb") as out:
        for start in range(0, pairs, len(lines)):
            out.writelines(lines[:min(len(lines), pairs - start)])


def status(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) // 1024
    return 0


def first_step(stretto, folder, run):
    """Seconds until metrics.jsonl has its first line; RssAnon and peak RSS in MiB then."""
    command = [stretto, "train", str(CONFIG), "--run", str(run), f"data.train_src={folder}/train.en",
               f"data.train_tgt={folder}/train.fr", f"data.cache_dir={folder}/cache",
               f"tokenizer.model={folder}/tokenizer.model", "report.every=1", "eval.every=1000000",
               "train.max_steps=1000000", "report.html=false", "report.tensorboard=false"]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        log = run / "metrics.jsonl"
        while not (log.exists() and log.stat().st_size > 0):
            if process.poll() is not None:
                sys.exit(f"training ended with {process.returncode}: {' '.join(command)}")
            time.sleep(0.005)
        seconds = time.monotonic() - start
        return seconds, status(process.pid, "RssAnon"), status(process.pid, "VmHWM")
    finally:
        process.kill()
        process.wait()


def main():
    stretto = str(pathlib.Path(sys.argv[1]).resolve())
    print("| pairs | first step, nothing cached s | first step, cached s | RssAnon MiB | peak RSS MiB |")
    print("|---|---|---|---|---|")
    for pairs in map(int, sys.argv[2:] or ["30000", "1000000"]):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_start_up_"))
        try:
            for side in ("en", "fr"):
                repeat(side, pairs, folder / f"train.{side}")
            subprocess.run([stretto, "tokenizer", "train", "--vocab-size", "600", "--output",
                            str(folder / "tokenizer.model"), str(ROOT / "build/phrasebook/train.en"),
                            str(ROOT / "build/phrasebook/train.fr")], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cold = first_step(stretto, folder, folder / "cold")
            warm = [first_step(stretto, folder, folder / f"warm{i}") for i in range(3)]
            seconds = sorted(w[0] for w in warm)[1]
            print(f"| {pairs:,} | {cold[0]:.1f} | {seconds:.2f} | {warm[-1][1]} | {warm[-1][2]} |", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
