#!/usr/bin/env python3
"""Encoders of text in fp32, int8 and int4 by `stretto infer` beside ONNX Runtime, torchao and PyTorch: speed, size, memory, equal answers.

    python benchmarks/encoders_packed_beside.py --data DATA --python PYTHON --work WORK [--model FOLDER | --preset base] [--tasks sst2 qamr]
        [--run RUN --task TASK …] [--lines 1000] [--rounds 5] [--batches 1 32 best] [--preload LIB] [--out PAGE.md]

All programs have the same weights: of RUN, which Stretto fine-tuned on TASK; of FOLDER, a Hugging Face folder of an encoder, fine-tuned
for --updates; or of a BERT of --preset's size, random but for so many updates. `stretto compress` packs them, and `stretto export --format
hf` writes what the others read. The texts are training texts of DATA (understanding.py): --lines of them, drawn from all.

Each round starts, in turn and each in a process of its own, for each batch:

- Stretto in fp32, int8 and int4; with --codes the last two once more with run.packed_weights=codes, faster or not;
- fp32: transformers, that with torch.compile, ONNX Runtime;
- int8: ONNX Runtime's and PyTorch's dynamic forms, torchao's, compiled too;
- int4: torchao's, with rows in fp32, compiled too, or in int8; and ONNX Runtime's with rows in int8.

The others sort texts by length and pad a batch to its longest. «best» is the fastest of 8, 16, 32 and 64 on a part of the texts; Stretto has
its own batches there. ONNX Runtime has one thread or --threads, whichever was faster in the first round. Tokenizing, sorting and writing
count, loading and compiling do not: of Stretto, the same command on no text is taken off. The process's peak of memory has all of it.
What PYTHON lacks, or what cannot run on the processor, is left out and said.

Answers are compared with those of Stretto in fp32: fp32 programs may differ in one of a hundred, and in probabilities or numbers by 1e-3.
Stretto's int8 and int4 may differ in 5 and 15 of a hundred, which is judged for each RUN; other weights are hardly trained. Ratios are taken
round by round to the fastest other program of the same bits. Each finished cell is a line of WORK/encoders_packed.jsonl: a second call goes
on, and the page shows all that is there. A form that could not run has a line too, «failed»: without it, it is tried again. Leaves with 1
if a program failed, or answers differ.
"""
import argparse
import contextlib
import dataclasses
import gzip
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import statistics
import sys

import inference_beside_transformers as inference
import records
import understanding
from understanding import TASKS, Failed

PEER = records.ROOT / "benchmarks/encoders_packed_peer.py"
GOALS = {"fp32": 1.3, "int8": 1.3}  # beside the fastest other program of the same bits
INT4_GOAL = 1.5  # beside Stretto's int8, at batch 1
SIZES = {"int8": 0.26, "int4": 0.14}  # of the fp32 file
EQUAL = {"fp32": 0.99, "int8": 0.95, "int4": 0.85}
TRIED = "8,16,32,64"
VOCABULARY = "fixtures/tokenizers/bert_base_uncased_vocab.txt"


@dataclasses.dataclass(frozen=True)
class Program:
    title: str
    bits: str  # fp32, int8 or int4
    needs: tuple = ("torch", "transformers")  # () = Stretto
    may_fail: bool = False  # not every processor or version has it
    keys: tuple = ()

    @property
    def is_own(self):
        return not self.needs


ONNX, AO = ("torch", "transformers", "onnxruntime", "onnx"), ("torch", "transformers", "torchao")
CODES = ("run.packed_weights=codes",)
PROGRAMS = {
    "stretto": Program("Stretto", "fp32", ()),
    "torch": Program("transformers", "fp32"),
    "compiled": Program("transformers, compiled", "fp32", may_fail=True),
    "onnx": Program("ONNX Runtime", "fp32", ONNX[:3]),
    "stretto_int8": Program("Stretto", "int8", ()),
    "stretto_int8_codes": Program("Stretto, codes", "int8", (), keys=CODES),
    "onnx_int8": Program("ONNX Runtime, dynamic", "int8", ONNX),
    "dynamic_int8": Program("PyTorch, dynamic", "int8", may_fail=True),
    "torchao_int8": Program("torchao, dynamic", "int8", AO, may_fail=True),
    "torchao_int8_compiled": Program("torchao, dynamic, compiled", "int8", AO, may_fail=True),
    "stretto_int4": Program("Stretto", "int4", ()),
    "stretto_int4_codes": Program("Stretto, codes", "int4", (), keys=CODES),
    "onnx_int4": Program("ONNX Runtime, dynamic", "int4", (*ONNX, "onnx-ir"), may_fail=True),
    "torchao_int4": Program("torchao, weights", "int4", AO, may_fail=True),
    "torchao_int4_compiled": Program("torchao, weights, compiled", "int4", AO, may_fail=True),
    "torchao_int4_dynamic_compiled": Program("torchao, dynamic, compiled", "int4", AO, may_fail=True)}


# What is measured

@dataclasses.dataclass(frozen=True)
class Case:
    """A fine-tuned encoder."""
    model: str
    task: str
    run: pathlib.Path
    is_given: bool

    @property
    def key(self):
        return {"model": self.model, "task": self.task}


def cases(options):
    found = [Case(run.name, task, run, True) for run, task in zip(options.run, options.task)]
    model = options.model.name if options.model else f"{options.preset}, random"
    for task in options.tasks:
        found.append(Case(model, task, options.work / f"runs/{model.replace(', ', '_')}_{task}", False))
    return found


def made_up(folder):
    """SST-2 and QAMR of random words with their vocabulary, for a dry run."""
    draw = random.Random(1)
    words = sorted({"".join(draw.choices("abdegiklmnorstu", k=draw.randint(2, 6))) for _ in range(200)})

    def line():
        return " ".join(draw.choices(words, k=draw.randint(3, 12)))

    questions = []
    for number in range(30):
        context = line()
        word = draw.choice(context.split())
        answers = [{"text": word, "answer_start": f" {context} ".index(f" {word} ")}]
        questions.append({"title": str(number), "paragraphs": [{"context": context, "qas": [
            {"id": str(number), "question": line(), "answers": answers}]}]})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *"abdegiklmnorstu", *(f"##{letter}" for letter in "abdegiklmnorstu")]
    rows = [f"{line()}\t{number % 2}\n" for number in range(60)]
    for name, text in (("sst2/glue_train.tsv.gz", "sentence\tlabel\n" + "".join(rows)),
                       ("sst2/glue_dev.tsv", "label\tcontent\n" + "".join(f"{number % 2}\t{line()}\n" for number in range(20))),
                       ("qamr/derived_squad_format_dev.json.gz", json.dumps({"version": "1.1", "data": questions})),
                       (VOCABULARY, "".join(piece + "\n" for piece in dict.fromkeys(pieces)))):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8") as file:
            file.write(text)


# Weights

def fine_tuned(options, case):
    """Trains the run of a case unless it is there to its end."""
    events = records.json_lines(case.run / "metrics.jsonl")
    if case.is_given or any(event["event"] == "end" for event in events):
        return
    batch = 16
    files = understanding.prepare(options.data, options.work, case.task, batch * options.updates, 50)
    more = {"run": {"seed": 1, "threads": options.threads}}
    if options.model:
        place = options.work / f"imported/{case.model}"
        place.mkdir(parents=True, exist_ok=True)
        imported = understanding.imported(options.stretto, options.model, place)
        model, begin = understanding.model_of(imported), {"init_from": imported}
    else:
        model, begin = {"preset": options.preset}, {}
        more["tokenizer"] = {"type": "wordpiece", "model": options.data / VOCABULARY}
    sections = understanding.fine_tuning(files, model, batch, options.lr, train={"max_steps": options.updates, **begin}, **more)
    recipe = understanding.write_recipe(case.run, sections)
    shutil.rmtree(case.run, ignore_errors=True)
    understanding.call([options.stretto, "train", recipe, "--run", case.run, "--quiet", *options.key], understanding.environment(options.threads))


def runs_of(options, case):
    """bits -> run folder. `compress` leaves what it made before."""
    fine_tuned(options, case)
    found = {"fp32": case.run}
    for bits, words in (("int8", options.int8), ("int4", options.int4)):
        found[bits] = options.work / f"packed/{case.run.name}_{bits}"
        found[bits].parent.mkdir(parents=True, exist_ok=True)
        understanding.call([options.stretto, "compress", case.run, "--checkpoint", "last", "--bits", bits[3:], *shlex.split(words), "--run",
                            found[bits]], understanding.environment(options.threads))
    return found


def model_bytes(run):
    """Of the model file of the last checkpoint."""
    files = sorted((run / "checkpoints").glob("*/model.safetensors"))
    if not files:
        raise Failed(f"{run.name} has no checkpoint with a model.safetensors")
    return files[-1].stat().st_size


# Measuring

def batch_keys(batch, task):
    if batch == "best":
        return []
    return [f"eval.max_samples={batch}", f"eval.max_tokens={int(batch) * task.max_text_tokens}"]


def own(options, program, run, files, texts, answers, batch):
    keys = [*options.key, *program.keys, *batch_keys(batch, files.task)]
    found = inference.own(argparse.Namespace(**{**vars(options), "key": keys}), run, files, texts, answers, "fp32")
    return {**found, "seconds": max(1e-3, found["seconds"]), "model_bytes": model_bytes(run), "threads": options.threads}


def peer(options, name, folder, files, answers, batch, threads):
    command = [options.python, PEER, "infer", folder, "--kind", files.task.kind, "--texts", files.train, "--engine", name, "--output",
               options.work / f"onnx/{folder.name}", "--predictions", answers, "--threads", threads, "--batches",
               TRIED if batch == "best" else batch, "--max-tokens", files.task.max_text_tokens]
    output, _, memory = understanding.call(command, understanding.environment(threads, options.preload))
    return {**json.loads(output.splitlines()[-1]), "peak_mib": memory, "threads": threads}


class LeftOut(Exception):
    """A program that may fail did."""


class CaseMeasurements:
    """All cells of a case."""

    def __init__(self, options, cells, case, installed):
        self.options, self.cells, self.case, self.installed = options, cells, case, installed
        self.files, self.texts = inference.texts_of(options, case.task)
        self.runs = runs_of(options, case)
        self.folder = options.work / f"exported/{case.run.name}"
        if not (self.folder / "config.json").exists():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            understanding.call([options.stretto, "export", case.run, "--checkpoint", "last", "--format", "hf", self.folder])
        self.names = [name for name in PROGRAMS if self.is_wanted(name)]

    def is_wanted(self, name):
        """Whether a program is to run; one that cannot is noted."""
        program = PROGRAMS[name]
        if name in self.options.without or ("compiled" in name and self.options.no_compile) or (program.keys and not self.options.codes):
            return False
        missing = [package for package in program.needs if not self.installed.get(package)]
        if missing:
            self.cells.measure(self.left_out(name, "missing"), lambda: {"reason": f"PYTHON has no {' and no '.join(missing)}"})
        return not missing

    def left_out(self, name, why="failed"):
        return {**self.case.key, "program": name, "left_out": why}

    def prepare(self):
        """Files of ONNX Runtime, so that no measured process makes them."""
        for name in [name for name in self.names if name.startswith("onnx")]:
            command = [self.options.python, PEER, "prepare", self.folder, "--kind", self.files.task.kind, "--output",
                       self.options.work / f"onnx/{self.folder.name}", "--engine", name]
            with contextlib.suppress(LeftOut):
                self.guarded(name, lambda command=command: understanding.call(command, understanding.environment(self.options.threads)))

    def guarded(self, name, function):
        """The value of a function. LeftOut where a program that may fail did, which is noted: it does not run again."""
        try:
            return function()
        except Failed as failure:
            if not PROGRAMS[name].may_fail:
                raise
            lines = [line for line in str(failure).splitlines() if line.strip()]
            print(f"{understanding.program_name()}: {name} is left out: {failure}", file=sys.stderr, flush=True)
            self.cells.measure(self.left_out(name), lambda: {"reason": lines[-1].strip()[:200]})
            raise LeftOut from failure

    def answers_of(self, name, batch):
        place = self.options.work / f"answers/{self.case.run.name}"
        place.mkdir(parents=True, exist_ok=True)
        return place / f"{name}_{batch}.{'out' if PROGRAMS[name].is_own else 'answers'}"

    def one(self, name, batch):
        """A measured process, its score included."""
        program, answers = PROGRAMS[name], self.answers_of(name, batch)
        if program.is_own:
            found = own(self.options, program, self.runs[program.bits], self.files, self.texts, answers, batch)
        else:
            known = by_round(self.cells, self.case, name, batch)
            trials = [self.options.threads]
            if name.startswith("onnx"):
                trials = [next(iter(known.values()))["threads"]] if known else sorted({1, self.options.threads})
            found = self.guarded(name, lambda: min((peer(self.options, name, self.folder, self.files, answers, batch, threads)
                                                    for threads in trials), key=lambda values: values["seconds"]))
        return {**found, "texts": inference.count(self.files), "scores": inference.score(self.options, self.files, answers)}

    def measure(self):
        """Whether all that had to run did."""
        self.prepare()
        well = True
        for number in range(1, self.options.rounds + 1):
            for batch in self.options.batches:
                for name in self.names if number % 2 else self.names[::-1]:
                    if self.cells.all(**self.left_out(name)):
                        continue
                    key = {**self.case.key, "program": name, "batch": batch, "round": number, "lines": self.options.lines}
                    with contextlib.suppress(LeftOut):
                        well = self.cells.measure(key, lambda name=name, batch=batch: self.one(name, batch)) and well
        return self.compare() and well

    def compare(self):
        well = True
        for batch in self.options.batches:
            ours = self.answers_of("stretto", batch)
            for name in self.names[1:]:
                other = self.answers_of(name, batch)
                if ours.exists() and other.exists() and by_round(self.cells, self.case, name, batch):
                    key = {**self.case.key, "program": name, "batch": batch, "agreement": True, "lines": self.options.lines}
                    well = self.cells.measure(key, lambda other=other, ours=ours: {
                        **inference.agreement(self.files, ours, other), "is_given": self.case.is_given}) and well
        return well


# The page

def by_round(cells, case, name, batch):
    """round -> cell of what ran."""
    return {cell["key"]["round"]: cell for cell in cells.all(**case.key, program=name, batch=batch, agreement=None) if "seconds" in cell}


def ratios(slower, faster):
    """How much sooner the second is, in the rounds that both have."""
    return [slower[number]["seconds"] / faster[number]["seconds"] for number in sorted(slower.keys() & faster.keys())]


def fastest(cells, case, batch, bits):
    """round -> cell of the fastest other program of so many bits, and the programs' titles."""
    found, titles = {}, set()
    for name, program in PROGRAMS.items():
        for number, cell in by_round(cells, case, name, batch).items() if not program.is_own and program.bits == bits else []:
            if number not in found or cell["seconds"] < found[number][0]["seconds"]:
                found[number] = cell, program.title
    titles = sorted({title for _, title in found.values()})
    return {number: cell for number, (cell, _) in found.items()}, " or ".join(titles)


def own_name(bits):
    return "stretto" if bits == "fp32" else f"stretto_{bits}"


def judged(value, goal, least=True):
    return "yes" if (value >= goal if least else value <= goal) else "no"


def goals(cells, case, batches):
    """Rows: what, batch, measured, goal, reached."""
    rows = []
    for batch in batches:
        mine = {bits: by_round(cells, case, own_name(bits), batch) for bits in ("fp32", "int8", "int4")}
        for bits, other, goal in (("fp32", "fp32", GOALS["fp32"]), ("int8", "int8", GOALS["int8"]), ("int8", "fp32", None),
                                  ("int4", "int4", None), ("int4", "int8", None)):
            best, titles = fastest(cells, case, batch, other)
            found = ratios(best, mine[bits])
            if found:
                rows.append([f"{bits} beside the fastest {other}, {titles}", batch, records.spread(found), goal or "",
                             judged(statistics.median(found), goal) if goal else ""])
        found = ratios(mine["int8"], mine["int4"])
        if found:
            goal = INT4_GOAL if batch == "1" else None
            rows.append(["int4 beside int8 of Stretto", batch, records.spread(found), goal or "",
                         judged(statistics.median(found), goal) if goal else ""])
    for bits, goal in SIZES.items():
        share = size_share(cells, case, own_name(bits))
        if share is not None:
            rows.append([f"size of {bits}, of fp32", "", f"{share:.3f}", f"at most {goal}", judged(share, goal, least=False)])
    return rows


def size_share(cells, case, name):
    """Of the model file of Stretto in fp32."""
    both = [[cell for cell in cells.all(**case.key, program=one, agreement=None) if "model_bytes" in cell] for one in ("stretto", name)]
    return both[1][-1]["model_bytes"] / both[0][-1]["model_bytes"] if all(both) else None


def agrees(cell, program):
    """Whether answers are within what rounding may change; of other programs below fp32 it is only said."""
    if program.bits == "fp32":
        return cell["equal"] >= EQUAL["fp32"] and cell["difference"] <= 1e-3
    return not (program.is_own and cell["is_given"]) or cell["equal"] >= EQUAL[program.bits]


def row_of(cells, case, name, batch, found):
    """A row of a program's rounds, and whether its answers are good."""
    program, cell = PROGRAMS[name], next(iter(found.values()))
    faster = [] if program.is_own else ratios(found, by_round(cells, case, own_name(program.bits), batch))
    share = size_share(cells, case, name)
    compared = cells.all(**case.key, program=name, batch=batch, agreement=True)
    good = all(agrees(one, program) for one in compared)
    equal = f"{compared[-1]['equal']:.1%}" + (f", {compared[-1]['difference']:.0e}" if compared[-1]["difference"] else "") if compared else ""
    scores = ", ".join(f"{key} {understanding.percent(value, key):.2f}" for key, value in cell["scores"].items())
    return [batch + (f" ({cell['batch']})" if batch == "best" and "batch" in cell else ""), f"{program.title}, {program.bits}",
            records.spread([one["texts"] / one["seconds"] for one in found.values()], decimals=1),
            records.spread(faster) if faster else "", f"{statistics.median(one['peak_mib'] for one in found.values()):,.0f}", cell["threads"],
            f"{cell['model_bytes'] / 1e6:,.1f}" + (f" ({share:.3f})" if share else ""), equal + ("" if good else ", **differs**"), scores], good


def section(cells, case):
    """Tables of a case, and whether answers are equal."""
    measured = cells.all(**case.key, agreement=None, left_out=None)
    batches = list(dict.fromkeys(cell["key"]["batch"] for cell in measured if "seconds" in cell))
    rows, well = [], True
    for batch in batches:
        for name in PROGRAMS:
            found = by_round(cells, case, name, batch)
            if found:
                row, good = row_of(cells, case, name, batch, found)
                rows.append(row)
                well = well and good
    texts = next(cell["texts"] for cell in measured if "seconds" in cell)
    parts = [f"## {case.model}: {TASKS[case.task].title}, {texts} texts",
             records.table(["batch", "program", "texts/s", "Stretto with these bits is faster by", "peak MiB", "threads",
                            "model file, MB (of Stretto's fp32)", "answers of Stretto in fp32, largest difference", "scores on these texts"], rows)]
    reached = goals(cells, case, batches)
    if reached:
        parts.append(records.table(["Stretto", "batch", "ratio", "goal", "reached"], reached))
    return "\n\n".join(part for part in [*parts, words_of_left_out(cells, case)] if part), well


def words_of_left_out(cells, case):
    """Programs that never ran, by their reasons."""
    found, ran = {}, {cell["key"]["program"] for cell in cells.all(**case.key) if "seconds" in cell}
    for cell in cells.all(**case.key):
        if "reason" in cell and cell["key"]["program"] not in ran:
            program = PROGRAMS[cell["key"]["program"]]
            found.setdefault(cell["reason"], []).append(f"{program.title}, {program.bits}")
    return "\n\n".join(f"Left out: {'; '.join(titles)}. {reason}." for reason, titles in found.items())


def page(options, cells):
    """The page of all cells, and whether answers are equal."""
    known = dict.fromkeys((cell["key"]["model"], cell["key"]["task"]) for cell in cells.all() if "seconds" in cell)
    sections = [section(cells, Case(model, task, pathlib.Path(), False)) for model, task in known]
    versions = sorted({f"{name} {version}" for cell in cells.all() for name, version in cell.get("versions", {}).items() if version})
    notes = [f"{options.threads} threads. Median (least – most) of rounds, in turn.",
             f"Versions: {', '.join(versions)}." if versions else "",
             "A library that opens the fast path of MKL is preloaded for PyTorch and ONNX Runtime." if options.preload else "",
             "Memory of torchao's and PyTorch's packed forms has the fp32 weights that they were made of."]
    text = records.page("Encoders in fp32, int8 and int4 beside others", notes, "\n\n".join(text for text, _ in sections) or
                        "Nothing is measured yet.", "an hour", cells.head())
    return text, all(well for _, well in sections)


# The program

def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for stretto train and infer")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, help="folder with sst2/, qamr/ and so on")
    parser.add_argument("--work", type=pathlib.Path, help="folder for runs, files and answers; default temporary")
    parser.add_argument("--out", type=pathlib.Path, help="file for the page")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, transformers, and if possible onnxruntime, onnx, torchao")
    parser.add_argument("--run", type=pathlib.Path, action="append", default=[], help="may be repeated, with its --task")
    parser.add_argument("--task", choices=TASKS, action="append", default=[])
    parser.add_argument("--model", type=pathlib.Path, help="a Hugging Face folder of an encoder")
    parser.add_argument("--preset", default="base", choices=("tiny", "mini", "small", "medium", "base", "large"), help="without --model")
    parser.add_argument("--tasks", nargs="*", choices=TASKS, help="for --model or --preset; default sst2 and qamr, beside --run none")
    parser.add_argument("--updates", type=int, default=30, help="of this fine-tuning")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--int8", default="", metavar="OPTIONS", help="for stretto compress, as in --int8='--group 64'")
    parser.add_argument("--int4", default="--group 64", metavar="OPTIONS")
    parser.add_argument("--codes", action="store_true", help="Stretto's int8 and int4 with run.packed_weights=codes too")
    parser.add_argument("--lines", type=int, default=1000, help="texts or questions")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", nargs="+", default=["1", "32", "best"], metavar="TEXTS", help="a number, or best: each program's own")
    parser.add_argument("--without", nargs="+", default=[], choices=[name for name in PROGRAMS if name != "stretto"])
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--preload", default="", help="a library for the other programs: MKL's fast path on AMD")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", action="store_true", help="made-up texts, a tiny model, one round: tries the script, measures nothing")
    return checked(parser, parser.parse_args())


def checked(parser, options):
    if len(options.run) != len(options.task):
        parser.error("each --run needs its --task")
    for batch in options.batches:
        if batch != "best" and not (batch.isdigit() and int(batch) > 0):
            parser.error(f"--batches: {batch} is neither a number of texts nor best")
    if not (options.data or options.smoke or options.page):
        parser.error("--data is needed: the folder of the data sets")
    for name in ("data", "model", "preload"):
        path = getattr(options, name)
        if path and not pathlib.Path(path).exists():
            parser.error(f"--{name}: there is no {path}")
        if path:
            setattr(options, name, pathlib.Path(path).resolve())
    for run in options.run:
        if not (run / "config.toml").is_file():
            parser.error(f"--run: {run} is no run folder")
    options.run = [run.resolve() for run in options.run]
    if options.tasks is None:
        options.tasks = [] if options.run else ["sst2", "qamr"]
    if options.smoke:
        options.preset, options.updates, options.lines, options.rounds = "tiny", 3, 20, 1
    options.stretto = records.program(parser, options.stretto)
    options.preload = str(options.preload or "")
    return options


def measure(options, cells):
    """Whether everything could be measured. A case that fails does not keep others from it."""
    installed = json.loads(understanding.call([options.python, PEER, "versions"])[0])
    well = True
    for case in cases(options):
        try:
            well = CaseMeasurements(options, cells, case, installed).measure() and well
        except Failed as failure:
            print(f"error: {failure}", file=sys.stderr)
            well = False
    return well


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    smoke, options.smoke = options.smoke, False  # the made-up text of a work folder is one of translations
    with records.work_folder(options, "stretto_encoders_"):
        if smoke:
            options.data = options.work / "made_up"
            made_up(options.data)
        cells = understanding.Cells(options.work / "encoders_packed.jsonl")
        well = options.page or measure(options, cells)
        text, equal = page(options, cells)
        records.publish(text, options.out)
    return 0 if well and equal else 1


if __name__ == "__main__":
    sys.exit(main())
