#!/usr/bin/env python3
"""Compares our safetensors reader and writer with the Python package `safetensors`.

    check_with_safetensors.py --tool build/release/safetensors_tool [--mutants 2000] [--seed 1]
    check_with_safetensors.py --tool … --files RUN/checkpoints/step_*/*.safetensors

Copies files that the package wrote through our reader and writer and reads them back with the
package; then mutates valid files and compares the verdicts. We may refuse more than the package
(a key twice, deep nesting, dtypes that we do not have, ...), never less, and what we refuse
beyond it must be one of these. Ends with 77 when `safetensors` or `numpy` cannot be imported.
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
# Reasons for which we refuse what the package reads; each is a decision of ours.
STRICTER = ["stands twice", "deeper than 64", "unknown dtype", "too large", "bad shape"]


def random_tensors(rng):
    generator = numpy.random.default_rng(rng.randrange(2**32))
    tensors = {}
    for i in range(rng.randrange(0, 6)):
        shape = tuple(rng.randrange(0, 5) for _ in range(rng.randrange(0, 4)))
        dtype = rng.choice(DTYPES)
        name = rng.choice(["w", "a.b/c", 'quo"te', "ünï", "tab\t"]) + str(i)
        tensors[name] = numpy.asarray(generator.integers(0, 2, shape) * 3).astype(dtype)
    return tensors


def same(a, b):
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes()
        for k in a
    )


def check_copies(tool, folder, rng, count):
    for i in range(count):
        tensors = random_tensors(rng)
        metadata = {"step": str(i), "ключ": "значение"} if i % 2 else None
        save_file(tensors, folder / "theirs", metadata)
        (folder / "ours").unlink(missing_ok=True)
        subprocess.run([tool, "copy", folder / "theirs", folder / "ours"], check=True)
        if not same(load_file(folder / "ours"), tensors):
            sys.exit(f"copy {i}: the tensors differ")
        with safe_open(folder / "ours", "numpy") as file:
            if (file.metadata() or {}) != (metadata or {}):
                sys.exit(f"copy {i}: the metadata differ")
    print(f"{count} copies are read by both alike")


def mutate_header(header, rng):
    """One change to the parsed header that a careless reader might not notice."""
    names = [name for name in header if name != "__metadata__"]
    if not names:
        return {"x": 1}
    entry = header[rng.choice(names)]
    kind = rng.randrange(6)
    if kind == 0:
        entry["data_offsets"][rng.randrange(2)] += rng.choice([-8, -1, 1, 4, 2**40])
    elif kind == 1:
        entry["shape"] = entry["shape"] + [rng.choice([0, 1, 2, 2**31, 2**62, 2**63, -1])]
    elif kind == 2:
        entry["dtype"] = rng.choice(["F32", "F64", "U8", "BOOL", "f32", "F31", "", "U64", 3])
    elif kind == 3:
        entry.pop(rng.choice(list(entry)))
    elif kind == 4:
        entry["extra"] = 1
    else:
        header["__metadata__"] = rng.choice([None, {}, {"a": "b"}, {"a": 1}, [], "x"])
    return header


def mutant(data, rng):
    kind = rng.randrange(4)
    if kind == 0 and data:
        data = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(min(len(data), 200))] ^= 1 << rng.randrange(8)
        return bytes(data)
    if kind == 1:
        return data[: rng.randrange(len(data) + 1)]
    if kind == 2:
        return data + bytes(rng.randrange(1, 9))
    size = struct.unpack("<Q", data[:8])[0]
    header = json.dumps(mutate_header(json.loads(data[8 : 8 + size]), rng)).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def their_verdict(path):
    try:
        with safe_open(path, "numpy") as file:
            list(file.keys())
        return "accept"
    except Exception as error:  # the package has one exception class, and its own bugs
        return f"reject: {error}"


def check_mutants(tool, folder, rng, count):
    paths = []
    for i in range(count):
        save_file(random_tensors(rng), folder / "good", {"k": "v"} if i % 2 else None)
        paths.append(folder / f"mutant{i}")
        paths[-1].write_bytes(mutant((folder / "good").read_bytes(), rng))
    ours = []
    for start in range(0, count, 500):
        command = [tool, "verdict", *paths[start : start + 500]]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        ours += result.stdout.splitlines()
    stricter = accepted = 0
    for path, verdict in zip(paths, ours, strict=True):
        theirs = their_verdict(path)
        accepted += theirs == "accept"
        if verdict == "accept" and theirs != "accept":
            sys.exit(f"{path.name}: we accept, they {theirs}\n{path.read_bytes()[:400]!r}")
        if verdict != "accept" and theirs == "accept":
            stricter += 1
            if not any(reason in verdict for reason in STRICTER):
                sys.exit(f"{path.name}: they accept, we {verdict}\n{path.read_bytes()[:400]!r}")
    print(f"{count} mutants: {accepted} accepted by the package, {stricter} of them refused by us")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--copies", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="*", default=[], help="files of ours to read")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for name in args.files:
        load_file(name)
        print(f"{name} is read by the package")
    with tempfile.TemporaryDirectory() as folder:
        check_copies(args.tool.resolve(), pathlib.Path(folder), rng, args.copies)
        check_mutants(args.tool.resolve(), pathlib.Path(folder), rng, args.mutants)


if __name__ == "__main__":
    main()
