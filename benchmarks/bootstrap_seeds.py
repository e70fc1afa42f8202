#!/usr/bin/env python3
"""Can a bootstrap over sentences tell two systems apart, each given by one or several seeds?

    benchmarks/bootstrap_seeds.py --reference test.de[.gz] --ours a.hyp,b.hyp,c.hyp --theirs x.hyp[,y.hyp]

Draws the test set 1,000 times anew and compares the means over seeds of BLEU (sacreBLEU's, needs the package) on the same
sentences: prints the difference, its 95 % interval and the share of draws at least as far from their mean as the difference is from
zero (two-sided p).
"""
import argparse
import gzip

import numpy
from sacrebleu.metrics import BLEU


def lines(path):
    with (gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")) as file:
        return [line.rstrip("\n") for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("reference", "ours", "theirs"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    reference, metric = lines(options.reference), BLEU()

    def statistics(path):
        hypotheses = lines(path)
        if len(hypotheses) != len(reference):
            raise SystemExit(f"{path} has {len(hypotheses)} lines, the reference {len(reference)}")
        return numpy.array(metric._extract_corpus_statistics(hypotheses, [reference]))

    def mean_score(systems, chosen):
        sums = (system[chosen].sum(0) for system in systems)
        return numpy.mean([metric._compute_score_from_stats([int(x) for x in s]).score for s in sums])

    ours = [statistics(path) for path in options.ours.split(",")]
    theirs = [statistics(path) for path in options.theirs.split(",")]
    everything = numpy.arange(len(reference))
    ours_bleu, theirs_bleu = mean_score(ours, everything), mean_score(theirs, everything)
    difference = ours_bleu - theirs_bleu
    random = numpy.random.default_rng(12345)
    draws = []
    for _ in range(1000):
        chosen = random.integers(0, len(reference), len(reference))
        draws.append(mean_score(ours, chosen) - mean_score(theirs, chosen))
    draws = numpy.array(draws)
    p = (numpy.abs(draws - draws.mean()) >= abs(difference)).mean()
    low, high = numpy.quantile(draws, [0.025, 0.975])
    print(f"ours {ours_bleu:.2f}, theirs {theirs_bleu:.2f}: {difference:+.2f}, 95 % [{low:+.2f}, {high:+.2f}], p = {p:.3f}")


if __name__ == "__main__":
    main()
