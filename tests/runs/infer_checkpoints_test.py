#!/usr/bin/env python3
"""Which checkpoints of a run are taken, alone or as an ensemble, damaged or not, and what goes on from them.

    tests/runs/infer_checkpoints_test.py build/release/stretto [TEST...]
"""
import hashlib
import json
import math

from harness import Lab, check, full_or, main
from trained_run import OVERRIDES, PHRASEBOOK, ROOT, call, copy_of_the_run, evaluate, fail, infer, source, succeed, trained


# --- names

def checkpoints_have_names(stretto):
    with copy_of_the_run(stretto) as run:
        succeed(call(stretto, "average", run, "--last", "2"))
        text = source(20)
        said = {name: succeed(call(stretto, "infer", run, "--checkpoint", name, "--scores", data=text))
                for name in ("best", "150", "step_00000150", "last", "200", "averaged")}
        check(said["best"] == said["150"] == said["step_00000150"], "three names of one checkpoint")
        check(said["last"] == said["200"], "two names of the last")
        check(len(set(said.values())) == 3, "three checkpoints")
        check(succeed(call(stretto, "infer", run, "--scores", data=text)) == said["best"], "best without a name")
        fail(call(stretto, "infer", run, "--checkpoint", "7", data=b""), 2, "`7`", "averaged", "step_00000200")


def several_checkpoints_are_an_ensemble(stretto):
    nll = {name: evaluate(stretto, "--checkpoint", name)["nll"] for name in ("50", "100", "50,100", "100,100")}
    # -log is convex: the mean of probabilities does better than the mean of losses, at worst by log 2 than the best alone.
    mean, best = (nll["50"] + nll["100"]) / 2, min(nll["50"], nll["100"])
    check(best < nll["50,100"] < min(mean, best + math.log(2)), f"not the mean of its members' probabilities: {nll}")
    check(abs(nll["100,100"] - nll["100"]) < 1e-5, f"twice the same is not the same: {nll}")
    text = source(20)
    alone = infer(stretto, "--checkpoint", "100", "--scores", data=text)
    check(infer(stretto, "--checkpoint", "100,100", "--scores", data=text) == alone, "twice the same is not the same")
    both = infer(stretto, "--checkpoint", "50,100", "--scores", data=text)
    check(both != alone and both.count("\n") == 20, "the second member does not show")
    check(infer(stretto, "--checkpoint", "100,50", "--scores", data=text) == both, "members have no order")


# --- damage

def damage(run, step):
    path = run / f"checkpoints/step_{step:08d}/model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def listing(run):
    """Everything under checkpoints: name, when it was written, content."""
    found = {}
    for path in sorted((run / "checkpoints").rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        found[str(path.relative_to(run))] = (path.stat().st_mtime_ns, path.stat().st_ino, content)
    return found


def a_damaged_best_gives_way_to_the_last_unless_it_was_named(stretto):
    with copy_of_the_run(stretto) as run:
        damage(run, 150)
        told = call(stretto, "eval", run, "--json")
        check(json.loads(succeed(told))["checkpoint"] == "step_00000200", f"{told.stdout}")
        check("step_00000150" in told.stderr and "model.safetensors" in told.stderr, f"no warning: {told.stderr}")
        last = infer(stretto, "--checkpoint", "200", data=source(5))
        check(succeed(call(stretto, "infer", run, data=source(5))) == last, "another checkpoint than the last")
        commands = (("eval", run), ("infer", run))
        for number, name in enumerate(("best", "150", "100,150")):
            for command in full_or(commands, commands[number % 2:][:1]):
                fail(call(stretto, *command, "--checkpoint", name, data=source(1)), 65, "step_00000150", "damaged")
        for step in (50, 100, 200):
            damage(run, step)
        fail(call(stretto, "eval", run), 65, "none of its 4 checkpoints")


def eval_and_infer_never_touch_the_checkpoints(stretto):
    with copy_of_the_run(stretto) as run:
        (run / "checkpoints/.tmp-step_00000250-1-0").mkdir()  # as a killed process leaves it
        for place, broken in enumerate(((), (150,), (200,))):
            for step in broken:
                damage(run, step)
            before = listing(run)
            for number, words in enumerate(((), ("--checkpoint", "last"), ("--checkpoint", "best"), ("--checkpoint", "50,200"))):
                for command in full_or(("eval", "infer"), (("eval", "infer")[(number + place) % 2],)):
                    call(stretto, command, run, *words, data=source(2))
            check(listing(run) == before, f"changed, with {broken} damaged")


# --- tokenizers

def swap_tokenizer(stretto, run):
    """Puts another model of the same size into the run; the SHA-256 of both."""
    [path] = (run / "tokenizer").iterdir()
    before = path.read_bytes()
    other = run.parent / "other.model"
    succeed(call(stretto, "tokenizer", "train", "--vocab-size", "600", "--output", other, PHRASEBOOK / "train.fr",
                 PHRASEBOOK / "valid.en"))
    check(other.read_bytes() != before, "the other tokenizer is the same one")
    path.write_bytes(other.read_bytes())
    return hashlib.sha256(before).hexdigest(), hashlib.sha256(other.read_bytes()).hexdigest()


def a_manifest_says_what_wrote_it_and_with_which_tokenizer(stretto):
    run = trained(stretto)
    manifest = json.loads((run / "checkpoints/step_00000200/manifest.json").read_text())
    version = succeed(call(stretto, "--version")).split()[1]
    check(manifest["world_size"] == 1 and manifest["stretto"] == version and manifest["libtorch"], f"{manifest}")
    [path] = (run / "tokenizer").iterdir()
    expected = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    check(manifest["tokenizer_sha256"] == expected, f"{manifest['tokenizer_sha256']}, expected {expected}")


def another_tokenizer_in_the_run_folder_is_refused_with_both_hashes(stretto):
    with copy_of_the_run(stretto) as run:
        trained_with, there = swap_tokenizer(stretto, run)
        before = listing(run)
        config = ROOT / "configs/smoke/translation.toml"
        for words in (("eval", run), ("infer", run),
                      ("train", config, "--run", run, *OVERRIDES, "train.max_steps=210")):
            fail(call(stretto, *words, data=source(1)), 65, "tokenizer", trained_with, there)
        check(listing(run) == before, "checkpoints were touched: they are whole")


def checkpoints_of_earlier_versions_are_taken_as_they_are(stretto):
    with copy_of_the_run(stretto) as run:
        for path in (run / "checkpoints").glob("step_*/manifest.json"):
            manifest = json.loads(path.read_text())
            for key in ("world_size", "stretto", "libtorch", "tokenizer_sha256", "manifest_sha256"):
                check(key in manifest, f"the test is stale: no {key}")
                del manifest[key]
            body = json.dumps(manifest, indent=2)[:-2]
            checksum = hashlib.sha256(body.encode()).hexdigest()
            path.write_text(f'{body},\n  "manifest_sha256": "{checksum}"\n}}\n')
        check(succeed(call(stretto, "infer", run, data=source(3))) == infer(stretto, data=source(3)), "other text")
        result = call(stretto, "train", ROOT / "configs/smoke/translation.toml", "--run", run, *OVERRIDES,
                      "train.max_steps=203")
        succeed(result)
        check("resuming from the checkpoint of step 200" in result.stderr, result.stderr)


# --- going on

def first_loss(lab, run):
    return next(event["loss"] for event in lab.events(run) if event["event"] == "train")


def init_from_begins_where_the_other_run_ended(stretto):
    with Lab(stretto) as lab:
        for run, overrides in (("first", ()), ("fresh", ("train.max_steps=12", "run.seed=4")),
                               ("tuned", ("train.max_steps=12", "run.seed=4", f"train.init_from={lab.root}/first"))):
            result = lab.train(run, *overrides)
            check(result.returncode == 0, f"{run}: {result.stderr}")
        fresh, tuned = first_loss(lab, "fresh"), first_loss(lab, "tuned")
        check(tuned < 0.8 * fresh, f"first loss {tuned} with the weights of another run, {fresh} without")


def extend_goes_on_where_the_schedule_would_have_ended(stretto):
    shaped = ("schedule.name=linear",)
    with Lab(stretto) as lab:
        check(lab.train("run", *shaped).returncode == 0, "training failed")
        before = lab.essence("run")
        fail(lab.train("run", *shaped, "train.max_steps=80"), 2, "train.max_steps", "60", "80", "--extend")
        check(lab.essence("run") == before, "the run was changed although it was refused")
        result = lab.train("run", *shaped, "train.max_steps=80", "--extend")
        check(result.returncode == 0, result.stderr)
        events = lab.events("run")
        rates = [event["lr"] for event in events if event["event"] == "train"]
        check(events[-1]["step"] == 80 and len(rates) == 80, f"{len(rates)} updates, end at {events[-1]['step']}")
        check(rates[59] < rates[60], "the schedule does not reach on to the new end")
        check(lab.essence("run")[:60] == before[:60], "what was there was changed")


if __name__ == "__main__":
    helpers = {"damage", "listing", "swap_tokenizer", "first_loss"}
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in helpers})
