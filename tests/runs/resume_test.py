#!/usr/bin/env python3
"""Runs that cannot be lost: killed at any moment and resumed, a run ends as an undisturbed one does.

    tests/runs/resume_test.py build/release/stretto [TEST...]
"""
import atexit
import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time

from harness import FULL, Lab, check, compare, main

TRIALS = int(os.environ.get("STRETTO_KILL_TRIALS", "40" if FULL else "8"))
STRIDE = int(os.environ.get("STRETTO_FAILPOINT_STRIDE", "23" if FULL else "151"))
MAX_FAILPOINTS = 3000
INTERVAL = 7  # train.save_every of the lab


def undisturbed(lab):
    start = time.monotonic()
    result = lab.train("reference")
    check(result.returncode == 0, f"the undisturbed run failed: {result.stderr}")
    return time.monotonic() - start


@functools.cache
def trained_lab(stretto):
    """The lab that tests share, with the undisturbed run `reference`, and how long that took. Tests name their runs apart."""
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    return lab, undisturbed(lab)


def the_same_command_twice_changes_nothing(stretto):
    lab, _ = trained_lab(stretto)
    before = lab.essence("reference")
    result = lab.train("reference")
    check(result.returncode == 0, result.stderr)
    check(lab.essence("reference") == before, "a finished run was changed by running it again")


def a_finished_run_has_one_validation_of_its_end(stretto):
    """Whether the last save was due at the end anyway, or is its own."""
    with Lab(stretto) as lab:
        for save_every in (10, 7):
            run = f"run{save_every}"
            overrides = ("train.max_steps=20", f"train.save_every={save_every}", "eval.every=100")
            for time_ in range(3):
                result = lab.train(run, *overrides)
                check(result.returncode == 0, result.stderr)
                events = [event["event"] for event in lab.events(run)]
                check(events == ["train"] * 20 + ["valid", "end"], f"time {time_}: {events[-5:]}")
                check("metrics" not in result.stderr, f"an undamaged file was warned of: {result.stderr}")


def a_run_with_overflows_ends_where_its_schedule_ends(stretto):
    overrides = ("train.precision=mixed_fp16", "train.loss_scale.init=1e8", "schedule.name=linear", "train.max_steps=30",
                 "schedule.warmup_steps=5")
    with Lab(stretto) as lab:
        result = lab.train("whole", *overrides)
        check(result.returncode == 0, result.stderr)
        updates = [event for event in lab.events("whole") if event["event"] == "train"]
        skipped = sum(event.get("skipped", False) for event in updates)
        check(skipped > 3, f"the test is stale: {skipped} were skipped")
        check(len(updates) == 30 + skipped == lab.events("whole")[-1]["step"], f"{len(updates)} steps, {skipped} skipped")
        check(updates[-1]["lr"] < updates[-2]["lr"] < 0.15 * 2e-3, f"the last rates are {[e['lr'] for e in updates[-3:]]}")
        check(f"step {len(updates)}/{len(updates)} 100%" in result.stderr, result.stderr)
        # The same in two parts, and once more when it is finished.
        first = lab.train("parts", *overrides, env={"STRETTO_FAILPOINT": "checkpoint.mkdir:kill:3"})
        check(first.returncode == -signal.SIGKILL, f"{first.returncode} {first.stderr}")
        for _ in range(2):
            result = lab.train("parts", *overrides)
            check(result.returncode == 0, result.stderr)
            compare(lab, "whole", "parts", "with overflows")


def report_writes_the_page_of_a_run_again(stretto):
    shown = ("report.html=true", "eval.bleu=true", "report.samples=2", "eval.every=10", "train.max_steps=20")
    with Lab(stretto) as lab:
        result = lab.train("run", *shown)
        check(result.returncode == 0, result.stderr)
        check("(with label smoothing 0.1), nll" in result.stderr, f"loss beside perplexity without a word: {result.stderr}")
        page = lab.root / "run/report.html"
        whole = page.read_text()
        for words in ("Sample translations at step 20", "<h2>Machine</h2>", "<h2>Model and data</h2>", "finished: "):
            check(words in whole, f"the test is stale: the page has no {words}")
        page.unlink()

        def again():
            result = lab.run([lab.stretto, "report", str(lab.root / "run")])
            check(result.returncode == 0, result.stderr)
            return result.stderr, page.read_text()
        check(again() == ("", whole), "stretto report writes another page than training")
        # Going on, before there are other samples.
        result = lab.train("run", *shown, "train.max_steps=21", "eval.bleu=false", "eval.every=1000")
        check(result.returncode == 0, result.stderr)
        check("Sample translations at step 20" in page.read_text(), "the samples are lost when a run goes on")
        # What is damaged is named and left out.
        metrics = lab.root / "run/metrics.jsonl"
        lines = metrics.read_text().splitlines(keepends=True)
        lines[4] = lines[4].replace('"loss"', '"loss')
        metrics.write_text("".join(lines))
        stderr, text = again()
        check("metrics.jsonl:5: left out" in stderr and "Sample translations" in text, stderr)
        (lab.root / "run/report.json").write_bytes(b"\0" * 100)
        stderr, text = again()
        check("report.json:1:" in stderr and "Sample translations" not in text, stderr)


def damage_in_the_metrics_is_named_on_a_resume(stretto):
    lab, _ = trained_lab(stretto)
    for name, broken in (("line", lambda text: text.replace('{"step":3,', '{"step":,')),
                         ("digit", lambda text: text.replace('"step":3,"epoch":1', '"step":3,"epoch":7'))):
        result = lab.train(name, "train.max_steps=30")
        check(result.returncode == 0, result.stderr)
        metrics = lab.root / name / "metrics.jsonl"
        text = metrics.read_text()
        damaged = broken(text)
        check(damaged != text, "the test is stale")
        metrics.write_text(damaged)
        result = lab.train(name)
        check(result.returncode == 0, result.stderr)
        check("metrics.jsonl is not what it was" in result.stderr, f"{name}: {result.stderr}")
        check(lab.events(name)[-1]["weights_hash"] == lab.events("reference")[-1]["weights_hash"], "other weights")
        aside = lab.root / name / "bad-metrics.jsonl"
        if name == "line":
            check("metrics.jsonl:3: left out" in result.stderr, result.stderr)
            check(aside.read_text() == damaged, "the damaged file is not kept")
        else:
            check(not aside.exists(), "nothing was left out")


def lost_updates(lab, run):
    """What a kill has cost: the updates in the metrics beyond the newest checkpoint."""
    made = 0
    metrics = lab.root / run / "metrics.jsonl"
    for line in metrics.read_text().splitlines() if metrics.exists() else []:
        with contextlib.suppress(json.JSONDecodeError):  # the last line may be torn
            made = max(made, json.loads(line)["step"])
    saved = [int(path.parent.name[5:]) for path in lab.root.glob(f"{run}/checkpoints/step_*/manifest.json")]
    return made - max(saved, default=0)


def killed_again_and_again(lab, run, moments, most_lost, *overrides):
    """Up to five kills, each in a run that goes on after the one before, and then the end; the updates lost.

    moments: of Lab.train_and_kill, one after the other."""
    lost = []
    while lab.train_and_kill(run, next(moments), *overrides) == -signal.SIGKILL:
        lost.append(lost_updates(lab, run))
        check(lost[-1] <= most_lost, f"{run}: kill {len(lost)} cost {lost[-1]} updates, more than {most_lost}")
        if len(lost) == 5:
            break
    result = lab.train(run, *overrides)
    check(result.returncode == 0, f"{run}: {result.stderr}")
    compare(lab, "reference", run, f"{run}, {len(lost)} kills")
    return lost


def random_seconds(generator, least, most):
    while True:
        yield generator.uniform(least, most)


def behind_an_update(lab, run, update):
    """When metrics.jsonl has the line of an update."""
    metrics = lab.root / run / "metrics.jsonl"
    return lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= update


def killed_at_random_moments(stretto):
    """Without a writer beside training a kill costs one interval at the most. With it, the save of one interval may
    still be on its way when the next is due, which waits for it: two.

    The first kill of each trial waits for an update, and so meets a run at work however slow the machine is today."""
    seed = int(os.environ.get("STRETTO_KILL_SEED", "20261121"))
    generator = random.Random(seed)
    lab, seconds = trained_lab(stretto)
    lost = []
    for background, most_lost in (("false", INTERVAL), ("true", 2 * INTERVAL)):
        for trial in range((TRIALS + 1) // 2):
            run, at_work = f"seed{seed}_{background}_{trial}", generator.randrange(1, 2 * INTERVAL)
            moments = itertools.chain([behind_an_update(lab, run, at_work)], random_seconds(generator, 0.05, seconds))
            lost += killed_again_and_again(lab, run, moments, most_lost, f"train.save_in_background={background}")
    check(max(lost) > 0, "no kill met a run at work")


def killed_while_a_checkpoint_is_always_on_its_way(stretto):
    """A save begins after every update, so that each kill meets a writer at work."""
    seed = int(os.environ.get("STRETTO_KILL_SEED", "20261121")) + 1
    generator = random.Random(seed)
    lab, seconds = trained_lab(stretto)
    for trial in range(max(1, TRIALS // 4)):
        killed_again_and_again(lab, f"seed{seed}_{trial}", random_seconds(generator, 0.3, seconds), 2, "train.save_every=1")


def killed_in_the_writer_at_each_kind_of_call(stretto):
    """One run, killed at the first pass of each failpoint, when there is no checkpoint yet, and then at a later pass."""
    names = "mkdir open write fsync close fsync_folder rename unlink rmdir".split()
    often = "train.save_every=1"
    lab, _ = trained_lab(stretto)
    for n in (1, 7):
        for name in names:
            killed = lab.train("writer", often, env={"STRETTO_FAILPOINT": f"checkpoint.{name}:kill:{n}"})
            check(killed.returncode == -signal.SIGKILL, f"checkpoint.{name} {n}: {killed.returncode} {killed.stderr}")
            saved = list(lab.root.glob("writer/checkpoints/step_*/manifest.json"))
            check(bool(saved) or n == 1, f"the test is stale: no checkpoint after checkpoint.{name} {n}")
    result = lab.train("writer", often)
    check(result.returncode == 0, result.stderr)
    compare(lab, "reference", "writer", "killed in the writer")


def saving_in_the_background_changes_nothing_but_the_wait(stretto):
    lab, _ = trained_lab(stretto)
    result = lab.train("waiting", "train.save_in_background=false")
    check(result.returncode == 0, result.stderr)
    compare(lab, "reference", "waiting", "without a writer thread")
    for name in ("model.safetensors", "optimizer.safetensors"):
        files = [next((lab.root / run / "checkpoints").glob("step_00000060")) / name
                 for run in ("reference", "waiting")]
        tensors = [file.read_bytes().split(b"}", 1)[1] for file in files]  # behind the run's identity
        check(tensors[0] == tensors[1], f"{name} differs")


def killed_inside_every_checkpoint_call(stretto):
    """SIGKILL before the n-th system call of a run, for every 23rd n, in CI every 151st: kinds of calls repeat in other distances."""
    short = ("train.max_steps=16", "train.save_every=5")
    lab, _ = trained_lab(stretto)
    result = lab.train("short", *short)
    check(result.returncode == 0, result.stderr)

    def is_killed_at(n):
        run = f"point{n}"
        first = lab.train(run, *short, env={"STRETTO_FAILPOINT": f"*:kill:{n}"})
        if first.returncode == 0:
            return False
        check(first.returncode == -signal.SIGKILL, f"failpoint {n}: {first.stderr}")
        again = lab.train(run, *short)
        check(again.returncode == 0, f"failpoint {n}: {again.stderr}")
        compare(lab, "short", run, f"failpoint {n}")
        shutil.rmtree(lab.root / run)
        return True

    beside = os.cpu_count() if FULL else 1  # ctest has work for the other cores in CI
    with concurrent.futures.ThreadPoolExecutor(beside) as pool:
        survived = any(not all(pool.map(is_killed_at, range(n, n + beside * STRIDE, STRIDE)))
                       for n in range(1, MAX_FAILPOINTS, beside * STRIDE))
    check(survived, "the failpoints never ran out")


def a_signal_saves_and_leaves(stretto):
    """One run that goes on after each of three signals."""
    long = ("train.max_steps=400",)
    lab, _ = trained_lab(stretto)
    result = lab.train("long", *long)
    check(result.returncode == 0, result.stderr)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        process = subprocess.Popen(lab.command("signals", *long), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lab.wait_for_updates("signals", lab.updates("signals") + 1, process)
        process.send_signal(number)
        stderr = process.stderr.read()
        check(process.wait(timeout=60) == 75, f"signal {number}: exit code {process.returncode}: {stderr}")
        check("step" in stderr and "goes on" in stderr, f"signal {number} said: {stderr}")
    result = lab.train("signals", *long)
    check(result.returncode == 0, result.stderr)
    compare(lab, "long", "signals", "stopped by signals")


def a_failing_disk_leaves_the_earlier_checkpoint_and_ends_with_74(stretto):
    lab, _ = trained_lab(stretto)
    once = lab.train("once", env={"STRETTO_FAILPOINT": "checkpoint.write:enospc:2"})
    check(once.returncode == 0, f"one failed save must not end a run: {once.stderr}")
    check("could not be saved" in once.stderr, once.stderr)
    compare(lab, "reference", "once", "one failed save")
    ever = lab.train("ever", env={"STRETTO_FAILPOINT": "checkpoint.write:enospc:3+"})
    check(ever.returncode == 74, f"exit code {ever.returncode}: {ever.stderr}")
    after = lab.train("ever")
    check(after.returncode == 0, after.stderr)
    compare(lab, "reference", "ever", "after a disk that was full")


def broken_checkpoints_are_named_and_the_one_before_is_taken(stretto):
    lab, _ = trained_lab(stretto)
    result = lab.train("flipped", "train.max_steps=30")
    check(result.returncode == 0, result.stderr)
    folder = lab.root / "flipped" / "checkpoints"
    newest = sorted(p for p in folder.iterdir() if p.name.startswith("step_"))[-1]
    model = newest / "model.safetensors"
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 4
    model.write_bytes(bytes(data))
    result = lab.train("flipped")
    check(result.returncode == 0, result.stderr)
    check(newest.name in result.stderr, f"the broken checkpoint is not named: {result.stderr}")
    compare(lab, "reference", "flipped", "a flipped bit")


def a_folder_whose_configuration_trained_nothing_takes_the_next(stretto):
    """It failed once its tokenizer was there; what comes then is a run as in a new folder, with a tokenizer of its own
    where that is shaped by what has changed."""
    broken = ("data.max_src_tokens=1", "data.max_tgt_tokens=1")
    with Lab(stretto) as lab:
        for name, overrides in (("same", ()), ("vocabulary", ("tokenizer.vocab_size=70",)), ("rate", ("optim.lr=1e-3",))):
            result = lab.train(f"fresh_{name}", *overrides)
            check(result.returncode == 0, result.stderr)
            run = f"again_{name}"
            failed = lab.train(run, *broken)
            check(failed.returncode != 0, "the test is stale: no pair of one piece on each side was expected")
            check((lab.root / run / "tokenizer").is_dir(), f"the test is stale: it failed early: {failed.stderr}")
            failed_id = json.loads((lab.root / run / "run.json").read_text())["run_id"]
            result = lab.train(run, *overrides)
            check(result.returncode == 0, result.stderr)
            check("takes its place" in result.stderr and "new run" in result.stderr, result.stderr)
            compare(lab, f"fresh_{name}", run, f"after a configuration that cannot train, {name}")
            identity, fresh = (json.loads((lab.root / r / "run.json").read_text()) for r in (run, f"fresh_{name}"))
            check(identity["config_hash"] == fresh["config_hash"], "run.json tells of another configuration")
            check(identity["run_id"] != failed_id, "two configurations have one run id")
            for path in (lab.root / f"fresh_{name}" / "tokenizer").iterdir():
                check((lab.root / run / "tokenizer" / path.name).read_bytes() == path.read_bytes(), f"other {path.name}")


def updates_without_a_checkpoint_belong_to_their_configuration(stretto):
    lab, _ = trained_lab(stretto)
    # Not in the background, where training may be at a later update when the writer is killed.
    killed = lab.train("unsaved", "train.save_in_background=false", env={"STRETTO_FAILPOINT": "checkpoint.mkdir:kill:1"})
    check(killed.returncode == -signal.SIGKILL, f"{killed.returncode} {killed.stderr}")
    before = (lab.root / "unsaved" / "metrics.jsonl").read_bytes()
    check(len(before.splitlines()) == INTERVAL, "the test is stale: not killed in the first save")
    other = lab.train("unsaved", "optim.lr=1e-3")
    check(other.returncode == 2 and "holds a run of another configuration" in other.stderr, other.stderr)
    check((lab.root / "unsaved" / "metrics.jsonl").read_bytes() == before, "metrics of a refused run were touched")
    result = lab.train("unsaved")
    check(result.returncode == 0, result.stderr)
    compare(lab, "reference", "unsaved", "killed in the first save")


if __name__ == "__main__":
    main({f.__name__: f for f in (the_same_command_twice_changes_nothing, a_finished_run_has_one_validation_of_its_end,
                                  a_run_with_overflows_ends_where_its_schedule_ends,
                                  report_writes_the_page_of_a_run_again, damage_in_the_metrics_is_named_on_a_resume,
                                  killed_at_random_moments,
                                  killed_while_a_checkpoint_is_always_on_its_way,
                                  killed_in_the_writer_at_each_kind_of_call,
                                  saving_in_the_background_changes_nothing_but_the_wait,
                                  killed_inside_every_checkpoint_call, a_signal_saves_and_leaves,
                                  a_failing_disk_leaves_the_earlier_checkpoint_and_ends_with_74,
                                  broken_checkpoints_are_named_and_the_one_before_is_taken,
                                  a_folder_whose_configuration_trained_nothing_takes_the_next,
                                  updates_without_a_checkpoint_belong_to_their_configuration)})
