#!/usr/bin/env python3
"""A run by a published recipe is silent: whatever training warned of would be a false alarm.

    tests/runs/published_test.py build/release/stretto [TEST...]

The recipes of configs/ keep what their papers say of optimizer, schedule and batches; model and data are small ones. Those that fine-tune
begin with a model that was pretrained for a few updates, since gradients that are small at first and grow were taken for spikes.
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
SMALL = ("model.preset=none", "model.num_layers=2", "model.d_model=32", "model.num_heads=2", "model.ffn_dim=64", "model.max_positions=64")


def files(folder, **splits):
    """Overrides of the files of [data]: {train: "train.tsv"} of build/FOLDER."""
    return tuple(f"data.{key}={json.dumps([str(ROOT / 'build' / folder / name)] if name else [])}" for key, name in splits.items())


PORTRAITS = (*files("portraits", train="train.json", valid="valid.json", test=""), "data.max_text_tokens=56", "data.stride=20",
             "data.max_question_tokens=16")
REVIEWS = (*files("reviews", train="train.tsv", valid="valid.tsv", test=""), "data.text=text", "data.max_text_tokens=48")
BOOKS = (*files("phrasebook", train="train.en", valid="valid.en", test=""), "data.documents=line", "data.packing=document",
         "data.max_text_tokens=48", "data.max_tokens=2000")

# Recipe -> overrides of its data, and of its model where it is not fine-tuned.
OVERRIDES = {
    "text_classification/sst2_bert_base": (*REVIEWS, "data.label=label"),
    # Pairs of texts: a text is its own second one. The model is BERT's, as it was pretrained.
    "text_classification/mnli_roberta_base": (*REVIEWS, "data.text2=text", "data.label=label", "data.skipped_label=mixed",
                                              "model.norm_epsilon=1e-12"),
    **{f"question_answering/{path.stem}": PORTRAITS for path in sorted((ROOT / "configs/question_answering").glob("*.toml"))},
    **{f"masked_lm/{path.stem}": (*BOOKS, *SMALL, "tokenizer.vocab_size=600", "train.update_freq=4")
       for path in sorted((ROOT / "configs/masked_lm").glob("*.toml"))},
}
IN_CI = ["text_classification/sst2_bert_base", "text_classification/mnli_roberta_base", "question_answering/squad_bert_base",
         "masked_lm/roberta_12x768"]


def trained(lab, name, run, *overrides, until=UPDATES):
    """The events of a run that pauses after so many updates."""
    result = lab.run([lab.stretto, "train", str(ROOT / f"configs/{name}.toml"), "--run", str(lab.root / run), "--until", str(until),
                      "run.threads=1", "report.html=false", "report.every=1", *overrides])
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return lab.events(run)


@functools.cache
def pretrained(stretto):
    """A lab with a run `pretrained`, which tests share."""
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    trained(lab, "smoke/masked_lm", "pretrained", *SMALL, "model.num_segments=2", until=30)
    return lab


def trains_in_silence(stretto, name):
    lab = pretrained(stretto)
    begin = () if name.startswith("masked_lm/") else (*SMALL, "model.num_segments=2", f"train.init_from={lab.root}/pretrained")
    events = trained(lab, name, name.replace("/", "_"), *begin, *OVERRIDES[name])
    made = [event for event in events if event["event"] == "train"]
    check(len(made) == UPDATES, f"{len(made)} updates, not {UPDATES}")
    check_no_warning(events)


if __name__ == "__main__":
    main({f"{name.replace('/', '_')}_trains_in_silence": functools.partial(trains_in_silence, name=name)
          for name in full_or(OVERRIDES, IN_CI)})
