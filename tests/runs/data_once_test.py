#!/usr/bin/env python3
"""Files of labelled texts are read once: how often a start opens them, seen from outside, and what it makes of a cache.

    tests/runs/data_once_test.py build/release/stretto [TEST...]
"""
import contextlib
import gzip
import json

from harness import Lab, check, compare, main
from opens import Opens

CONFIG = """
[run]
seed = 3
threads = 1
device = "cpu"
[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["valid.tsv"]
max_text_tokens = 24
max_tokens = 160
cache_dir = "cache"
[tokenizer]
vocab_size = 80
[model]
num_layers = 1
d_model = 16
num_heads = 2
ffn_dim = 32
max_positions = 40
[optim]
lr = 3e-3
[schedule]
warmup_steps = 2
[train]
max_steps = 4
save_every = 2
[eval]
every = 2
[report]
every = 1
tensorboard = false
html = false
"""
QUESTIONS = CONFIG.replace("text_classification", "question_answering").replace(".tsv", ".json").replace(
    "max_text_tokens = 24", "max_text_tokens = 40\nmax_question_tokens = 12\nstride = 8").replace("vocab_size = 80", 'type = "wordpiece"\nvocab_size = 80')
NAMES = ("Anna", "Bela", "Jose", "Nora", "Peter")
TOWNS = ("Oslo", "Turku", "Riga", "Lyon")


def rows(count):
    lines = ["text\tlabel\n"]
    for i in range(count):
        town = TOWNS[i * 7 % len(TOWNS)]
        lines.append(f"{NAMES[i % len(NAMES)]} lives in {town}.\t{'north' if town != 'Lyon' else 'south'}\n")
    return "".join(lines)


def articles(count):
    questions = []
    for i in range(count):
        name, town = NAMES[i % len(NAMES)], TOWNS[i * 7 % len(TOWNS)]
        context = f"{name} lives in {town}."
        questions.append({"context": context, "qas": [{"id": str(i), "question": f"Where does {name} live?",
                                                       "answers": [{"text": town, "answer_start": context.index(town)}]}]})
    return json.dumps({"data": [{"title": "", "paragraphs": questions}]})


@contextlib.contextmanager
def lab_with_questions(stretto, config=QUESTIONS):
    with Lab(stretto, config) as lab:
        (lab.root / "train.json").write_text(articles(40))
        (lab.root / "valid.json").write_text(articles(8))
        yield lab


@contextlib.contextmanager
def lab_with_texts(stretto, config=CONFIG):
    with Lab(stretto, config) as lab:
        (lab.root / "train.tsv").write_text(rows(60))
        (lab.root / "valid.tsv").write_text(rows(8))
        yield lab


def train(lab, run, *keys, **how):
    result = lab.train(run, *keys, **how)
    check(result.returncode == 0, f"{run}: exit code {result.returncode}: {result.stderr[-2000:]}")
    return result.stderr


def opens_of(lab, name, run, *keys):
    with Opens(lab.root / name) as opens:
        train(lab, run, *keys)
    return opens.count


def a_file_is_opened_twice_by_the_first_start_and_once_by_others(stretto):
    with lab_with_texts(stretto) as lab:
        for name in ("train.tsv", "valid.tsv"):
            (lab.root / name).write_text((lab.root / name).read_text() + "Nora lives in Lyon.\tsouth\n")
            check(opens_of(lab, name, "first_" + name) == 2, "the first start")
            check(opens_of(lab, name, "second_" + name) == 1, "another run")
            check(opens_of(lab, name, "first_" + name, "train.max_steps=6") == 1, "a run that goes on")


def a_compressed_file_is_opened_as_often(stretto):
    with lab_with_texts(stretto) as lab:
        (lab.root / "train.tsv.gz").write_bytes(gzip.compress((lab.root / "train.tsv").read_bytes()))
        key = f'data.train=["{lab.root}/train.tsv.gz"]'
        check(opens_of(lab, "train.tsv.gz", "first", key) == 2, "the first start")
        check(opens_of(lab, "train.tsv.gz", "second", key) == 1, "another run")
        train(lab, "plain")
        compare(lab, "plain", "second", "a compressed file")


def questions_are_read_once_too(stretto):
    with lab_with_questions(stretto) as lab:
        (lab.root / "file").write_text("")
        said = train(lab, "none", f"data.cache_dir={lab.root}/file/cache")
        check(said.count("set data.cache_dir to a folder where you may write") == 1, said)
        check(opens_of(lab, "train.json", "first") == 2, "the first start")
        check(opens_of(lab, "train.json", "second") == 1, "another run")
        check(opens_of(lab, "valid.json", "third") == 1, "validation questions of another run")
        for run in ("first", "second"):
            compare(lab, "none", run, f"{run}, from the cache")
        stores = [folder for folder in (lab.root / "cache").glob("*/") if folder.name != "hashes"]
        check(len(stores) == 5, f"questions and tokens of two files, and a tokenizer: {stores}")
        for number, folder in enumerate(sorted(stores)):
            path = folder / ("head.bin", "0.bin", "1.bin", "1.bin", "0.bin")[number]
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(bytes(content))
            said = train(lab, f"flipped_{number}")
            check(said.count("is damaged; it is made again from the text") == 1, said)
            compare(lab, "none", f"flipped_{number}", f"a flipped bit in {path}")


def updates_are_those_without_a_cache(stretto):
    with lab_with_texts(stretto) as lab:
        (lab.root / "file").write_text("")
        said = train(lab, "none", f"data.cache_dir={lab.root}/file/cache")
        check(said.count("set data.cache_dir to a folder where you may write") == 1, said)
        for run in ("built", "found"):
            check("data.cache_dir" not in train(lab, run), "a cache that is there is warned of")
            compare(lab, "none", run, f"a cache that is {run}")


def a_damaged_cache_is_made_again(stretto):
    with lab_with_texts(stretto) as lab:
        train(lab, "reference")
        stores = [folder for folder in (lab.root / "cache").glob("*/") if folder.name != "hashes"]
        check(len(stores) == 5, f"the test is stale: {stores}")  # texts and tokens of two files, and a tokenizer
        for number, folder in enumerate(sorted(stores)):
            path = folder / ("head.bin", "0.bin", "1.bin", "head.bin", "0.bin")[number]
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(bytes(content))
            said = train(lab, f"flipped_{number}")
            check(said.count("is damaged; it is made again from the text") == 1, said)
            compare(lab, "reference", f"flipped_{number}", f"a flipped bit in {path}")
            check(path.read_bytes() != bytes(content), f"{path} is as it was")
        for folder in stores:
            check((folder.stat().st_mode & 0o777) == 0o700, f"{folder} is open to others")
            for path in folder.glob("*.bin"):
                path.write_bytes(path.read_bytes()[:8])  # half written
        train(lab, "after")
        compare(lab, "reference", "after", "a cache that is half written")
        check(not list((lab.root / "cache").glob(".tmp*")), "half a cache was left behind")


def a_changed_file_is_another_text(stretto):
    with lab_with_texts(stretto) as lab:
        train(lab, "before")
        text = (lab.root / "train.tsv").read_text()
        (lab.root / "train.tsv").write_text(text.replace("Anna lives in Oslo.\tnorth", "Anna lives in Oslo.\tsouth", 1))
        train(lab, "changed")
        hashes = [lab.events(run)[-1]["weights_hash"] for run in ("before", "changed")]
        check(hashes[0] != hashes[1], "a changed label changes nothing")
        (lab.root / "train.tsv").write_text(text)
        train(lab, "back")
        compare(lab, "before", "back", "the file of before")


TESTS = (a_file_is_opened_twice_by_the_first_start_and_once_by_others, a_compressed_file_is_opened_as_often,
         questions_are_read_once_too,
         updates_are_those_without_a_cache, a_damaged_cache_is_made_again, a_changed_file_is_another_text)

if __name__ == "__main__":
    main({test.__name__: test for test in TESTS})
