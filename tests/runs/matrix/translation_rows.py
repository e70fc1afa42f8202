"""The rows of translation: each kind of encoders and decoders, and pairs of them. All share one text and one vocabulary."""
import dataclasses
import json
import math
from typing import ClassVar

from harness import check

from matrix.row import Row, lines_of

TEXT = """train_src = ["train.src"]
train_tgt = ["train.tgt"]
valid_src = ["valid.src"]
valid_tgt = ["valid.tgt"]
"""
SECOND_SOURCE = 'train_src2 = ["train.src2"]\nvalid_src2 = ["valid.src2"]\n'
WORDS = '[tokenizer]\ntype = "vocab"\nsrc_vocab = "words.txt"\n'
LINES = ("the red house", "a big dog sees the small cat", "two old men")  # and one word that is not in the vocabulary
LORA = ("model.lora.rank=4", "model.lora.alpha=8", 'model.lora.maps=["*"]', "optim.lr=1e-2")


@dataclasses.dataclass(frozen=True)
class Translation(Row):
    lines: tuple = LINES
    scores: frozenset = frozenset({"nll", "ppl"})
    replayed: tuple = ("sentences", {"source", "target"})
    unfreeze: tuple = (('train.unfreeze=["encoder* 7"]',), {})
    lora: tuple = (LORA, 0)

    lacks: ClassVar[dict] = {
        "init_from": "no other family has its encoder; runs.initial_run has what it takes of other runs",
        "embed": "it is no encoder of text",
        "export": "no class of transformers is equal to it",
        "lora_export": "no class of transformers is equal to it",
        "adapters_elsewhere": "of encoders of text",
    }
    heads: ClassVar[tuple] = ((),)  # words that choose a decoder
    second_source: ClassVar[bool] = False

    def check_answers(self, bench, folder):
        for words in self.heads:
            self.scores_what_it_decodes(bench, folder, *words)

    def check_adapted(self, bench, folder):
        self.scores_what_it_decodes(bench, folder, *self.heads[0])

    def scores_what_it_decodes(self, bench, run, *of_head):
        """The log-probability that the search found step by step is that of the whole translation at once."""
        sources = (bench.root / "valid.src").read_text().splitlines()
        text, given = sources, ["--src", bench.root / "valid.src"]
        if self.second_source:
            text = [f"{a}\t{b}" for a, b in zip(sources, (bench.root / "valid.src2").read_text().splitlines())]
            given += ["--src2", bench.root / "valid.src2"]
        # A model that has seen so little would end after the first word.
        found = bench.output("infer", run, *of_head, "--json", "--beam", "2", "decode.min_len=4", "decode.max_len_a=0",
                             "decode.max_len_b=9", input="\n".join(text) + "\n")
        best = [json.loads(line)["hypotheses"][0] for line in found.splitlines()]
        check(len(best) == len(sources), f"{self.name}: {len(best)} translations of {len(sources)} lines")
        check(all(4 <= len(translation["pieces"]) <= 9 for translation in best), f"{self.name}: {best}")
        hypotheses, scores = (bench.root / f"{self.name}.{end}" for end in ("found", "scores"))
        hypotheses.write_text("\n".join(translation["text"] for translation in best) + "\n")
        scored = bench.output("eval", run, *of_head, "--json", *given, "--tgt", hypotheses, "--per-line", scores)
        check(math.isfinite(json.loads(scored)["nll"]), f"{self.name}: {scored}")
        totals = [float(line.split("\t")[0]) for line in scores.read_text().splitlines()]
        for i, (translation, total) in enumerate(zip(best, totals, strict=True), 1):
            check(abs(translation["log_prob"] - total) < 1e-3, f"{self.name}: log-probability of line {i} is "
                  f"{translation['log_prob']} step by step, and {total} at once")


class SubWords(Translation):
    def check_answers(self, bench, folder):
        text = lines_of(self, bench.infer(self, folder))
        answers = [json.loads(line) for line in lines_of(self, bench.infer(self, folder, "--json"))]
        check([answer["hypotheses"][0]["text"] for answer in answers] == text, f"{answers}, {text}")

    def scores_what_it_decodes(self, bench, run, *of_head):
        """A translation has other sub-words when it is cut again: it cannot be compared."""


class TwoSources(Translation):
    second_source: ClassVar[bool] = True


class TwoHeads(Translation):
    heads: ClassVar[tuple] = (("--head", "de"), ("--head", "same"))

    def check_reference(self, bench):
        """In some updates each of two processes runs another decoder, and in others both run the same."""
        updates = {("de.nll" in event, "same.nll" in event) for event in bench.events(self, "reference")
                   if event["event"] == "train"}
        check(updates == {(True, True), (True, False)}, f"the test is stale: decoders of the updates are {updates}")


def experiment(model, text=TEXT, tokenizer=WORDS, of_optim="lr = 5e-3\n"):
    return f"""[data]
{text}max_tokens = 120
max_src_tokens = 50
max_tgt_tokens = 50
cache_dir = "cache"
{tokenizer}[optim]
{of_optim}clip_norm = 1.0
[eval]
every = 4
bleu = false
{model}"""


def both_sides(keys, of_decoder="", of_model=""):
    return experiment(f"[model]\nd_model = 32\n{of_model}[model.encoder]\n{keys}[model.decoder]\n{keys}{of_decoder}")


def of(encoder, decoder, **more):
    return {"family": "translation", "encoder": encoder, "decoder": decoder, **more}


# For each kind of layers, first weights whose products are not finite; the module that gives them, and the last one before it.
# A gate of an LSTM makes a finite number of an infinite one: there, the logits are infinite too.
LSTM_OVERFLOW = (("embedding.weight normal std=1e29", "encoder.layers.0.backward.input.weight normal std=1e29",
                  "decoder.output.weight normal std=1e29"),
                 "encoder.layers.0.backward.input", "encoder.layers.0.forward")
CONV_OVERFLOW = (("decoder.layers.0.block.convolution.bias constant value=1e29",
                  "decoder.layers.0.attention.query.gain constant value=1e29"),
                 "decoder.layers.0.attention.query", "decoder.layers.0.block")
FILTER_OVERFLOW = (("decoder.layers.1.convolution.in.bias constant value=1e29",
                    "decoder.layers.1.convolution.filters.weight constant value=1e29"),
                   "decoder.layers.1.convolution.filters", "decoder.layers.1.convolution.in")


def feed_forward_overflow(layer):
    """The overflow of a Transformer's layer."""
    return ((f"{layer}.ffn.up.bias constant value=1e29", f"{layer}.ffn.down.weight constant value=1e29"), f"{layer}.ffn.down",
            f"{layer}.ffn")


# Each has more than 65,536 parameters: where dist.strategy = "sharded" cuts.
ROWS = (
    Translation(
        "lstm", both_sides('name = "lstm"\nnum_layers = 2\nhidden_dim = 64\n'), of("recurrent", "recurrent"),
        overflow=LSTM_OVERFLOW, adapters=4),
    Translation(
        "gru", both_sides('name = "lstm"\ncell = "gru"\nnum_layers = 2\nhidden_dim = 64\n',
                          'attention = "luong"\noutput = "attended"\ninitial_state = "mean"\ncontext_to = "first"\n'),
        of("recurrent", "recurrent"), adapters=4),
    Translation(
        "norm_lstm", both_sides('name = "lstm"\ncell = "norm_lstm"\nnum_layers = 2\nhidden_dim = 64\nvariational = true\n'
                                "recurrent_dropout = 0.1\nzoneout_hidden = 0.1\nzoneout_cell = 0.2\n",
                                'attention = "luong_scaled"\n'),
        of("recurrent", "recurrent"), adapters=4),
    # Residual connections around the third layer.
    Translation(
        "gnmt", both_sides('name = "lstm"\nnum_layers = 3\n', 'attention = "bahdanau_normed"\ncontext_to = "gnmt_v2"\n'),
        of("recurrent", "recurrent"), adapters=6),
    # Its first version, whose upper layers read the context one step later. The projection is the decoder's table, to whose
    # width another map leads from the states.
    Translation(
        "gnmt_v1", both_sides('name = "lstm"\nnum_layers = 3\nhidden_dim = 48\n',
                              'attention = "bahdanau"\ncontext_to = "gnmt"\n', 'tie_embeddings = "decoder"\n'),
        of("recurrent", "recurrent"), adapters=6),
    Translation(
        "conv", both_sides('name = "conv"\nnum_layers = 2\nchannels = [64]\nkernels = [3]\n'),
        of("convolutional", "convolutional"), overflow=CONV_OVERFLOW, adapters=6),
    Translation(
        "light_conv",
        both_sides('name = "light_conv"\nnum_layers = 2\nnum_heads = 4\nkernels = [3, 7]\nffn_dim = 256\n'),
        of("convolutional", "convolutional"), overflow=feed_forward_overflow("decoder.layers.1"), adapters=10),
    Translation(
        "dynamic_conv",
        both_sides('name = "dynamic_conv"\nnum_layers = 2\nnum_heads = 4\nkernels = [3, 7]\nffn_dim = 256\n'),
        of("convolutional", "convolutional"), overflow=FILTER_OVERFLOW, adapters=10),
    # Parts of two kinds, both ways round.
    Translation(
        "lstm_conv", experiment("""[model]
d_model = 32
[model.encoder]
name = "lstm"
num_layers = 2
hidden_dim = 32
[model.decoder]
name = "conv"
num_layers = 2
channels = [64]
kernels = [3]
"""), of("recurrent", "convolutional"), overflow=CONV_OVERFLOW, adapters=6),
    Translation(
        "transformer_lstm", experiment("""[model]
d_model = 32
[model.encoder]
num_layers = 2
num_heads = 4
ffn_dim = 256
[model.decoder]
name = "lstm"
num_layers = 2
hidden_dim = 64
"""), of("transformer", "recurrent"), overflow=feed_forward_overflow("encoder.layers.1"), adapters=6),
    # As a class of transformers has it: sinusoids, norms behind, sub-words of SentencePiece.
    SubWords(
        "marian", experiment("""[model]
d_model = 32
norm = "post"
positions = "marian"
tie_embeddings = "all"
[model.encoder]
num_layers = 2
num_heads = 4
ffn_dim = 256
[model.decoder]
num_layers = 2
num_heads = 4
ffn_dim = 256
""", tokenizer="[tokenizer]\nvocab_size = 80\n"), of("transformer", "transformer", tokenizer="sub-words"),
        overflow=feed_forward_overflow("decoder.layers.0"), adapters=10, without={"export": None, "lora_export": None}),
    Translation(
        "shaw", experiment("""[model]
d_model = 32
norm = "pre"
parallel_residual = true
positions = "shaw"
max_distance = 3
[model.encoder]
num_layers = 3
num_heads = 4
ffn_dim = 256
layer_drop = 0.3
[model.decoder]
num_layers = 3
num_heads = 4
ffn_dim = 256
layer_drop = 0.3
"""), of("transformer", "transformer", positions="by distance"), adapters=15),
    Translation(
        "t5", experiment("""[model]
d_model = 32
norm = "pre"
norm_layer = "rms_norm"
positions = "t5"
activation = "swiglu"
[model.encoder]
num_layers = 2
num_heads = 4
num_kv_heads = 2
ffn_dim = 256
[model.decoder]
num_layers = 2
num_heads = 4
num_kv_heads = 1
ffn_dim = 256
"""), of("transformer", "transformer", positions="by distance"), adapters=10),
    # Rotary positions behind root mean square norms, and layers that are left out.
    Translation(
        "rotary", both_sides("num_layers = 3\nnum_heads = 4\nffn_dim = 256\nlayer_drop = 0.3\n",
                             of_model='norm = "pre"\nnorm_layer = "rms_norm"\npositions = "rotary"\n'),
        of("transformer", "transformer", positions="by distance"), adapters=15),
    # ALiBi in the second encoder and in the decoder.
    TwoSources(
        "two_encoders", experiment("""[model]
d_model = 32
norm = "pre"
positions = "alibi"
[[model.encoders]]
name = "lstm"
num_layers = 1
[[model.encoders]]
name = "transformer"
num_layers = 2
num_heads = 4
ffn_dim = 256
[model.decoder]
num_layers = 2
num_heads = 4
ffn_dim = 256
""", TEXT + SECOND_SOURCE), of("transformer", "transformer", sources=2, positions="by distance"),
        lines=tuple(f"{line}\t{' '.join(reversed(line.split()))}" for line in LINES), adapters=11,
        overflow=feed_forward_overflow("decoder.layers.1")),
    # Decoders of two kinds: `de` has the text of the others, `same` writes the source, in every third micro-batch.
    TwoHeads(
        "heads", experiment(f"""[model]
d_model = 32
[model.encoder]
num_layers = 2
num_heads = 4
ffn_dim = 256
[[model.heads]]
name = "de"
[model.heads.decoder]
num_layers = 1
num_heads = 4
ffn_dim = 256
[[model.heads]]
name = "same"
weight = 0.5
[model.heads.decoder]
name = "lstm"
num_layers = 1
hidden_dim = 64
[[data.heads]]
head = "de"
{TEXT}[[data.heads]]
head = "same"
{TEXT.replace(".tgt", ".src")}repeat = 0.5
""", ""), of("transformer", "recurrent", heads=2), infer_words=("--head", "de"), adapters=8,
        without={"micro_batches": "no micro-batch has pairs of both heads"},
        replayed=("sentences", {"head", "source", "target"}), replay_pattern="head: de; source: .*; target: ",
        overflow=feed_forward_overflow("decoders.de.layers.0")),
)
