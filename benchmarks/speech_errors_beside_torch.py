#!/usr/bin/env python3
"""Errors of recognisers on an hour of one speaker beside the same networks in plain PyTorch: kathleen, 100 sentences held out.

    python benchmarks/speech_errors_beside_torch.py --stretto STRETTO --sources SOURCES --python PYTHON --work WORK [--out PAGE.md]
                 [--recipes kathleen_wave2letter_small kathleen_conformer] [--seeds 3] [--epochs N] [--preload LIBRARY] [key=value …]

SOURCES has kathleen/kathleen_22050.tar; the split is that of speech_recipes.py. Stretto trains the recipe. PyTorch trains its twin
(`torch_speech.py fit`): the same network, split, speeds, masks, optimizer, schedule, epochs and seconds of a micro-batch, on filter banks of
torchaudio. First weights and the order of batches are each program's own. Both write the texts of the held-out sentences, by the most
probable class of each row, and `stretto score` counts the errors of both.

PYTHON has torch, torchaudio and soundfile. On AMD, --preload names the library that opens MKL's fast path. Each finished training is a line
of WORK/errors.jsonl: a second call goes on. Estimated for two cores: Wave2Letter+ 20 minutes a seed and program, the Conformer an hour.
--smoke tries the script with an epoch on a few clips.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import language_texts
import records
import speech_files
import speech_recipes
import understanding

SCRIPT = records.ROOT / "benchmarks/torch_speech.py"
FEW = 24  # clips of --smoke


def split(options):
    """(train, valid): lists of all clips, or of few."""
    data = options.work / "data"
    speech_recipes.cut_kathleen(options, data)
    places = tuple(data / f"kathleen/{part}.tsv" for part in ("train", "valid"))
    if not options.tiny:
        return places
    return tuple(speech_files.write_manifest(data / f"kathleen/few_{place.name}", speech_files.manifest_rows(place)[:FEW]) for place in places)


def scores(options, run, texts, valid):
    """Word and character error rates, in percent, of texts in a list's order."""
    reference, found = run.with_name(run.name + ".reference"), {}
    records.write_whole(reference, "".join(speech_files.plain(text) + "\n" for _, text in speech_files.manifest_rows(valid)))
    for metric in ("wer", "cer"):
        text, _, _ = understanding.call([options.stretto, "score", "--metric", metric, "--reference", reference, "--json"], stdin=texts)
        found[metric] = float(json.loads(text)["score"])
    return found


def of_stretto(options, recipe, seed, train, valid):
    run = options.work / f"runs/{recipe}_{seed}"
    shutil.rmtree(run, ignore_errors=True)
    epochs = [f"train.max_epochs={options.epochs}", f"schedule.warmup_steps={options.warmup}"] if options.epochs else []
    _, seconds, peak = understanding.call(
        [options.stretto, "train", records.ROOT / f"configs/speech_recognition/{recipe}.toml", "--run", run, "--quiet",
         *language_texts.text_keys(train, valid)[:2], f"data.cache_dir={options.work}/cache", f"run.seed={seed}", f"run.threads={options.threads}",
         "run.device=cpu", "report.html=false", "report.tensorboard=false", *epochs, *options.key], understanding.environment(options.threads))
    text, _, _ = understanding.call([options.stretto, "infer", run, "--checkpoint", "last", "--json", "--data", valid, "run.device=cpu"])
    texts = run.with_name(run.name + ".texts")
    found = {answer["id"]: answer.get("text", "") for answer in map(json.loads, text.splitlines())}
    records.write_whole(texts, "".join(found[path] + "\n" for path, _ in speech_files.manifest_rows(valid)))
    return {**scores(options, run, texts, valid), "seconds": seconds, "peak_mib": peak}


def of_torch(options, recipe, seed, train, valid):
    run = options.work / f"runs/torch_{recipe}_{seed}"
    texts = run.with_name(run.name + ".texts")
    texts.parent.mkdir(parents=True, exist_ok=True)
    _, seconds, peak = understanding.call(
        [options.python, SCRIPT, "fit", records.ROOT / f"configs/speech_recognition/{recipe}.toml", train, valid, texts, "--epochs",
         options.epochs, "--workers", options.workers, "--threads", options.threads, "--seed", seed],
        understanding.environment(options.threads, options.preload))
    return {**scores(options, run, texts, valid), "seconds": seconds, "peak_mib": peak}


def cells_of(options):
    train, valid = split(options)
    for seed in range(1, options.seeds + 1):
        for recipe in options.recipes:
            for program, measure in (("Stretto", of_stretto), ("PyTorch", of_torch)):
                yield ({"recipe": recipe, "program": program, "seed": seed, "epochs": options.epochs, "tiny": options.tiny},
                       lambda measure=measure, recipe=recipe, seed=seed: measure(options, recipe, seed, train, valid))


def mean_and_range(values):
    return f"{statistics.mean(values):.2f}" + (f" ({min(values):.2f} – {max(values):.2f})" if len(values) > 1 else "")


def page_of(options, cells):
    rows = []
    for recipe in options.recipes:
        for program in ("Stretto", "PyTorch"):
            found = cells.all(recipe=recipe, program=program, epochs=options.epochs, tiny=options.tiny)
            if found:
                rows.append([recipe, program, len(found), *(mean_and_range([cell[name] for cell in found]) for name in ("cer", "wer")),
                             records.spread([cell["seconds"] for cell in found], decimals=0)])
    notes = [f"100 sentences of one speaker, held out; {options.threads} threads, fp32, greedy. Means (least – most) over seeds; seconds are "
             "those of the whole process, from files to the last weights (of PyTorch, to the texts). PyTorch draws its own first weights, and "
             "its batch norms see the padding of its batches, which are sorted by length."]
    return records.page("Errors of recognisers beside PyTorch", notes,
                        records.table(["recipe", "program", "seeds", "CER, %", "WER, %", "seconds"], rows), "hours", cells.head())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, data=False)
    parser.add_argument("--sources", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--recipes", nargs="+", choices=speech_files.TWINS, default=list(speech_files.TWINS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=0, help="0 = those of the recipe")
    parser.add_argument("--workers", type=int, default=1, help="PyTorch's processes that make features")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="an epoch on few clips: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    options.warmup = 10 if options.epochs else None
    if options.tiny:
        options.seeds, options.epochs, options.warmup = 1, 1, 1
    if not options.page and subprocess.run([options.python, "-c", "import torch, torchaudio, soundfile"], capture_output=True).returncode:
        parser.error(f"{options.python} lacks torch, torchaudio or soundfile: --python NAME")
    return options


def main():
    return understanding.run_cells(parse(), "stretto_speech_errors_", "errors.jsonl",
                                   lambda options, cells: cells.measure_all(cells_of(options)), page_of)


if __name__ == "__main__":
    sys.exit(main())
