#!/usr/bin/env python3
r"""Compares scores of n-gram models with KenLM's, word for word, over ARPA files and every binary form.

    check_with_kenlm.py NGRAM_TOOL [--build-binary FILE] [--models 12] [--lines 200] [--seed 1]

Models are random: orders 2 to 5, with missing endings and without back-offs, some without <unk>. Lines have unknown words.
FILE is KenLM's build_binary; by default the one on PATH. Without it, only ARPA files are compared. The package must be
built for orders up to 5 at least, as it is by default. `pip install kenlm` compiles it, which takes minutes; `kenlm-ex` is a fork
with the same module as a wheel. build_binary comes with neither; the source archive of the package has its sources:

    pip download --no-binary :all: --no-deps kenlm && tar xzf kenlm-*.tar.gz && cd kenlm-*/
    c++ -O2 -DNDEBUG -DKENLM_MAX_ORDER=6 -I. -o build_binary lm/build_binary_main.cc \
        $(ls lm/*.cc util/*.cc util/double-conversion/*.cc | grep -vE "_test|_main|test_|benchmark|fragment")

Exits 0 when all agree to 1e-4 (of quantised models, KenLM reads the same file), 1 with the first difference, 77 (skipped)
when the package is not installed.
"""
import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import kenlm
except ImportError:
    print("kenlm is not installed: skipped")
    sys.exit(77)

FORMS = {
    "probing": ["probing"], "probing_roomy": ["-p", "2.3", "probing"], "probing_without_words": ["-v", "probing"], "trie": ["trie"],
    "trie_without_words": ["-v", "trie"], "quantised": ["-q", "6", "-b", "5", "trie"], "arrays": ["-a", "22", "trie"],
    "quantised_arrays": ["-a", "255", "-q", "8", "-b", "8", "trie"], "few_arrays": ["-a", "3", "trie"],
}


def random_model(path, order, num_words, rng):
    words = [f"w{i}" if i % 3 else f"Wört{i}" for i in range(num_words)]
    ngrams = [{("<s>",): -99.0, ("</s>",): -rng.uniform(0.5, 3)}]
    if rng.random() < 0.7:
        ngrams[0][("<unk>",)] = -rng.uniform(2, 5)
    ngrams[0].update({(word,): -rng.uniform(0.2, 4) for word in words})
    for _ in range(1, order):
        longer = {}
        for context in ngrams[-1]:
            if context[-1] in ("</s>", "<unk>"):
                continue
            for word in [*rng.sample(words, min(len(words), 8)), "</s>"]:
                # KenLM's probing form has little room for endings that pruning left out.
                if rng.random() < (0.8 if (*context[1:], word) in ngrams[-1] else 0.02):
                    longer[(*context, word)] = -rng.uniform(0.01, 2)
        ngrams.append(longer)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\\data\\\n" + "".join(f"ngram {n + 1}={len(part)}\n" for n, part in enumerate(ngrams)))
        for n, part in enumerate(ngrams):
            file.write(f"\n\\{n + 1}-grams:\n")
            for ngram, prob in part.items():
                backoff = f"\t{rng.uniform(-1.5, 0.2):.5f}" if n + 1 < order and rng.random() < 0.8 and ngram[-1] not in ("</s>", "<unk>") else ""
                file.write(f"{prob:.6f}\t{' '.join(ngram)}{backoff}\n")
        file.write("\n\\end\\\n")
    return words


def check(tool, path, lines, folder):
    done = subprocess.run([tool, str(path)], input="\n".join(map(" ".join, lines)) + "\n", capture_output=True, text=True,
                          env={**os.environ, "STRETTO_CACHE": str(folder / "cache")})
    if done.returncode != 0:
        sys.exit(f"{path.name}: {done.stderr}")
    model = kenlm.Model(str(path))
    for line, scores in zip(lines, done.stdout.splitlines(), strict=True):
        ours = [float(score) for score in scores.split()]
        theirs = [score for score, _, _ in model.full_scores(" ".join(line))]
        if len(ours) != len(theirs) or any(abs(a - b) > 1e-4 for a, b in zip(ours, theirs)):
            sys.exit(f"{path.name}: {' '.join(line)}\n  ours   {ours}\n  KenLM's {theirs}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--build-binary", metavar="FILE", default=shutil.which("build_binary"))
    parser.add_argument("--models", type=int, default=12)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    compared = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in range(args.models):
            order, arpa = 2 + number % 4, folder / f"{number}.arpa"
            words = random_model(arpa, order, rng.choice((8, 60, 300)), rng)
            lines = [[rng.choice([*words, "unheard"]) for _ in range(rng.randint(0, 12))] for _ in range(args.lines)]
            check(args.tool, arpa, lines, folder)
            compared += 1
            for form, options in FORMS.items() if args.build_binary else ():
                if order == 2 and "-q" in options:
                    continue  # KenLM trains no tables of middle orders then
                binary = folder / f"{number}_{form}.bin"
                built = subprocess.run([args.build_binary, *options, str(arpa), str(binary)], capture_output=True, text=True)
                if built.returncode != 0:
                    sys.exit(f"{form}: {built.stderr}")
                check(args.tool, binary, lines, folder)
                compared += 1
    print(f"{compared} files{'' if args.build_binary else ', none of them binary'}, {args.lines} lines each: equal to KenLM's scores")


if __name__ == "__main__":
    main()
