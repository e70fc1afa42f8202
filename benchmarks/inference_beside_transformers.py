#!/usr/bin/env python3
"""Inference with a fine-tuned encoder by `stretto infer` beside transformers and ONNX Runtime: texts a second, memory, equal answers.

    python benchmarks/inference_beside_transformers.py --data DATA --run RUN --task sst2 --python PYTHON --work WORK --out PAGE.md
                 [--run RUN2 --task qamr …] [--lines 2000] [--rounds 5] [--no-compile] [--no-onnx] [--bf16]

RUN is a run that Stretto fine-tuned on TASK; finetune_beside_trainer.py leaves those of seed 1 in WORK/scores. `stretto export` writes it as
a Hugging Face folder, so that all programs have the same weights. The texts are training texts of DATA (understanding.py): --lines of them,
drawn from all, labels or answers included, which nobody reads but the score.

Each round starts, in turn and each in a process of its own:

- stretto: `stretto infer` from the file of texts to the file of answers, less the same command on no text;
- PyTorch: transformers in inference_mode, texts sorted by length, each batch padded to its longest; and that with torch.compile;
- ONNX Runtime: the same batches, fp32, the graph fused by its tool for BERT.

For the last three, loading, exporting and compiling do not count; the first process of ONNX Runtime exports, which its memory shows. Each
tries the batch sizes of --batches on a part of the texts, and takes the fastest; ONNX Runtime also tries each number of threads up to
--threads. Tokenizing, sorting and writing count for all. Ratios are taken round by round to the fastest other program. Answers must be
equal: at most one in a hundred labels or answers may differ, by rounding, and probabilities or numbers by 1e-3 at most. Each finished cell
is a line of WORK/inference.jsonl.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import sys

import records
import understanding
from understanding import TASKS, Failed

GOAL = 1.3
PRECISIONS = {"fp32": "fp32", "bf16": "mixed_bf16"}
TITLES = {"stretto": "Stretto", "torch": "transformers, sorted", "compiled": "transformers, sorted, compiled", "onnx": "ONNX Runtime"}


def texts_of(options, name):
    """All texts as `stretto infer` takes them, and as a data set."""
    files = understanding.prepare(options.data, options.work, name, options.lines, 50)
    if files.task.kind == "answers":
        return files, files.train
    lines = options.work / f"data/{name}_{options.lines}.txt"
    rows = understanding.rows_of(files.train)
    records.write_whole(lines, "".join("\t".join(row[:-1]) + "\n" for row in rows))
    return files, lines


def stretto_answers(output, kind, questions):
    """Answers by `stretto infer`, in the form that peers write: (predictions as text, probabilities)."""
    lines = output.read_text(encoding="utf-8").split("\n")[:-1]
    if kind == "answers":
        return dict(zip((question[0] for question in questions), lines)), None
    rows = [line.split("\t") for line in lines]
    if kind == "number":
        return [row[0] for row in rows], [[float(row[0])] for row in rows]
    return [row[0] for row in rows], [{name: float(value) for name, value in (part.rsplit("=", 1) for part in row[1:])} for row in rows]


def own(options, run, files, texts, answers, precision):
    command = [options.stretto, "infer", run, "--checkpoint", "last", f"run.threads={options.threads}", f"eval.precision={PRECISIONS[precision]}",
               *options.key]
    if files.task.kind == "class":
        command.append("--scores")
    env = understanding.environment(options.threads)
    starts = [understanding.call(command, env)[1] for _ in range(2)]
    _, seconds, memory = understanding.call([*command, texts], env, output=answers)
    return {"seconds": seconds - min(starts), "start": min(starts), "peak_mib": memory}


def peer(options, folder, files, engine, threads, answers, bf16):
    task = files.task
    command = [options.python, records.ROOT / "benchmarks/transformers_peer.py", "infer", folder, "--kind", task.kind, "--texts", files.train,
               "--engine", engine, "--output", options.work / f"onnx/{folder.name}", "--predictions", answers, "--threads", threads, "--batches",
               options.batches, "--max-tokens", task.max_text_tokens]
    if bf16:
        command.append("--bf16")
    output, _, memory = understanding.call(command, understanding.environment(threads, options.preload))
    return {**json.loads(output.splitlines()[-1]), "peak_mib": memory, "threads": threads}


def answers_in(files, path):
    """(answers, numbers of each text) of a file, of Stretto (.out) or of a peer. Answers of questions are a dict, without numbers."""
    kind = files.task.kind
    if path.suffix == ".out":
        found, chances = stretto_answers(path, kind, understanding.questions_of(files.train) if kind == "answers" else [])
        return found, [list(row.values()) if isinstance(row, dict) else row for row in chances or []]
    if kind == "answers":
        return json.loads(path.read_text(encoding="utf-8")), []
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    # The order of labels is that of the run, which the exported folder keeps.
    return [row[0] for row in rows], [list(map(float, row[kind == "class":])) for row in rows]


def agreement(files, one, other):
    """Share of equal answers of two programs, and the largest difference of a probability or number."""
    (ours, chances), (theirs, others) = answers_in(files, one), answers_in(files, other)
    if files.task.kind == "answers":
        return {"equal": sum(ours[name] == theirs[name] for name in theirs) / len(theirs), "difference": 0.0}
    largest = max(abs(a - b) for found, row in zip(chances, others, strict=True) for a, b in zip(found, row, strict=True))
    same = 1.0 if files.task.kind == "number" else sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(theirs)
    return {"equal": same, "difference": largest}


def score(options, files, answers):
    """The score of all texts; Stretto's answers are brought into the form of predictions first."""
    whole = understanding.Files(files.task, files.train, files.train)
    if answers.suffix == ".out":
        found, _ = stretto_answers(answers, files.task.kind, understanding.questions_of(files.train) if files.task.kind == "answers" else [])
        text = json.dumps(found, ensure_ascii=False) if files.task.kind == "answers" else "".join(line + "\n" for line in found)
        answers = answers.with_suffix(".predictions")
        records.write_whole(answers, text)
    return understanding.scores_of(options.stretto, whole, answers)


def answers_of(options, name, program, precision):
    return options.work / f"{name}_{program}{'' if precision == 'fp32' else '_' + precision}.{'out' if program == 'stretto' else 'answers'}"


def measure(options, cells, name, run):
    files, texts = texts_of(options, name)
    folder, done = options.work / f"exported/{run.name}", True
    if not (folder / "config.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        understanding.call([options.stretto, "export", run, "--checkpoint", "last", "--format", "hf", folder])
    engines = ["torch"] + ([] if options.no_compile else ["compiled"]) + ([] if options.no_onnx else ["onnx"])
    precisions = ["fp32"] + (["bf16"] if options.bf16 else [])
    for number in range(1, options.rounds + 1):
        for precision in precisions:
            programs = ["stretto"] + [engine for engine in engines if precision == "fp32" or engine != "onnx"]
            for program in programs if number % 2 else programs[::-1]:
                key = {"task": name, "program": program, "round": number, "precision": precision, "lines": options.lines}
                if program == "stretto":
                    def one(precision=precision):
                        ours = answers_of(options, name, "stretto", precision)
                        values = own(options, run, files, texts, ours, precision)
                        return {**values, "texts": count(files), "scores": score(options, files, ours)}
                else:
                    def one(program=program, precision=precision):
                        answers = answers_of(options, name, program, precision)
                        known = cells.all(task=name, program=program, precision=precision)
                        trials = [known[0]["threads"]] if known else range(1, options.threads + 1) if program == "onnx" else [options.threads]
                        found = [peer(options, folder, files, program, threads, answers, precision == "bf16") for threads in trials]
                        values = min(found, key=lambda values: values["seconds"])
                        return {**values, "texts": count(files), "scores": score(options, files, answers)}
                done = cells.measure(key, one) and done
    ours = answers_of(options, name, "stretto", "fp32")
    for program in engines:
        answers = answers_of(options, name, program, "fp32")
        if ours.exists() and answers.exists():
            key = {"task": name, "program": program, "agreement": True, "lines": options.lines}
            done = cells.measure(key, lambda: agreement(files, ours, answers)) and done
    return done


def count(files):
    return len(understanding.questions_of(files.train) if files.task.kind == "answers" else understanding.rows_of(files.train))


def section(cells, name, task):
    """Table and words of a data set; whether answers are equal."""
    rows, words, well, texts = [], [], True, "?"
    for precision in PRECISIONS:
        own_cells = {cell["key"]["round"]: cell for cell in cells.all(task=name, program="stretto", precision=precision, agreement=None)}
        fastest = {}
        for program, title in TITLES.items():
            found = {cell["key"]["round"]: cell for cell in cells.all(task=name, program=program, precision=precision)}
            if not found:
                continue
            both = sorted(found.keys() & own_cells.keys())
            ratios = {number: found[number]["seconds"] / own_cells[number]["seconds"] for number in both}
            if program != "stretto":
                for number, ratio in ratios.items():
                    fastest[number] = min(ratio, fastest.get(number, ratio))
            any_cell = next(iter(found.values()))
            scores = ", ".join(f"{key} {understanding.percent(value, key):.2f}" for key, value in any_cell["scores"].items())
            rows.append([title + ("" if precision == "fp32" else ", bf16"),
                         records.spread([cell["texts"] / cell["seconds"] for cell in found.values()], decimals=1),
                         records.spread(list(ratios.values())) if ratios and program != "stretto" else "",
                         f"{statistics.median(cell['peak_mib'] for cell in found.values()):,.0f}", any_cell.get("batch", ""),
                         any_cell.get("threads", ""), scores])
            texts = any_cell["texts"]
        if fastest:
            words.append(f"In {precision}, beside the fastest other program of each round: {records.spread(list(fastest.values()))} times as "
                         f"fast; the goal is {GOAL}.")
    for cell in cells.all(task=name, agreement=True):
        title = TITLES[cell["key"]["program"]]
        words.append(f"{title} gives {cell['equal']:.2%} of the answers that Stretto gives" +
                     (f"; probabilities or numbers differ by {cell['difference']:.1e} at most." if task.kind != "answers" else "."))
        well = well and cell["equal"] >= 0.99 and cell["difference"] <= 1e-3
    table = records.table(["program", "texts/s", "Stretto is faster by", "peak MiB", "batch", "threads", "scores on these texts"], rows)
    return f"## {task.title}, {texts} texts\n\n{table}\n\n{' '.join(words)}", well


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", nargs="*", metavar="key=value", help="for stretto infer, as in eval.max_tokens=2048")
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--run", type=pathlib.Path, action="append", default=[], help="may be repeated, with its --task")
    parser.add_argument("--task", choices=TASKS, action="append", default=[])
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, transformers and onnxruntime")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", default="8,16,32,64", help="batch sizes that the other programs try")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--no-onnx", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="half precision too: eval.precision = mixed_bf16, and PyTorch with autocast")
    parser.add_argument("--preload", default="")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    options = parser.parse_args()
    if len(options.run) != len(options.task):
        parser.error("each --run needs its --task")
    options.stretto = records.program(parser, options.stretto)
    options.work = options.work.resolve()
    options.preload = str(pathlib.Path(options.preload).resolve()) if options.preload else ""
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cells, well = understanding.Cells(options.work / "inference.jsonl"), True
    if not options.page:
        for name, run in zip(options.task, options.run):
            try:
                well = measure(options, cells, name, run) and well
            except Failed as failure:
                print(f"error: {failure}", file=sys.stderr)
                well = False
    parts = []
    for name, task in TASKS.items():
        if cells.all(task=name):
            text, equal = section(cells, name, task)
            parts.append(text)
            well = well and equal
    notes = [f"{options.threads} threads, fp32 but where a row says otherwise. Median (least – most) of rounds, in turn."]
    records.publish(records.page("Inference beside transformers and ONNX Runtime", notes, "\n\n".join(parts) or "Nothing is measured yet.",
                                 "half an hour", cells.head()), options.out)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
