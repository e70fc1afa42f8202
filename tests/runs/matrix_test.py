#!/usr/bin/env python3
"""What holds for every family of tasks, and for every kind of model: one table, a row each, and a column for each capability.

    tests/runs/matrix_test.py build/release/stretto                    what CI runs: every property of a row with every column
    tests/runs/matrix_test.py build/release/stretto --full             all cells; so does STRETTO_TESTS_FULL=1
    tests/runs/matrix_test.py build/release/stretto --shard 1/2        the first of two halves
    tests/runs/matrix_test.py build/release/stretto --rows lstm,numbers --columns resume,infer
    tests/runs/matrix_test.py build/release/stretto lstm.resume        one cell
    tests/runs/matrix_test.py --list                                   the table, and why a cell is empty

A new family is a row in a file matrix/…_rows.py, a new model of translation one in matrix/translation_rows.py, and a new
capability a function in matrix/training.py, use.py or tuning.py with a line in matrix/columns.py.
"""
import argparse
import importlib
import pathlib
import resource
import subprocess
import sys
import time

from harness import FULL, Failure

from matrix.bench import Bench, NoProcesses
from matrix.columns import COLUMNS, cells_of, covering, described, shard_of

FILES = sorted((pathlib.Path(__file__).parent / "matrix").glob("*_rows.py"))
ROWS = {row.name: row for file in FILES for row in importlib.import_module(f"matrix.{file.stem}").ROWS}


def some(text, known, what):
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def shard(text):
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise argparse.ArgumentTypeError(f"{text} is no part")
    return number, count


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("cells", nargs="*", metavar="ROW.COLUMN")
    parser.add_argument("--full", action="store_true", default=FULL)
    parser.add_argument("--rows", type=lambda text: some(text, ROWS, "row"))
    parser.add_argument("--columns", type=lambda text: some(text, COLUMNS, "column"))
    parser.add_argument("--shard", type=shard, metavar="I/N")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not options.program and not options.list:
        parser.error("give the program, or --list")
    return options


def chosen(options):
    cells = cells_of(ROWS)
    if options.cells:
        known = {f"{row}.{column}": (row, column) for row, column in cells}
        cells = [known[name] for name in some(",".join(options.cells), known, "cell")]
    elif options.rows or options.columns:
        cells = [(row, column) for row, column in cells
                 if row in (options.rows or ROWS) and column in (options.columns or COLUMNS)]
    elif not options.full:
        cells = covering(ROWS)
    return shard_of(cells, *options.shard) if options.shard else cells


def show_table():
    in_ci, width = set(covering(ROWS)), max(map(len, ROWS))
    for number, column in enumerate(COLUMNS.values()):
        print(f"{number:2} {column.name}: {described(column)}")
    print(" " * width, *(f"{number:2}" for number in range(len(COLUMNS))))
    for row in ROWS.values():
        signs = ["  " if row.reason(column) else " x" if (row.name, column) in in_ci else " ." for column in COLUMNS]
        print(row.name.ljust(width), *signs)
    print("x: in CI too, .: with --full alone; the others make no sense:")
    for column in COLUMNS:
        reasons = {}
        for row in ROWS.values():
            if reason := row.reason(column):
                reasons.setdefault(reason, []).append(row.name)
        for reason, names in reasons.items():
            print(f"{column}: {reason} ({len(names)} rows: {', '.join(names)})")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(bench, row, column):
    """The outcome of a cell, and a word on it."""
    try:
        COLUMNS[column].holds(bench, ROWS[row])
    except NoProcesses:
        return "skipped", ": no mpirun"
    except (Failure, subprocess.TimeoutExpired, ValueError, KeyError, OSError) as error:
        return "FAILED ", f": {type(error).__name__ if not isinstance(error, Failure) else ''} {error}"
    return "ok     ", ""


def show_costs(costs):
    """Seconds of each column and of each row. A run that cells share counts where it was trained."""
    for at, what in ((0, "row"), (1, "column")):
        total = {}
        for cell, seconds in costs.items():
            total[cell[at]] = total.get(cell[at], 0) + seconds
        print(f"seconds of CPU by {what}: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in
                                                      sorted(total.items(), key=lambda item: -item[1])))
    print(f"{len(costs)} cells, {sum(costs.values()):.0f} s of CPU")


def main():
    options = parse()
    if options.list:
        return show_table()
    costs, failed = {}, 0
    with Bench(options.program, ROWS) as bench:
        for row, column in chosen(options):
            begin, used = time.monotonic(), cpu_seconds()
            outcome, word = run(bench, row, column)
            costs[row, column] = cpu_seconds() - used
            failed += outcome == "FAILED "
            print(f"{outcome} {row}.{column} ({time.monotonic() - begin:.1f} s, {costs[row, column]:.1f} s of CPU){word}", flush=True)
    show_costs(costs)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
