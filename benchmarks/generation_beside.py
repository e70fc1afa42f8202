#!/usr/bin/env python3
"""Generation by `stretto infer` beside transformers and CTranslate2: new tokens a second, memory, equal continuations.

    python benchmarks/generation_beside.py --data DATA --python PYTHON --work WORK [--out PAGE.md] [--batches 1 8 32] [--rounds 3]

The model is GPT-2's smallest (12 layers of width 768, 50,257 tokens) with random weights: GPT2LMHeadModel of transformers, which
`stretto import` and CTranslate2's converter read. Its tokenizer is trained on the books of DATA. PYTHON has torch, transformers and
ctranslate2. Each round starts all programs, in turn, for each batch: prompts of 32 tokens, or of 8 to 56 (unequal), 128 new tokens
each, the likeliest one each time; and once with sampling. fp32, --threads threads.

Seconds are without loading: those of `infer --stats`, and for the others those of the call, behind a short warm-up. For the sizes of a
cache: keys and values of 12 layers are 73,728 bytes a token in fp32. Each finished cell is a line of WORK/generation.jsonl: a second call
goes on. Takes about ten minutes on two cores.
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
STATS = re.compile(r"([\d,.]+) s\s*$", re.M)
PEER = records.ROOT / "benchmarks/generation_peer.py"
BYTES_OF_TOKEN = 2 * 12 * 768 * 4


def make(options):
    """Model, prompts and run; what is there already is taken as it is."""
    folder, run = options.work / "gpt2", options.work / "run"
    if not (folder / "ct2/model.bin").exists():
        train, _ = language_texts.books(options.data, options.work)
        text = options.work / "books.txt"
        records.write_whole(text, "\n".join(path.read_text(encoding="utf-8") for path in train))
        tiny = ["--tiny"] if options.tiny else []
        understanding.call([options.python, PEER, "make", folder, text, *tiny], understanding.environment(options.threads))
    if not (run / "config.toml").exists():
        understanding.call([options.stretto, "import", folder / "model", "--run", run])
    return folder, run


def own(options, folder, run, batch, kinds, answers):
    """One process for each kind."""
    prompts, found = json.loads((folder / "prompts.json").read_text(encoding="utf-8")), {"seconds": {}, "peak_mib": 0.0}
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
        found["seconds"][kind] = max(0.01, float(seconds[1].replace(",", "")))  # two digits are printed
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


def peer(options, folder, program, batch, kinds, answers):
    command = [options.python, PEER, program.lower(), folder, "--batch", batch, "--kinds", *kinds, "--new", options.new, "--threads",
               options.threads, "--answers", answers]
    preload = options.preload if program == "transformers" else ""
    output, _, memory = understanding.call(command, understanding.environment(options.threads, preload))
    return {**json.loads(output.splitlines()[-1]), "peak_mib": memory}


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


def sections(cells):
    rows, words, memory = [], [], []
    for batch in sorted({cell["key"]["batch"] for cell in cells.all(agreement=None)}):
        for kind in KINDS:
            own_cells = {cell["key"]["round"]: cell for cell in cells.all(program="Stretto", batch=batch) if kind in cell["seconds"]}
            for program, goal in PROGRAMS.items():
                found = {cell["key"]["round"]: cell for cell in cells.all(program=program, batch=batch) if kind in cell["seconds"]}
                if not found:
                    continue
                ratios = [cell["seconds"][kind] / own_cells[number]["seconds"][kind] for number, cell in found.items()
                          if number in own_cells]
                rates = [batch * cell["key"]["new"] / cell["seconds"][kind] for cell in found.values()]
                rows.append([batch, kind, program, records.spread(rates, decimals=1),
                             records.spread(ratios) if goal and ratios else "", goal or ""])
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
        records.table(["batch", "prompts", "program", "new tokens/s", "Stretto is faster by", "goal"], rows), " ".join(words), "## Memory",
        records.table(["batch", "program", "peak MiB of the process", "keys and values of equal prompts, computed, MiB"], memory)])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--new", type=int, default=128, help="new tokens of each prompt")
    parser.add_argument("--without", nargs="+", default=[], choices=list(PROGRAMS)[1:], help="leave programs out")
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="a tiny model, one round: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    if options.tiny:
        options.rounds, options.new, options.batches = 1, 8, [1, 2]
    return options


def main():
    options = parse()
    with records.work_folder(options, "stretto_generation_"):
        cells = understanding.Cells(options.work / "generation.jsonl")
        try:
            well = options.page or measure(options, cells)
        except understanding.Failed as failure:
            print(f"error: {failure}", file=sys.stderr)
            well = False
        notes = [f"{options.threads} threads, fp32. Median (least – most) of rounds, in turn. The processes of both others hold transformers "
                 "and PyTorch, whose tokenizer they take."
                 f"{' transformers has a library preloaded that opens the fast path of MKL.' if options.preload else ''}"]
        body = sections(cells) if cells.all(agreement=None) else "Nothing is measured yet."
        records.publish(records.page("Generation beside transformers and CTranslate2", notes, body, "ten minutes", cells.head()), options.out)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
