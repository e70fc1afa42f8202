#!/usr/bin/env python3
"""Files that are damaged, another run's, links, pipes or far too large: told in words, never taken silently.

    tests/runs/files_test.py build/release/stretto [TEST...]
"""
import gzip
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

from harness import Lab, check, compare, main

SHORT = ("train.max_steps=20", "train.save_every=10", "eval.every=10")
WAIT_SECONDS = 120  # far above what any of these takes: who comes to it waits for a pipe


def succeed(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result.stdout


def fail(result, code, *words):
    check(result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"`{word}` is not in the message: {result.stderr}")
    check("\n  " in result.stderr, f"no remedy: {result.stderr}")


def call(lab, *words, text="die kleine\n"):
    return lab.run([lab.stretto, *map(str, words)], input=text, timeout=WAIT_SECONDS)


def infer(lab, run, *words):
    return succeed(call(lab, "infer", lab.root / run, *words, text=(lab.root / "valid.src").read_text()))


def nll(lab, run, *words):
    return json.loads(succeed(call(lab, "eval", lab.root / run, "--json", *words)))["nll"]


def newest(lab, run):
    return sorted((lab.root / run / "checkpoints").glob("step_*"))[-1]


def edit(path, old, new):
    text = path.read_text()
    check(old in text, f"the test is stale: no {old} in {path}")
    path.write_text(text.replace(old, new, 1))


# --- the token cache

def a_flipped_bit_in_the_cache_changes_no_update(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("reference", *SHORT))
        folders = [path.parent for path in (lab.root / "cache").glob("*/head.bin")]
        check(len(folders) == 4, f"the test is stale: {folders}")  # pairs of two splits, and their orders
        for folder in folders:
            for path in sorted(path for path in folder.glob("*.bin") if path.stat().st_size > 0):
                content = bytearray(path.read_bytes())
                content[len(content) // 3] ^= 1
                path.write_bytes(bytes(content))
                run = f"{folder.name}_{path.stem}"
                result = lab.train(run, *SHORT)
                succeed(result)
                compare(lab, "reference", run, f"a flipped bit in {path}")
                told = result.stderr.count(f"{folder.name}: is damaged; it is made again from the text")
                check(told == 1, f"{path} is told {told} times: {result.stderr}")
        check("damaged" not in lab.train("after", *SHORT).stderr, "something is still damaged")


# --- whose folder is it

def a_checkpoint_of_another_run_is_refused_where_it_lies(stretto):
    with Lab(stretto) as lab:
        for run, seed in (("one", 3), ("two", 4)):
            succeed(lab.train(run, *SHORT, f"run.seed={seed}"))
        ids = [json.loads((lab.root / run / "run.json").read_text())["run_id"] for run in ("one", "two")]
        stranger = newest(lab, "two")
        shutil.rmtree(lab.root / "one/checkpoints" / stranger.name)
        shutil.copytree(stranger, lab.root / "one/checkpoints" / stranger.name)
        words = (stranger.name, *ids, "--checkpoint PATH")
        for command in (("infer",), ("eval",), ("eval", "--checkpoint", "last"), ("infer", "--checkpoint", "20")):
            fail(call(lab, command[0], lab.root / "one", *command[1:]), 65, *words)
        for how in (("--last", "2"), ("--checkpoints", "10,20")):
            fail(call(lab, "average", lab.root / "one", *how), 65, *words)
        fail(lab.train("one", *SHORT, "train.max_steps=30"), 65, *words)
        check((lab.root / "one/checkpoints" / stranger.name / "manifest.json").exists(), "it was moved")
        fail(lab.train("new", *SHORT, f"train.init_from={lab.root}/one"), 65, *words)


def a_configuration_that_is_not_the_runs_is_refused(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("run", *SHORT))
        config = lab.root / "run/config.toml"
        whole = config.read_text()

        def refused(*words):
            for command in ("infer", "eval", "report"):
                fail(call(lab, command, lab.root / "run"), 65, "config.toml", *words, "put the file back")
            fail(call(lab, "average", lab.root / "run", "--checkpoints", "10,20"), 65, "config.toml")
            again = lab.run([lab.stretto, "train", str(config), "--run", str(lab.root / "run")])
            fail(again, 65, "config.toml", *words)
        edit(config, "num_heads = 2", "num_heads = 4")
        refused("not the configuration that the run was trained with")
        config.write_text(whole[:whole.index("[decode]")])
        refused("cut short")
        succeed(lab.train("other", *SHORT, "run.seed=4"))
        config.write_text((lab.root / "other/config.toml").read_text())
        refused("this folder holds run")
        config.write_text(whole)
        edit(config, "beam_size = ", "beam_size = 1")
        result = call(lab, "infer", lab.root / "run")
        succeed(result)
        check("was changed since" in result.stderr, f"not a word: {result.stderr}")
        succeed(lab.train("run", *SHORT, "train.max_steps=30"))


# --- weights of other runs

def a_path_is_a_checkpoint_of_its_own_run(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("small", *SHORT))
        tokenizer = next((lab.root / "small/tokenizer").iterdir())
        given = f"tokenizer.model={tokenizer}"
        succeed(lab.train("wide", *SHORT, given, "model.d_model=64", "model.encoder.num_heads=4", "run.seed=7"))
        own, other = infer(lab, "small", "--scores"), infer(lab, "wide", "--scores")
        check(own != other, "the test is stale: both runs say the same")
        path = newest(lab, "wide")
        best = json.loads(succeed(call(lab, "eval", lab.root / "wide", "--json")))["checkpoint"]
        for word in (lab.root / "wide", lab.root / "wide/checkpoints" / best):
            check(infer(lab, "small", "--scores", "--checkpoint", word) == other, f"{word} is not taken")
        check(infer(lab, "small", "--scores", "--checkpoint", lab.root / "small") == own, "its own path")
        both = f"best,{lab.root}/wide"
        together = infer(lab, "small", "--scores", "--checkpoint", both)
        check(together not in (own, other), "the second run does not show in the ensemble")
        order = f"{lab.root}/small,{lab.root}/wide"
        check(infer(lab, "wide", "--scores", "--checkpoint", order) == together, "members have an order")
        alone = [nll(lab, "small"), nll(lab, "wide")]
        check(nll(lab, "small", "--checkpoint", both) < sum(alone) / 2, "no ensemble in eval")
        told = json.loads(succeed(call(lab, "eval", lab.root / "small", "--json", "--checkpoint", path)))
        check(told["checkpoint"] == str(path), f"{told}")
        # Without its run folder nobody knows how many heads it has.
        shutil.copytree(path, lab.root / "alone")
        fail(call(lab, "infer", lab.root / "small", "--checkpoint", lab.root / "alone"), 2, "describes its model")
        check(infer(lab, "wide", "--scores", "--checkpoint", lab.root / "alone") ==
              infer(lab, "wide", "--scores", "--checkpoint", path), "a copy of its own checkpoint")
        for command in (("infer", "--checkpoint"), ("eval", "--checkpoint"), ("average", "--checkpoints")):
            nowhere = lab.root / "nowhere/checkpoints/step_00000020"
            fail(call(lab, command[0], lab.root / "small", command[1], f"20,{nowhere}"), 2, str(nowhere), "no such folder")
            fail(call(lab, command[0], lab.root / "small", command[1], "20,"), 2, "is empty")
        fail(call(lab, "average", lab.root / "small", "--checkpoints", f"20,{path}"), 65,
             "model.d_model: 64 in the checkpoint, 32 in the run")


def weights_of_a_run_with_the_same_model_have_a_mean(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("one", *SHORT))
        tokenizer = next((lab.root / "one/tokenizer").iterdir())
        succeed(lab.train("two", *SHORT, f"tokenizer.model={tokenizer}", "run.seed=8"))
        path = newest(lab, "two")
        succeed(call(lab, "average", lab.root / "one", "--checkpoints", path, "--name", "theirs"))
        check(infer(lab, "one", "--scores", "--checkpoint", "theirs") ==
              infer(lab, "two", "--scores", "--checkpoint", "last"), "the mean of one is another")
        succeed(call(lab, "average", lab.root / "one", "--checkpoints", f"last,{path}"))
        check(infer(lab, "one", "--scores", "--checkpoint", "averaged") !=
              infer(lab, "one", "--scores", "--checkpoint", "last"), "the second does not show in the mean")


def runs_with_two_tokenizers_do_not_decode_together(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("one", *SHORT))
        edit(lab.root / "train.src", "the", "The")
        succeed(lab.train("two", *SHORT))
        for words in (("infer", lab.root / "one", "--checkpoint", f"best,{lab.root}/two"),
                      ("eval", lab.root / "one", "--checkpoint", lab.root / "two"),
                      ("average", lab.root / "one", "--checkpoints", newest(lab, "two"))):
            fail(call(lab, *words), 65, "another tokenizer", "SHA-256", "tokenizer.model")


# --- links and pipes

def training_follows_no_link_in_its_folder(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("run", *SHORT))
        precious = lab.root / "precious"
        for name in (".lock", "log.txt", "metrics.jsonl"):
            path = lab.root / "run" / name
            kept = path.read_bytes()
            precious.write_bytes(kept)
            path.unlink()
            path.symlink_to(precious)
            result = lab.train("run", *SHORT, "train.max_steps=30")
            # What is replaced as a whole takes the place of a link and leaves its target alone.
            if result.returncode != 0 or name != "metrics.jsonl":
                fail(result, 2, str(path), "a symbolic link")
            check(precious.read_bytes() == kept, f"{name} was written through a link")
            path.unlink()
            path.write_bytes(kept)
        shutil.move(lab.root / "run/checkpoints", lab.root / "elsewhere")
        (lab.root / "run/checkpoints").symlink_to(lab.root / "elsewhere")
        before = sorted(path.name for path in (lab.root / "elsewhere").iterdir())
        fail(lab.train("run", *SHORT, "train.max_steps=30"), 2, "checkpoints: is a symbolic link", "--run")
        fail(call(lab, "average", lab.root / "run", "--last", "2"), 2, "checkpoints: is a symbolic link")
        check(sorted(path.name for path in (lab.root / "elsewhere").iterdir()) == before, "something was written there")
        infer(lab, "run")
        (lab.root / "link").symlink_to(lab.root / "run")
        (lab.root / "run/checkpoints").unlink()
        shutil.move(lab.root / "elsewhere", lab.root / "run/checkpoints")
        succeed(lab.train("link", *SHORT, "train.max_steps=30"))


def a_pipe_or_a_device_in_place_of_a_file_is_named_at_once(stretto):
    with Lab(stretto) as lab:
        for path in lab.root.glob("*.*"):
            os.utime(path, (0, 0))  # old enough for its hash to be remembered
        succeed(lab.train("run", *SHORT))
        commands = {"infer": ("infer", lab.root / "run"), "eval": ("eval", lab.root / "run"),
                    "report": ("report", lab.root / "run"),
                    "train": ("train", lab.config, "--run", lab.root / "run", *SHORT, "train.max_steps=30")}
        for name, users in (("config.toml", commands), ("run.json", commands), ("metrics.jsonl", ("report", "train"))):
            path = lab.root / "run" / name
            kept = path.read_bytes()
            for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
                path.unlink()
                put(path)
                for command in users:
                    fail(call(lab, *commands[command]), 2, str(path), "is a")
            path.unlink()
            path.write_bytes(kept)
        for number, path in enumerate(sorted((lab.root / "cache").rglob("*"))):
            if not path.is_file() or path.stat().st_size == 0:
                continue
            path.unlink()
            os.mkfifo(path)
            succeed(lab.train(f"cache{number}", "train.max_steps=2", "schedule.warmup_steps=1", timeout=WAIT_SECONDS))
        # A configuration is read more than once, and so is text that is trained on.
        os.mkfifo(lab.root / "pipe")
        fail(call(lab, "train", lab.root / "pipe", "--run", lab.root / "x"), 2, "pipe", "write the configuration into a file")
        fail(call(lab, "train", lab.config, "--run", lab.root / "x", f"data.train_src={lab.root}/pipe"), 2, "pipe",
             "give a file")
        fail(call(lab, "score", "--reference", lab.root / "pipe"), 2, "pipe", "give a file")
        check(call(lab, "infer", lab.root / "run", "/dev/stdin").stdout == call(lab, "infer", lab.root / "run").stdout,
              "what infer translates may be a pipe")


# --- size

def a_bomb_of_empty_lines_is_stopped_in_little_memory(stretto):
    with tempfile.TemporaryDirectory() as folder:
        bomb = pathlib.Path(folder) / "bomb.gz"
        with gzip.open(bomb, "wb", compresslevel=9) as out:
            for _ in range(128):
                out.write(b"\n" * (1 << 20))
        check(bomb.stat().st_size < 1 << 18, f"{bomb.stat().st_size} bytes")
        limit = 2 << 30

        def bound():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for words in (("score", "--reference", bomb), ("score", "--reference", __file__, "--hypotheses", bomb),
                      ("tokenizer", "train", "--vocab-size", "50", "--output", f"{folder}/model", bomb)):
            result = subprocess.run([stretto, *map(str, words)], preexec_fn=bound, input="x\n", text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=WAIT_SECONDS)
            fail(result, 65, "bomb.gz", "200-fold")


# --- what a kill leaves

def files_of_a_killed_write_are_gone_after_the_next_start(stretto):
    with Lab(stretto) as lab:
        for failpoint, count in (("file.rename", 1), ("file.fsync", 3), ("file.write", 4)):
            run = f"{failpoint}{count}"
            killed = lab.train(run, *SHORT, "report.html=true", env={"STRETTO_FAILPOINT": f"{failpoint}:kill:{count}"})
            check(killed.returncode == -signal.SIGKILL, f"{failpoint} {count}: {killed.returncode} {killed.stderr}")
            check(list(lab.root.rglob("*.tmp-*-*")), f"the test is stale: {failpoint} {count} left nothing")
            succeed(lab.train(run, *SHORT, "report.html=true"))
            left = list(lab.root.rglob("*.tmp-*-*"))
            check(not left, f"{failpoint} {count} left {left}")


if __name__ == "__main__":
    main({f.__name__: f for f in (a_flipped_bit_in_the_cache_changes_no_update,
                                  a_checkpoint_of_another_run_is_refused_where_it_lies,
                                  a_configuration_that_is_not_the_runs_is_refused,
                                  a_path_is_a_checkpoint_of_its_own_run,
                                  weights_of_a_run_with_the_same_model_have_a_mean,
                                  runs_with_two_tokenizers_do_not_decode_together,
                                  training_follows_no_link_in_its_folder,
                                  a_pipe_or_a_device_in_place_of_a_file_is_named_at_once,
                                  a_bomb_of_empty_lines_is_stopped_in_little_memory,
                                  files_of_a_killed_write_are_gone_after_the_next_start)})
