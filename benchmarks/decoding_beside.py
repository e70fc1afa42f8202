#!/usr/bin/env python3
"""Translation by `stretto infer` beside CTranslate2 with the same weights: sentences a second, memory, BLEU, equal outputs.

    python benchmarks/decoding_beside.py RUN --src FILE --tgt FILE --python PYTHON --work WORK [--int8 [RUN]] [--shortlist PAIRS]
        [--beams 5 1] [--rounds 5] [--preload LIBRARY] [--out PAGE.md]

`stretto export RUN --format ctranslate2` makes CTranslate2's models, and `stretto tokenizer encode RUN` the pieces that they read.
PYTHON has ctranslate2; if it has not, that is said, and Stretto is measured alone. Each round runs all programs, in turn, for each
beam, with --threads threads. CTranslate2 has its best threading of two: a batch on each thread, or one batch on all. With
--preload, a library that opens MKL's fast path on AMD, it runs with MKL too. Batches have --batch sentences; Stretto's are as many
source tokens. BLEU, peak memory and size of the model file stand beside each rate.

Stretto runs thrice: as it is, a batch on each thread; with decode.continuous=false, one batch after the other on all threads; and
with --shortlist. --int8 is the run folder that `stretto compress RUN --bits 8` wrote, and without a name it is made: it stands
beside CTranslate2's int8, which has its int8 from its file, too.

Seconds are without loading: those of `infer --stats`, and of CTranslate2's call behind a warm-up. Each finished cell is a line of
WORK/decoding.jsonl: a second call goes on. Leaves with 1 if a program failed.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

import generation_beside
import language_texts
import records
import understanding

STATS = re.compile(r"([\d,.]+) s\s*$", re.M)
PEER = records.ROOT / "benchmarks/decoding_peer.py"
GOALS = {"fp32": 1.1, "int8": 1.0}
IN_WORK = pathlib.Path("int8 of --work")  # --int8 without a run


def programs(options):
    """Name -> (kind, of which arithmetic, what is particular)."""
    all_words = ["decode.shortlist="]  # the run may name a list
    found = {"Stretto": ("own", "fp32", all_words),
             "Stretto, batch after batch": ("own", "fp32", ["decode.continuous=false", *all_words])}
    if options.shortlist:
        found["Stretto, shortlist"] = ("own", "fp32", [f"decode.shortlist={options.shortlist}"])
    found.update(peers(options, "fp32"))
    if options.int8:
        found["Stretto, int8"] = ("own", "int8", all_words)
        if options.shortlist:
            found["Stretto, int8, shortlist"] = ("own", "int8", [f"decode.shortlist={options.shortlist}"])
        found.update(peers(options, "int8"))
    return found


def peers(options, arithmetic):
    """CTranslate2 with each threading: (batches side by side, threads of each, whether MKL is asked for)."""
    threadings = {"a batch a thread": (options.threads, 1), "all threads a batch": (1, options.threads)} if options.threads > 1 else {"": (1, 1)}
    found = {}
    for ending, uses_mkl in (("", False), ("MKL", True)):
        if uses_mkl and not options.preload:
            continue
        for threading, sizes in threadings.items():
            words = ["CTranslate2", *(["int8"] if arithmetic == "int8" else []), threading, ending]
            found[", ".join(filter(None, words))] = ("peer", arithmetic, (*sizes, uses_mkl))
    return found


def pieces_of(options, run):
    """(The pieces of the text as a file, their mean number in a sentence with its end)"""
    pieces = options.work / f"{run.name}_pieces.txt"
    understanding.call([options.stretto, "tokenizer", "encode", run], stdin=options.src, output=pieces)
    return pieces, statistics.mean(len(line.split()) + 1 for line in pieces.read_text(encoding="utf-8").splitlines())


def packed(options):
    """The run in 8 bits."""
    run = options.work / "int8"
    if not (run / "compress.json").exists():
        understanding.call([options.stretto, "compress", options.run, "--bits", 8, "--run", run])
    return run


def make(options, arithmetics):
    """CTranslate2's models by their arithmetic; what is there already is taken as it is."""
    models = {"fp32": options.work / "ct2", "int8": options.work / "ct2_int8"}
    for arithmetic in arithmetics:
        if not (models[arithmetic] / "model.bin").exists():
            weights = "int8" if arithmetic == "int8" else "float32"
            understanding.call([options.stretto, "export", options.run, "--format", "ctranslate2", "--weights", weights, models[arithmetic]])
    return models


def own(options, run, keys, beam, mean_length, output):
    """One run of `stretto infer`."""
    tokens = round(options.batch * mean_length * beam)
    command = [options.stretto, "infer", run, options.src, "--stats", *keys, f"decode.beam_size={beam}", "decode.nbest=1",
               "decode.length_penalty_type=fairseq", "decode.length_penalty=1", f"decode.max_tokens={tokens}",
               "run.device=cpu", f"run.threads={options.threads}", *options.key]
    text, stats, peak = generation_beside.call_both(command, understanding.environment(options.threads))
    seconds = STATS.search(stats)
    if not seconds:
        raise understanding.Failed(f"infer --stats says {stats!r}")
    records.write_whole(output, text)
    file = next((run / "checkpoints").glob("*/model.safetensors"))
    return {"seconds": max(0.01, float(seconds[1].replace(",", ""))), "peak_mib": peak, "bytes": file.stat().st_size}  # two digits are printed


def peer(options, model, pieces, arithmetic, threads, beam, output):
    """One run of CTranslate2. What it writes is joined to text as SentencePiece does."""
    written = output.with_suffix(".pieces")
    inter, intra, uses_mkl = threads
    command = [options.python, PEER, model, pieces, written, "--type", "int8" if arithmetic == "int8" else "float32", "--beam", beam,
               "--batch", options.batch, "--inter", inter, "--intra", intra]
    env = understanding.environment(intra, options.preload if uses_mkl else "")
    said, _, peak = understanding.call(command, {**env, "CT2_USE_MKL": "1"} if uses_mkl else env)
    lines = written.read_text(encoding="utf-8").splitlines()
    records.write_whole(output, "".join("".join(line.split()).replace("\u2581", " ").strip() + "\n" for line in lines))
    return {**json.loads(said.splitlines()[-1]), "peak_mib": peak, "bytes": (model / "model.bin").stat().st_size}


def judged(options, output):
    """BLEU of a file of translations."""
    said, _, _ = understanding.call([options.stretto, "score", "--metric", "bleu", "--reference", options.tgt, "--json"], stdin=output)
    return float(json.loads(said)["score"])


def measure(options, cells):
    has_peer = understanding.version_of(options.python, "ctranslate2") is not None
    if not has_peer:
        print(f"{understanding.program_name()}: the Python of --python has no ctranslate2: left out", file=sys.stderr, flush=True)
    if options.int8 == IN_WORK:
        options.int8 = packed(options)
    pieces, mean_length = pieces_of(options, options.run)
    all_programs, well = {name: found for name, found in programs(options).items() if has_peer or found[0] == "own"}, True
    models = make(options, {found[1] for found in all_programs.values() if found[0] == "peer"})
    sentences = len(options.src.read_text(encoding="utf-8").splitlines())
    for number in range(1, options.rounds + 1):
        for beam in options.beams:
            names = list(all_programs) if number % 2 else list(all_programs)[::-1]
            for name in names:
                kind, arithmetic, particular = all_programs[name]
                output = options.work / f"{name.replace(', ', '_').replace(' ', '_')}_{beam}.txt"
                key = {"program": name, "beam": beam, "round": number, "sentences": sentences}

                def one(kind=kind, arithmetic=arithmetic, particular=particular, output=output, beam=beam):
                    if kind == "own":
                        run = options.int8 if arithmetic == "int8" else options.run
                        found = own(options, run, particular, beam, mean_length, output)
                    else:
                        found = peer(options, models[arithmetic], pieces, arithmetic, particular, beam, output)
                    return {**found, "bleu": judged(options, output), "equal": equal_share(options, output, beam)}
                well = cells.measure(key, one) and well
    return well


def equal_share(options, output, beam):
    """Share of translations that are those of `Stretto` to the letter; None before that was measured."""
    reference = options.work / f"Stretto_{beam}.txt"
    if not reference.exists():
        return None
    ours, theirs = (path.read_text(encoding="utf-8").splitlines() for path in (reference, output))
    return sum(a == b for a, b in zip(ours, theirs)) / max(1, len(ours))


def faster_peer(options, cells, beam, arithmetic):
    """({round: seconds} of the faster threading in each round, peak MiB of the one that is faster in the median)"""
    best, middle = {}, {}
    for name in peers(options, arithmetic):
        found = cells.all(program=name, beam=beam)
        for cell in found:
            number = cell["key"]["round"]
            best[number] = min(cell["seconds"], best.get(number, cell["seconds"]))
        if found:
            middle[statistics.median(cell["seconds"] for cell in found)] = statistics.median(cell["peak_mib"] for cell in found)
    return best, middle[min(middle)] if middle else None


def sections(options, cells):
    rows = []
    for beam in options.beams:
        best = {arithmetic: faster_peer(options, cells, beam, arithmetic) for arithmetic in GOALS}
        reference = cells.all(program="Stretto", beam=beam)
        for name, (kind, arithmetic, _) in programs(options).items():
            found = cells.all(program=name, beam=beam)
            if not found:
                continue
            seconds, memory = best[arithmetic]
            rates = [cell["key"]["sentences"] / cell["seconds"] for cell in found]
            ratios = [seconds[cell["key"]["round"]] / cell["seconds"] for cell in found if kind == "own" and cell["key"]["round"] in seconds]
            peak = statistics.median(cell["peak_mib"] for cell in found)
            lost = f" ({found[-1]['bleu'] - reference[-1]['bleu']:+.2f})" if reference and name != "Stretto" else ""
            shares = [cell["equal"] for cell in found if cell["equal"] is not None]
            size = found[-1].get("bytes")
            rows.append([beam, name, records.spread(rates, decimals=1), records.spread(ratios) if ratios else "",
                         GOALS[arithmetic] if ratios else "", f"{peak:,.0f}" + (f" ({peak / memory:.2f})" if kind == "own" and memory else ""),
                         f"{size / 1e6:.1f}" if size else "", f"{found[-1]['bleu']:.2f}{lost}", f"{shares[-1]:.1%}" if shares else ""])
    versions = sorted({cell["version"] for cell in cells.all() if cell.get("version")})
    said = f"CTranslate2 {', '.join(versions)}." if versions else "CTranslate2 was not there and is left out."
    return said + "\n\n" + records.table(
        ["beam", "program", "sentences/s", "faster than the best of CTranslate2 by", "goal", "peak MiB (of its best: goal 1.00)",
         "model file, MB", "BLEU (beside Stretto in fp32)", "outputs of Stretto"], rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    language_texts.add_options(parser, data=False)
    parser.add_argument("--src", type=pathlib.Path, required=True, help="lines to translate")
    parser.add_argument("--tgt", type=pathlib.Path, required=True, help="their references")
    parser.add_argument("--int8", type=pathlib.Path, nargs="?", const=IN_WORK, help="the same run, compressed to 8 bits; without a name it is made")
    parser.add_argument("--shortlist", type=pathlib.Path, help="a file for decode.shortlist")
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 1])
    parser.add_argument("--batch", type=int, default=32, help="sentences")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    options = language_texts.checked(parser, parser.parse_args())
    for name in ("run", "src", "tgt", "int8", "shortlist"):
        path = getattr(options, name)
        if path is None or path == IN_WORK:
            continue
        if not path.exists():
            parser.error(f"there is no {path}")
        setattr(options, name, path.resolve())
    return options


def page_of(options, cells):
    notes = [f"{options.threads} threads, batches of {options.batch} sentences. Median (least – most) of rounds, in turn."]
    body = sections(options, cells) if cells.all() else "Nothing is measured yet."
    return records.page("Translation beside CTranslate2", notes, body, "ten minutes", cells.head())


def main():
    return understanding.run_cells(parse(), "stretto_decoding_", "decoding.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
