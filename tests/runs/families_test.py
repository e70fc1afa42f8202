#!/usr/bin/env python3
"""What holds for the Transformer holds for every family of models: resume, several processes, half precision, decoding.

    tests/runs/families_test.py build/release/stretto [TEST...]

A test is called PART_what_holds. All parts share one text and one vocabulary; a run makes eight updates.
"""
import atexit
import functools
import json
import math
import re
import shutil
import signal

from harness import TIMING, WORDS_SRC, WORDS_TGT, Lab, check, compare, main
from initial_run_test import tensors_of

TIMING |= {"comm_seconds", "comm_wait_seconds", "processes"}

UPDATES = 8
TEXT = """train_src = ["train.src"]
train_tgt = ["train.tgt"]
valid_src = ["valid.src"]
valid_tgt = ["valid.tgt"]
"""
# Each update has two micro-batches, one for each of two processes. Saves are made in front of the next update, so that a
# kill meets no writer at work.
EXPERIMENT = f"""
[run]
seed = 3
threads = 1
device = "cpu"
[data]
{TEXT}max_tokens = 120
max_src_tokens = 50
max_tgt_tokens = 50
cache_dir = "cache"
[tokenizer]
type = "vocab"
src_vocab = "words.txt"
[optim]
lr = 5e-3
clip_norm = 1.0
[schedule]
warmup_steps = 2
[train]
max_steps = 8
update_freq = 2
save_every = 3
save_in_background = false
[dist]
deterministic = true
[eval]
every = 4
bleu = false
[report]
every = 1
tensorboard = false
html = false
"""


def both_sides(keys, of_decoder="", of_model=""):
    return f"[model]\nd_model = 32\n{of_model}[model.encoder]\n{keys}[model.decoder]\n{keys}{of_decoder}"


# Each has more than 65,536 parameters: where dist.strategy = "sharded" cuts, so that both processes have a slice.
PARTS = {
    "lstm": both_sides('name = "lstm"\nnum_layers = 2\nhidden_dim = 64\n'),
    "gru": both_sides('name = "lstm"\ncell = "gru"\nnum_layers = 2\nhidden_dim = 64\n',
                      'attention = "luong"\noutput = "attended"\ninitial_state = "mean"\ncontext_to = "first"\n'),
    "norm_lstm": both_sides('name = "lstm"\ncell = "norm_lstm"\nnum_layers = 2\nhidden_dim = 64\nvariational = true\n'
                            "recurrent_dropout = 0.1\nzoneout_hidden = 0.1\nzoneout_cell = 0.2\n",
                            'attention = "luong_scaled"\n'),
    # Residual connections around the third layer.
    "gnmt": both_sides('name = "lstm"\nnum_layers = 3\n', 'attention = "bahdanau_normed"\ncontext_to = "gnmt_v2"\n'),
    # Its first version, whose upper layers read the context one step later. The projection is the decoder's table, to whose
    # width another map leads from the states.
    "gnmt_v1": both_sides('name = "lstm"\nnum_layers = 3\nhidden_dim = 48\n',
                          'attention = "bahdanau"\ncontext_to = "gnmt"\n', 'tie_embeddings = "decoder"\n'),
    "conv": both_sides('name = "conv"\nnum_layers = 2\nchannels = [64]\nkernels = [3]\n'),
    "light_conv": both_sides('name = "light_conv"\nnum_layers = 2\nnum_heads = 4\nkernels = [3, 7]\nffn_dim = 256\n'),
    "dynamic_conv": both_sides('name = "dynamic_conv"\nnum_layers = 2\nnum_heads = 4\nkernels = [3, 7]\nffn_dim = 256\n'),
    # Parts of two kinds, both ways round.
    "lstm_conv": """
[model]
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
""",
    "transformer_lstm": """
[model]
d_model = 32
[model.encoder]
num_layers = 2
num_heads = 4
ffn_dim = 256
[model.decoder]
name = "lstm"
num_layers = 2
hidden_dim = 64
""",
    "shaw": """
[model]
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
""",
    "t5": """
[model]
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
""",
    # Rotary positions behind root mean square norms, and layers that are left out.
    "rotary": both_sides("num_layers = 3\nnum_heads = 4\nffn_dim = 256\nlayer_drop = 0.3\n",
                         of_model='norm = "pre"\nnorm_layer = "rms_norm"\npositions = "rotary"\n'),
    # ALiBi in the second encoder and in the decoder.
    "two_encoders": """
[model]
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
""",
    # Decoders of two kinds: `de` has the text of the others, `same` writes the source, in every third micro-batch. So in
    # some updates each of two processes runs another decoder, and in others both run the same.
    "heads": f"""
[model]
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
""",
}
SECOND_SOURCE = 'train_src2 = ["train.src2"]\nvalid_src2 = ["valid.src2"]\n'


@functools.cache
def lab_of(stretto):
    """The text, its vocabulary, the sources in reverse order as second ones, and a configuration for each part."""
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    (lab.root / "words.txt").write_text("\n".join(sorted({*WORDS_SRC, *WORDS_TGT})) + "\n")
    for name in ("train", "valid"):
        lines = (lab.root / f"{name}.src").read_text().splitlines()
        (lab.root / f"{name}.src2").write_text("".join(" ".join(reversed(line.split())) + "\n" for line in lines))
    for part, model in PARTS.items():
        text = {"two_encoders": TEXT + SECOND_SOURCE, "heads": ""}.get(part, TEXT)
        (lab.root / f"{part}.toml").write_text(EXPERIMENT.replace(TEXT, text) + model)
    return lab


def trained(lab, part, run, *words, env=None, code=0):
    lab.config = lab.root / f"{part}.toml"
    result = lab.train(f"{part}_{run}", *words, env=env)
    check(result.returncode == code, f"{part}, {run}: exit code {result.returncode}: {result.stderr[-3000:]}")
    return result.stderr


@functools.cache
def undisturbed(stretto, part):
    """The name of a run of one process. It has more than one slice."""
    lab = lab_of(stretto)
    trained(lab, part, "reference")
    model = lab.root / f"{part}_reference/checkpoints/step_{UPDATES:08}/model.safetensors"
    check(model.stat().st_size > 4 * 65536, f"the test is stale: {part} has {model.stat().st_size} bytes")
    return f"{part}_reference"


def updates_of(lab, run):
    """The updates that were made; those that were skipped are left out."""
    return [event for event in lab.events(run) if event["event"] == "train" and not event.get("skipped")]


def loss_falls(lab, run):
    losses = [event["loss"] for event in updates_of(lab, run)]
    check(len(losses) == UPDATES and all(map(math.isfinite, losses)), f"{run}: losses {losses}")
    check(min(losses[-2:]) < losses[0], f"{run}: the loss does not fall: {losses}")


def killed_and_resumed(lab, part, reference, run, *words):
    trained(lab, part, run, *words, env={"STRETTO_FAILPOINT": "micro_batch:kill:11"}, code=-signal.SIGKILL)
    saved = [path.name for path in (lab.root / f"{part}_{run}/checkpoints").glob("step_*")]
    check("step_00000003" in saved and len(updates_of(lab, f"{part}_{run}")) == 5,
          f"the test is stale: killed in another update, with {saved}")
    trained(lab, part, run, *words)
    compare(lab, reference, f"{part}_{run}", f"{part}, {run}, killed in update 6")


def ends_the_same_after_a_kill(stretto, part):
    lab, reference = lab_of(stretto), undisturbed(stretto, part)
    loss_falls(lab, reference)
    killed_and_resumed(lab, part, reference, "killed")


def has_the_same_bits_on_two_processes(stretto, part):
    if shutil.which("mpirun") is None:
        print(f"        no mpirun: {part} was not trained by two processes", flush=True)
        return
    lab, reference = lab_of(stretto), undisturbed(stretto, part)
    if part == "heads":
        updates = {("de.nll" in event, "same.nll" in event) for event in updates_of(lab, reference)}
        check(updates == {(True, True), (True, False)}, f"the test is stale: decoders of the updates are {updates}")
    for strategy in ("all_reduce", "sharded"):
        trained(lab, part, strategy, f"dist.strategy={strategy}", "--processes", "2")
        compare(lab, reference, f"{part}_{strategy}", f"{part}, two processes, {strategy}")


def trains_in_half_precision(stretto, part):
    lab = lab_of(stretto)
    exact = [event["loss"] for event in updates_of(lab, undisturbed(stretto, part))]
    for precision in ("mixed_fp16", "mixed_bf16"):
        run = f"{part}_{precision}"
        trained(lab, part, precision, f"train.precision={precision}")
        loss_falls(lab, run)
        updates = updates_of(lab, run)
        scales = [event.get("loss_scale") for event in updates]
        check(None not in scales and (min(scales) > 1) == (precision == "mixed_fp16"), f"{run}: loss scales {scales}")
        check([event["loss"] for event in updates] != exact, f"{run}: nothing was rounded")


def scores_what_it_decodes(lab, part, run, *of_head):
    """The log-probability that the search found step by step is that of the whole translation at once."""
    run = str(lab.root / run)
    sources = (lab.root / "valid.src").read_text().splitlines()
    text, given = sources, ["--src", str(lab.root / "valid.src")]
    if part == "two_encoders":
        text = [f"{a}\t{b}" for a, b in zip(sources, (lab.root / "valid.src2").read_text().splitlines())]
        given += ["--src2", str(lab.root / "valid.src2")]
    # A model that has seen so little would end after the first word.
    found = lab.run([lab.stretto, "infer", run, *of_head, "--json", "--beam", "2", "decode.min_len=4",
                     "decode.max_len_a=0", "decode.max_len_b=9"], input="\n".join(text) + "\n")
    check(found.returncode == 0, f"{part}: exit code {found.returncode}: {found.stderr}")
    best = [json.loads(line)["hypotheses"][0] for line in found.stdout.splitlines()]
    check(len(best) == len(sources), f"{part}: {len(best)} translations of {len(sources)} lines")
    check(all(4 <= len(translation["pieces"]) <= 9 for translation in best), f"{part}: {best}")
    (lab.root / f"{part}.found").write_text("\n".join(translation["text"] for translation in best) + "\n")
    scored = lab.run([lab.stretto, "eval", run, *of_head, "--json", *given, "--tgt", str(lab.root / f"{part}.found"),
                      "--per-line", str(lab.root / f"{part}.scores")])
    check(scored.returncode == 0, f"{part}: exit code {scored.returncode}: {scored.stderr}")
    check(math.isfinite(json.loads(scored.stdout)["nll"]), f"{part}: {scored.stdout}")
    totals = [float(line.split("\t")[0]) for line in (lab.root / f"{part}.scores").read_text().splitlines()]
    for i, (translation, total) in enumerate(zip(best, totals, strict=True), 1):
        check(abs(translation["log_prob"] - total) < 1e-3,
              f"{part}: log-probability of line {i} is {translation['log_prob']} step by step, and {total} at once")


def decodes_what_it_scores(stretto, part):
    for of_head in (("--head", "de"), ("--head", "same")) if part == "heads" else ((),):
        scores_what_it_decodes(lab_of(stretto), part, undisturbed(stretto, part), *of_head)


# Of each kind of layers, first weights whose products are not finite; the module that gives them, and the last one before it.
# A gate of an LSTM makes a finite number of an infinite one: there, the logits are infinite too.
OVERFLOWS = {
    "lstm": (("embedding.weight normal std=1e29", "encoder.layers.0.backward.input.weight normal std=1e29",
              "decoder.output.weight normal std=1e29"),
             "encoder.layers.0.backward.input", "encoder.layers.0.forward"),
    "conv": (("decoder.layers.0.block.convolution.bias constant value=1e29",
              "decoder.layers.0.attention.query.gain constant value=1e29"),
             "decoder.layers.0.attention.query", "decoder.layers.0.block"),
    "dynamic_conv": (("decoder.layers.1.convolution.in.bias constant value=1e29",
                      "decoder.layers.1.convolution.filters.weight constant value=1e29"),
                     "decoder.layers.1.convolution.filters", "decoder.layers.1.convolution.in"),
    "heads": (("decoders.de.layers.0.ffn.up.bias constant value=1e29",
               "decoders.de.layers.0.ffn.down.weight constant value=1e29"),
              "decoders.de.layers.0.ffn.down", "decoders.de.layers.0.ffn"),
}


def replays_an_update_that_was_not_finite(stretto, part):
    lab, (weights, module, before) = lab_of(stretto), OVERFLOWS[part]
    said = trained(lab, part, "infinite", f"model.init={json.dumps(weights)}", "train.forensics.policy=stop",
                   "train.forensics.stop_after=1", code=70)
    check(f"first not finite was the output of {module} (forward)" in said, said)
    [report] = (lab.root / f"{part}_infinite/forensics").glob("step_*.json")
    found = json.loads(report.read_text())
    check(found["first"]["name"] == module and found["first"]["kind"] == "output", f"{part}: {found['first']}")
    check(found["first"]["last_finite"] == before, f"{part}: {found['first']}")
    check(found["samples"] and not found["nonfinite_weights"], f"{part}: {found['samples']}, {found['nonfinite_weights']}")

    def replayed(*words):
        result = lab.run([lab.stretto, "replay", str(report), *words])
        check(result.returncode == 0, f"{part}: exit code {result.returncode}: {result.stderr}")
        return result.stdout

    again = json.loads(replayed("--json"))
    check(again["reproduced"] and again["same_tensor"], f"{part}: {again}")
    [trial] = again["trials"]
    check(trial["first"] == found["first"] and trial["samples"] == found["samples"], f"{part}: {trial}")
    check(trial["largest_gradients"] == found["largest_gradients"], f"{part}: {trial}")
    words = {"sample", "source", "target"} | ({"head"} if part == "heads" else set())
    shown = again["sentences"]
    check(shown and all(set(sentence) == words for sentence in shown), f"{part}: {shown}")
    check(all(sentence["sample"] in found["samples"] for sentence in shown), f"{part}: {shown}")
    check(all(sentence.get("head", "de") == "de" for sentence in shown), f"{part}: {shown}")
    text = replayed()
    check(f"as recorded: not finite, first the output of {module} (forward)" in text, text)
    parts = "head: de; source: .*; target: " if part == "heads" else ".* -> "
    check(re.search(f"\nsample {shown[0]['sample']}: {parts}", text) and text.endswith("\nreproduced\n"), text)


# Of each kind of layers: behind recurrent ones, behind convolutions and their attention, and both sides of a pair.
ADAPTED = ("gnmt", "conv", "transformer_lstm")


def trains_adapters_behind_the_weights_of_another_run(stretto, part):
    lab, source = lab_of(stretto), undisturbed(stretto, part)
    last = f"checkpoints/step_{UPDATES:08}"
    words = ("model.adapter.dim=4", "optim.lr=1e-2", f"train.init_from={lab.root}/{source}/{last}")
    said = trained(lab, part, "adapters", *words)
    check("6 adapters of this model are not there" in said, said)
    run = f"{part}_adapters"
    before, after = (tensors_of(lab.root / name / last) for name in (source, run))
    adapters = [name for name in after if ".adapter." in name]
    check(len(adapters) == 6 * 4 and all(any(after[name]) for name in adapters), f"{part}: {adapters}")
    moved = [name for name in before if after[name] != before[name]]
    check(not moved and len(after) == len(before) + len(adapters), f"{part}: {moved} are not frozen, or {sorted(after)}")
    killed_and_resumed(lab, part, run, "killed_adapters", *words)
    scores_what_it_decodes(lab, part, run)


HOLDS = (ends_the_same_after_a_kill, has_the_same_bits_on_two_processes, trains_in_half_precision, decodes_what_it_scores)

# What holds for some parts alone, with their names.
HOLDS_FOR = {replays_an_update_that_was_not_finite: OVERFLOWS, trains_adapters_behind_the_weights_of_another_run: ADAPTED}

if __name__ == "__main__":
    chosen = [(part, holds) for part in PARTS for holds in HOLDS]
    chosen += [(part, holds) for holds, parts in HOLDS_FOR.items() for part in parts]
    main({f"{part}_{holds.__name__}": functools.partial(holds, part=part) for part, holds in chosen})
