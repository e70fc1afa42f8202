#!/usr/bin/env python3
"""Read the event files of a folder with TensorBoard's own reader and print what it shows.

    check_with_tensorboard.py DIRECTORY [TAG=STEP:VALUE,STEP:VALUE… …]

With expectations, exits 1 unless each tag has exactly these points (values as floats, to 1e-6).
Exits 77 (skipped) when the tensorboard package is not there.
"""

import math
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: the Python package tensorboard is not installed", file=sys.stderr)
    sys.exit(77)


def same(expected, found):
    if len(expected) != len(found):
        return False
    return all(
        step == other_step and math.isclose(value, other_value, rel_tol=1e-6)
        for (step, value), (other_step, other_value) in zip(expected, found)
    )


def parse_expectation(text):
    tag, _, points = text.partition("=")
    pairs = [point.split(":") for point in points.split(",") if point]
    return tag, [(int(step), float(value)) for step, value in pairs]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    reader = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    scalars = {
        tag: [(event.step, event.value) for event in reader.Scalars(tag)]
        for tag in reader.Tags()["scalars"]
    }
    for tag, points in sorted(scalars.items()):
        print(f"{tag}: {len(points)} points, steps {points[0][0]} to {points[-1][0]}")
    for tag in sorted(reader.Tags()["tensors"]):
        plugin = reader.SummaryMetadata(tag).plugin_data.plugin_name
        text = reader.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        print(f"{tag}: {plugin}, {text[:60]!r}")
    failed = False
    for tag, points in map(parse_expectation, sys.argv[2:]):
        if not same(points, scalars.get(tag, [])):
            print(f"{tag}: expected {points}, found {scalars.get(tag)}", file=sys.stderr)
            failed = True
    if not scalars:
        print("no scalars found", file=sys.stderr)
        failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
