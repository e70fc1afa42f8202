#!/usr/bin/env python3
"""Compares `stretto score` with the Python package sacrebleu on random corpora.

    check_with_sacrebleu.py STRETTO_BINARY [--corpora 60] [--seed 1]

Each corpus has 1 to 40 segments and 1 to 3 reference sets, drawn to be awkward: empty lines,
numbers with separators, XML entities, CJK, emoji, combining marks, odd white space, Greek capitals,
repeated words and shuffled blocks (for TER's shifts). Scores must agree to 4 decimals, and signatures
but for the version. For a larger corpus, the intervals of --bootstrap must agree with those that sacreBLEU draws with numpy,
and the p-value with the two-sided one of sacreBLEU's scores on numpy's draws, within what chance does to both.
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
    import numpy
    from sacrebleu.metrics import BLEU, CHRF, TER
    from sacrebleu.significance import estimate_ci
except ImportError:
    print("sacrebleu is not installed: skipped")
    sys.exit(77)

WORDS = (
    "the a cat dog house sees runs quickly Red GREEN don't it's well-known 1,000 3.14 2021-11-05 U.S. e.g. "
    "10% $5 (see) [x] \"quoted\" &quot; &amp; &lt;b&gt; <skipped> -- … „so“ «là» straße ÉTÉ İstanbul ΣΟΦΟΣ "
    "naïve e\u0301te 中文 句子。 日本語、 한국어 😀 👩‍👩‍👧 ½ ² ٣٫٥ ١٬٠٠٠ € ₿ a_b x/y , . ; : ! ? - '"
).split()
SPACES = [" "] * 30 + ["  ", "\t", "\u00a0", "\u2003", "\u3000", "\u200b"]


def random_segment(rng):
    kind = rng.random()
    if kind < 0.08:
        return rng.choice(["", " ", ".", "😀", "中", "a", "a b", "a b c"])
    if kind < 0.14:
        alphabet = "ab1,.- 中😀é\u0301&;…$½"
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 30)))
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, rng.choice([4, 12, 40, 90])))]
    return "".join(word + rng.choice(SPACES) for word in words)[: rng.choice([None, -1])]


def disturbed(rng, segment):
    words = segment.split(" ")
    for _ in range(rng.randint(0, 4)):
        i, j, k = sorted(rng.randint(0, len(words)) for _ in range(3))
        words = words[:i] + words[j:k] + words[i:j] + words[k:]
    for i in range(len(words)):
        if rng.random() < 0.1:
            words[i] = rng.choice(["", rng.choice(WORDS), words[i].lower(), words[i].upper()])
    return " ".join(words)


def random_corpus(rng):
    hypotheses, references = [], [[] for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(1, rng.choice([1, 4, 40]))):
        segment = random_segment(rng)
        hypotheses.append(segment)
        for reference in references:
            related = rng.random() < 0.9
            reference.append(disturbed(rng, segment) if related else random_segment(rng))
    return hypotheses, references


def scorers():
    for tokenize in ("13a", "intl", "none", "char"):
        for lowercase in (False, True):
            options = ["--tokenize", tokenize] + ["--lowercase"] * lowercase
            scorer = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
            yield ["--metric", "bleu"] + options, scorer
    for lowercase in (False, True):
        options = ["--lowercase"] * lowercase
        yield ["--metric", "chrf"] + options, CHRF(lowercase=lowercase)
        yield ["--metric", "chrf++"] + options, CHRF(word_order=2, lowercase=lowercase)
    yield ["--metric", "ter"], TER()


def write_lines(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return str(path)


def resampled_agrees(binary, folder, rng):
    """Both draw 2,000 times, with other random numbers."""
    draws, size = 2000, 300
    reference = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 20))) for _ in range(size)]
    systems = [[disturbed(rng, line) if rng.random() < share else line for line in reference] for share in (0.6, 0.65)]
    files = [write_lines(folder / name, lines) for name, lines in zip(("ref", "system", "other"), [reference, *systems])]
    for options, scorer in ((["--metric", "bleu"], BLEU()), (["--metric", "ter"], TER())):
        command = [binary, "score", *options, "--reference", files[0], "--hypotheses", files[1], "--against", files[2],
                   "--bootstrap", str(draws), "--json"]
        ours = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["bootstrap"]
        statistics = [numpy.array(scorer._extract_corpus_statistics(lines, [reference])) for lines in systems]
        chosen = numpy.random.default_rng(12345).integers(0, size, (draws, size))
        scores = [numpy.array([scorer._compute_score_from_stats(each[row].sum(0)).score for row in chosen])
                  for each in statistics]
        differences = scores[0] - scores[1]
        pairs = [(ours["system"], scores[0]), (ours["against"], scores[1]), (ours["difference"], differences)]
        for interval, theirs in pairs:
            mean, half = estimate_ci(theirs)
            if abs(interval["mean"] - mean) > 0.15 * half or not 0.9 < (interval["high"] - interval["low"]) / 2 / half < 1.1:
                return f"{options}: {interval} against {mean} +- {half}"
        real = abs(ours["system"]["score"] - ours["against"]["score"])
        p_value = (1 + (abs(differences - differences.mean()) >= real).sum()) / (1 + draws)
        if abs(ours["p_value"] - p_value) > 0.06:
            return f"{options}: p = {ours['p_value']} against {p_value}"
    return ""


def without_version(signature):
    return signature.rsplit("|version:", 1)[0]


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
            files = [write_lines(folder / f"ref{i}", lines) for i, lines in enumerate(references)]
            text = "".join(line + "\n" for line in hypotheses).encode()
            for options, scorer in scorers():
                command = [arguments.binary, "score", *options, "--reference", *files, "--json"]
                done = subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True)
                ours = json.loads(done.stdout)
                theirs = scorer.corpus_score(hypotheses, references)
                signature = str(scorer.get_signature())
                if (abs(ours["score"] - theirs.score) >= 5e-5
                        or without_version(ours["signature"]) != without_version(signature)):
                    print(f"corpus {number}, {' '.join(options)}:")
                    print(f"{ours} against {theirs.score} {signature}")
                    print(json.dumps({"hypotheses": hypotheses, "references": references}))
                    sys.exit(1)
                compared += 1
        if wrong := resampled_agrees(arguments.binary, folder, rng):
            print(wrong)
            sys.exit(1)
    print(f"{compared} scores of {arguments.corpora} corpora agree")


if __name__ == "__main__":
    main()
