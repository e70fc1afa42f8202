#!/usr/bin/env python3
"""A teacher's outputs become the training text of a student, once, whatever stops the command; and its probabilities its loss.

    tests/runs/distill_test.py build/release/stretto [TEST...]
"""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess

from harness import FULL, Lab, check, main, wait_for

TEACHER = ("train.max_steps=200", "eval.every=100", "train.save_every=100")
# Which trains its tokenizer on what the teacher writes: few words.
STUDENT = ("train.max_steps=40", "eval.every=20", "tokenizer.vocab_size=60")


def distill(lab, run, *more, teacher="teacher"):
    return [lab.stretto, "distill", str(lab.root / teacher), "--student", str(lab.config), "--run", str(lab.root / run),
            *STUDENT, *more]


def taught(lab):
    result = lab.train("teacher", *TEACHER)
    check(result.returncode == 0, result.stderr)


def distilled(lab, run, *more):
    result = lab.run(distill(lab, run, *more), timeout=300)
    check(result.returncode == 0, result.stderr)
    return result


def tokenizer_of(lab, run):
    return {path.name: path.read_bytes() for path in sorted((lab.root / run / "tokenizer").iterdir())}


def a_student_trains_on_what_its_teacher_writes(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        distilled(lab, "student", "--bits", "0", "--teacher-key", "decode.beam_size=2")
        labels = lab.root / "student/labels"
        sources, targets = ((labels / f"text_0.{end}").read_text().splitlines() for end in ("src", "labels"))
        check(0 < len(sources) == len(targets) <= 400, f"{len(sources)} sources and {len(targets)} labels")
        said = lab.run([stretto, "infer", str(lab.root / "teacher"), "decode.beam_size=2", str(labels / "text_0.src")])
        check(said.stdout.splitlines() == targets, "labels are not what the teacher says")
        config = (lab.root / "student/config.toml").read_text()
        check(str(labels / "text_0.labels") in config and str(lab.root / "student/shortlist.tsv") in config, config)
        check(lab.updates("student") == 40, f"{lab.updates('student')} updates")
        before = (labels / "text_0.labels").stat()
        distilled(lab, "student", "--bits", "0", "--teacher-key", "decode.beam_size=2")
        check((labels / "text_0.labels").stat() == before, "the text was labelled again")


def a_student_learns_from_text_without_translations_too(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        more = lab.root / "more.src"
        more.write_text("two old dog\nthe small house\n")
        distilled(lab, "student", "--bits", "0", "--no-shortlist", "--text", str(more))
        labels = lab.root / "student/labels"
        check((labels / "text_1.src").read_text() == more.read_text(), "other text than was given")
        check((labels / "text_1.labels").read_text().count("\n") == 2, "not one translation for each line")
        check(str(labels / "text_1.labels") in (lab.root / "student/config.toml").read_text(), "the student does not train on it")


def a_student_that_is_stopped_ends_as_without(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        distilled(lab, "whole", "--bits", "0", "--no-shortlist")
        words = distill(lab, "stopped", "--bits", "0", "--no-shortlist")
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                   env=lab.environment())
        wait_for(lambda: lab.updates("stopped") >= 5 or process.poll() is not None, "the fifth update", process)
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
        check(code in (0, 75), f"it left with {code}")
        distilled(lab, "stopped", "--bits", "0", "--no-shortlist")
        ends = [lab.events(run)[-1]["weights_hash"] for run in ("whole", "stopped")]
        check(ends[0] == ends[1], f"other weights: {ends}")


def a_student_learns_probabilities_with_the_teachers_vocabulary(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        for level in ("word", "both"):
            distilled(lab, level, "--bits", "0", "--level", level, "loss.teacher_weight=1", "loss.teacher_temperature=2")
            check(tokenizer_of(lab, level) == tokenizer_of(lab, "teacher"), f"{level}: another tokenizer")
            log = (lab.root / level / "log.txt").read_text()
            check(", the teacher; it takes the place of tokenizer.vocab_size" in log, log[:2000])
            losses = [event["loss"] for event in lab.events(level) if event["event"] == "train"]
            check(losses[-1] < losses[0], f"{level}: from {losses[0]} to {losses[-1]}")
        check(not (lab.root / "word/labels").exists(), "nothing is labelled at the level of words")
        shutil.rmtree(lab.root / "teacher")
        for command in (["compress", str(lab.root / "word"), "--bits", "4", "--rounding", "calibrated", "--run", str(lab.root / "word4")],
                        ["bench", str(lab.root / "word"), "--seconds", "0.1", "--precision", "fp32"]):
            said = lab.run([stretto, *command])
            check(said.returncode == 0, f"{command[0]} asks for the teacher: {said.stderr}")


def a_student_is_packed(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        distilled(lab, "student")
        said = lab.run([stretto, "infer", str(lab.root / "student/int8"), str(lab.root / "valid.src")])
        check(said.returncode == 0 and len(said.stdout.splitlines()) == 20, said.stderr)


def a_student_is_moved_with_its_shortlist_and_without_its_labels(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        distilled(lab, "student")
        runs = {"student": lab.root / "moved", "student/int8": lab.root / "alone"}
        want = {name: lab.run([stretto, "infer", str(lab.root / name), str(lab.root / "valid.src")]).stdout for name in runs}
        shutil.copytree(lab.root / "student/int8", runs["student/int8"])
        shutil.rmtree(lab.root / "student/labels")
        (lab.root / "student").rename(runs["student"])
        for name, place in runs.items():
            said = lab.run([stretto, "infer", str(place), str(lab.root / "valid.src")])
            check(said.returncode == 0 and said.stdout == want[name], f"{place}: {said.stderr}")
        (runs["student"] / "shortlist.tsv").unlink()
        said = lab.run([stretto, "infer", str(runs["student"]), str(lab.root / "valid.src")])
        check(said.returncode == 2 and "decode.shortlist= chooses among all words" in said.stderr, said.stderr)
        said = lab.run([stretto, "infer", str(runs["student"]), "decode.shortlist=", str(lab.root / "valid.src")])
        check(said.returncode == 0, said.stderr)


def a_student_is_refused_keys_that_the_command_sets(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        for more in (["--teacher-key", "decode.nbest=3"], ["--level", "word", f"loss.teacher={lab.root}/teacher"]):
            said = lab.run(distill(lab, "student", *more))
            check(said.returncode == 2 and "sets " in said.stderr and "itself" in said.stderr, said.stderr)
            check(not (lab.root / "student/config.toml").exists(), "a run was begun")


def a_student_that_trained_on_is_packed_anew_whenever_it_was_killed(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        distilled(lab, "student")
        packed = lab.root / "student/int8"

        def is_newest():
            saved = (path.stat().st_mtime_ns for path in (lab.root / "student/checkpoints").glob("*/manifest.json"))
            return (packed / "compress.json").stat().st_mtime_ns > max(saved)
        # With --bits 0 nothing is packed, as in a command that is killed behind the training.
        for steps, more in ((50, ("--bits", "0")), (50, ())):
            distilled(lab, "student", f"train.max_steps={steps}", *more)
        check(is_newest(), "packed of an earlier checkpoint")
        distilled(lab, "student", "train.max_steps=60", "--bits", "0")
        killed = lab.run(distill(lab, "student", "train.max_steps=60"), env={"STRETTO_FAILPOINT": "checkpoint.unlink:kill:3"})
        check(killed.returncode == -signal.SIGKILL, f"the test is stale: {killed.returncode} {killed.stderr}")
        check((packed / "compress.json").exists(), "what is left of the folder is nobody's")
        distilled(lab, "student", "train.max_steps=60")
        check(is_newest(), "packed of an earlier checkpoint")


def a_student_is_distilled_by_one_command_and_not_by_two(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        (lab.root / "student").mkdir()
        with open(lab.root / "student/.distill-lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            other = lab.run(distill(lab, "student"))
            check(other.returncode == 2 and "is in use" in other.stderr, other.stderr)
        # A process of a killed command may still save.
        with open(lab.root / "student/.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen(distill(lab, "student", "--bits", "0", "--no-shortlist"), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=lab.environment(), text=True)
            line = next((line for line in process.stderr if "waiting for" in line), "")
            check(line, "it does not wait")
        stderr = process.stderr.read()
        check(process.wait(timeout=120) == 0, stderr)


def a_student_has_a_teacher_at_rest_and_another_folder(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        same = lab.run(distill(lab, "teacher"))
        check(same.returncode == 2 and "is the teacher's folder" in same.stderr, same.stderr)
        check(not (lab.root / "teacher/labels").exists(), "the teacher's folder was touched")
        with open(lab.root / "teacher/.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            live = lab.run(distill(lab, "student"))
            check(live.returncode == 2 and "is being trained" in live.stderr, live.stderr)
        odd = distill(lab, "student")
        odd[odd.index("--run") + 1] = os.fsencode(lab.root) + b"/odd\xff"
        said = lab.run(odd)
        check(said.returncode == 2 and "is not UTF-8" in said.stderr, said.stderr)


def a_student_of_the_shipped_recipe_is_small(stretto):
    if not FULL:
        return
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    with Lab(stretto) as lab:
        teacher, student = str(lab.root / "teacher"), lab.root / "student"
        for command in (["train", str(root / "configs/smoke/translation.toml"), "--run", teacher],
                        ["distill", teacher, "--student", str(root / "configs/smoke/distill.toml"), "--run", str(student)]):
            result = lab.run([stretto, *command], timeout=300)
            check(result.returncode == 0, result.stderr)
        sizes = [next((place / "checkpoints").glob("*/model.safetensors")).stat().st_size for place in (lab.root / "teacher", student / "int8")]
        check(sizes[1] < 0.2 * sizes[0], f"{sizes[1]} bytes of {sizes[0]}")
        bleu = [json.loads(lab.run([stretto, "eval", str(place), "--json"]).stdout)["bleu"] for place in (teacher, student / "int8")]
        check(bleu[1] > 0.8 * bleu[0], f"BLEU {bleu[1]}, the teacher's {bleu[0]}")


def a_student_learns_from_an_ensemble(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        for checkpoint in ("100,200", "200"):
            distilled(lab, checkpoint, "--bits", "0", "--no-shortlist", "--level", "both", "--checkpoint", checkpoint)
        losses = [[event["loss"] for event in lab.events(run) if event["event"] == "train"][0] for run in ("100,200", "200")]
        check(losses[0] != losses[1], f"the first losses are {losses}")


def a_student_that_is_larger_is_told_of(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        said = distilled(lab, "larger", "--bits", "0", "--no-shortlist", "model.d_model=64").stderr
        check("it is no smaller model" in said, said)
        said = distilled(lab, "smaller", "--bits", "0", "--no-shortlist", "model.d_model=16").stderr
        check("smaller model" not in said, said)


def a_folder_has_the_labels_of_one_teacher(stretto):
    with Lab(stretto) as lab:
        taught(lab)
        distilled(lab, "student", "--bits", "0", "--labels", str(lab.root / "labels"))
        other = lab.run(distill(lab, "other", "--bits", "0", "--labels", str(lab.root / "labels"), "--checkpoint", "last"))
        check(other.returncode == 2 and "labels of another teacher" in other.stderr, other.stderr)


if __name__ == "__main__":
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name.startswith(("a_student", "a_folder"))})
