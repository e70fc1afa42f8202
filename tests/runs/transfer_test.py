#!/usr/bin/env python3
"""A classifier of texts begins with the stack of a language model, and answers every command.

    tests/runs/transfer_test.py build/release/stretto [TEST...]
"""
import json
import random
import re

from harness import Lab, check, main

from matrix.bench import bytes_of

COMMON = """
[run]
seed = 3
threads = 1
device = "cpu"
[optim]
name = "adamw"
lr = 3e-3
[schedule]
warmup_steps = 2
[train]
max_steps = 20
save_every = 10
[eval]
every = 10
[report]
every = 1
tensorboard = false
"""
LANGUAGE = COMMON + """
[task]
name = "language_model"
[data]
train = ["train.txt"]
valid = ["train.txt"]
format = "lines"
lanes = 4
bptt = 10
max_text_tokens = 16
cache_dir = "cache"
"""
KINDS = {
    "transformer": """
[tokenizer]
type = "byte_bpe"
vocab_size = 280
[model]
preset = "none"
num_layers = 2
d_model = 16
num_heads = 2
max_positions = 40
tie_embeddings = false
""",
    "lstm": """
[tokenizer]
type = "word"
vocab_size = 60
[model]
name = "lstm"
num_layers = 2
d_model = 16
hidden_dim = 20
""",
}
LABELS = COMMON + """
[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["train.tsv"]
max_text_tokens = 24
max_tokens = 240
cache_dir = "cache"
"""
STACK = 'train.freeze=["decoder.*"]'


def succeeded(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result.stderr


def refused(result, code, *words):
    check(result.returncode == code and all(word in result.stderr for word in words), f"{result.returncode}: {result.stderr}")


def lab_of(program):
    lab = Lab(program, LABELS)
    generator = random.Random(1)
    rows, lines = ["text\tlabel"], []
    for _ in range(120):
        who, good = generator.choice(("anna", "ben", "the dog")), generator.random() < 0.5
        text = f"{who} likes {generator.choice(('cake', 'bread') if good else ('rain', 'noise'))}"
        rows.append(f"{text}\t{'good' if good else 'bad'}")
        lines.append(text)
    (lab.root / "train.tsv").write_text("\n".join(rows) + "\n")
    (lab.root / "train.txt").write_text("\n".join(lines) + "\n")
    return lab


def language_model(lab, kind, *changes):
    """A run of one, and the word that begins with it."""
    labels, lab.config = lab.config, lab.root / f"{kind}.toml"
    lab.config.write_text(LANGUAGE + KINDS[kind])
    succeeded(lab.train(f"{kind}_lm", *changes))
    lab.config = labels
    return f"train.init_from={lab.root}/{kind}_lm"


def last(lab, run):
    return bytes_of(lab.root / run / "checkpoints/step_00000020")


def listed(said, begin):
    found = re.findall(rf"  {begin}: (.*)", said)
    check(len(found) == 1, f"not one line of `{begin}`: {said}")
    return set(found[0].split(", "))


def a_stack_is_taken_bit_for_bit_and_the_head_is_new(stretto):
    left = {"transformer": {"output.weight"}, "lstm": {"output.bias"}}
    with lab_of(stretto) as lab:
        for kind in KINDS:
            begin = language_model(lab, kind)
            succeeded(lab.run([stretto, "check", str(lab.config), begin]))
            said = succeeded(lab.train(kind, begin, STACK, "model.pooling=concat", "model.head_units=6"))
            check(f"keys of [model] that are not given are those of {lab.root}/{kind}_lm" in said, said)
            check(listed(said, "begin anew") == {f"head.{layer}.{part}" for layer in ("hidden", "output") for part in ("weight", "bias")}, said)
            check(listed(said, "left there") == left[kind], said)
            before, after = last(lab, f"{kind}_lm"), last(lab, kind)
            stack = {name for name in before if name.startswith("decoder.")}
            check(stack == {name for name in after if name.startswith("decoder.")}, f"{sorted(after)}")
            check(all(before[name] == after[name] for name in stack), f"{kind}: other weights")
            config = (lab.root / kind / "config.toml").read_text()
            check(f'name = "{kind}"' in config and 'pooling = "concat"' in config, config)


def a_folder_of_transformers_stands_for_a_run(stretto):
    with lab_of(stretto) as lab:
        language_model(lab, "transformer")
        folder = str(lab.root / "gpt2")
        succeeded(lab.run([stretto, "export", str(lab.root / "transformer_lm"), "--format", "hf", folder]))
        begin = f"train.init_from={folder}"
        succeeded(lab.run([stretto, "check", str(lab.config), begin]))
        said = succeeded(lab.train("run", begin, STACK))
        check("imported GPT2LMHeadModel" in said and listed(said, "left there") == {"output.weight"}, said)
        before, after = last(lab, "transformer_lm"), last(lab, "run")
        layers = {name for name in before if name.startswith("decoder.layers.")}
        check(layers and all(before[name] == after[name] for name in layers), f"{sorted(after)}")


def a_run_answers_every_command(stretto):
    with lab_of(stretto) as lab:
        begin = language_model(lab, "lstm")
        succeeded(lab.train("run", begin))
        run = str(lab.root / "run")
        scores = json.loads(lab.run([stretto, "eval", run, "--json"]).stdout)
        check(0 <= scores["accuracy"] <= 1 and scores["samples"] == 120, scores)
        lines = "anna likes cake\nben likes rain\n\n"
        out = lab.run([stretto, "infer", run, "--scores"], input=lines)
        check(out.returncode == 0 and out.stdout.count("\n") == 3, out.stdout + out.stderr)
        # Lines by themselves, and behind others.
        alone = lab.run([stretto, "infer", run, "--scores"], input="ben likes rain\n")
        check(alone.stdout.splitlines()[0] == out.stdout.splitlines()[1], alone.stdout + out.stdout)
        vectors = lab.run([stretto, "embed", run], input="anna likes cake\nben likes rain\n")
        check(vectors.returncode == 0 and len(json.loads(vectors.stdout.splitlines()[0])) == 16, vectors.stdout + vectors.stderr)
        refused(lab.run([stretto, "embed", run, "--pooling", "cls"], input="anna likes cake\n"), 2, "--pooling cls")
        refused(lab.run([stretto, "export", run, "--format", "hf", str(lab.root / "folder")]), 2, "model.name", "language model")
        check(not (lab.root / "folder").exists(), "a folder was written")
        succeeded(lab.run([stretto, "report", run]))
        # The run is whole: what it began with may go.
        (lab.root / "lstm_lm").rename(lab.root / "gone")
        said = succeeded(lab.train("run", begin, "train.max_steps=24"))
        check("resuming from the checkpoint of step 20" in said, said)


def a_normed_head_goes_on_with_its_running_statistics(stretto):
    """Which are those of a run that was not stopped; a line has the same answer alone and behind others."""
    with lab_of(stretto) as lab:
        begin = language_model(lab, "lstm")
        head = (begin, "model.pooling=concat", "model.head_units=6", "model.head_norm=batch_norm")
        said = succeeded(lab.train("whole", *head))
        check("head.hidden_norm.weight" in listed(said, "begin anew"), said)
        succeeded(lab.train("stopped", *head, "--until", "10"))
        succeeded(lab.train("stopped", *head))
        whole, stopped = last(lab, "whole"), last(lab, "stopped")
        check(whole == stopped, f"{sorted(name for name in whole if whole[name] != stopped.get(name))}")
        check(any(whole["head.norm.running_mean"]) and "head.hidden_norm.running_var" in whole, f"{sorted(whole)}")
        run = str(lab.root / "whole")
        together = lab.run([stretto, "infer", run, "--scores"], input="anna likes cake\nben likes rain\n")
        alone = lab.run([stretto, "infer", run, "--scores"], input="ben likes rain\n")
        check(alone.stdout and alone.stdout.splitlines()[0] == together.stdout.splitlines()[1], alone.stdout + together.stdout)
        begin_again = (f"train.init_from={run}", "train.max_steps=3")
        succeeded(lab.train("again", *begin_again))
        refused(lab.train("other", *begin_again, "model.head_norm=none"), 2, "model.head_norm")


def layers_train_later_and_by_rates_of_their_own(stretto):
    with lab_of(stretto) as lab:
        begin = language_model(lab, "lstm")
        late = 'train.unfreeze=["decoder.layers.1.* 5", "decoder.layers.0.* 10", "decoder.* 15"]'
        said = succeeded(lab.train("run", begin, late, "optim.layer_decay=0.385", "train.save_every=5", "train.keep_last=9"))
        check("0.385: decoder.layers.1" in said, said)
        at = [bytes_of(lab.root / f"run/checkpoints/step_{step:08}") for step in (5, 10, 15, 20)]
        moved = [{name for name in before if before[name] != after[name]} for before, after in zip(at, at[1:])]
        top, bottom = ({name for name in at[0] if name.startswith(f"decoder.layers.{layer}.")} for layer in (1, 0))
        check(top and top <= moved[0] and not bottom & moved[0], f"of layers the upper one trains from update 5 on: {moved[0]}")
        check(bottom and bottom <= moved[1], f"the lower one trains from update 10 on: {moved[1]}")
        check(["decoder.embedding.weight" in names for names in moved] == [False, False, True], f"the table from 15 on: {moved}")


def what_does_not_fit_is_refused(stretto):
    with lab_of(stretto) as lab:
        begin = language_model(lab, "lstm")
        refused(lab.train("run", begin, "model.name=bert"), 2, 'model.name: "lstm" there, "bert" here')
        refused(lab.train("run", begin, "model.hidden_dim=24"), 65, "decoder.layers.0")
        (lab.root / "words.txt").write_text("\n".join(["anna", "likes", "rain", "noise"]) + "\n")
        refused(lab.train("run", begin, "tokenizer.type=word", f"tokenizer.model={lab.root}/words.txt"), 2, "another tokenizer")
        refused(lab.train("run", begin, "model.pooling=cls"), 2, "model.pooling")
        gpt = language_model(lab, "transformer")
        refused(lab.train("run", gpt, "data.max_text_tokens=64"), 2, "40 learned positions")
        labels, lab.config = lab.config, lab.root / "masked.toml"
        lab.config.write_text(COMMON + '[task]\nname = "masked_lm"\n[data]\ntrain = ["train.txt"]\nvalid = ["train.txt"]\n'
                              'documents = "line"\nmax_text_tokens = 24\nmax_unknown = 1\ncache_dir = "cache"\n'
                              '[model]\npreset = "tiny"\n[tokenizer]\nvocab_size = 60\n')
        masked = lab.train("masked", "train.max_steps=3")
        lab.config = labels
        succeeded(masked)
        refused(lab.train("run", f"train.init_from={lab.root}/masked", "model.name=lstm", "model.d_model=16"), 65, "decoder.")
        check(not (lab.root / "run").exists(), "a run folder was made")


def pairs_of(lab):
    lab.config = lab.root / "pairs.toml"
    lab.config.write_text(COMMON + '[data]\ntrain_src = ["train.src"]\ntrain_tgt = ["train.tgt"]\nvalid_src = ["valid.src"]\n'
                          'valid_tgt = ["valid.tgt"]\nmax_src_tokens = 36\nmax_tgt_tokens = 36\ncache_dir = "cache"\n')


def has_layers_of(lab, kind, anew, least):
    """Both parts of the run `pairs` have all layers of the language model, but for what begins anew."""
    before, after = last(lab, f"{kind}_lm"), bytes_of(lab.root / "pairs/checkpoints/step_00000003")
    for part in ("encoder", "decoder"):
        names = {name: f"decoder.{name.partition('.')[2]}" for name in after
                 if name.startswith(f"{part}.layers.") and anew not in name}
        check(len(names) >= least and all(after[own] == before[there] for own, there in names.items()), f"{part}: {sorted(after)}")


def parts_of_a_translation_model_begin_with_its_layers(stretto):
    with lab_of(stretto) as lab:
        begin = language_model(lab, "transformer")
        pairs_of(lab)
        said = lab.train("all", begin)
        refused(said, 2, 'task.name: "language_model" there, "translation" here', "train.init_only")
        said = succeeded(lab.train("pairs", begin, 'train.init_only=["decoder.*", "encoder.* = decoder.*"]', "train.max_steps=3",
                                   "eval.bleu=false", "model.dropout=0", 'train.freeze=["*.layers.*"]'))
        check("belong to another model" not in said, said)
        check("cross_attention" in said and "begin anew" in said, said)
        has_layers_of(lab, "transformer", "cross_", 9)


def recurrent_parts_begin_with_its_layers(stretto):
    with lab_of(stretto) as lab:
        begin = language_model(lab, "lstm", "tokenizer.type=byte_bpe", "tokenizer.vocab_size=280", "model.hidden_dim=16")
        pairs_of(lab)
        begin_parts = [begin, 'train.init_only=["decoder.*", "encoder.* = decoder.*"]', "train.max_steps=3", "eval.bleu=false",
                       'train.freeze=["*.layers.*"]']
        said = succeeded(lab.train("pairs", *begin_parts))
        check("belong to another model" not in said, said)
        check("decoder.layers.0.context.weight" in said and "begin anew" in said, said)
        has_layers_of(lab, "lstm", "context", 6)
        config = (lab.root / "pairs/config.toml").read_text()
        check('context_to = "first"' in config and "bidirectional = false" in config, config)
        said = lab.train("all", *begin_parts, "model.decoder.name=lstm", "model.decoder.context_to=gnmt_v2")
        refused(said, 65, "decoder.layers.1.input.weight",
                'the models differ in model.decoder.context_to: "first" there, "gnmt_v2" here')


def pieces_that_both_have_keep_their_rows(stretto):
    """A tokenizer of its own, with the rows of the language model's words."""
    with lab_of(stretto) as lab:
        begin = language_model(lab, "lstm")
        said = succeeded(lab.train("run", begin, "train.init_vocabulary=match", "tokenizer.type=word", "tokenizer.vocab_size=50"))
        check("keep their rows" in said, said)


if __name__ == "__main__":
    helpers = {"bytes_of", "has_layers_of", "lab_of", "language_model", "last", "listed", "pairs_of", "refused", "succeeded"}
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in helpers})
