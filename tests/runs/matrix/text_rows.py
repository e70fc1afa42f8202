"""The rows of families whose model is an encoder of text."""
import dataclasses
import json
from typing import ClassVar

from harness import check

from matrix.row import Row, lines_of

# More than 65,536 parameters: where dist.strategy = "sharded" cuts.
ENCODER = """
[optim]
name = "adamw"
lr = 3e-3
clip_norm = 1.0
[eval]
every = 4
[tokenizer]
vocab_size = 120
[model]
num_layers = 2
d_model = 32
num_heads = 2
ffn_dim = 512
max_positions = 40
"""
# The stack of a language model, and words, of which the texts have some forty.
CAUSAL_LABELS = """[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["valid.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
max_tokens = 144
[optim]
name = "adamw"
lr = 3e-3
clip_norm = 1.0
[eval]
every = 4
[tokenizer]
type = "word"
vocab_size = 100
[model]
"""
LORA = ("model.lora.rank=4", "model.lora.alpha=8", 'model.lora.maps=["*attention*", "*ffn*"]', "optim.lr=1e-2")


@dataclasses.dataclass(frozen=True)
class TextRow(Row):
    overflow: tuple = (("encoder.layers.1.ffn.up.bias constant value=1e29", "encoder.layers.1.ffn.down.weight constant value=1e29"),
                       "encoder.layers.1.ffn.down", "encoder.layers.1.ffn")
    lora: tuple = (LORA, 16)
    adapters: int = 4
    adapter_train: tuple = ("head.", "norm")
    unfreeze: tuple = (('train.unfreeze=["encoder.layers.1.* 2", "encoder.layers.0.* 5", "encoder.* 8"]', "optim.layer_decay=0.8"),
                       {"encoder.layers.1.ffn.up.weight": True, "encoder.layers.0.ffn.up.weight": True,
                        "encoder.embedding.weight": False})

    head: ClassVar[frozenset] = frozenset()  # tensors that no other family takes over

    def check_answers(self, bench, folder):
        text = lines_of(self, bench.infer(self, folder))
        answers = [json.loads(line) for line in lines_of(self, bench.infer(self, folder, "--json"))]
        self.check_each(bench, folder, answers, text)

    def check_each(self, bench, folder, answers, text):
        raise NotImplementedError


class MaskedText(TextRow):
    head: ClassVar[frozenset] = frozenset({"head.dense.weight", "head.dense.bias", "head.norm.weight", "head.norm.bias", "head.bias"})

    def check_each(self, bench, folder, answers, text):
        check(all({"text", "masks", "filled"} <= set(answer) for answer in answers), f"{answers}")
        check([len(answer["masks"]) for answer in answers] == [1, 0, 2], f"{answers}")
        check([line.count("\t") + 1 if line else 0 for line in text] == [1, 0, 2], f"{text}")
        for answer in answers:
            check("[MASK]" not in answer["filled"], f"{answer}")
            for mask in answer["masks"]:
                chances = [filler["probability"] for filler in mask["fillers"]]
                check(chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1 + 1e-6, f"{mask}")
                check(all(filler["token"] for filler in mask["fillers"]), f"{mask}")
        few = lines_of(self, bench.infer(self, folder, "--json", "--nbest", 2))
        counts = [len(mask["fillers"]) for line in few for mask in json.loads(line)["masks"]]
        check(counts == [2, 2, 2], f"{few}")

    # A tied output is the table of tokens.
    def moves_with_adapters(self, tensor):
        return tensor == "encoder.embedding.weight" or super().moves_with_adapters(tensor)

    def moves_with_lora(self, tensor):
        return tensor == "encoder.embedding.weight" or super().moves_with_lora(tensor)


class Questions(TextRow):
    head: ClassVar[frozenset] = frozenset({"head.output.weight", "head.output.bias"})
    answer_words: ClassVar[tuple] = ("data.version=2",)  # a folder does not say whether a question may have no answer

    def check_each(self, bench, folder, answers, text):
        check([answer["answer"] for answer in answers] == text, f"{answers}, {text}")
        check(all(answer["answers"] for answer in answers), f"{answers}")


class Labels(TextRow):
    """One label of each text."""
    head: ClassVar[frozenset] = frozenset({"head.pooler.weight", "head.pooler.bias", "head.output.weight", "head.output.bias"})

    def check_each(self, bench, folder, answers, text):
        for answer, line in zip(answers, text, strict=True):
            check(answer["label"] == line and line in ("north", "middle", "south"), f"{answer}, {line}")
            check(abs(sum(answer["probabilities"].values()) - 1) < 1e-5, f"{answer}")


class CausalLabels(Labels):
    """The same, read from the stack of a language model."""
    lacks: ClassVar[dict] = {
        "export": "no class of `transformers` has such a head",
        "lora_export": "no class of `transformers` has such a head",
        "adapters_elsewhere": "no class of `transformers` has such a head",
        "init_from": "runs.transfer begins with a language model",
        "freeze": "it has no encoder",
    }


class SeveralLabels(Labels):
    def check_each(self, bench, folder, answers, text):
        for answer, line in zip(answers, text, strict=True):
            likely = [label for label, chance in answer["probabilities"].items() if chance >= 0.5]
            check(set(answer["probabilities"]) == {"north", "middle", "south"}, f"{answer}")
            check(sorted(filter(None, line.split(","))) == sorted(likely), f"{answer}, {line}")


class Numbers(Labels):
    def same_answers(self, a, b):
        return all(abs(float(x) - float(y)) < 1e-3 for x, y in zip(a.split(), b.split(), strict=True))

    def check_each(self, bench, folder, answers, text):
        for answer, line in zip(answers, text, strict=True):
            check(abs(answer["value"] - float(line)) < 1e-5 * max(1, abs(answer["value"])), f"{answer}, {line}")


def of(family, labels):
    """All encoders of text have the same layers."""
    return {"family": family, "labels": labels, "model": "encoder of text"}


SENTENCES = ("Åsa lives in Kraków.", "Nora lives in Oslo. José lives in Riga.")

ROWS = (
    MaskedText(
        "masked_lm",
        """[task]
name = "masked_lm"
[data]
train = ["train.txt"]
valid = ["valid.txt"]
documents = "line"
packing = "packed"
whole_words = true
max_text_tokens = 24
max_tokens = 192
cache_dir = "cache"
""" + ENCODER,
        of("masked_lm", "hidden tokens"),
        lines=("Åsa lives in [MASK].", "Nora lives in Oslo.", "[MASK] lives in [MASK]. "),
        scores=frozenset({"nll", "ppl", "accuracy"}),
        replayed=("texts", {"text", "masked"}),
        begins_with="text_classification"),
    Questions(
        "question_answering",
        """[task]
name = "question_answering"
[data]
train = ["train.json"]
valid = ["valid.json"]
max_text_tokens = 36
max_question_tokens = 16
stride = 10
max_tokens = 160
""" + ENCODER,
        of("question_answering", "spans"),
        lines=("Where does Åsa live?\tÅsa lives in Kraków. Nora lives in Oslo.", "Where does Nora live?\tÅsa lives in Kraków."),
        scores=frozenset({"exact_match", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1", "best_f1_thresh"}),
        replayed=("windows", {"id", "question", "paragraph", "answer"}),
        replay_pattern="id: .*; question: .*; paragraph: .*; answer: ",
        begins_with="masked_lm"),
    Labels(
        "text_classification",
        """[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["valid.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
max_tokens = 160
[loss]
class_weights = "balanced"
label_smoothing = 0.1
""" + ENCODER,
        of("text_classification", "one label"),
        lines=SENTENCES,
        scores=frozenset({"accuracy", "f1", "macro_f1", "matthews"}),
        replayed=("texts", {"text", "label"}),
        begins_with="masked_lm"),
    CausalLabels(
        "labels_transformer",
        CAUSAL_LABELS + """name = "transformer"
preset = "none"
num_layers = 2
d_model = 32
num_heads = 2
ffn_dim = 512
max_positions = 40
pooling = "last"
""",
        {"family": "text_classification", "labels": "one label"},
        lines=SENTENCES,
        scores=frozenset({"accuracy", "f1", "macro_f1", "matthews"}),
        replayed=("texts", {"text", "label"}),
        overflow=(("decoder.layers.1.ffn.up.bias constant value=1e29", "decoder.layers.1.ffn.down.weight constant value=1e29"),
                  "decoder.layers.1.ffn.down", "decoder.layers.1.ffn"),
        unfreeze=(('train.unfreeze=["decoder.layers.1.* 2", "decoder.layers.0.* 5", "decoder.* 8"]', "optim.layer_decay=0.8"),
                  {"decoder.layers.1.ffn.up.weight": True, "decoder.layers.0.ffn.up.weight": True,
                   "decoder.embedding.weight": False})),
    CausalLabels(
        "labels_lstm",
        CAUSAL_LABELS + """name = "lstm"
num_layers = 2
d_model = 80
hidden_dim = 80
input_dropout = 0.0
hidden_dropout = 0.1
output_dropout = 0.0
weight_drop = 0.1
pooling = "concat"
head_dropout = 0.0
head_units = 16
""",
        {"family": "text_classification", "labels": "one label"},
        lines=SENTENCES,
        scores=frozenset({"accuracy", "f1", "macro_f1", "matthews"}),
        replayed=("texts", {"text", "label"}),
        overflow=None,
        without={
            "unfreeze": "its layers are those of a recurrent encoder",
            "lora": "its layers are those of a recurrent encoder",
            "lora_sharded": "its layers are those of a recurrent encoder",
            "adapters": "its layers are those of a recurrent encoder",
        }),
    SeveralLabels(
        "several_labels",
        """[task]
name = "text_classification"
[data]
train = ["train.tags.tsv"]
valid = ["valid.tags.tsv"]
text = "text"
label = "labels"
label_separator = ","
max_text_tokens = 24
max_tokens = 160
""" + ENCODER,
        of("text_classification", "several labels"),
        lines=SENTENCES,
        scores=frozenset({"accuracy", "f1", "macro_f1"}),
        replayed=("texts", {"text", "label"}),
        begins_with="masked_lm"),
    # Pairs of texts, with a number for each.
    Numbers(
        "numbers",
        """[task]
name = "text_classification"
[data]
train = ["train.pairs.tsv"]
valid = ["valid.pairs.tsv"]
text = "first"
text2 = "second"
label = "score"
label_kind = "number"
max_text_tokens = 36
max_tokens = 160
""" + ENCODER,
        of("text_classification", "numbers"),
        lines=tuple(f"{text}\tNora lives in Oslo." for text in SENTENCES),
        scores=frozenset({"pearson", "spearman", "mse"}),
        replayed=("texts", {"text", "label"}),
        begins_with="masked_lm"),
)
