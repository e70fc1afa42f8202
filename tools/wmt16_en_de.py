#!/usr/bin/env python3
"""Makes data/wmt16_en_de of the archive that "Scaling Neural Machine Translation" was trained on.

    wmt16_en_de.py wmt16_en_de.tar.gz [--output data/wmt16_en_de]

docs/wmt16.md says where the archive is, what was done to its text, and how to train. Written are
train, newstest2013 and newstest2014, each .en and .de, one sentence a line in pieces of BPE, and
dict.txt: the pieces of both sides of train, the most frequent first, each with its count. Every file
appears only when all of them are right. Needs Python alone, and about 2 GB of disk.
"""

import argparse
import collections
import hashlib
import os
import pathlib
import shutil
import sys
import tarfile

MD5 = "874ab6bbfe9c21ec987ed1b9347f95ec"  # as torchtext's WMT14 publishes it
ROWS = 32768                              # of the joint dictionary in the paper
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
# name in the archive -> name here, sentences (as torchtext publishes them)
SETS = {"train.tok.clean.bpe.32000": ("train", 4_500_966),
        "newstest2013.tok.bpe.32000": ("newstest2013", 3_000),
        "newstest2014.tok.bpe.32000": ("newstest2014", 3_003)}


def fail(what: str, advice: str) -> None:
    sys.exit(f"error: {what}\n  {advice}")


def md5_of(path: pathlib.Path) -> str:
    hash_ = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            hash_.update(block)
    return hash_.hexdigest()


def copy_text(lines, path: pathlib.Path, counts: collections.Counter | None) -> int:
    """Copies lines with single spaces between pieces, as fairseq reads them; how many there were."""
    number = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(lines, 1):
            pieces = line.decode("utf-8").split()
            if counts is not None:
                counts.update(pieces)
            file.write(" ".join(pieces) + "\n")
    return number


def dictionary(counts: collections.Counter, rows: int) -> list[tuple[str, int]]:
    """The most frequent pieces, those of equal counts in order of code points; specials have their own rows."""
    words = [(piece, count) for piece, count in counts.items() if piece not in SPECIALS]
    words.sort(key=lambda entry: (-entry[1], entry[0]))
    return words[:rows - len(SPECIALS)]


def extract(archive: pathlib.Path, output: pathlib.Path, sets: dict) -> tuple[dict, collections.Counter]:
    """Writes each text; its sentences by name, and the counts of train's pieces."""
    found, counts = {}, collections.Counter()
    with tarfile.open(archive, "r|*") as tar:  # one pass: the archive is read only once
        for member in tar:
            stem, _, language = pathlib.PurePosixPath(member.name).name.rpartition(".")
            if stem not in sets or language not in ("en", "de") or not member.isfile():
                continue
            name = f"{sets[stem][0]}.{language}"
            print(f"{member.name} -> {name}", flush=True)
            text = tar.extractfile(member)
            found[name] = copy_text(text, output / name, counts if sets[stem][0] == "train" else None)
    return found, counts


def prepare(archive: pathlib.Path, output: pathlib.Path, sets: dict = SETS, md5: str = MD5, rows: int = ROWS) -> None:
    if not archive.is_file():
        fail(f"{archive}: no such file", "docs/wmt16.md says where to download it")
    print(f"checking {archive}", flush=True)
    if (sum_ := md5_of(archive)) != md5:
        fail(f"{archive}: MD5 {sum_}, expected {md5}",
             "a page of Google Drive instead of the archive, or half of it? download it again")
    staging = output / ".part"
    try:
        staging.mkdir(parents=True, exist_ok=True)
        write_all(archive, staging, sets, rows)
        for path in sorted(staging.iterdir()):
            os.replace(path, output / path.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    print(f"{output}: {', '.join(sorted(path.name for path in output.iterdir()))}")


def write_all(archive: pathlib.Path, output: pathlib.Path, sets: dict, rows: int) -> None:
    try:
        found, counts = extract(archive, output, sets)
    except (tarfile.TarError, EOFError, UnicodeDecodeError) as error:
        fail(f"{archive}: {error}", "download it again")
    for stem, (name, sentences) in sets.items():
        for language in ("en", "de"):
            file = f"{name}.{language}"
            if file not in found:
                fail(f"{archive}: has no {stem}.{language}", "this is another archive")
            if found[file] != sentences:
                fail(f"{archive}: {stem}.{language} has {found[file]:,} sentences, expected {sentences:,}",
                     "this is another archive")
    with open(output / "dict.txt", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{piece} {count}\n" for piece, count in dictionary(counts, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("data/wmt16_en_de"))
    options = parser.parse_args()
    prepare(options.archive, options.output)


if __name__ == "__main__":
    main()
