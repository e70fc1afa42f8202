#!/usr/bin/env python3
"""Writes tests/shared/metrics_newstest_golden.inc: sacreBLEU's scores of five newstest2021 en-de systems.

    make_metrics_golden.py DATA_FOLDER > metrics_newstest_golden.inc

DATA_FOLDER holds newstest2021.en-de.hyp.*.de and newstest2021.en-de.ref.{A,C,D}.de. Needs the Python
package sacrebleu. Run once; the numbers are checked in.
"""
import pathlib
import sys

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

SYSTEMS = ["Facebook-AI", "ICL", "NVIDIA-NeMo", "Online-B", "UF"]
REFERENCES = ["A", "C", "D", "ACD"]
METRICS = [
    ("bleu", "13a", False, BLEU()),
    ("bleu", "13a", True, BLEU(lowercase=True)),
    ("bleu", "intl", False, BLEU(tokenize="intl")),
    ("bleu", "none", False, BLEU(tokenize="none", force=True)),
    ("bleu", "char", False, BLEU(tokenize="char")),
    ("chrf", "13a", False, CHRF()),
    ("chrf++", "13a", False, CHRF(word_order=2)),
    ("ter", "13a", False, TER()),
]


def read(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def main():
    folder = pathlib.Path(sys.argv[1])
    print(f"// Made by make_metrics_golden.py with sacrebleu {sacrebleu.__version__}; do not edit.")
    for system in SYSTEMS:
        hypotheses = read(folder / f"newstest2021.en-de.hyp.{system}.de")
        for names in REFERENCES:
            references = [read(folder / f"newstest2021.en-de.ref.{name}.de") for name in names]
            for metric, tokenize, lowercase, scorer in METRICS:
                score = scorer.corpus_score(hypotheses, references)
                case = "true" if lowercase else "false"
                text = str(score).split(" ", 3)[3] if metric == "bleu" else ""
                print(f'{{"{system}", "{names}", "{metric}", "{tokenize}", {case}, {score.score:.6f},')
                print(f' "{text}"}},', flush=True)


if __name__ == "__main__":
    main()
