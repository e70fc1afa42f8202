"""What the programs about understanding share: data sets in one form, recipes, scores, and processes with their peak memory.

The data folder has sst2/, rte/, sick/, qamr/, policyqa/, jaquad/, public_domain_books/ and wikitext2/ as their projects publish them.
Classification becomes a TSV with the columns text, text2 and label; questions become SQuAD's JSON. What has no validation part of its
own is split by a fixed draw, questions by article.
"""
import csv
import dataclasses
import gzip
import io
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib

import records


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    title: str
    kind: str  # class, number or answers
    metric: str  # the score that is compared
    is_pair: bool = False
    max_text_tokens: int = 128
    answer_split: str = "space"


TASKS = {task.name: task for task in (
    Task("sst2", "SST-2", "class", "accuracy"),
    Task("rte", "RTE", "class", "accuracy", is_pair=True, max_text_tokens=256),
    Task("sick", "SICK, relatedness", "number", "pearson", is_pair=True),
    Task("sick_entailment", "SICK, entailment", "class", "accuracy", is_pair=True),
    Task("qamr", "QAMR", "answers", "f1", max_text_tokens=384),
    Task("policyqa", "PolicyQA", "answers", "f1", max_text_tokens=384),
    Task("jaquad", "JaQuAD", "answers", "f1", max_text_tokens=384, answer_split="cjk"))}


class Failed(Exception):
    """A program that was measured left with an error."""


# Data

def read_text(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        return file.read()


def read_rows(path, columns, delimiter="\t"):
    """Values of these columns of a table with a header; quotes mean nothing."""
    reader = csv.DictReader(io.StringIO(read_text(path)), delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return [tuple(" ".join(row[column].split()) for column in columns) for row in reader]


def split(items, share, seed=1):
    """Two lists: what is left, and a fixed draw of this share."""
    order = list(items)
    random.Random(seed).shuffle(order)
    count = round(len(order) * share)
    return order[count:], order[:count]


def labelled_rows(folder, name):
    """Rows (text, [text2,] label) for training and for validation."""
    if name == "sst2":
        train = read_rows(folder / "sst2/glue_train.tsv.gz", ("sentence", "label"))
        return train, read_rows(folder / "sst2/glue_dev.tsv", ("content", "label"))
    if name == "rte":
        return split(read_rows(folder / "rte/train.tsv", ("sentence1", "sentence2", "label")), 0.2)
    label = "relatedness_score" if name == "sick" else "entailment_judgment"
    columns = ("sentence_A", "sentence_B", label)
    return read_rows(folder / "sick/SICK_train.txt", columns), read_rows(folder / "sick/SICK_trial.txt", columns)


def articles(folder, name):
    """Articles of SQuAD's form for training and for validation."""
    if name == "jaquad":
        train, valid = [], []
        with tarfile.open(folder / "jaquad/jaquad_train.tar.gz") as archive:
            for member in sorted(archive.getmembers(), key=lambda member: member.name):
                if member.name.endswith(".json"):
                    train += json.load(archive.extractfile(member))["data"]
        for path in sorted((folder / "jaquad").glob("jaquad_dev_*.json.gz")):
            valid += json.loads(read_text(path))["data"]
        return train, valid
    path = folder / ("qamr/derived_squad_format_dev.json.gz" if name == "qamr" else "policyqa/dev.json.gz")
    return split(json.loads(read_text(path))["data"], 0.2)


def fewer_questions(found, most, seed=1):
    """Articles with at most so many questions, drawn from all; 0 = all of them."""
    ids = [question["id"] for article in found for paragraph in article["paragraphs"] for question in paragraph["qas"]]
    if 0 < most < len(ids):
        ids = random.Random(seed).sample(sorted(ids), most)
    kept, left = set(ids), []
    for article in found:
        paragraphs = []
        for paragraph in article["paragraphs"]:
            questions = [{key: question[key] for key in ("id", "question", "answers")} for question in paragraph["qas"]
                         if question["id"] in kept]
            if questions:
                paragraphs.append({"context": paragraph["context"], "qas": questions})
        if paragraphs:
            left.append({"title": article.get("title", ""), "paragraphs": paragraphs})
    return {"version": "1.1", "data": left}


def write_rows(path, rows, is_pair):
    titles = ("text", "text2", "label") if is_pair else ("text", "label")
    records.write_whole(path, "".join("\t".join(row) + "\n" for row in (titles, *rows)))


@dataclasses.dataclass(frozen=True)
class Files:
    task: Task
    train: pathlib.Path
    valid: pathlib.Path


def prepare(folder, work, name, max_train, max_valid):
    """Files of a data set with at most so many samples, drawn from all; 0 = all of them."""
    task, place = TASKS[name], work / f"data/{name}_{max_train}_{max_valid}"
    ending = "json" if task.kind == "answers" else "tsv"
    files = Files(task, place / f"train.{ending}", place / f"valid.{ending}")
    if files.train.exists() and files.valid.exists():
        return files
    parts = articles(folder, name) if task.kind == "answers" else labelled_rows(folder, name)
    for path, part, most in zip((files.train, files.valid), parts, (max_train, max_valid)):
        if task.kind == "answers":
            records.write_whole(path, json.dumps(fewer_questions(part, most), ensure_ascii=False))
            continue
        rows = random.Random(1).sample(part, most) if 0 < most < len(part) else part
        write_rows(path, rows, task.is_pair)
    return files


def questions_of(path):
    """(id, question, context, answers) of a file of SQuAD."""
    return [(question["id"], question["question"], paragraph["context"], question["answers"])
            for article in json.loads(path.read_text(encoding="utf-8"))["data"] for paragraph in article["paragraphs"]
            for question in paragraph["qas"]]


def rows_of(path):
    """Rows of a TSV that prepare() wrote, without the header."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def books_and_wikipedia(folder, work):
    """Plain text to pretrain on, train and valid: all books and WikiText-2's validation part, of which every twentieth paragraph is held
    out."""
    train, valid = work / "text/train.txt", work / "text/valid.txt"
    if train.exists() and valid.exists():
        return train, valid
    texts = [read_text(folder / "wikitext2/valid.txt.gz")]
    with tarfile.open(folder / "public_domain_books/books_train.tar.gz") as archive:
        members = sorted((member for member in archive.getmembers() if member.isfile()), key=lambda member: member.name)
        texts += [archive.extractfile(member).read().decode("utf-8") for member in members]
    paragraphs = []
    for text in texts:
        blocks = "\n".join(line.strip() for line in text.splitlines()).split("\n\n")
        paragraphs += [paragraph for block in blocks if len(paragraph := " ".join(block.split())) > 40]
    # Held-out text is whole stretches of twenty paragraphs, so that its context is as in training.
    held = [number // 20 % 20 == 19 for number in range(len(paragraphs))]
    for path, wanted in ((train, False), (valid, True)):
        # A blank line where a stretch begins: a document of some pages.
        lines = []
        for number, (paragraph, is_held) in enumerate(zip(paragraphs, held)):
            if is_held == wanted:
                lines.append(("\n" if number % 20 == 0 and lines else "") + paragraph + "\n")
        records.write_whole(path, "".join(lines))
    return train, valid


# Processes

def environment(threads, preload="", keep=True):
    """That of a measured process. glibc would return large blocks at each step; Stretto keeps them, with `keep` PyTorch too."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": "",
           "TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    if keep:
        env.update(MALLOC_MMAP_THRESHOLD_=str(2**30), MALLOC_TRIM_THRESHOLD_=str(2**30))
    return {**env, "LD_PRELOAD": preload} if preload else env


def call(command, env=None, stdin=None, output=None):
    """(stdout, seconds, peak MiB) of a command; Failed if it fails. `stdin` and `output` are paths; None: nothing, and memory."""
    command = list(map(str, command))
    with open(stdin or os.devnull, "rb") as source, tempfile.TemporaryFile() as errors, \
            (open(output, "w+b") if output else tempfile.TemporaryFile()) as sink:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=sink, stderr=errors, env=env)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode != 0:
            tail = errors.read().decode(errors="replace")[-3000:]
            raise Failed(f"{' '.join(command[:4])} … left with {process.returncode}:\n{tail}")
        sink.seek(0)
        return ("" if output else sink.read().decode()), seconds, usage.ru_maxrss / 1024


def version_of(python, module):
    """Version of a module that a Python imports, "" if it says none; None: it cannot be imported."""
    code = f"import {module}; print(getattr({module}, '__version__', ''))"
    done = subprocess.run([str(python), "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def imported(stretto, model, work):
    """The run folder of a Hugging Face folder."""
    run = work / "imported"
    if not (run / "config.toml").exists():
        call([stretto, "import", model, "--run", run])
    return run


# Recipes

def model_of(run):
    """The [model] section of a run, for another task."""
    section = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))["model"]
    return {**{key: value for key, value in section.items() if not isinstance(value, dict)}, "head": "auto"}


def toml_value(value):
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(str(value), ensure_ascii=False) if isinstance(value, (str, pathlib.PurePath)) else repr(value)


def write_recipe(run, sections):
    """A configuration beside the run's folder, of sections with their keys; keys that are None are left out."""
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in keys.items() if value is not None), ""]
    path = run.with_name(run.name + ".toml")
    records.write_whole(path, "\n".join(lines))
    return path


def data_section(files, batch, max_text_tokens=None, validate=True):
    """[data] for micro-batches of exactly `batch` texts or windows. Short windows share half of their paragraph."""
    task, longest = files.task, max_text_tokens or files.task.max_text_tokens
    section = {"train": [files.train], "valid": [files.valid] if validate else None, "max_samples": batch,
               "max_tokens": batch * longest, "max_text_tokens": longest}
    if task.kind == "answers":
        longest_question = 64 if longest >= 256 else 40
        return {**section, "stride": min(128, (longest - longest_question - 4) // 2), "max_question_tokens": longest_question,
                "answer_split": task.answer_split, "version": "1", "bad_answers": "skip"}
    return {**section, "text": "text", "text2": "text2" if task.is_pair else None, "label": "label", "label_kind": task.kind}


def fine_tuning(files, model, batch, lr, **more):
    """Sections of a recipe as people fine-tune BERT: AdamW, linear decay after a warm-up, biases and norms without weight decay. `more`
    has keys of sections by their names."""
    sections = {"task": {"name": "question_answering" if files.task.kind == "answers" else "text_classification"},
                "data": data_section(files, batch), "model": model,
                "optim": {"name": "adamw", "lr": lr, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01, "clip_norm": 1.0},
                "schedule": {"name": "linear", "warmup_ratio": 0.1, "min_lr": 0.0},
                "train": {"save_every": 10**6, "noise_scale": False, "keep_last": 1},
                "eval": {"every": 10**6},
                "report": {"every": 1, "html": False, "tensorboard": False}}
    for name, keys in more.items():
        sections[name] = {**sections.get(name, {}), **keys}
    return sections


def pretraining(options, training_text, validation_text, tokenizer, model, **more):
    """Sections of a recipe for a masked language model: whole words of packed sequences, a warm-up and a constant rate."""
    sections = {"run": {"seed": 1, "threads": options.threads}, "task": {"name": "masked_lm"},
                "data": {"train": [training_text], "valid": [validation_text], "max_text_tokens": options.max_text_tokens,
                         "max_tokens": options.max_tokens, "whole_words": True, "cache_dir": options.work / "cache"},
                "tokenizer": {"type": "wordpiece", "model": tokenizer}, "model": model,
                "optim": {"name": "adamw", "lr": options.lr, "beta2": 0.98, "epsilon": 1e-6, "weight_decay": 0.01, "clip_norm": 1.0},
                "schedule": {"name": "constant", "warmup_steps": options.warmup},
                "train": {"save_every": 10**6, "noise_scale": False, "keep_last": 1},
                "eval": {"every": 10**6}, "report": {"every": 1, "html": False, "tensorboard": False}}
    for name, keys in more.items():
        sections[name] = {**sections.get(name, {}), **keys}
    return sections


def train_rate(run, warm):
    """Real tokens a second and samples a second of the updates after `warm`, by the run's own clock; and its mean tokens a sample."""
    events = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "train"]
    window = events[warm:]
    if warm < 1 or not window:
        raise Failed(f"{run.name} has {len(events)} updates, no more than the {warm} before the window")
    counter = "windows" if "windows" in events[0] else "texts"
    seconds = window[-1]["seconds"] - events[warm - 1]["seconds"]
    tokens, samples = (sum(event[key] for event in window) for key in ("tokens", counter))
    return {"tokens_per_second": tokens / seconds, "samples_per_second": samples / seconds,
            "mean_tokens": sum(event["tokens"] for event in events) / sum(event[counter] for event in events), "updates": len(events)}


# Scores

def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, begin = [0.0] * len(values), 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for place in order[begin:end]:
            found[place] = (begin + end + 1) / 2
        begin = end
    return found


def correlation(one, other):
    """Pearson's; 0 where it is not defined."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return 0.0
    value = statistics.correlation(one, other)
    return value if math.isfinite(value) else 0.0


def scores_of(stretto, files, predictions):
    """Scores of a file of predictions: answers by their ids as JSON, else a line a text that begins with the label or number. The same
    function for every program."""
    if files.task.kind == "answers":
        output, _, _ = call([stretto, "score", "--metric", "squad1", "--reference", files.valid, "--json"], stdin=predictions)
        found = json.loads(output)
        return {key: found[key] for key in ("exact_match", "f1")}
    given = [line.split("\t")[0] for line in predictions.read_text(encoding="utf-8").splitlines()]
    wanted = [row[-1] for row in rows_of(files.valid)]
    if len(given) != len(wanted):
        raise Failed(f"{predictions.name} has {len(given)} lines, not {len(wanted)}")
    if files.task.kind == "class":
        return {"accuracy": sum(a == b for a, b in zip(given, wanted)) / len(wanted)}
    numbers = list(map(float, given)), list(map(float, wanted))
    return {"pearson": correlation(*numbers), "spearman": correlation(*map(ranks, numbers))}


def largest_label(files):
    """The accuracy of the most frequent label of training; None where there are no labels."""
    if files.task.kind != "class":
        return None
    labels = [row[-1] for row in rows_of(files.train)]
    wanted = [row[-1] for row in rows_of(files.valid)]
    return wanted.count(max(sorted(set(labels)), key=labels.count)) / len(wanted)


def percent(score, metric):
    """Scores of answers go to 100 already."""
    return score if metric in ("f1", "exact_match") else 100 * score


def mean_and_deviation(values, decimals=1):
    deviation = f" ± {statistics.stdev(values):.{decimals}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{decimals}f}{deviation}"


# Cells

class Cells:
    """Finished measurements, a line of a JSONL file each. A program that was stopped goes on from them."""

    def __init__(self, path):
        self.path = path

    def all(self, **key):
        return [cell for cell in records.json_lines(self.path) if all(cell["key"].get(name) == value for name, value in key.items())]

    def measure(self, key, function):
        """True unless `function()`, a dict, failed. A cell that is there already is not measured again."""
        if any(cell["key"] == key for cell in records.json_lines(self.path)):
            return True
        words = ", ".join(f"{name} {value}" for name, value in key.items())
        print(f"{program_name()}: {words}", file=sys.stderr, flush=True)
        begin = time.perf_counter()
        try:
            values = function()
        except (Failed, OSError, LookupError, ValueError) as failure:
            print(f"{program_name()}: {words}: {failure}", file=sys.stderr, flush=True)
            return False
        records.append_json(self.path, {"key": key, **values, "wall_seconds": time.perf_counter() - begin, "head": records.head_of_now()})
        return True

    def measure_all(self, cells):
        """Measures each key with its function, also behind one that failed. @return whether none did"""
        return all([self.measure(key, function) for key, function in cells])

    def head(self):
        """Commits, date, processor and command of what is there; None without a cell."""
        heads = [cell["head"] for cell in records.json_lines(self.path)]
        if not heads:
            return None
        return dict(heads[-1], commit=", ".join(sorted({head["commit"] for head in heads})), date=max(head["date"] for head in heads))


def run_cells(options, prefix, file, measure, page):
    """What a program that measures cells does behind its options: goes on in its work folder, and publishes a page of what is there.

    @param measure  (options, cells) -> whether nothing failed; not called with --page
    @param page     (options, cells) -> the text
    @return the exit status"""
    with records.work_folder(options, prefix):
        cells = Cells(options.work / file)
        try:
            well = options.page or measure(options, cells)
        except Failed as failure:
            print(f"error: {failure}", file=sys.stderr)
            well = False
        records.publish(page(options, cells), options.out)
    return 0 if well else 1


def program_name():
    return pathlib.Path(sys.argv[0]).name
