#!/usr/bin/env python3
"""Generation by `stretto infer` beside transformers and CTranslate2: new tokens a second, memory, equal continuations.

    python benchmarks/generation_beside.py --data DATA --python PYTHON --work WORK [--out PAGE.md] [--batches 1 8 32] [--rounds 3]
        [--bits 32 8 4]

The model is GPT-2's smallest (12 layers of width 768, 50,257 tokens) with random weights: GPT2LMHeadModel of transformers, which
`stretto import` and CTranslate2's converter read. Its tokenizer is trained on the books of DATA. PYTHON has torch, transformers and
ctranslate2. Each round starts all programs, in turn, for each batch: prompts of 32 tokens, or of 8 to 56 (unequal), 128 new tokens
each, the likeliest one each time; and once with sampling. fp32, --threads threads.

With --bits, weights of so many bits at batch 1 instead: the same GPT-2, and a Llama with as many weights in each layer, since GGUF holds
no GPT-2. Ours are made by `stretto compress --bits N`, 4 bits with a scale for 32 weights as in Q4_0. CTranslate2 has float32 and int8, its
folders are those of `stretto export`. llama.cpp has F32 and Q8_0 of `stretto export --format gguf`, and Q4_0 that its
package gguf makes of F32. It is llama-cpp-python, which pip builds for the processor at hand, or else xllamacpp, a wheel without AVX-512:
the page says with which instructions. A program that PYTHON has not is said and left out. Beside each rate: size of the model file, its
bits a weight with all that is in it, peak memory of the process.

Two numbers are told of each: seconds to the first new tokens of all prompts, and new tokens a second behind them. Ours are those of
`infer --stats`, the first of which hold the layout of all weights for the products; the others load and warm up before their clock
starts, and are called twice, for one token and for all. For the sizes of a cache: keys and values of 12 layers are 73,728 bytes a token
in fp32. Each finished cell is a line of WORK/generation.jsonl: a second call goes on (with --bits, of WORK/bits.jsonl). Takes about ten
minutes on two cores.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import language_texts
import records
import understanding

PROGRAMS = {"Stretto": None, "transformers": 2.0, "CTranslate2": 1.0}  # and the goal: Stretto is so many times as fast
KINDS = ("equal", "unequal", "sampled")
STATS = re.compile(r"the first after ([\d,.]+) s.* ([\d,.]+) s\s*$", re.M)
PEER = records.ROOT / "benchmarks/generation_peer.py"
BYTES_OF_TOKEN = 2 * 12 * 768 * 4


def make(options, form="gpt2"):
    """Model, prompts and run; what is there already is taken as it is."""
    folder, run = options.work / form, options.work / ("run" if form == "gpt2" else f"run_{form}")
    made = "pieces.json" if options.bits else "ct2/model.bin"  # what the peer writes last
    if not (folder / made).exists():
        train, _ = language_texts.books(options.data, options.work)
        text = options.work / "books.txt"
        records.write_whole(text, "\n".join(path.read_text(encoding="utf-8") for path in train))
        more = [*(["--tiny"] if options.tiny else []), *(["--alone"] if options.bits else [])]
        understanding.call([options.python, PEER, "make", folder, text, "--form", form, *more], understanding.environment(options.threads))
    if not (run / "config.toml").exists():
        understanding.call([options.stretto, "import", folder / "model", "--run", run])
    return folder, run


def own(options, folder, run, batch, kinds, answers):
    """One process for each kind."""
    prompts, found = json.loads((folder / "prompts.json").read_text(encoding="utf-8")), {"first": {}, "seconds": {}, "peak_mib": 0.0}
    written = {}
    for kind in kinds:
        lines = options.work / "lines.txt"
        records.write_whole(lines, "".join(text + "\n" for text in prompts[kind][:batch]))
        method = ["decode.method=sample"] if kind == "sampled" else ["decode.method=beam", "decode.beam_size=1"]
        command = [options.stretto, "infer", run, lines, "--stats", "--json", *method, f"decode.max_new_tokens={options.new}",
                   f"decode.min_len={options.new}", "decode.max_tokens=1000000", f"run.threads={options.threads}", *options.key]
        output, stats, peak = call_both(command, understanding.environment(options.threads))
        seconds = STATS.search(stats)
        if not seconds:
            raise understanding.Failed(f"infer --stats says {stats!r}")
        found["first"][kind], found["seconds"][kind] = (float(number.replace(",", "")) for number in seconds.groups())
        found["peak_mib"] = max(found["peak_mib"], peak)
        written[kind] = [json.loads(line)["continuations"][0]["pieces"] for line in output.splitlines()]
        if any(len(pieces) != options.new for pieces in written[kind]):
            raise understanding.Failed("a continuation has another length")
    records.write_whole(answers, json.dumps(written))
    return found


def call_both(command, env):
    """(stdout, stderr, peak MiB)."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors, tempfile.TemporaryFile("w+", encoding="utf-8") as sink:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=sink, stderr=errors, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        sink.seek(0)
        said = errors.read()
        if process.returncode != 0:
            raise understanding.Failed(f"infer left with {process.returncode}:\n{said[-3000:]}")
        return sink.read(), said, usage.ru_maxrss / 1024


def peer(options, folder, program, batch, kinds, answers, *more):
    command = [options.python, PEER, program.lower(), folder, "--batch", batch, "--kinds", *kinds, "--new", options.new, "--threads",
               options.threads, "--answers", answers, *more]
    preload = options.preload if program == "transformers" else ""
    output, _, memory = understanding.call(command, understanding.environment(options.threads, preload))
    return {**json.loads(output.splitlines()[-1]), "peak_mib": memory}


def rate(cell, kind, batch=1):
    """New tokens a second behind the first ones."""
    return batch * (cell["key"]["new"] - 1) / max(0.01, cell["seconds"][kind] - cell["first"][kind])  # two digits are printed


def measure(options, cells):
    folder, run = make(options)
    programs, well = [name for name in PROGRAMS if name not in options.without], True
    for number in range(1, options.rounds + 1):
        for batch in options.batches:
            for program in programs if number % 2 else programs[::-1]:
                kinds = KINDS if number == 1 else KINDS[:2]
                answers = options.work / f"{program}_{batch}.json"
                key = {"program": program, "batch": batch, "round": number, "new": options.new}

                def one(program=program, batch=batch, kinds=kinds, answers=answers):
                    if program == "Stretto":
                        return own(options, folder, run, batch, kinds, answers)
                    return peer(options, folder, program, batch, kinds, answers)
                well = cells.measure(key, one) and well
    for batch in options.batches:
        for program in programs[1:]:
            ours, theirs = options.work / f"Stretto_{batch}.json", options.work / f"{program}_{batch}.json"
            if ours.exists() and theirs.exists():
                well = cells.measure({"agreement": program, "batch": batch}, lambda: agreement(ours, theirs)) and well
    return well


def agreement(ours, theirs):
    """Share of continuations that are equal to their end."""
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (ours, theirs))
    return {kind: sum(a == b for a, b in zip(one[kind], other[kind])) / len(one[kind]) for kind in KINDS[:2]}


# Weights of few bits

FORMS = {"gpt2": "GPT-2", "llama": "Llama"}
# What others call weights of so many bits, and which forms they read.
OTHERS = {"CTranslate2": ({32: "float32", 8: "int8"}, ("gpt2", "llama")), "llama.cpp": ({32: "F32", 8: "Q8_0", 4: "Q4_0"}, ("llama",))}
MODULES = {"CTranslate2": ("ctranslate2",), "llama.cpp": ("llama_cpp", "xllamacpp"), "Q4_0": ("gguf",)}  # one of these is needed
GROUP = {4: 32}  # weights that share a scale, as in Q4_0; else a row does


def compressed(options, run, bits):
    """(run folder, model file)"""
    if bits != 32:
        packed = run.with_name(f"{run.name}_int{bits}")
        group = ["--group", GROUP[bits]] if bits in GROUP else []
        if not (packed / "compress.json").exists():
            understanding.call([options.stretto, "compress", run, "--bits", bits, *group, "--run", packed])
        run = packed
    return run, next((run / "checkpoints").glob("*/model.safetensors"))


def converted(options, run, program, bits):
    """What another program reads of the same weights: (folder or file, model file)."""
    kind = OTHERS[program][0][bits]
    place = run.with_name(f"{run.name}_ct2_{kind}" if program == "CTranslate2" else f"{run.name}_{kind}.gguf")
    file = place / "model.bin" if program == "CTranslate2" else place
    if file.exists():
        return place, file
    if kind == "Q4_0":
        source, _ = converted(options, run, program, 32)
        beside = place.with_suffix(".part")
        understanding.call([options.python, PEER, "quantise", source, beside, "--threads", options.threads])
        beside.replace(place)
        return place, file
    export_format = "ctranslate2" if program == "CTranslate2" else "gguf"
    weights = "int8" if bits == 8 else "float32"
    understanding.call([options.stretto, "export", run, "--format", export_format, "--weights", weights, place])
    return place, file


def is_there(options, name):
    """Whether PYTHON has one of the modules of a program, or of what makes a kind of weights; said if not."""
    if any(understanding.version_of(options.python, module) is not None for module in MODULES[name]):
        return True
    lacking = " and no ".join(MODULES[name])
    print(f"{understanding.program_name()}: {name} is left out: {options.python} has no {lacking}", file=sys.stderr, flush=True)
    return False


def measure_bits(options, cells):
    """Programs that are missing are said, and left out."""
    there = [name for name in MODULES if name not in options.without and is_there(options, name)]
    made = {form: make(options, form) for form in FORMS}
    well = True
    for number in range(1, options.rounds + 1):
        for form, (folder, run) in made.items():
            for bits in options.bits:
                names = ["Stretto", *(name for name, (kinds, forms) in OTHERS.items() if name in there and form in forms and bits in kinds
                                      and (kinds[bits] not in MODULES or kinds[bits] in there))]
                for program in names if number % 2 else names[::-1]:
                    def one(form=form, folder=folder, run=run, bits=bits, program=program):
                        return with_bits(options, folder, run, program, bits, options.work / f"{program}_{form}_{bits}.json")
                    well = cells.measure({"program": program, "form": form, "bits": bits, "round": number, "new": options.new}, one) and well
    return well


def with_bits(options, folder, run, program, bits, answers):
    """One process with one prompt of each kind at a time."""
    if program == "Stretto":
        model, file = compressed(options, run, bits)
        found = own(options, folder, model, 1, KINDS[:2], answers)
    else:
        model, file = converted(options, run, program, bits)
        kind = ["--type", OTHERS[program][0][bits]] if program == "CTranslate2" else []
        found = peer(options, folder, program, 1, KINDS[:2], answers, "--model", model, *kind)
    weights = json.loads((folder / "pieces.json").read_text(encoding="utf-8"))["weights"]
    return {**found, "bytes": file.stat().st_size, "weights": weights}


def sections_bits(cells):
    rows, seen = [], []
    for cell in cells.all():
        case = tuple(cell["key"][name] for name in ("form", "bits", "program"))
        if case not in seen:
            seen.append(case)
    order = ["Stretto", *OTHERS]
    for form, bits, program in sorted(seen, key=lambda case: (list(FORMS).index(case[0]), -case[1], order.index(case[2]))):
        found = cells.all(form=form, bits=bits, program=program)
        ours = {cell["key"]["round"]: cell for cell in cells.all(form=form, bits=bits, program="Stretto")}
        name = program if program == "Stretto" else f"{program} {OTHERS[program][0][bits]}"
        size = found[-1]["bytes"]
        for kind in KINDS[:2]:
            rates = [rate(cell, kind) for cell in found]
            ratios = [rate(ours[cell["key"]["round"]], kind) / rate(cell, kind) for cell in found
                      if program != "Stretto" and cell["key"]["round"] in ours]
            rows.append([FORMS[form], bits, kind, name, records.spread(rates, decimals=1), records.spread(ratios) if ratios else "",
                         1.0 if ratios else "", records.spread([cell["first"][kind] for cell in found]), f"{size / 1e6:.1f}",
                         f"{8 * size / found[-1]['weights']:.2f}",
                         f"{statistics.median(cell['peak_mib'] for cell in found):,.0f}"])
    versions = sorted({f"{cell['key']['program']} {cell['about']}" for cell in cells.all() if cell.get("about")})
    missing = [name for name in OTHERS if not cells.all(program=name)]
    words = [*(f"{version}." for version in versions), *(f"{name} was not there and is left out." for name in missing)]
    return "\n\n".join([" ".join(words), records.table(
        ["form", "bits", "prompt", "program", "new tokens/s behind the first", "Stretto is faster by", "goal", "seconds to the first",
         "model file, MB", "bits a weight", "peak MiB of the process"], rows)])


def sections(cells):
    rows, words, memory = [], [], []
    for batch in sorted({cell["key"]["batch"] for cell in cells.all(agreement=None)}):
        for kind in KINDS:
            own_cells = {cell["key"]["round"]: cell for cell in cells.all(program="Stretto", batch=batch) if kind in cell["seconds"]}
            for program, goal in PROGRAMS.items():
                found = {cell["key"]["round"]: cell for cell in cells.all(program=program, batch=batch) if kind in cell["seconds"]}
                if not found:
                    continue
                ratios = [rate(own_cells[number], kind, batch) / rate(cell, kind, batch) for number, cell in found.items()
                          if number in own_cells]
                rates = [rate(cell, kind, batch) for cell in found.values()]
                rows.append([batch, kind, program, records.spread(rates, decimals=1),
                             records.spread(ratios) if goal and ratios else "", goal or "",
                             records.spread([cell["first"][kind] for cell in found.values()])])
        new = cells.all(batch=batch, agreement=None)[0]["key"]["new"]
        for program in PROGRAMS:
            found = cells.all(program=program, batch=batch)
            if found:
                memory.append([batch, program, f"{statistics.median(cell['peak_mib'] for cell in found):,.0f}",
                               f"{batch * (33 + new) * BYTES_OF_TOKEN / 2**20:,.0f}"])
    for cell in cells.all():
        if "agreement" in cell["key"]:
            words.append(f"{cell['key']['agreement']}, batch {cell['key']['batch']}: {cell['equal']:.0%} and {cell['unequal']:.0%} of the "
                         "continuations of equal and unequal prompts are Stretto's to their last token.")
    return "\n\n".join([
        records.table(["batch", "prompts", "program", "new tokens/s behind the first", "Stretto is faster by", "goal",
                       "seconds to the first"], rows), " ".join(words), "## Memory",
        records.table(["batch", "program", "peak MiB of the process", "keys and values of equal prompts, computed, MiB"], memory)])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--new", type=int, default=128, help="new tokens of each prompt")
    parser.add_argument("--bits", nargs="+", type=int, choices=(32, 8, 4), help="weights of so many bits, at batch 1")
    parser.add_argument("--without", nargs="+", default=[], choices=[*list(PROGRAMS)[1:], "llama.cpp"], help="leave programs out")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="a tiny model, one round: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if options.tiny:
        options.rounds, options.new, options.batches = 1, 8, [1, 2]
    return options


def page_of_bits(options, cells):
    notes = [f"{options.threads} threads, batch 1: one prompt of 32 tokens, and one of unequal ones. Median (least – most) of rounds, in "
             "turn. Weights are random, so that only rates, sizes and memory mean something. Bits a weight are those of the whole file: "
             "scales, tables, norms, and in GGUF the tokenizer."]
    body = sections_bits(cells) if cells.all() else "Nothing is measured yet."
    return records.page("Generation with weights of few bits", notes, body, "ten minutes", cells.head())


def page_of(options, cells):
    notes = [f"{options.threads} threads, fp32. Median (least – most) of rounds, in turn. The processes of both others hold transformers "
             "and PyTorch, whose tokenizer they take."
             f"{' transformers has a library preloaded that opens the fast path of MKL.' if options.preload else ''}"]
    body = sections(cells) if cells.all(agreement=None) else "Nothing is measured yet."
    return records.page("Generation beside transformers and CTranslate2", notes, body, "ten minutes", cells.head())


def main():
    options = parse()
    if options.bits:
        return understanding.run_cells(options, "stretto_generation_", "bits.jsonl", measure_bits, page_of_bits)
    return understanding.run_cells(options, "stretto_generation_", "generation.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
