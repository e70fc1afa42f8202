#!/usr/bin/env python3
"""Compares `stretto score --metric squad1|squad2` with the SQuAD metric of the package transformers.

    check_with_transformers.py STRETTO_BINARY [--sets 60] [--seed 1]

A set has 1 to 60 questions with and without answers. Texts are awkward: articles, punctuation, combining
marks, CJK, Greek capitals, odd white space, letters of all scripts. Probabilities of no answer have ties.
The metric of transformers is that of the 2.0 script; for 1.1, its parts are put together as that script does.
Numbers must agree to 1e-9.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when the package is not installed.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

try:
    from transformers.data.metrics import squad_metrics
except ImportError:
    print("transformers is not installed: skipped")
    sys.exit(77)

WORDS = (
    "the The THE a A an An anthem theé the\u0301 e\u0301té naïve it's its U.S. US 1,000 1000 3.14 $5 10% a-b _the_ the_ "
    "“the” –the– (a) a½ a² aⅣ a३ ª aª ΣΟΦΟΣ σοφος Σ İstanbul ẞ straße Ǆ ﬁ 東京 東京都 the東 京the 。 、 서울 مدينة "
    "नमस्ते 😀 👩‍👩‍👧 .. ' \" ` ~ ^ x\u200by \u00ad , red blue green car river"
).split(" ")
SPACES = [" "] * 20 + ["  ", "\t", "\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\x1c", "\x85", "\u180e"]


def random_text(rng):
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(["", "the", "a.", " ", "!", "\u0301"])
    if kind < 0.12:
        letters = (rng.choice([rng.randrange(32, 0x250), rng.randrange(0x250, 0x3000), rng.randrange(0x3000, 0xA000)])
                   for _ in range(rng.randint(1, 12)))
        return "".join(map(chr, letters))
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(1, 5)))


def disturbed(rng, text):
    words = text.split(" ")
    if rng.random() < 0.4:
        words[rng.randrange(len(words))] = rng.choice(WORDS)
    if rng.random() < 0.3:
        rng.shuffle(words)
    return rng.choice(["", "", "the "]) + " ".join(words) + rng.choice(["", "", ".", " a"])


def random_set(rng, impossible):
    questions, predictions, chances = [], {}, {}
    for number in range(rng.randint(1, rng.choice([2, 10, 60]))):
        answers = [random_text(rng) for _ in range(rng.randint(1, 3))]
        if rng.random() < impossible:
            answers = []
        prediction = disturbed(rng, rng.choice(answers)) if answers and rng.random() < 0.8 else random_text(rng)
        name = f"q{rng.randrange(1000)}.{number}"
        questions.append({"id": name, "question": "?", "answers": [{"text": text, "answer_start": 0} for text in answers]})
        predictions[name] = rng.choice(["", prediction, prediction]) if impossible else prediction
        chances[name] = rng.choice([rng.random(), rng.choice([0, 0.25, 0.5, 1])])
    names = list(predictions)
    rng.shuffle(names)
    return questions, {name: predictions[name] for name in names}, {name: chances[name] for name in sorted(names)}


def scores_of_1_1(questions, predictions):
    exact = f1 = 0
    for question in questions:
        prediction = predictions[question["id"]]
        texts = [answer["text"] for answer in question["answers"]]
        exact += max(squad_metrics.compute_exact(text, prediction) for text in texts)
        # The script of 1.1 gives 0 where words are missing, that of 2.0 compares.
        f1 += max(squad_metrics.compute_f1(text, prediction) if squad_metrics.get_tokens(text) else 0 for text in texts)
    return {"exact_match": 100 * exact / len(questions), "f1": 100 * f1 / len(questions)}


def scores_of_2_0(questions, predictions, chances, threshold):
    examples = [types.SimpleNamespace(qas_id=question["id"], answers=question["answers"]) for question in questions]
    scores = squad_metrics.squad_evaluate(examples, predictions, chances, threshold)
    if chances is None:  # transformers searches all the same; the script does not
        scores = {name: value for name, value in scores.items() if not name.startswith("best_")}
    return {"exact_match": scores["exact"], **scores}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        data, no_answer = pathlib.Path(folder) / "data.json", pathlib.Path(folder) / "na_prob.json"

        def agrees(options, predictions, expected):
            nonlocal compared
            command = [arguments.binary, "score", *options, "--reference", str(data), "--json"]
            done = subprocess.run(command, input=json.dumps(predictions).encode(), stdout=subprocess.PIPE, check=True)
            ours = json.loads(done.stdout)
            for name, value in expected.items():
                if abs(ours[name] - value) > 1e-9:
                    print(f"{' '.join(options)}: {name} is {ours[name]} against {value}")
                    print(data.read_text(), json.dumps(predictions), no_answer.read_text(), sep="\n")
                    sys.exit(1)
            compared += len(expected)

        for _ in range(arguments.sets):
            for impossible in (0, 0.4):
                questions, predictions, chances = random_set(rng, impossible)
                content = {"data": [{"paragraphs": [{"context": "", "qas": questions}]}]}
                data.write_text(json.dumps(content, ensure_ascii=rng.random() < 0.5), encoding="utf-8")
                no_answer.write_text(json.dumps(chances), encoding="utf-8")
                if not impossible:
                    agrees(["--metric", "squad1"], predictions, scores_of_1_1(questions, predictions))
                agrees(["--metric", "squad2"], predictions, scores_of_2_0(questions, predictions, None, 1.0))
                threshold = rng.choice([1.0, 0.5, rng.random()])
                expected = scores_of_2_0(questions, predictions, chances, threshold)
                options = ["--metric", "squad2", "--na-prob", str(no_answer), "--na-prob-thresh", str(threshold)]
                agrees(options, predictions, expected)
    print(f"{compared} numbers of {2 * arguments.sets} sets agree")


if __name__ == "__main__":
    main()
