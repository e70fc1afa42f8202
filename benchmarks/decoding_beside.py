#!/usr/bin/env python3
"""Translation by `stretto infer` beside CTranslate2 with the same weights: sentences a second, memory, BLEU, equal outputs.

    python benchmarks/decoding_beside.py RUN --src FILE --tgt FILE --python PYTHON --work WORK [--int8 RUN] [--shortlist PAIRS]
        [--beams 5 1] [--rounds 5] [--out PAGE.md]

`stretto export RUN --format ctranslate2` makes CTranslate2's model, and `stretto tokenizer encode RUN` the pieces that it reads.
PYTHON has ctranslate2. Each round runs all programs, in turn, for each beam, with --threads threads. CTranslate2 has its best
threading of two: a batch on each thread, or one batch on all. Batches have --batch sentences; Stretto's are as many source tokens.

Stretto runs thrice: as it is; with decode.continuous=false, one batch after the other; and with --shortlist. --int8 is the run
folder that `stretto compress RUN --bits 8` wrote: it stands beside CTranslate2's int8.

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


def programs(options):
    """Name -> (kind, of which arithmetic, what is particular)."""
    found = {"Stretto": ("own", "fp32", []), "Stretto, batch after batch": ("own", "fp32", ["decode.continuous=false"])}
    if options.shortlist:
        found["Stretto, shortlist"] = ("own", "fp32", [f"decode.shortlist={options.shortlist}"])
    found["CTranslate2, a batch a thread"] = ("peer", "fp32", (options.threads, 1))
    found["CTranslate2, all threads a batch"] = ("peer", "fp32", (1, options.threads))
    if options.int8:
        found["Stretto, int8"] = ("own", "int8", [])
        if options.shortlist:
            found["Stretto, int8, shortlist"] = ("own", "int8", [f"decode.shortlist={options.shortlist}"])
        found["CTranslate2, int8, a batch a thread"] = ("peer", "int8", (options.threads, 1))
        found["CTranslate2, int8, all threads a batch"] = ("peer", "int8", (1, options.threads))
    return found


def make(options):
    """CTranslate2's model, and the pieces of the text; what is there already is taken as it is."""
    model, pieces = options.work / "ct2", options.work / "pieces.txt"
    if not (model / "model.bin").exists():
        understanding.call([options.stretto, "export", options.run, "--format", "ctranslate2", model])
    understanding.call([options.stretto, "tokenizer", "encode", options.run], stdin=options.src, output=pieces)
    lengths = [len(line.split()) + 1 for line in pieces.read_text(encoding="utf-8").splitlines()]
    return model, pieces, statistics.mean(lengths)


def own(options, run, keys, beam, mean_length, output):
    """One run of `stretto infer`."""
    tokens = round(options.batch * mean_length * beam)
    command = [options.stretto, "infer", run, options.src, "--stats", *keys, f"decode.beam_size={beam}", "decode.nbest=1",
               "decode.length_penalty_type=fairseq", "decode.length_penalty=1", f"decode.max_tokens={tokens}",
               f"run.threads={options.threads}", *options.key]
    text, stats, peak = generation_beside.call_both(command, understanding.environment(options.threads))
    seconds = STATS.search(stats)
    if not seconds:
        raise understanding.Failed(f"infer --stats says {stats!r}")
    records.write_whole(output, text)
    return {"seconds": max(0.01, float(seconds[1].replace(",", ""))), "peak_mib": peak}  # two digits are printed


def peer(options, model, pieces, arithmetic, threads, beam, output):
    """One run of CTranslate2. What it writes is joined to text as SentencePiece does."""
    written = output.with_suffix(".pieces")
    inter, intra = threads
    command = [options.python, PEER, model, pieces, written, "--type", "int8" if arithmetic == "int8" else "float32", "--beam", beam,
               "--batch", options.batch, "--inter", inter, "--intra", intra]
    said, _, peak = understanding.call(command, understanding.environment(intra))
    lines = written.read_text(encoding="utf-8").splitlines()
    records.write_whole(output, "".join("".join(line.split()).replace("\u2581", " ").strip() + "\n" for line in lines))
    return {**json.loads(said.splitlines()[-1]), "peak_mib": peak}


def judged(options, output):
    """BLEU of a file of translations."""
    said, _, _ = understanding.call([options.stretto, "score", "--metric", "bleu", "--reference", options.tgt, "--json"], stdin=output)
    return float(json.loads(said)["score"])


def measure(options, cells):
    model, pieces, mean_length = make(options)
    all_programs, well = programs(options), True
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
                        found = peer(options, model, pieces, arithmetic, particular, beam, output)
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


def sections(options, cells):
    rows = []
    for beam in options.beams:
        best = {}  # of each arithmetic, round -> seconds of the faster peer
        for name, (kind, arithmetic, _) in programs(options).items():
            for cell in cells.all(program=name, beam=beam) if kind == "peer" else []:
                number = cell["key"]["round"]
                best.setdefault(arithmetic, {})
                best[arithmetic][number] = min(cell["seconds"], best[arithmetic].get(number, cell["seconds"]))
        for name, (kind, arithmetic, _) in programs(options).items():
            found = cells.all(program=name, beam=beam)
            if not found:
                continue
            rates = [cell["key"]["sentences"] / cell["seconds"] for cell in found]
            ratios = [best[arithmetic][cell["key"]["round"]] / cell["seconds"] for cell in found
                      if kind == "own" and cell["key"]["round"] in best.get(arithmetic, {})]
            shares = [cell["equal"] for cell in found if cell["equal"] is not None]
            rows.append([beam, name, records.spread(rates, decimals=1), records.spread(ratios) if ratios else "",
                         GOALS[arithmetic] if ratios else "", f"{statistics.median(cell['peak_mib'] for cell in found):,.0f}",
                         f"{found[-1]['bleu']:.2f}", f"{shares[-1]:.1%}" if shares else ""])
    return records.table(["beam", "program", "sentences/s", "faster than the best of CTranslate2 by", "goal", "peak MiB", "BLEU",
                          "outputs of Stretto"], rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    language_texts.add_options(parser, data=False)
    parser.add_argument("--src", type=pathlib.Path, required=True, help="lines to translate")
    parser.add_argument("--tgt", type=pathlib.Path, required=True, help="their references")
    parser.add_argument("--int8", type=pathlib.Path, help="the same run, compressed to 8 bits")
    parser.add_argument("--shortlist", type=pathlib.Path, help="a file for decode.shortlist")
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 1])
    parser.add_argument("--batch", type=int, default=32, help="sentences")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    options = language_texts.checked(parser, parser.parse_args())
    for name in ("run", "src", "tgt", "int8", "shortlist"):
        path = getattr(options, name)
        if path is None:
            continue
        if not path.exists():
            parser.error(f"there is no {path}")
        setattr(options, name, path.resolve())
    return options


def main():
    options = parse()
    with records.work_folder(options, "stretto_decoding_"):
        cells = understanding.Cells(options.work / "decoding.jsonl")
        try:
            well = options.page or measure(options, cells)
        except understanding.Failed as failure:
            print(f"error: {failure}", file=sys.stderr)
            well = False
        notes = [f"{options.threads} threads, batches of {options.batch} sentences. Median (least – most) of rounds, in turn."]
        body = sections(options, cells) if cells.all() else "Nothing is measured yet."
        records.publish(records.page("Translation beside CTranslate2", notes, body, "ten minutes", cells.head()), options.out)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
