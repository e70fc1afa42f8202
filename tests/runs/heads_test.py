#!/usr/bin/env python3
"""A run with two decoders: trained, evaluated, and asked for translations by either. The row `heads` of matrix_test.py has more.

    tests/runs/heads_test.py build/release/stretto [TEST...]
"""
import atexit
import functools
import json
import re
import shutil
import signal

from harness import CONFIG, TIMING, Lab, check, compare, main

TIMING |= {"comm_seconds", "comm_wait_seconds", "processes"}

# The tiny experiment with two heads: `de` has its text, `same` writes the source.
HEADS = CONFIG
for key in ("train_src", "train_tgt", "valid_src", "valid_tgt"):
    HEADS = HEADS.replace(f'{key} = ["{key.replace("_", ".")}"]\n', "")
HEADS = HEADS.replace("decoder = { num_layers = 1, num_heads = 2, ffn_dim = 64 }\n", "") + """
[[model.heads]]
name = "de"
decoder = { num_layers = 1, num_heads = 2, ffn_dim = 64 }
[[model.heads]]
name = "same"
weight = 0.5
decoder = { name = "lstm", num_layers = 1 }
[[data.heads]]
head = "same"
train_src = ["train.src"]
train_tgt = ["train.src"]
valid_src = ["valid.src"]
valid_tgt = ["valid.src"]
repeat = 0.5
[[data.heads]]
head = "de"
train_src = ["train.src"]
train_tgt = ["train.tgt"]
valid_src = ["valid.src"]
valid_tgt = ["valid.tgt"]
"""


# The same from two sources: the second has the words of the first in reverse order.
TWO_SOURCES = HEADS.replace('train_src = ["train.src"]\n', 'train_src = ["train.src"]\ntrain_src2 = ["train.src2"]\n') \
    .replace('valid_src = ["valid.src"]\n', 'valid_src = ["valid.src"]\nvalid_src2 = ["valid.src2"]\n') \
    .replace("encoder = { num_layers = 1, num_heads = 2, ffn_dim = 64 }\n", "") + """
[[model.encoders]]
num_layers = 1
num_heads = 2
ffn_dim = 64
[[model.encoders]]
name = "lstm"
num_layers = 1
"""


def done(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result.stdout


def refused(result, *words):
    check(result.returncode == 2, f"exit code {result.returncode}, expected 2: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"no `{word}` in\n{result.stderr}")


def trained(lab, run="run", *overrides):
    done(lab.train(run, *overrides))
    return str(lab.root / run)


@functools.cache
def shared(stretto):
    """A lab with one run of sixty updates, for tests that only read it."""
    lab = Lab(stretto, HEADS)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    return lab, trained(lab, "run", "train.keep_last=3")


def numbers_of_each_head_stand_in_the_metrics(stretto):
    lab, _ = shared(stretto)
    events = lab.events("run")
    valid = [event for event in events if event["event"] == "valid"]
    for key in ("loss", "nll", "ppl", "de.nll", "de.ppl", "same.nll", "same.ppl"):
        check(key in valid[-1], f"no {key} in {valid[-1]}")
    train = [event for event in events if event["event"] == "train"]
    check(len(train) == 60, f"{len(train)} updates")
    for head in ("de", "same"):
        losses = [event[f"{head}.nll"] for event in train if f"{head}.nll" in event]
        check(len(losses) > 10, f"{head} has {len(losses)} updates")
        check(losses[-1] < losses[0], f"{head} did not learn: {losses[0]} to {losses[-1]}")
    check(all(event["loss"] == event["loss"] for event in train), "a loss is no number")


def r_drop_dropped_words_and_sampled_subwords_are_the_same_in_every_run(stretto):
    few = ("train.max_steps=8", "train.save_every=3", "train.save_in_background=false", "eval.every=4",
           "schedule.warmup_steps=2", "loss.label_smoothing=0", "dist.deterministic=true")
    words = ("model.src_word_dropout=0.1", "model.tgt_word_dropout=0.1")
    alpha = 3
    everything = (*few, *words, f"loss.r_drop={alpha}", "data.src_subword_sampling=0.3", "data.tgt_subword_sampling=0.3")
    with Lab(stretto, HEADS) as lab:
        def events_of(run, *overrides):
            trained(lab, run, *overrides)
            return [[event for event in lab.events(run) if event["event"] == kind] for kind in ("train", "valid")]

        updates, validations = events_of("reference", *everything)
        heads = {("de.nll" in event, "same.nll" in event) for event in updates}
        check(len(updates) == 8 and heads == {(True, False), (True, True)}, f"the test is stale: {updates}")
        for event in updates:  # `kl` is that of both decoders, without weights
            check(event["kl"] > 0 and abs(event["loss"] - event["nll"] - alpha / 2 * event["kl"]) < 1e-5, f"{event}")
        plain, plainly_valid = events_of("plain", *few)
        for event, other in zip(validations, plainly_valid, strict=True):  # one pass over the best sub-words
            check("kl" not in event and abs(event["loss"] - event["nll"]) < 1e-9, f"{event}")
            check(event["target_tokens"] == other["target_tokens"], f"{event} and {other}")
        for event, other in zip(updates, plain, strict=True):  # a sampled sentence has more sub-words than the best
            for side in ("source_tokens", "target_tokens"):
                check(event["batch_hash"] == other["batch_hash"] and event[side] > other[side], f"{event} and {other}")
        dropped, _ = events_of("dropped", *few, *words)
        for head in ("de.nll", "same.nll"):
            event, other = [next(event for event in run if head in event) for run in (dropped, plain)]
            check(event["target_tokens"] == other["target_tokens"] and event[head] != other[head], f"{event} and {other}")
        trained(lab, "again", *everything)
        compare(lab, "reference", "again", "the same once more")
        killed = lab.train("killed", *everything, env={"STRETTO_FAILPOINT": "micro_batch:kill:11"})
        check(killed.returncode == -signal.SIGKILL, f"exit code {killed.returncode}: {killed.stderr}")
        check((lab.root / "killed/checkpoints/step_00000003").exists(), "the test is stale: there is no checkpoint")
        trained(lab, "killed", *everything)
        compare(lab, "reference", "killed", "killed in update 6")
        if shutil.which("mpirun") is None:
            print("        no mpirun: the run was not trained by two processes", flush=True)
            return
        trained(lab, "shared", *everything, "--processes", "2")
        compare(lab, "reference", "shared", "two processes")


def eval_prints_each_head_and_all(stretto):
    lab, run = shared(stretto)
    everything = json.loads(done(lab.run([stretto, "eval", run, "--json"])))
    alone = {head: json.loads(done(lab.run([stretto, "eval", run, "--json", "--head", head]))) for head in ("de", "same")}
    tokens = sum(scores["target_tokens"] for scores in alone.values())
    check(everything["target_tokens"] == tokens, f"{everything['target_tokens']} tokens, {tokens} in all heads")
    for head, scores in alone.items():
        check(everything[f"{head}.nll"] == scores["nll"], f"{head}: {everything} and {scores}")
        check(not any("." in key for key in scores), f"names of heads in {scores}")
    mean = sum(scores["nll"] * scores["target_tokens"] for scores in alone.values()) / tokens
    check(abs(everything["nll"] - mean) < 1e-9, f"nll {everything['nll']}, expected {mean}")
    text = done(lab.run([stretto, "eval", run, "eval.bleu=true"]))
    check(everything["de.set"] == everything["same.set"] == everything["set"] == "valid", f"{everything}")
    for words in ("de.nll ", "same.ppl ", "de.bleu ", "de.set valid", "mean over heads"):
        check(words in text, f"no `{words}` in\n{text}")
    files = ["--src", str(lab.root / "valid.src"), "--tgt", str(lab.root / "valid.tgt")]
    refused(lab.run([stretto, "eval", run, *files]), "--src is for one decoder", "--head")
    refused(lab.run([stretto, "eval", run, "--hypotheses", str(lab.root / "h")]), "--hypotheses is for one decoder")
    refused(lab.run([stretto, "eval", run, "--head", "dee"]), "did you mean de?")
    same_text = json.loads(done(lab.run([stretto, "eval", run, "--json", "--head", "de", *files])))
    check(same_text["nll"] == alone["de"]["nll"], "the same text has another nll")


def scores_of_test_and_validation_text_have_no_mean(stretto):
    with Lab(stretto, HEADS + 'test_src = ["valid.src"]\ntest_tgt = ["valid.tgt"]\n') as lab:
        run = trained(lab, "run", "train.max_steps=20")
        result = lab.run([stretto, "eval", run, "eval.bleu=true", "--json"])
        scores = json.loads(done(result))
        check("bleu" not in scores, f"a mean over sets: {scores}")
        check(scores["set"] == "test,valid" and scores["de.set"] == "test" and scores["same.set"] == "valid", f"{scores}")
        check("de.bleu" in scores and "same.bleu" in scores and "signature" in scores, f"{scores}")
        check("no mean BLEU over heads: there is no test text of same" in result.stderr, result.stderr)
        result = lab.run([stretto, "eval", run, "eval.bleu=true"])
        text = done(result)
        check("BLEU of each head  (" in text and "de.set test" in text and "same.set valid" in text, text)


def infer_takes_one_head(stretto):
    lab, run = shared(stretto)
    lines = (lab.root / "valid.src").read_text()

    def outputs(*words):
        return done(lab.run([stretto, "infer", *words], input=lines)).splitlines()

    by_head = {head: outputs(run, "--head", head) for head in ("de", "same")}
    for head, found in by_head.items():
        check(len(found) == 20, f"{head}: {len(found)} lines")
    check(by_head["de"] != by_head["same"], "both heads write the same")
    refused(lab.run([stretto, "infer", run], input=lines), "several decoders", "its heads are de, same")
    refused(lab.run([stretto, "infer", run, "--head", "sane"], input=lines), "did you mean same?")
    alignments = outputs(run, "--head", "same", "--alignments")
    check(all("\t" in line for line in alignments), f"no alignments: {alignments[0]}")


def ensembles_and_averages_have_all_heads(stretto):
    lab, run = shared(stretto)
    steps = sorted(path.name for path in (lab.root / "run/checkpoints").glob("step_*"))
    lines = (lab.root / "valid.src").read_text()
    both = ",".join(steps[-2:])
    found = done(lab.run([stretto, "infer", run, "--head", "de", "--checkpoint", both], input=lines)).splitlines()
    check(len(found) == 20, f"{len(found)} lines")
    done(lab.run([stretto, "average", run, "--last", "2"]))


def two_sources_reach_either_head(stretto):
    check("[[model.encoders]]" in TWO_SOURCES and TWO_SOURCES.count("src2") == 8, f"the test is stale: {TWO_SOURCES}")
    with Lab(stretto, TWO_SOURCES) as lab:
        for name in ("train", "valid"):
            lines = (lab.root / f"{name}.src").read_text().splitlines()
            (lab.root / f"{name}.src2").write_text("".join(" ".join(reversed(line.split())) + "\n" for line in lines))
        done(lab.run([stretto, "check", str(lab.config)]))
        run = trained(lab)
        losses = [event["loss"] for event in lab.events("run") if event["event"] == "train"]
        check(losses[-1] < losses[0], f"the loss does not fall: {losses}")
        scores = json.loads(done(lab.run([stretto, "eval", run, "--json"])))
        check("de.nll" in scores and "same.nll" in scores, f"{scores}")
        first, second = [(lab.root / f"valid.{name}").read_text() for name in ("src", "src2")]

        def outputs(head, other):
            (lab.root / "other").write_text(other)
            return done(lab.run([stretto, "infer", run, "--head", head, "--src2", str(lab.root / "other"), "--json"],
                                input=first)).splitlines()

        for head in ("de", "same"):
            found = outputs(head, second)
            check(len(found) == 20, f"{head}: {len(found)} lines")
            check(found != outputs(head, first), f"{head} does not read the second source")
        lab.config.write_text(TWO_SOURCES.replace('valid_src2 = ["valid.src2"]\n', "", 1))
        refused(lab.run([stretto, "check", str(lab.config)]), "valid_src2", "a model of two encoders needs a second source")


def a_run_with_one_decoder_has_no_heads(stretto):
    with Lab(stretto) as lab:
        run = trained(lab)
        refused(lab.run([stretto, "infer", run, "--head", "de"], input="a\n"), "the run has one decoder")
        refused(lab.run([stretto, "eval", run, "--head", "de"]), "the run has one decoder")


def weights_of_one_decoder_begin_several_as_the_advice_says(stretto):
    with Lab(stretto, HEADS) as lab:
        trained(lab, "several", "train.max_steps=20")
        heads = lab.config
        lab.config = lab.root / "one.toml"
        lab.config.write_text(CONFIG)
        trained(lab, "one", "train.max_steps=20")

        def advised(run, other, config, entry):
            lab.config = config
            overrides = ("train.max_steps=20", f"train.init_from={lab.root}/{other}")
            result = lab.train(run, *overrides)
            check(result.returncode == 65, f"exit code {result.returncode}: {result.stderr}")
            checked = lab.run([stretto, "check", str(config), *overrides])
            found = re.search(r"train\.init_only = (\[.*?\])", result.stderr)
            check(found and f'"{entry}"' in found[1], f"no `{entry}` in\n{result.stderr}")
            check(found[0] in checked.stdout + checked.stderr, f"{checked.stdout}{checked.stderr}")
            done(lab.train(run, *overrides, f"train.init_only={found[1]}"))

        advised("two", "one", heads, "decoders.de.* = decoder.*")
        advised("single", "several", lab.root / "one.toml", "decoder.* = decoders.de.*")


def mistakes_are_told_at_once(stretto):
    wrong = HEADS.replace('head = "same"', 'head = "sane"').replace('name = "de"\n', 'name = "d.e"\n', 1)
    with Lab(stretto, wrong) as lab:
        refused(lab.run([stretto, "check", str(lab.config)]), "there is no head `sane`", "did you mean same?",
                "`d.e` is no name of a head")


TESTS = (numbers_of_each_head_stand_in_the_metrics,
         r_drop_dropped_words_and_sampled_subwords_are_the_same_in_every_run, eval_prints_each_head_and_all,
         scores_of_test_and_validation_text_have_no_mean, infer_takes_one_head, ensembles_and_averages_have_all_heads,
         two_sources_reach_either_head,
         a_run_with_one_decoder_has_no_heads, weights_of_one_decoder_begin_several_as_the_advice_says,
         mistakes_are_told_at_once)

if __name__ == "__main__":
    main({test.__name__: test for test in TESTS})
