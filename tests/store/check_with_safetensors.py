#!/usr/bin/env python3
"""Compares our safetensors reader and writer with the Python package `safetensors`.

    check_with_safetensors.py --tool build/release/safetensors_tool [--mutants 2000] [--seed 1]
    check_with_safetensors.py --tool … --files RUN/checkpoints/step_*/*.safetensors

Copies files that the package wrote through our reader and writer and reads them back with the
package; then mutates valid files and compares the verdicts. We may refuse more than the package
(a key twice, deep nesting, dtypes that we do not have, ...), never less, and what we refuse
beyond it must be one of these. Tensors of few bits, packed here with numpy by the description in
src/store/quantised_file.h, are unpacked by us to the same numbers. Ends with 77 when `safetensors`
or `numpy` cannot be imported.
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


def packed_tensor(generator, bits, symmetric, scope, rows, columns, group):
    """Codes, scales and zeros as a file has them, and the weights that they mean."""
    groups = columns // group if scope == "group" else 1
    scale_shape = (1 if scope == "tensor" else rows, groups)
    half = 2 ** (bits - 1)
    lowest = -127 if symmetric and bits == 8 else -half
    codes = generator.integers(lowest, half, (rows, columns))
    scales = generator.standard_normal(scale_shape).astype(numpy.float16)
    zeros = numpy.zeros(scale_shape, int) if symmetric else generator.integers(-half, half, scale_shape)
    ones = ((codes + half)[:, :, None] >> numpy.arange(bits)) & 1
    parts = {
        "codes": numpy.packbits(ones.reshape(rows, -1).astype(numpy.uint8), axis=1, bitorder="little"),
        "scales": scales,
    }
    if not symmetric:
        parts["zeros"] = (zeros + half).astype(numpy.uint8)
    of_weight = [
        numpy.broadcast_to(numpy.repeat(x, columns // groups, axis=1), (rows, columns)) for x in (scales, zeros)
    ]
    return parts, of_weight[0].astype(numpy.float32) * (codes - of_weight[1]).astype(numpy.float32)


def check_packed(tool, folder, rng):
    generator = numpy.random.default_rng(rng.randrange(2**32))
    tensors, wanted, described = {}, {}, {}
    for bits in [2, 3, 4, 6, 8]:
        for symmetric in [True, False]:
            for scope in ["tensor", "row", "group"]:
                rows, columns, group = rng.randrange(1, 5), 4 * rng.randrange(1, 9), 4 if scope == "group" else 0
                name = f"{scope}.{bits}.{symmetric}"
                parts, weights = packed_tensor(generator, bits, symmetric, scope, rows, columns, group)
                tensors |= {f"{name}.{part}": values for part, values in parts.items()}
                wanted[name] = weights.reshape(rows, 4, -1)
                described[name] = {
                    "bits": bits,
                    "symmetric": symmetric,
                    "scope": scope,
                    "group_size": group,
                    "shape": list(wanted[name].shape),
                }
    save_file(tensors, folder / "packed", {"stretto.quantised": json.dumps(described)})
    subprocess.run([tool, "unpack", folder / "packed", folder / "unpacked"], check=True)
    found = load_file(folder / "unpacked")
    if found.keys() != wanted.keys():
        sys.exit("packed tensors: other names come back")
    for name, weights in wanted.items():
        if found[name].shape != weights.shape or not numpy.array_equal(found[name], weights):
            sys.exit(f"packed tensors: `{name}` is not unpacked to the same numbers")
    print(f"{len(wanted)} packed tensors are unpacked to the same numbers")


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
        check_packed(args.tool.resolve(), pathlib.Path(folder), rng)
        check_mutants(args.tool.resolve(), pathlib.Path(folder), rng, args.mutants)


if __name__ == "__main__":
    main()
