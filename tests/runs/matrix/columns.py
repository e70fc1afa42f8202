"""The columns of the matrix, and which cells CI runs."""
import dataclasses
import itertools
from typing import Any

from matrix import training, tuning, use


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    holds: Any  # a function of the bench and a row
    starts: int  # of the program, each process counted: what a cell costs, beside the runs that cells share
    of: tuple = ()  # names of a row's properties that it depends on; empty = all


def described(column):
    return column.holds.__doc__.splitlines()[0]


# The loop knows updates and weights: what a label is, how many sources there are and how positions are coded is not for it.
LOOP = ("family", "encoder", "decoder", "heads")
# What is done to weights depends on layers alone.
LAYERS = ("model", "encoder", "decoder")
ROUNDED = (*LOOP, "positions")
SAMPLES = (*LOOP, "labels", "sources")
FAMILY = ("family",)

COLUMNS = {column.name: column for column in (
    Column("train", training.train, 0),
    Column("resume", training.resume, 2, LOOP),
    Column("all_reduce", training.all_reduce, 2, LOOP),
    Column("sharded", training.sharded, 2, LOOP),
    Column("shared_batches", training.shared_batches, 3, ("family", "heads")),
    Column("micro_batches", training.micro_batches, 3, ("family", "heads", "sources")),
    Column("fp16", training.fp16, 1, ROUNDED),
    Column("bf16", training.bf16, 1, ROUNDED),
    Column("replay", training.replay, 3, SAMPLES),
    Column("eval", use.evaluate, 1),
    Column("shared_eval", use.shared_eval, 2, ("family", "labels", "heads")),
    Column("eval_bf16", use.eval_bf16, 5, FAMILY),
    Column("infer", use.infer, 2),
    Column("embed", use.embed, 1, FAMILY),
    Column("export", use.export, 4, ("family", "labels")),
    Column("init_from", tuning.init_from, 2, FAMILY),
    Column("freeze", tuning.freeze, 1, LAYERS),
    Column("unfreeze", tuning.unfreeze, 3, LAYERS),
    Column("lora", tuning.lora, 3, LAYERS),
    Column("lora_sharded", tuning.lora_sharded, 3, LAYERS),
    Column("lora_export", use.lora_export, 8, LAYERS),
    Column("adapters", tuning.adapters, 3, LAYERS),
    Column("adapters_elsewhere", tuning.adapters_elsewhere, 4, LAYERS),
)}


def cells_of(rows, columns=None):
    """All cells that make sense, row by row."""
    return [(row.name, name) for row in rows.values() for name in columns or COLUMNS if row.reason(name) is None]


def pairs_of(row, column):
    """What a cell covers: the row's properties, each with the column."""
    chosen = COLUMNS[column].of or row.properties
    return {(name, row.properties[name], column) for name in chosen if name in row.properties}


def covering(rows):
    """Cells in which each property of a row meets each column that it may meet, and every row is trained.

    Chosen one by one: the one that covers most of what is not yet covered; among equals, of the row with the fewest cells.
    """
    cells = cells_of(rows)
    chosen = [cell for cell in cells if cell[1] == "train"]
    missing = set().union(*(pairs_of(rows[row], column) for row, column in cells))
    missing -= set().union(*(pairs_of(rows[row], column) for row, column in chosen))
    count = dict.fromkeys(rows, 1)
    while missing:
        best = max((cell for cell in cells if cell not in chosen),
                   key=lambda cell: (len(pairs_of(rows[cell[0]], cell[1]) & missing), -count[cell[0]]))
        chosen.append(best)
        missing -= pairs_of(rows[best[0]], best[1])
        count[best[0]] += 1
    return [cell for cell in cells if cell in chosen]


def shard_of(cells, number, shards):
    """The cells of one of so many parts with about the same number of starts. A row stays whole, since its cells share runs."""
    rows = {row: [cell for cell in cells if cell[0] == row] for row in dict.fromkeys(row for row, _ in cells)}
    weight = {row: 1 + sum(COLUMNS[column].starts for _, column in of_row) for row, of_row in rows.items()}
    loads = [0] * shards
    mine = []
    for row in sorted(rows, key=lambda row: -weight[row]):
        lightest = loads.index(min(loads))
        loads[lightest] += weight[row]
        if lightest == number - 1:
            mine.append(row)
    return list(itertools.chain.from_iterable(of_row for row, of_row in rows.items() if row in mine))
