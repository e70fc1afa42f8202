"""The rows of language models: a Transformer, and a recurrent one whose state goes on from update to update."""
import dataclasses
import json
from typing import ClassVar

from harness import check

from matrix.row import Row, lines_of

BEGIN = """[task]
name = "language_model"
[data]
train = ["train.txt"]
valid = ["valid.txt"]
format = "lines"
cache_dir = "cache"
"""
END = """
[decode]
method = "beam"
max_new_tokens = 8
[optim]
name = "adamw"
lr = 3e-3
clip_norm = 1.0
[eval]
every = 4
"""
NO_CLASS = "no class of `transformers` has it"
NOT_WRITTEN = dict.fromkeys(("export", "lora_export", "adapters_elsewhere"), NO_CLASS)
LORA = ("model.lora.rank=4", "model.lora.alpha=8", 'model.lora.maps=["*attention*", "*ffn*"]', "optim.lr=1e-2")


@dataclasses.dataclass(frozen=True)
class LanguageRow(Row):
    scores: frozenset = frozenset({"nll", "ppl", "bits_per_byte", "word_ppl"})
    lines: tuple = ("Åsa lives in", "Nora", "")
    replayed: tuple = ("sequences", {"text"})
    replay_pattern: str = "text: "
    # What `infer` is told for a run that came back from an exported folder, which has no settings of a search.
    answer_words: ClassVar[tuple] = ("decode.method=beam", "decode.max_new_tokens=8")

    lacks: ClassVar[dict] = {
        "embed": "a language model gives no vectors of lines",
        "init_from": "no other family has its stack",
        "freeze": "it has no encoder",
    }

    def check_answers(self, bench, folder):
        text = lines_of(self, bench.infer(self, folder))
        answers = [json.loads(line) for line in lines_of(self, bench.infer(self, folder, "--json"))]
        check([answer["prompt"] for answer in answers] == list(self.lines), f"{answers}")
        check([len(answer["continuations"]) for answer in answers] == [1, 1, 0], f"{answers}")
        for answer, line in zip(answers, text, strict=True):
            for one in answer["continuations"]:
                check(one["text"].replace("\n", "\\n").replace("\r", "\\r") == line, f"{answer}, {line}")
                check(0 < len(one["token_log_probs"]) <= 8 and one["end"] in ("end", "length"), f"{answer}")


ROWS = (
    LanguageRow(
        "language_model",
        BEGIN + """max_text_tokens = 24
max_tokens = 192
[tokenizer]
type = "byte_bpe"
vocab_size = 300
[model]
preset = "none"
num_layers = 2
d_model = 32
num_heads = 2
ffn_dim = 512
max_positions = 40
""" + END,
        {"family": "language_model", "model": "language model", "labels": "next tokens"},
        overflow=(("decoder.layers.1.ffn.up.bias constant value=1e29", "decoder.layers.1.ffn.down.weight constant value=1e29"),
                  "decoder.layers.1.ffn.down", "decoder.layers.1.ffn"),
        lora=(LORA, 16),
        adapters=4,
        adapter_train=("norm",),
        unfreeze=(('train.unfreeze=["decoder.layers.1.* 2", "decoder.layers.0.* 5", "decoder.embedding.* 8"]',),
                  {"decoder.layers.1.ffn.up.weight": True, "decoder.layers.0.ffn.up.weight": True,
                   "decoder.embedding.weight": False})),
    LanguageRow(
        "language_model_lstm",
        BEGIN + """lanes = 6
bptt = 8
[tokenizer]
type = "word"
vocab_size = 100
[model]
name = "lstm"
num_layers = 2
d_model = 80
hidden_dim = 80
""" + END,
        {"family": "language_model", "model": "recurrent language model", "labels": "next tokens of lanes"},
        without={
            "shared_batches": "a lane stays with its process",
            "micro_batches": "lanes are cut by train.update_freq, and by no bound",
            "unfreeze": "its layers are those of a recurrent encoder",
            "lora": "its layers are those of a recurrent encoder",
            "lora_sharded": "its layers are those of a recurrent encoder",
            "adapters": "its layers are those of a recurrent encoder",
            **NOT_WRITTEN,
        }),
    LanguageRow(
        "language_model_adaptive",
        BEGIN + """max_text_tokens = 24
max_tokens = 48
[tokenizer]
type = "word"
vocab_size = 100
[model]
preset = "none"
num_layers = 2
d_model = 32
num_heads = 2
ffn_dim = 512
tie_embeddings = false
max_positions = 40
[model.adaptive_softmax]
cutoffs = [6, 11]
div_value = 2
""" + END,
        # The family's other properties are covered by the rows above, whose models have one softmax.
        {"heads": "groups of tokens"},
        without=dict.fromkeys(("unfreeze", "lora", "lora_sharded", "adapters"), "its layers are those of another row") | NOT_WRITTEN),
)
