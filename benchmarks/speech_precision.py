#!/usr/bin/env python3
"""Where mixed precision pays for models of speech: training, reading and speaking in bf16, or fp16 on a GPU, beside fp32, in turn.

    python benchmarks/speech_precision.py --stretto STRETTO --work WORK [--out PAGE.md] [--device cpu] [--precisions fp32 mixed_bf16]
                 [--models wave2letter quartznet deepspeech2 conformer tacotron2 centaur] [--works train eval speak] [--rounds 3]

- train: whole updates of sounds of 1 to 16 s, with features, augmentation and optimizer; seconds of sound a second, and the loss of the last
  update beside that of fp32.
- eval: `stretto eval`, of recognisers greedy, of synthesis with teacher forcing: the time of a larger set less that of a smaller one.
- speak: `stretto infer` of synthesis: seconds of sound a second of writing frames; Griffin-Lim has one iteration.

Sounds are noise with random texts, as in speech_beside_torch.py, whose networks the recognisers are; Tacotron 2 has the sizes of
configs/speech_synthesis/kathleen.toml. How fast an update is does not depend on what is learned. Each finished cell is a line of
WORK/precision.jsonl: a second call goes on. Takes two hours on two cores, ten minutes on a GPU; --smoke tries the script.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import sys

import records
import speech_files
import understanding

HOP, TRAINING_SOUNDS = speech_files.HOP_SECONDS, 200
VOICES = {
    "tacotron2": {"name": "tacotron2", "reduction": 2, "encoder_dim": 256, "embedding_dim": 256, "decoder_dim": 512, "postnet_dim": 256},
    "centaur": {"name": "centaur", "reduction": 2}}
MODELS = (*speech_files.NETS, *VOICES)
WORKS = ("train", "eval", "speak")
SPOKEN_SECONDS = 4


def sections(options, model, manifest, updates):
    common = {"run": {"seed": 1, "threads": options.threads, "device": options.device},
              "data": {"train": [manifest], "valid": [manifest], "format": "manifest", "batch_seconds": options.batch_seconds,
                       "cache_dir": options.work / "cache"},
              "tokenizer": {"type": "char", "alphabet": speech_files.ALPHABET},
              "optim": {"name": "adamw", "lr": 1e-4, "weight_decay": 1e-3, "clip_norm": 5.0},
              "schedule": {"name": "constant", "warmup_steps": 0},
              "train": {"max_steps": updates, "noise_scale": False, "save_every": 10**6}, "eval": {"every": 10**6},
              "report": {"every": 1, "html": False, "tensorboard": False}}
    if model in VOICES:
        return {**common, "task": {"name": "speech_synthesis"}, "features": {"rate": speech_files.RATE, "window_seconds": 0.05,
                                                                             "hop_seconds": HOP, "num_mels": 80},
                "model": VOICES[model], "decode": {"max_seconds": float(SPOKEN_SECONDS), "stop_threshold": 0.999999, "griffin_lim_iterations": 1}}
    features, network, _ = speech_files.NETS[model]
    return {**common, "task": {"name": "speech_recognition"}, "features": speech_files.features_section(features),
            "augment": {"feature_masks": 2, "feature_mask_width": 10, "time_masks": 2, "time_mask_frames": 20}, "model": network}


def called(options, *words, stdin=None):
    environment = understanding.environment(options.threads)
    if options.device != "cpu":
        del environment["CUDA_VISIBLE_DEVICES"]
    return understanding.call([options.stretto, *words], environment, stdin=stdin)


def trained(options, model, precision, updates):
    """The run folder of a new training."""
    manifest, _ = speech_files.made_up(options.work, options.sounds)
    run = options.work / f"runs/{model}_{precision}_{updates}"
    shutil.rmtree(run, ignore_errors=True)
    recipe = understanding.write_recipe(run, sections(options, model, manifest, updates))
    called(options, "train", recipe, "--run", run, "--quiet", f"train.precision={precision}", *options.key)
    return run


def train_window(options, model, precision):
    run = trained(options, model, precision, options.warm + options.updates)
    events = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
    window = events[options.warm:]
    seconds = sum(event["frames"] / event["frames_per_second"] for event in window)
    return {"rate": sum(event["frames"] for event in window) * HOP / seconds, "loss": events[-1]["loss"],
            "peak_mib": (events[-1].get("peak_device_memory_bytes") or events[-1]["peak_memory_bytes"]) / 2**20}


def used_run(options, model):
    """A run of one update, for the other works."""
    run = options.work / f"runs/{model}_fp32_1"
    ended = any(event["event"] == "end" for event in records.json_lines(run / "metrics.jsonl"))
    return run if ended else trained(options, model, "fp32", 1)


def difference_rate(options, small, large):
    """Units a second between two amounts of work, (units, seconds) each."""
    seconds = max(large[1] - small[1], 1e-3 if options.tiny else 0)
    if seconds <= 0:
        raise understanding.Failed("the larger work took no longer than the smaller one: raise --sounds and --lines")
    return (large[0] - small[0]) / seconds


def eval_window(options, model, precision):
    run, taken = used_run(options, model), []
    for count in (options.sounds // 8, options.sounds):
        manifest, sound = speech_files.made_up(options.work, count, seed=2)
        _, seconds, peak = called(options, "eval", run, "--checkpoint", "last", "--json", "--data", manifest, f"eval.precision={precision}")
        taken.append((sound, seconds))
    return {"rate": difference_rate(options, *taken), "peak_mib": peak}


def speak_window(options, model, precision):
    run, taken = used_run(options, model), []
    for count in (1, options.lines):
        lines = options.work / f"lines_{count}.txt"
        records.write_whole(lines, "a sentence of some forty letters to say\n" * count)
        text, seconds, peak = called(options, "infer", run, "--checkpoint", "last", "--output", options.work / "sounds", "--json",
                                     f"eval.precision={precision}", stdin=lines)
        taken.append((sum(json.loads(line)["seconds"] for line in text.splitlines()), seconds))
    return {"rate": difference_rate(options, *taken), "peak_mib": peak}


WINDOWS = {"train": train_window, "eval": eval_window, "speak": speak_window}


def cells_of(options):
    for number in range(1, options.rounds + 1):
        for work in options.works:
            for model in options.models:
                if work == "speak" and model not in VOICES:
                    continue
                for precision in options.precisions if number % 2 else options.precisions[::-1]:
                    key = {"work": work, "model": model, "precision": precision, "device": options.device, "round": number,
                           "batch_seconds": options.batch_seconds, "updates": options.updates, "sounds": options.sounds}
                    yield key, lambda work=work, model=model, precision=precision: WINDOWS[work](options, model, precision)


def rows_of(options, cells, work):
    for model in options.models:
        rates = {precision: {cell["key"]["round"]: cell for cell in cells.all(work=work, model=model, precision=precision, device=options.device)}
                 for precision in options.precisions}
        first = rates[options.precisions[0]]
        for precision, found in rates.items():
            if not found:
                continue
            ratios = [cell["rate"] / first[number]["rate"] for number, cell in found.items() if number in first]
            losses = [f"{cell['loss']:.4f}" for cell in found.values() if "loss" in cell]
            yield [model, precision, records.spread([cell["rate"] for cell in found.values()], decimals=1),
                   records.spread(ratios) if ratios and found is not first else "", *losses[:1],
                   f"{statistics.median(cell['peak_mib'] for cell in found.values()):,.0f}"]


def page_of(options, cells):
    parts = []
    for work, heading in (("train", "Training"), ("eval", "Evaluation"), ("speak", "Speaking")):
        titles = ["model", "precision", "seconds of sound a second", f"times {options.precisions[0]}",
                  *(["loss of the last update"] if work == "train" else []), "peak MiB"]
        if rows := list(rows_of(options, cells, work)):
            parts.append(f"## {heading}\n\n{records.table(titles, rows)}")
    notes = [f"{options.device}, {options.threads} threads, micro-batches of {options.batch_seconds:g} seconds. Median (least – most) of rounds, "
             "in turn."]
    return records.page("Precision of models of speech", notes, "\n\n".join(parts) or "Nothing is measured yet.", "two hours", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for the trainings")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--work", type=pathlib.Path, help="folder for sounds, caches and runs; a second call goes on from it; default temporary")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precisions", nargs="+", default=["fp32", "mixed_bf16"], help="the first one is what others are compared with")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=3, help="updates before a window")
    parser.add_argument("--updates", type=int, default=12, help="of a window")
    parser.add_argument("--batch-seconds", type=float, default=120)
    parser.add_argument("--sounds", type=int, default=TRAINING_SOUNDS)
    parser.add_argument("--lines", type=int, default=17, help="sentences that are spoken")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="few updates of two models: tries the script, measures nothing")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    if options.tiny:
        options.models, options.rounds, options.warm, options.updates = ["wave2letter", "tacotron2"], 1, 1, 2
        options.sounds, options.batch_seconds, options.lines = 16, 20, 3
    return options


def main():
    return understanding.run_cells(parse(), "stretto_speech_precision_", "precision.jsonl",
                                   lambda options, cells: cells.measure_all(cells_of(options)), page_of)


if __name__ == "__main__":
    sys.exit(main())
