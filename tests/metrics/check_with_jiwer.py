#!/usr/bin/env python3
"""Compares error rates of `stretto score` with the Python package jiwer on random transcripts.

    check_with_jiwer.py STRETTO_BINARY [--corpora 60] [--seed 1]

Each corpus has 1 to 30 segments, drawn to be awkward: empty lines, odd white space, contractions, marks as Kaldi has
them, CJK, emoji, combining marks, capitals, words that are left out, put in or moved. Rates and counts of hits,
substitutions, deletions and insertions must be equal, as they are, in jiwer's standardized form, and with all lines as one.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when the package is not installed.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import jiwer
    from jiwer import transformations, transforms
except ImportError:
    print("jiwer is not installed: skipped")
    sys.exit(77)

WORDS = (
    "the a cat dog sees runs Red GREEN don't won't CAN'T let's she'll it's we're I'd I've I'm isn't 't n't <unk> [laugh] "
    "<a b> [x> <open [y] closed] 3.14 straße ÉTÉ İstanbul ΣΟΦΟΣ naïve e\u0301te 中文 日本語 😀 👩‍👩‍👧 . , -"
).split()
SPACES = [" "] * 20 + ["  ", "\t", "\t ", "\u00a0", "\u2003\u2003", "\u3000", "\u200b", "\x1c\x1d", "\v", "\f "]
STANDARD = transforms.Compose([step for step in transformations.wer_standardize.transforms
                               if not isinstance(step, transforms.ReduceToListOfListOfWords)])


def joined(rng, words):
    return "".join(word + rng.choice(SPACES) for word in words)[: rng.choice([None, -1])]


def random_corpus(rng):
    hypotheses, references = [], []
    for _ in range(rng.randint(1, rng.choice([1, 4, 30]))):
        words = [rng.choice(WORDS) for _ in range(rng.choice([0, 1, 2, 5, 20, 80]))]
        kept = list(words)
        for _ in range(rng.randint(0, 6)):
            place = rng.randint(0, len(kept))
            change = rng.random()
            if change < 0.3:
                kept.insert(place, rng.choice(WORDS))
            elif change < 0.6:
                del kept[place:place + 1]
            elif change < 0.8:
                kept[place:place + 1] = [rng.choice(WORDS)]
            else:
                kept = kept[place:] + kept[:place]
        references.append(joined(rng, words))
        hypotheses.append(joined(rng, kept if rng.random() < 0.9 else kept[::-1]))
    return hypotheses, references


def scores(hypotheses, references):
    """The options of `stretto score`, and what jiwer finds."""
    yield ["--metric", "wer"], jiwer.process_words(references, hypotheses), "wer"
    yield ["--metric", "cer"], jiwer.process_characters(references, hypotheses), "cer"
    lower = [[text.lower() for text in side] for side in (references, hypotheses)]
    yield ["--metric", "wer", "--lowercase"], jiwer.process_words(*lower), "wer"
    standard = transformations.wer_standardize
    found = jiwer.process_words(references, hypotheses, reference_transform=standard, hypothesis_transform=standard)
    yield ["--metric", "wer", "--normalize", "standardize"], found, "wer"
    found = jiwer.process_characters(STANDARD(references), STANDARD(hypotheses))
    yield ["--metric", "cer", "--normalize", "standardize"], found, "cer"
    if not any(text.strip() for text in references) or not any(text.strip() for text in hypotheses):
        return  # jiwer makes no sentence of empty ones
    for name in ("contiguous", "standardize_contiguous"):
        form = getattr(transformations, "wer_" + name)
        try:
            found = jiwer.process_words(references, hypotheses, reference_transform=form, hypothesis_transform=form)
        except ValueError:  # standardized, nothing is left of one side
            continue
        yield ["--metric", "wer", "--normalize", name], found, "wer"
    form = transformations.cer_contiguous
    found = jiwer.process_characters(references, hypotheses, reference_transform=form, hypothesis_transform=form)
    yield ["--metric", "cer", "--normalize", "contiguous"], found, "cer"


def write_lines(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return str(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--corpora", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number in range(arguments.corpora):
            hypotheses, references = random_corpus(rng)
            files = [write_lines(folder / "ref", references), write_lines(folder / "hyp", hypotheses)]
            for options, theirs, metric in scores(hypotheses, references):
                command = [arguments.binary, "score", *options, "--subwords", "none", "--reference", files[0],
                           "--hypotheses", files[1], "--json"]
                ours = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
                counts = ("hits", "substitutions", "deletions", "insertions")
                if (abs(ours["score"] - 100 * getattr(theirs, metric)) > 1e-9
                        or any(ours[name] != getattr(theirs, name) for name in counts)):
                    print(f"corpus {number}, {' '.join(options)}:\n{ours} against {theirs}")
                    sys.exit(1)
                compared += 1
    print(f"{compared} error rates of {arguments.corpora} corpora agree")


if __name__ == "__main__":
    main()
