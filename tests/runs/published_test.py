#!/usr/bin/env python3
"""A run by a published recipe is silent: whatever training warned of would be a false alarm.

    tests/runs/published_test.py build/release/stretto [TEST...]

The recipes of configs/ keep what their papers say of optimizer, schedule and batches; model and data are small ones. Those that fine-tune
begin with a model that was pretrained for a few updates, since gradients that are small at first and grow were taken for spikes. Those
that begin with another recipe's run begin with a run of that recipe here too.
CI trains one recipe of each kind; with STRETTO_TESTS_FULL=1 all are trained. The smoke recipes are looked at in smoke_test.py.
"""
import atexit
import functools
import json
import pathlib
import shutil
import tempfile

from harness import Lab, check, check_no_warning, full_or, main

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UPDATES = 75  # of which the shortest recipe has no more
SECONDS = 600  # an update of the largest batch is a hundred small ones
SMALL = ("model.preset=none", "model.num_layers=2", "model.d_model=32", "model.num_heads=2", "model.ffn_dim=64", "model.max_positions=64")


def files(folder, **splits):
    """Overrides of the files of [data]: {train: "train.tsv"} of build/FOLDER."""
    return tuple(f"data.{key}={json.dumps([str(ROOT / 'build' / folder / name)] if name else [])}" for key, name in splits.items())


PORTRAITS = (*files("portraits", train="train.json", valid="valid.json", test=""), "data.max_text_tokens=56", "data.stride=20",
             "data.max_question_tokens=16")
REVIEWS = (*files("reviews", train="train.tsv", valid="valid.tsv", test=""), "data.text=text", "data.max_text_tokens=48")
LINES = files("phrasebook", train="train.en", valid="valid.en", test="")
BOOKS = (*files("phrasebook", train="train.en", valid="valid.en", test=""), "data.documents=line", "data.packing=document",
         "data.max_text_tokens=48", "data.max_tokens=2000")

# Lanes of the length that the text allows for.
LANES = (*LINES, "data.lanes=16", "data.bptt=24", "eval.lanes=4", "tokenizer.vocab_size=1500")
SMALL_LSTM = ("model.num_layers=3", "model.d_model=32", "model.hidden_dim=64")
SMALL_GPT = ("model.preset=none", "model.num_layers=2", "model.d_model=32", "model.num_heads=2", "model.ffn_dim=64", "model.max_positions=64",
             "data.max_text_tokens=64", "data.max_tokens=768", "train.precision=fp32")
# Their texts are short, and so are their batches.
RATED = (*REVIEWS, "data.label=label", "data.header=true", "data.max_tokens=4112", "tokenizer.vocab_size=1500", "data.max_unknown=1")
PAIRS = (*(f"data.{part}_{side}={json.dumps([str(ROOT / 'build/phrasebook' / f'{part}.{ending}')])}" for part in ("train", "valid")
           for side, ending in (("src", "en"), ("tgt", "fr"))), "data.test_src=[]", "data.test_tgt=[]", "data.max_tokens=1500",
         "data.max_src_tokens=100", "data.max_tgt_tokens=100", "tokenizer.type=sentencepiece", "tokenizer.vocab_size=600", "train.update_freq=2",
         "train.precision=fp32", "eval.bleu=false", "model.d_model=32")


def parts(encoder, decoder):
    """Overrides of both parts of a translation model."""
    return tuple(f"model.{side}.{key}" for side, keys in (("encoder", encoder), ("decoder", decoder)) for key in keys)


STACK = ("num_layers=2", "num_heads=2", "ffn_dim=64")
LSTM = ("num_layers=3", "hidden_dim=32")
CONV = ("num_layers=2", "kernels=[3]", "channels=[32]")
LIGHT = ("num_layers=2", "num_heads=2", "kernels=[3, 7]", "ffn_dim=64")
TWO_LAYERS = ("num_layers=2", "hidden_dim=32")
# What the parts of each translation recipe are; the others have two stacks of a Transformer.
PARTS = {"convs2s": parts(CONV, CONV), "gnmt_small": parts(TWO_LAYERS, TWO_LAYERS), "gnmt": parts(LSTM, LSTM),
         "lightconv": parts(LIGHT, LIGHT), "dynamicconv": parts(LIGHT, LIGHT), "lstm_transformer": parts(("num_layers=3",), STACK),
         "transformer_lstm": parts(STACK, LSTM)}


def of_pairs(name):
    kind = next((kind for kind in PARTS if kind in name), None)
    vocabulary = ("tokenizer.src_vocab=", "tokenizer.vocab_multiple=8") if name.startswith("wmt") else ()
    tables = ("data.train_tsv=[]", "data.valid_tsv=[]", "data.test_tsv=[]") if name.startswith("tatoeba") else ()
    return (*PAIRS, *vocabulary, *tables, *(PARTS[kind] if kind else parts(STACK, STACK)))


# Recipe -> the recipe with whose run it begins.
BEGINS = {"sentiment/imdb_language_model": "language_model/wikitext2_awd_lstm", "sentiment/imdb_transfer": "language_model/wikitext2_openseq2seq",
          "sentiment/imdb_ulmfit": "sentiment/imdb_language_model", "sentiment/sst2_language_model": "sentiment/wikitext2_small",
          "sentiment/sst2_transfer": "sentiment/wikitext2_small", "sentiment/sst2_ulmfit": "sentiment/sst2_language_model"}

# Recipe -> overrides of its data, and of its model where it is not fine-tuned.
OVERRIDES = {
    "text_classification/sst2_bert_base": (*REVIEWS, "data.label=label"),
    # Pairs of texts: a text is its own second one. The model is BERT's, as it was pretrained.
    "text_classification/mnli_roberta_base": (*REVIEWS, "data.text2=text", "data.label=label", "data.skipped_label=mixed",
                                              "model.norm_epsilon=1e-12"),
    **{f"question_answering/{path.stem}": PORTRAITS for path in sorted((ROOT / "configs/question_answering").glob("*.toml"))},
    **{f"masked_lm/{path.stem}": (*BOOKS, *SMALL, "tokenizer.vocab_size=600", "train.update_freq=4")
       for path in sorted((ROOT / "configs/masked_lm").glob("*.toml"))},
    "language_model/gpt2_small": (*LINES, "data.documents=file", "tokenizer.vocab_size=600", *SMALL_GPT, "train.update_freq=4"),
    **{f"language_model/{name}": (*LINES, *SMALL_GPT) for name in ("shakespeare_char", "shakespeare_char_cpu", "shakespeare_char_modern")},
    **{f"language_model/{name}": (*LANES, *SMALL_LSTM)
       for name in ("ptb_awd_lstm", "ptb_lstm_200", "wikitext2_awd_lstm", "wikitext2_lstm_650", "wikitext2_openseq2seq")},
    "language_model/wikitext103_openseq2seq": (*LANES, *SMALL_LSTM, "loss.sampled_tokens=64", "train.precision=fp32"),
    "language_model/wikitext103_adaptive": (*LANES, *SMALL_LSTM, "model.adaptive_softmax.cutoffs=[100, 400]", "train.precision=fp32"),
    **{f"sentiment/{name}": (*LANES, *SMALL_LSTM) for name in ("imdb_language_model", "sst2_language_model", "wikitext2_small")},
    **{f"sentiment/{name}": (*RATED, *SMALL_LSTM)
       for name in ("imdb_lstm", "imdb_transfer", "imdb_ulmfit", "sst2_lstm", "sst2_transfer", "sst2_ulmfit")},
    **{f"translation/{path.stem}": of_pairs(path.stem) for path in sorted((ROOT / "configs/translation").glob("*.toml"))},
}
IN_CI = ["text_classification/sst2_bert_base", "text_classification/mnli_roberta_base", "question_answering/squad_bert_base",
         "masked_lm/roberta_12x768", "language_model/wikitext2_awd_lstm", "sentiment/sst2_transfer", "translation/multi30k_gnmt"]


def trained(lab, name, run, *overrides, until=UPDATES):
    """The events of a run that pauses after so many updates."""
    result = lab.run([lab.stretto, "train", str(ROOT / f"configs/{name}.toml"), "--run", str(lab.root / run), "--until", str(until),
                      "run.threads=1", "report.html=false", "report.every=1", *overrides], timeout=SECONDS)
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return lab.events(run)


@functools.cache
def pretrained(stretto):
    """A lab with a run `pretrained`, which tests share."""
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    trained(lab, "smoke/masked_lm", "pretrained", *SMALL, "model.num_segments=2", until=30)
    return lab


@functools.cache
def events_of(stretto, name):
    """Of a run of the recipe, which another one may begin with."""
    lab, begin = pretrained(stretto), ()
    if name.startswith(("text_classification/", "question_answering/")):
        begin = (*SMALL, "model.num_segments=2", f"train.init_from={lab.root}/pretrained")
    elif name in BEGINS:
        events_of(stretto, BEGINS[name])
        begin = (f"train.init_from={lab.root / BEGINS[name].replace('/', '_')}",)
    return trained(lab, name, name.replace("/", "_"), *begin, *OVERRIDES[name])


def no_recipe_of_these_folders_is_forgotten(_):
    folders = sorted({name.partition("/")[0] for name in OVERRIDES})
    recipes = {f"{folder}/{path.stem}" for folder in folders for path in (ROOT / "configs" / folder).glob("*.toml")}
    check(set(OVERRIDES) == recipes, f"{sorted(set(OVERRIDES) ^ recipes)}")


def a_short_run_of_a_language_model_is_recorded_often(stretto):
    """By default the first update, and as many as leave some 200 points, whether updates or epochs end the run."""
    lab, recipe = pretrained(stretto), "language_model/ptb_lstm_200"
    for run, words, length in (("steps", ("train.max_steps=30",), 30), ("epoch", ("train.max_epochs=1", "data.bptt=32"), None)):
        events = trained(lab, recipe, run, *OVERRIDES[recipe], *words, "report.every=0", until=10**6)
        steps = [event["step"] for event in events if event["event"] == "train"]
        every = steps[2] - steps[1]
        check(steps[0] == 1 and steps[1:] == [step for step in range(2, steps[-1] + 1) if step % every == 0], f"{run}: {steps}")
        check(steps == list(range(1, length + 1)) if length else every > 1 and 200 <= len(steps) <= 400, f"{run}: {len(steps)} points")


def trains_in_silence(stretto, name):
    events = events_of(stretto, name)
    made = [event for event in events if event["event"] == "train"]
    check(len(made) == UPDATES, f"{len(made)} updates, not {UPDATES}")
    check_no_warning(events)


if __name__ == "__main__":
    main({test.__name__: test for test in (no_recipe_of_these_folders_is_forgotten, a_short_run_of_a_language_model_is_recorded_often)} |
         {f"{name.replace('/', '_')}_trains_in_silence": functools.partial(trains_in_silence, name=name)
          for name in full_or(OVERRIDES, IN_CI)})
