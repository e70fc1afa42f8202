#!/usr/bin/env python3
"""Question answering from files to answers: training, scores, predictions, infer. What holds for every family is in matrix_test.py.

    tests/runs/question_answering_test.py build/release/stretto [TEST...]
"""
import atexit
import functools
import json
import random
import re
import shutil

from harness import Lab, check, main
from matrix.text import squad

CONFIG = """
[run]
seed = 3
threads = 1
device = "cpu"
[task]
name = "question_answering"
[data]
train = ["train.json"]
valid = ["valid.json"]
max_tokens = 160
max_text_tokens = 36
max_question_tokens = 16
stride = 10
[tokenizer]
vocab_size = 120
[model]
preset = "none"
num_layers = 1
d_model = 32
num_heads = 2
max_positions = 64
[optim]
lr = 2e-3
[schedule]
warmup_steps = 4
[train]
max_steps = 16
update_freq = 2
save_every = 5
save_in_background = false
[dist]
deterministic = true
[eval]
every = 8
[report]
every = 1
samples = 18
tensorboard = false
"""


def lab_of(stretto, impossible=True):
    lab = Lab(stretto, CONFIG)
    generator = random.Random(5)
    for name, paragraphs in (("train", 40), ("valid", 6)):
        (lab.root / f"{name}.json").write_text(json.dumps(squad(generator, name, paragraphs, impossible)))
    return lab


@functools.cache
def trained(stretto):
    lab = lab_of(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    result = lab.train("run")
    check(result.returncode == 0, f"train left with {result.returncode}: {result.stderr}")
    return lab


def output(lab, *words, input=None):
    result = lab.run([lab.stretto, *map(str, words)], input=input)
    check(result.returncode == 0, f"{words[0]} left with {result.returncode}: {result.stderr}")
    return result.stdout


def test_a_validation_has_scores_and_marked_answers(stretto):
    lab = trained(stretto)
    valid = [event for event in lab.events("run") if event["event"] == "valid"]
    check(valid, "no validation")
    for event in valid:
        check({"loss", "f1", "exact_match"} <= set(event), f"scores are missing: {event}")
        check(0 <= event["exact_match"] <= event["f1"] <= 100, f"odd scores: {event}")
    page = (lab.root / "run/report.html").read_text()
    check(re.search('<mark class="(out )?ref">', page), "no reference is marked in the report")


def test_predictions_have_the_scores_that_eval_prints(stretto):
    lab = trained(stretto)
    files = {name: lab.root / f"{name}.json" for name in ("predictions", "nbest", "none")}
    words = ["--predictions", files["predictions"], "--nbest", files["nbest"], "--none-scores", files["none"]]
    found = json.loads(output(lab, "eval", lab.root / "run", "--json", *words))
    scored = json.loads(output(lab, "score", "--metric", "squad2", "--reference", lab.root / "valid.json", "--json",
                               input=files["predictions"].read_text()))
    for key in ("exact_match", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1", "total"):
        check(abs(found[key] - scored[key]) < 1e-9, f"{key}: eval has {found[key]}, score {scored[key]}")
    questions = [q for article in json.loads((lab.root / "valid.json").read_text())["data"]
                 for p in article["paragraphs"] for q in p["qas"]]
    contexts = {q["id"]: p["context"] for article in json.loads((lab.root / "valid.json").read_text())["data"]
                for p in article["paragraphs"] for q in p["qas"]}
    nbest = json.loads(files["nbest"].read_text())
    check(list(nbest) == [q["id"] for q in questions], "nbest is in another order, or of other questions")
    for name, candidates in nbest.items():
        check(abs(sum(one["probability"] for one in candidates) - 1) < 1e-6, f"{name}: probabilities")
        for one in candidates:
            if "answer_start" not in one:
                continue
            begin = one["answer_start"]
            check(contexts[name][begin:begin + len(one["text"])] == one["text"], f"{name}: {one} is not there")
    check(set(json.loads(files["none"].read_text())) == set(nbest), "none-scores are of other questions")


def test_infer_answers_lines_of_both_kinds(stretto):
    lab = trained(stretto)
    context = "Åsa lives in Kraków. Peter lives in Riga."
    lines = [f"Where does Peter live?\t{context}", json.dumps({"question": "Where does Åsa live?", "context": context, "id": "x"}),
             "no tab", ""]
    text = output(lab, "infer", lab.root / "run", input="\n".join(lines) + "\n")
    check(text.count("\n") == 4, f"not one line for each question: {text!r}")
    answers = [json.loads(line) for line in
               output(lab, "infer", lab.root / "run", "--json", "--nbest", 3, input="\n".join(lines) + "\n").splitlines()]
    check(len(answers) == 4, f"not one object for each line: {answers}")
    check(answers[1]["id"] == "x" and "problem" in answers[2] and "problem" in answers[3], f"{answers}")
    check([one["answer"] for one in answers] == [line for line in text.split("\n")[:4]], "text and JSON differ")
    for one in answers[:2]:
        check(1 <= len(one["answers"]) <= 3, f"candidates: {one}")
        for candidate in one["answers"]:
            if "begin" in candidate:
                check(context[candidate["begin"]:candidate["end"]] == candidate["text"], f"{candidate} is not there")


def test_infer_answers_a_file_of_squad_as_eval_does(stretto):
    lab = trained(stretto)
    predictions = lab.root / "again.json"
    output(lab, "eval", lab.root / "run", "--predictions", predictions)
    lines = output(lab, "infer", lab.root / "run", lab.root / "valid.json", "--json").splitlines()
    check({(one := json.loads(line))["id"]: one["answer"] for line in lines} == json.loads(predictions.read_text()),
          "infer and eval answer otherwise")


def test_bad_answers_are_refused_or_counted(stretto):
    with lab_of(stretto) as lab:
        data = json.loads((lab.root / "train.json").read_text())
        data["data"][3]["paragraphs"][0]["qas"][1]["answers"][0]["answer_start"] = 4000
        (lab.root / "train.json").write_text(json.dumps(data))
        refused = lab.train("run")
        check(refused.returncode != 0, "an answer outside its paragraph was taken")
        for words in ("train.json", "data[3].paragraphs[0]", "outside its paragraph"):
            check(words in refused.stderr, f"`{words}` is missing: {refused.stderr}")
        skipped = lab.train("run", "data.bad_answers=skip", "train.max_steps=2", "eval.every=2", "schedule.warmup_steps=1")
        check(skipped.returncode == 0, f"train left with {skipped.returncode}: {skipped.stderr}")
        check("1 answer not where the file says" in skipped.stderr, f"no warning: {skipped.stderr}")


def test_the_file_that_says_whether_questions_had_no_answer_must_be_there(stretto):
    lab = trained(stretto)
    shutil.copytree(lab.root / "run", lab.root / "lost")
    (lab.root / "lost/tokenizer/answers.json").unlink()
    commands = [(command, lab.root / "lost") for command in ("eval", "infer", "embed")]
    for words in (*commands, ("train", lab.config, "--run", lab.root / "lost", "train.max_steps=18")):
        result = lab.run([lab.stretto, *map(str, words)], input="")
        check(result.returncode == 65 and "tokenizer/answers.json: is missing" in result.stderr, f"{words}: {result.stderr}")


def test_a_tokenizer_without_offsets_is_refused(stretto):
    with lab_of(stretto) as lab:
        result = lab.run([lab.stretto, "check", str(lab.config), "tokenizer.type=sentencepiece"])
        check(result.returncode == 2 and "an empty place in the text" in result.stdout + result.stderr,
              f"check left with {result.returncode}: {result.stdout}{result.stderr}")


if __name__ == "__main__":
    main({name.removeprefix("test_"): test for name, test in list(globals().items()) if name.startswith("test_")})
