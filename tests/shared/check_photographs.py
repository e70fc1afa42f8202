#!/usr/bin/env python3
"""Compares decoding and resizing with Pillow on the pictures of STRETTO_SHARED: photographs, and CIFAR-10 as JPEG.

    check_photographs.py IMAGE_TOOL [--photographs 1000] [--small 2000]

Decoded pictures must agree to one grey level, since the libraries may be of two versions; the message says how many are equal.
Resized ones, of the pixels that Pillow decoded, too. Exits 0 when all agree, 1 with the first difference, 77 (skipped) without
Pillow, numpy or the data.
"""
import argparse
import io
import os
import pathlib
import sys
import tarfile
import tempfile

try:
    import numpy
    from PIL import Image, ImageOps

    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "image"))
    from check_with_pillow import Tool
except ImportError:
    print("Pillow or numpy is not installed: skipped")
    sys.exit(77)

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def pictures(archive, most):
    """(name, bytes) of the JPEG files in an archive, evenly spread."""
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.isfile() and member.name.lower().endswith((".jpg", ".jpeg"))]
        for member in members[:: max(1, len(members) // most)]:
            yield member.name, tar.extractfile(member).read()


def difference(what, got, wanted):
    wanted = numpy.asarray(wanted)
    if got.shape != wanted.shape:
        sys.exit(f"{what}: {got.shape} instead of {wanted.shape}")
    largest = int(numpy.abs(got.astype(int) - wanted).max())
    if largest > 1:
        sys.exit(f"{what}: differs by {largest}")
    return largest


def compare(tool, folder, name, data, resizes):
    """The largest difference of the decoded pictures."""
    path = folder / "picture.bin"
    path.write_bytes(data)
    stored = Image.open(io.BytesIO(data))
    image = stored.convert("RGB")
    largest = difference(name, tool.picture(path), image)
    largest = max(largest, difference(f"{name}, upright", tool.picture(path, "upright"),
                                      ImageOps.exif_transpose(stored).convert("RGB")))
    if resizes:
        exact = folder / "exact.png"
        image.save(exact, compress_level=0)
        width, height = image.size
        for filter_name, number in FILTERS.items():
            for size in ((224, 224), (256 * height // min(height, width), 256 * width // min(height, width))):
                difference(f"{name} to {size}, {filter_name}", tool.picture(exact, *size, filter_name),
                           image.resize(size[::-1], number))
    return largest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--photographs", type=int, default=1000)
    parser.add_argument("--small", type=int, default=2000)
    arguments = parser.parse_args()
    shared = pathlib.Path(os.environ.get("STRETTO_SHARED", "")) / "data"
    archives = [(shared / "photographs/photographs.tar", arguments.photographs, True),
                (shared / "cifar10_jpg/test_2000.tar.gz", arguments.small, False)]
    if not os.environ.get("STRETTO_SHARED") or not all(archive.exists() for archive, _, _ in archives):
        print("STRETTO_SHARED names no folder with photographs and cifar10_jpg: skipped")
        sys.exit(77)
    tool = Tool(arguments.tool)
    with tempfile.TemporaryDirectory() as folder:
        for archive, most, resizes in archives:
            count = equal = 0
            for name, data in pictures(archive, most):
                count += 1
                equal += compare(tool, pathlib.Path(folder), name, data, resizes) == 0
            print(f"{archive.name}: {count} pictures, {equal} decoded to equal bytes, the others to one grey level")
            if count == 0:
                sys.exit(f"{archive}: no picture in it")


if __name__ == "__main__":
    main()
