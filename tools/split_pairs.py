#!/usr/bin/env python3
"""Cuts a file of sentence pairs into train, valid and test parts.

    tools/split_pairs.py fra.txt data/tatoeba_en_fr --valid 1000 --test 1000

Pairs with the same source or the same target stay in one part, so that no held-out sentence (on either
side) was seen in training. The cut is a function of the text alone. Columns after the second are dropped.
"""
import argparse
import hashlib
import pathlib


def groups(pairs):
    """Union-find over pairs that share a side; a list of lists of indices, in order."""
    parent = list(range(len(pairs)))

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first = {}
    for i, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            other = first.setdefault((side, text), i)
            parent[root(i)] = root(other)
    found = {}
    for i in range(len(pairs)):
        found.setdefault(root(i), []).append(i)
    return list(found.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--valid", type=int, default=1000, help="pairs, at least")
    parser.add_argument("--test", type=int, default=1000, help="pairs, at least")
    args = parser.parse_args()
    pairs = []
    for line in args.file.read_text(encoding="utf-8").split("\n"):
        columns = line.rstrip("\r").split("\t")
        if len(columns) >= 2 and columns[0] and columns[1]:
            pairs.append((columns[0], columns[1]))
    order = sorted(groups(pairs), key=lambda g: hashlib.sha256(pairs[g[0]][0].encode()).digest())
    parts = {"valid": [], "test": [], "train": []}
    for group in order:
        # A big group (a short sentence with many translations) would fill a held-out part alone.
        small = len(group) <= 5
        if small and len(parts["valid"]) < args.valid:
            parts["valid"] += group
        elif small and len(parts["test"]) < args.test:
            parts["test"] += group
        else:
            parts["train"] += group
    args.out.mkdir(parents=True, exist_ok=True)
    for name, indices in parts.items():
        text = "".join(f"{pairs[i][0]}\t{pairs[i][1]}\n" for i in sorted(indices))
        (args.out / f"{name}.tsv").write_text(text, encoding="utf-8")
        print(f"{name}: {len(indices)} pairs")


if __name__ == "__main__":
    main()
