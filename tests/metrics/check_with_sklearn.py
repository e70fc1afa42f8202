#!/usr/bin/env python3
"""Compares scores of labels and values with scikit-learn and SciPy on random samples.

    check_with_sklearn.py LABEL_SCORES_TOOL [--cases 300] [--seed 1]

Cases have 2 to 12 labels of which some never occur, constant sides, sets of labels, ties, values far from
zero, and values of all sizes. Numbers must agree to 1e-10.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import argparse
import json
import math
import random
import subprocess
import sys
import warnings

try:
    import numpy
    from scipy import stats
    from sklearn import metrics
except ImportError:
    print("scikit-learn or SciPy is not installed: skipped")
    sys.exit(77)


def random_labels(rng):
    size = rng.choice([2, 2, 3, 5, 12])
    used = rng.sample(range(size), rng.randint(1, size))
    count = rng.choice([1, 2, 10, 200])
    gold = [rng.choice(used) for _ in range(count)]
    constant = rng.random() < 0.15
    predicted = [0 if constant else g if rng.random() < 0.6 else rng.randrange(size) for g in gold]
    return {"kind": "labels", "labels": size, "gold": gold, "predicted": predicted}


def scores_of_labels(case):
    gold, predicted, every = case["gold"], case["predicted"], list(range(case["labels"]))
    return {
        "accuracy": metrics.accuracy_score(gold, predicted),
        "f1": list(metrics.f1_score(gold, predicted, labels=every, average=None)),
        "macro": metrics.f1_score(gold, predicted, average="macro"),
        "micro": metrics.f1_score(gold, predicted, average="micro"),
        "matthews": metrics.matthews_corrcoef(gold, predicted),
        "confusion": [float(n) for n in metrics.confusion_matrix(gold, predicted, labels=every).ravel()],
    }


def random_sets(rng):
    size, count = rng.randint(2, 6), rng.choice([1, 5, 100])
    gold = [rng.sample(range(size), rng.randint(0, size)) for _ in range(count)]
    predicted = [labels if rng.random() < 0.5 else rng.sample(range(size), rng.randint(0, size)) for labels in gold]
    return {"kind": "sets", "labels": size, "gold": gold, "predicted": predicted}


def scores_of_sets(case):
    flags = [[[int(label in labels) for label in range(case["labels"])] for labels in case[side]]
             for side in ("gold", "predicted")]
    return {
        "accuracy": metrics.accuracy_score(*map(numpy.array, flags)),
        "f1": list(metrics.f1_score(*map(numpy.array, flags), average=None)),
        "macro": metrics.f1_score(*map(numpy.array, flags), average="macro"),
        "micro": metrics.f1_score(*map(numpy.array, flags), average="micro"),
    }


def random_values(rng):
    count = rng.choice([2, 3, 20, 500])
    offset, scale = rng.choice([0, 0, 3, 1e6]), rng.choice([1e-30, 1, 1, 1e30])
    gold = [(offset + rng.choice([rng.gauss(0, 1), float(rng.randint(1, 5))])) * scale for _ in range(count)]
    constant = rng.random() < 0.1
    predicted = [0.1 if constant else 0.5 * value / scale + rng.choice([0, rng.gauss(0, 1)]) for value in gold]
    if rng.random() < 0.5:
        predicted = [float(round(value)) for value in predicted]
    return {"kind": "values", "gold": gold, "predicted": predicted}


def scores_of_values(case):
    gold, predicted = case["gold"], case["predicted"]
    return {
        "pearson": float(stats.pearsonr(gold, predicted).statistic),
        "spearman": float(stats.spearmanr(gold, predicted).statistic),
        "mean_squared_error": metrics.mean_squared_error(gold, predicted),
    }


def agree(ours, theirs):
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if ours is None or math.isnan(theirs):
        return ours is None and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=1e-10, abs_tol=1e-10)


KINDS = ((random_labels, scores_of_labels), (random_sets, scores_of_sets), (random_values, scores_of_values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of labels that do not occur, of constant values
    rng = random.Random(arguments.seed)
    cases, expected = [], []
    for number in range(arguments.cases):
        draw, score = KINDS[number % len(KINDS)]
        cases.append(draw(rng))
        expected.append(score(cases[-1]))
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([arguments.tool], input=text, stdout=subprocess.PIPE, check=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if len(found) != len(cases):
        print(f"{len(found)} answers to {len(cases)} cases")
        sys.exit(1)
    for case, ours, theirs in zip(cases, found, expected):
        for name, value in theirs.items():
            if not agree(ours[name], value):
                print(f"{name}: {ours[name]} against {value}\n{json.dumps(case)}")
                sys.exit(1)
    print(f"scores of {len(cases)} cases agree")


if __name__ == "__main__":
    main()
