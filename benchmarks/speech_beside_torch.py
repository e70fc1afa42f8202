#!/usr/bin/env python3
"""Recognition of speech beside plain PyTorch with torchaudio, in turn: seconds of sound a second of training and of inference.

    python benchmarks/speech_beside_torch.py --stretto STRETTO --python PYTHON --work WORK [--preload LIBRARY] [--out PAGE.md]
                 [--parts train infer] [--nets wave2letter deepspeech2 conformer quartznet] [--rounds 3] [--updates N] [--bf16]

- train: features of WAV files on other threads (of PyTorch: worker processes), SpecAugment, forward, CTC, backward, AdamW. Batches are cut
  by seconds; PyTorch's from utterances sorted by length, eager and compiled with dynamic shapes.
- infer: `stretto eval` with the most probable class of each frame, on two sets of sounds: the difference, so that the start does not count.
  Beside it PyTorch in inference mode, from files to letters.

Sounds are noise of 1 to 16 seconds, most of 5 to 15, so that no data are needed. The networks are small ones (speech_files.py):
Wave2Letter+ with one convolution a block, QuartzNet 5x5, DeepSpeech 2 with two layers, a Conformer of six layers of width 144.

PYTHON has torch, torchaudio and soundfile. On AMD, --preload names the library that opens MKL's fast path. All programs have --threads
threads. Each finished cell is a line of WORK/speech.jsonl: a second call goes on. Estimated for two cores, three rounds and all nets: train
an hour and a half, infer half an hour; --nets, --updates and --rounds lower them.
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys

import language_texts
import records
import speech_files
import understanding

SCRIPT = records.ROOT / "benchmarks/torch_speech.py"
PARTS = ("train", "infer")
GOAL = 1.5
PROGRAMS = {"PyTorch, eager": [], "PyTorch, compiled": ["--compile"]}
TRAINING_SOUNDS, FRAMES_PER_SECOND = 400, 1 / speech_files.HOP_SECONDS


def start(options, program, command, updates):
    preload = "" if program == "Stretto" else options.preload
    return language_texts.Followed(command, understanding.environment(options.threads, preload), updates)


def recipe(options, name, net, manifest, updates):
    features, model, _ = speech_files.NETS[net]
    run = options.work / name
    shutil.rmtree(run, ignore_errors=True)
    return run, understanding.write_recipe(run, {
        "run": {"seed": 1}, "task": {"name": "speech_recognition"},
        "data": {"train": [manifest], "valid": [manifest], "format": "manifest", "batch_seconds": options.batch_seconds},
        "features": speech_files.features_section(features),
        "augment": {"feature_masks": 2, "feature_mask_width": 10, "time_masks": 2, "time_mask_frames": 20},
        "tokenizer": {"type": "char", "alphabet": speech_files.ALPHABET}, "model": model,
        "optim": {"name": "adamw", "lr": 1e-4, "weight_decay": 1e-3, "clip_norm": 5.0},
        "schedule": {"name": "constant", "warmup_steps": 0}, "train": {"max_steps": updates, "noise_scale": False}})


def quiet_keys(options):
    """key=value: nothing is written, validated or drawn in between."""
    return [f"run.threads={options.threads}", "run.device=cpu", f"data.cache_dir={options.work}/cache", "train.save_every=1000000",
            "eval.every=1000000", "report.html=false", "report.tensorboard=false"]


def peer(options, kind, program, net, manifest, updates):
    half = ["--bf16"] if options.bf16 else []
    return [options.python, SCRIPT, kind, net, manifest, "--batch-seconds", options.batch_seconds, "--updates", updates, "--threads",
            options.threads, "--workers", options.workers, *half, *PROGRAMS[program]]


def train_window(options, program, net):
    manifest, _ = speech_files.made_up(options.work, options.sounds)
    updates = options.warm + options.updates
    if program == "Stretto":
        run, config = recipe(options, f"train_{net}", net, manifest, updates)
        command = [sys.executable, records.ROOT / "benchmarks/follow_metrics.py", run, "--", options.stretto, "train", config, "--run", run,
                   *quiet_keys(options), "report.every=1", *options.key]
    else:
        command = peer(options, "train", program, net, manifest, updates)
    followed = start(options, program, command, updates)
    return {"rate": followed.rate(options.warm) / FRAMES_PER_SECOND, "peak_mib": followed.peak_mib}


def evaluated_seconds(options, run, manifest):
    """(seconds of the process, peak MiB) of `stretto eval`."""
    command = [options.stretto, "eval", run, "--checkpoint", "last", "--json", "--data", manifest, f"run.threads={options.threads}",
               "run.device=cpu", f"data.cache_dir={options.work}/cache", *options.eval_keys]
    text, seconds, peak = understanding.call(command, understanding.environment(options.threads))
    if json.loads(text)["utterances"] == 0:
        raise understanding.Failed("stretto eval read no utterance")
    return seconds, peak


def infer_window(options, program, net):
    few, many = (speech_files.made_up(options.work, count, seed=2) for count in (options.sounds // 8, options.sounds))
    if program != "Stretto":
        updates = options.warm + options.updates
        followed = start(options, program, peer(options, "infer", program, net, many[0], updates), updates)
        return {"rate": followed.rate(options.warm) / FRAMES_PER_SECOND, "peak_mib": followed.peak_mib}
    run = options.work / f"infer_{net}"
    if not (run / "metrics.jsonl").exists():
        run, config = recipe(options, f"infer_{net}", net, few[0], 1)
        understanding.call([options.stretto, "train", config, "--run", run, "--quiet", *quiet_keys(options), *options.key])
    (short, _), (long, peak) = (evaluated_seconds(options, run, manifest) for manifest, _ in (few, many))
    if options.tiny:
        long = max(long, short + 1e-3)
    if long <= short:
        raise understanding.Failed("the larger set of sounds took no longer than the smaller one: raise --sounds")
    return {"rate": (many[1] - few[1]) / (long - short), "peak_mib": peak}


def cells_of(options):
    """(key, what measures it), in the order of measuring."""
    share = {"updates": options.updates, "batch_seconds": options.batch_seconds, "sounds": options.sounds, "bf16": options.bf16}
    names = ["Stretto", *(name for name in PROGRAMS if not (options.no_compile and "compiled" in name))]
    for number in range(1, options.rounds + 1):
        for part in options.parts:
            for net in options.nets:
                for program in names if number % 2 else names[::-1]:
                    measure = train_window if part == "train" else infer_window
                    yield ({"part": part, "net": net, "program": program, "round": number, **share},
                           lambda measure=measure, program=program, net=net: measure(options, program, net))


def section(cells, part, heading):
    rows, words, found = [], [], cells.all(part=part)
    for net in dict.fromkeys(cell["key"]["net"] for cell in found):
        mine = [cell for cell in found if cell["key"]["net"] == net]
        own = {cell["key"]["round"]: cell["rate"] for cell in mine if cell["key"]["program"] == "Stretto"}
        best = {}
        for program in ("Stretto", *PROGRAMS):
            of_program = [cell for cell in mine if cell["key"]["program"] == program]
            if not of_program:
                continue
            ratios = {cell["key"]["round"]: own[cell["key"]["round"]] / cell["rate"] for cell in of_program if cell["key"]["round"] in own}
            if program != "Stretto":
                for number, ratio in ratios.items():
                    best[number] = min(ratio, best.get(number, ratio))
            rows.append([net, program, records.spread([cell["rate"] for cell in of_program], decimals=0),
                         records.spread(list(ratios.values())) if ratios and program != "Stretto" else "",
                         f"{statistics.median(cell['peak_mib'] for cell in of_program):,.0f}"])
        if best:
            words.append(f"{net}: {records.spread(list(best.values()))} times the fastest of each round; the goal is {GOAL}.")
    titles = ["network", "program", "seconds of sound a second", "Stretto is faster by", "peak MiB"]
    return f"## {heading}\n\n{records.table(titles, rows)}\n\n{' '.join(words)}" if rows else ""


def page_of(options, cells):
    parts = [section(cells, "train", "Training"), section(cells, "infer", "Inference, from files to letters")]
    notes = [f"{options.threads} threads, {'products in bf16' if options.bf16 else 'fp32'}, micro-batches of {options.batch_seconds:g} "
             f"seconds. Median (least – most) of rounds, in turn. Peak memory of PyTorch is without its worker processes"
             f"{'; a library is preloaded that opens the fast path of MKL' if options.preload else ''}."]
    return records.page("Speech beside PyTorch", notes, "\n\n".join(filter(None, parts)) or "Nothing is measured yet.", "two hours",
                        cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, data=False)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--nets", nargs="+", choices=speech_files.NETS, default=list(speech_files.NETS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=5, help="updates before a window; torch.compile works in them")
    parser.add_argument("--updates", type=int, default=20, help="of a window")
    parser.add_argument("--batch-seconds", type=float, default=120, help="of sound in a micro-batch")
    parser.add_argument("--sounds", type=int, default=TRAINING_SOUNDS)
    parser.add_argument("--workers", type=int, default=1, help="PyTorch's processes that make features")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="products in bf16, in both programs")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="few updates of one network: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    options.eval_keys = ["eval.precision=mixed_bf16"] if options.bf16 else []
    options.key += ["train.precision=mixed_bf16"] if options.bf16 else []
    if options.tiny:
        options.nets, options.rounds, options.warm, options.updates, options.sounds = ["wave2letter"], 1, 1, 2, 16
        options.batch_seconds = 20
    if not options.page and subprocess.run([options.python, "-c", "import torch, torchaudio, soundfile"], capture_output=True).returncode:
        parser.error(f"{options.python} lacks torch, torchaudio or soundfile: --python NAME")
    return options


def main():
    return understanding.run_cells(parse(), "stretto_speech_", "speech.jsonl",
                                   lambda options, cells: cells.measure_all(cells_of(options)), page_of)


if __name__ == "__main__":
    sys.exit(main())
