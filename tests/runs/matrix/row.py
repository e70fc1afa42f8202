"""A row of the matrix: a family of tasks or a model of it, and what its cells need to know."""
import dataclasses
from typing import Any, ClassVar

from harness import check


@dataclasses.dataclass(frozen=True)
class Row:
    """What all families have. A family derives from it, and says what its own lines, answers and scores are."""
    name: str
    config: str  # behind bench.EXPERIMENT: [task], [data], [tokenizer], [model], [optim], [eval]
    properties: dict  # CI covers each of them with each column

    lines: tuple = ()  # what `infer` reads
    infer_words: tuple = ()
    answer_words: ClassVar[tuple] = ()  # of `infer` for a run that came back from an exported folder
    scores: frozenset = frozenset()  # what `eval` prints besides `loss`
    without: dict = dataclasses.field(default_factory=dict)  # columns that make no sense here, with the reason

    # Words with which the products of one module are not finite, that module, and how the one before it begins.
    overflow: Any = None
    replayed: tuple = ()  # of `replay --json`: the name of the list of samples, and the keys of each
    replay_pattern: str = ".* -> "  # of a sample in the text of `replay`

    lora: tuple = ()  # words of [model.lora], and how many tensors it makes
    adapters: int = 0  # how many there are
    adapter_train: tuple = ()  # name patterns of other tensors that train with them
    unfreeze: tuple = ()  # words; then by name whether a tensor moves from update 3 to 6. From 6 to 9 all of them move.
    begins_with: str = ""  # another row, with whose encoder and tokenizer this one can begin
    rounding: float = 1e-4  # by which losses differ when other parts of a batch are added up

    # What the family lacks; a row adds what it lacks itself.
    lacks: ClassVar[dict] = {}
    large: ClassVar[tuple] = ("data.max_tokens=100000",)  # words with which all samples are one micro-batch

    def write_data(self, folder):
        """Writes files that its configuration names, where they are not those of matrix/text.py."""

    def reason(self, column):
        """Why there is no such cell, or None."""
        if column == "replay" and self.overflow is None:
            return "its layers are those of another row, whose update is replayed"
        return self.without.get(column, self.lacks.get(column))

    def check_answers(self, bench, folder):
        """What `infer` prints for the lines of the row: one line each, in text and as JSON."""
        raise NotImplementedError

    def check_reference(self, bench):
        """What must be so of the undisturbed run for the other cells to say anything."""

    def same_answers(self, a, b):
        """Whether a run and one that was exported and imported, which computes the same to rounding, answer alike."""
        return a == b

    def check_adapted(self, bench, folder):
        """What must be so of a run with adapters."""

    def moves_with_lora(self, tensor):
        return tensor.startswith("head.")

    def moves_with_adapters(self, tensor):
        return any(part in tensor for part in self.adapter_train)


def lines_of(row, text):
    lines = text.splitlines()
    check(len(lines) == len(row.lines), f"{row.name}: {len(lines)} lines for {len(row.lines)}: {text}")
    return lines
