#!/usr/bin/env python3
"""One configuration, any number of processes: the same order, and the same losses.

Processes that are lost are in lost_ranks_test.py; what holds for every family with two processes is in matrix_test.py.

    tests/runs/processes_test.py build/release/stretto [TEST...]
"""
import json
import math
import shutil
import sys
import time

from harness import FULL, Lab, check, compare, full_or, main
from mpi_runs import EXACT, FOUR, MPIRUN, WIDE, mpirun, of, once, shared_lab, succeed, train


def close(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def same_losses(lab, reference, run, what, updates=20):
    want, got = of(lab, reference, "train", "batch_hash", "loss"), of(lab, run, "train", "batch_hash", "loss")
    check([h for h, _ in got] == [h for h, _ in want], f"{what}: other batches")
    for step, ((_, a), (_, b)) in enumerate(zip(want[:updates], got), 1):
        check(close(a, b, 1e-5), f"{what}: loss of step {step} is {b}, expected {a}")


def order_and_losses_do_not_depend_on_the_number(stretto):
    lab = shared_lab(stretto)
    once(lab, "reference", *FOUR)
    for processes in full_or((2, 3, 4), (4,)):
        run = f"run{processes}"
        succeed(train(lab, run, processes, *FOUR), f"{processes} processes")
        same_losses(lab, "reference", run, f"{processes} processes")


def processes_that_outnumber_micro_batches_share_them(stretto):
    with Lab(stretto) as lab:
        for freq, sizes in ((1, full_or((2, 3), (3,))), (3, (2,))):
            batch = (f"train.update_freq={freq}", f"data.max_tokens={240 // freq}")
            succeed(lab.train(f"reference{freq}", *batch), "one process")
            for processes in sizes:
                run = f"run{freq}_{processes}"
                result = train(lab, run, processes, *batch)
                succeed(result, run)
                same_losses(lab, f"reference{freq}", run, run)
                shares = f"each micro-batch is shared by {processes} processes" in result.stderr
                check(shares == (freq < processes), f"{run}: {result.stderr[-2000:]}")
                check("without work" not in result.stderr, f"{run}: {result.stderr[-2000:]}")


def no_micro_batch_is_shared_where_bits_must_be_the_same(stretto):
    with Lab(stretto) as lab:
        exact = ("train.update_freq=1", "data.max_tokens=240", "dist.deterministic=true")
        succeed(lab.train("one", *exact), "one process")
        result = train(lab, "two", 2, *exact)
        succeed(result, "two processes")
        compare(lab, "one", "two", "two processes")
        check("train.update_freq = 1 leaves 1 of 2 processes without work" in result.stderr, result.stderr[-2000:])


def the_noise_scale_needs_two_micro_batches_somewhere(stretto):
    with Lab(stretto) as lab:
        for run, processes, freq in (("one", 1, 1), ("two", 1, 2), ("both", 2, 2)):
            succeed(train(lab, run, processes, "data.max_tokens=60", f"train.update_freq={freq}"), run)
        values = {run: of(lab, run, "train", "noise_scale")[-1][0] for run in ("one", "two", "both")}
        check(values["one"] is None, f"one micro-batch an update: {values}")
        check(values["two"] is not None and values["both"] is not None, f"two micro-batches an update: {values}")
        check(close(values["two"], values["both"], 0.2), f"the same batches on two processes: {values}")


def every_strategy_follows_one_process(stretto):
    lab = shared_lab(stretto)
    once(lab, "reference", *FOUR)
    for name, processes, *overrides in (("sharded", 3, "dist.strategy=sharded"),
                                        ("server", full_or(3, 2), "dist.strategy=parameter_server"),
                                        ("plain", full_or(3, 2), "dist.overlap=false", "dist.bucket_bytes=4096")):
        succeed(train(lab, name, processes, *FOUR, *overrides), name)
        same_losses(lab, "reference", name, name)
    if FULL:  # the first updates are compared in compressed_gradients_follow_the_uncompressed
        succeed(train(lab, "bf16", 2, *FOUR, "dist.compress=bf16"), "compressed")
        want, got = of(lab, "reference", "train", "loss")[-1][0], of(lab, "bf16", "train", "loss")[-1][0]
        check(close(want, got, 0.05), f"compressed: last loss {got}, expected about {want}")


def compressed_gradients_follow_the_uncompressed(stretto):
    with Lab(stretto) as lab:
        short = (*FOUR, *WIDE, "train.max_steps=6", "schedule.warmup_steps=3", "eval.every=100", "train.save_every=100")
        succeed(lab.train("reference", *short), "one process")
        want = of(lab, "reference", "train", "batch_hash", "loss", "grad_norm")
        for number, strategy in enumerate(("all_reduce", "sharded", "parameter_server")):
            for compress, tolerance in (("bf16", 1e-3), ("fp16", 1e-4)):
                for processes in full_or((2, 3), (2 + (number + (compress == "fp16")) % 2,)):
                    run = f"{strategy}_{compress}_{processes}"
                    succeed(train(lab, run, processes, *short, f"dist.strategy={strategy}", f"dist.compress={compress}"), run)
                    got = of(lab, run, "train", "batch_hash", "loss", "grad_norm")
                    check(len(got) == 6, f"{run}: {len(got)} updates")
                    for step, ((batches, *exact), (other_batches, *rounded)) in enumerate(zip(want, got), 1):
                        check(batches == other_batches, f"{run}: other batches in step {step}")
                        check(all(close(a, b, tolerance) for a, b in zip(exact, rounded)),
                              f"{run}: loss and gradient norm of step {step} are {rounded}, expected about {exact}")
                    # Other orders of fp32 sums make a tenth of this.
                    check(not all(close(a[2], b[2], 1e-6) for a, b in zip(want, got)), f"{run}: nothing was rounded")


def reports_of(lab, run):
    return sorted(path.name for path in (lab.root / run / "forensics").glob("*.json"))


def an_overflow_is_skipped_by_all_together(stretto):
    with Lab(stretto) as lab:
        # Far too large at first, and too large again whenever three updates went well.
        half = (*FOUR, "train.precision=mixed_fp16", "train.max_steps=40", "train.loss_scale.init=1e8",
                "train.loss_scale.window=3", "schedule.warmup_steps=5")
        succeed(lab.train("reference", *half), "one process")
        succeed(train(lab, "run", 2, *half), "2 processes")
        names = ("step", "batch_hash", "skipped", "loss_scale")
        want, got = of(lab, "reference", "train", *names), of(lab, "run", "train", *names)
        for a, b in zip(want, got):
            check(a == b, f"{names} of two processes are {b}, of one {a}")
        skipped = [step for step, _, skips, _ in want if skips]
        check(len(got) == len(want) == 40 + len(skipped), f"{len(got)} and {len(want)} steps for 40 updates: {skipped}")
        check(len(skipped) > 5 and skipped[-1] > 20, f"the test is stale: skipped were {skipped}")
        losses = [of(lab, run, "train", "loss")[-1][0] for run in ("reference", "run")]
        check(close(*losses, 1e-3), f"last losses of one and of two processes: {losses}")
        found = reports_of(lab, "reference") + reports_of(lab, "run")
        check(not found, f"a scaler that looks for its scale is nothing to report: {found}")


def a_rollback_is_made_by_all_together(stretto):
    with Lab(stretto) as lab:
        # The rate of update 11 spoils the weights, the next update shows it; a rollback makes that rate a small one.
        explosive = (*FOUR, "dist.deterministic=true", "optim.name=sgd", "optim.momentum=0.9", "optim.lr=1e-2",
                     "schedule.name=piecewise", "schedule.warmup_steps=0", "schedule.boundaries=[10]",
                     "schedule.multipliers=[1e30]",
                     "train.forensics.policy=rollback", "train.forensics.stop_after=1",
                     "train.forensics.rollback_lr_factor=1e-30", "train.max_steps=24")
        one = lab.train("reference", *explosive)
        succeed(one, "one process")
        check("back to the checkpoint of step 7" in one.stderr, f"the test is stale, no rollback: {one.stderr}")
        for processes, strategy in full_or(((2, "all_reduce"), (3, "sharded")), ((2, "sharded"),)):
            run = f"run{processes}"
            result = train(lab, run, processes, *explosive, f"dist.strategy={strategy}")
            succeed(result, run)
            check("back to the checkpoint of step 7" in result.stderr, f"{run}: no rollback: {result.stderr}")
            compare(lab, "reference", run, run)
            check(reports_of(lab, "reference")[:1] == reports_of(lab, run)[:1] != [],
                  f"{run}: reports {reports_of(lab, run)}, of one process {reports_of(lab, 'reference')}")


def deterministic_runs_are_equal_bit_for_bit(stretto):
    with Lab(stretto) as lab:
        exact = (*FOUR, "dist.deterministic=true", "eval.bleu=true", "train.max_steps=30", "schedule.warmup_steps=5")
        succeed(lab.train("reference", *exact), "one process")
        for processes, strategy in full_or(((2, "all_reduce"), (3, "sharded"), (4, "all_reduce"), (2, "parameter_server")),
                                           ((3, "all_reduce"), (2, "parameter_server"))):
            run = f"{strategy}{processes}"
            succeed(train(lab, run, processes, *exact, f"dist.strategy={strategy}"), run)
            compare(lab, "reference", run, run)


def in_parts(lab, exact, parts, reference="reference"):
    """A run in parts of (processes, the step at which they end, overrides) is the whole run of one process."""
    once(lab, reference, *exact)
    for processes, steps, *overrides in parts:
        result = train(lab, "run", processes, *exact, *overrides, f"train.max_steps={steps}")
        succeed(result, f"{processes} processes {' '.join(overrides)} to step {steps}")
    want, got = of(lab, reference, "train", "batch_hash", "loss"), of(lab, "run", "train", "batch_hash", "loss")
    check(got == want, "the parts' batches or losses differ from the whole run's")
    check(of(lab, "run", "end", "weights_hash") == of(lab, reference, "end", "weights_hash"), "other weights")


def deterministic_runs_do_not_depend_on_threads(stretto):
    with Lab(stretto) as lab:
        exact = (*FOUR, "dist.deterministic=true", "train.max_steps=20")
        succeed(lab.train("one", *exact), "one thread")
        succeed(lab.train("three", *exact, "run.threads=3"), "three threads")
        compare(lab, "one", "three", "three threads")
        succeed(train(lab, "two", 2, *exact, "run.threads=2"), "two processes of two threads")
        compare(lab, "one", "two", "two processes of two threads")


def a_run_goes_on_with_another_number(stretto):
    in_parts(shared_lab(stretto), EXACT, full_or(((2, 14), (3, 27), (1, 41), (4, 60)), ((3, 20), (1, 41), (2, 60))), "exact")


def a_run_goes_on_with_another_strategy(stretto):
    with Lab(stretto) as lab:
        exact = (*FOUR, *WIDE, "dist.deterministic=true", "optim.name=adam", "train.max_steps=30", "schedule.warmup_steps=4")
        sharded, server, plain = (f"dist.strategy={name}" for name in ("sharded", "parameter_server", "all_reduce"))
        # Each saves what the next one cuts in another way.
        in_parts(lab, exact, full_or(((2, 5, sharded), (3, 10, server), (3, 15, sharded), (1, 19, sharded), (2, 23, server),
                                      (2, 26, plain), (3, 30, sharded)),
                                     ((2, 5, sharded), (2, 12, server), (3, 18, sharded), (2, 24, plain), (1, 30, sharded))))


def evaluation_does_not_depend_on_the_number(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("run", "train.max_steps=30"), "training")
        evaluate = [lab.stretto, "eval", str(lab.root / "run"), "--json", "eval.bleu=true", "eval.max_tokens=50"]
        scores, translations, log_probs = {}, {}, {}
        counts = full_or((1, 2, 3), (1, 3))
        for processes in counts:
            output = lab.root / f"hypotheses{processes}"
            # Two by the launcher of its own, three by mpirun.
            start, words = {1: ([], []), 2: ([], ["--processes", "2"]), 3: ([*MPIRUN, "-n", "3"], [])}[processes]
            pairs = lab.root / f"pairs{processes}"
            result = lab.run([*start, *evaluate, "--hypotheses", str(output), "--per-line", str(pairs), *words])
            succeed(result, f"{processes} processes")
            scores[processes], translations[processes] = json.loads(result.stdout), output.read_text()
            log_probs[processes] = pairs.read_text()
        check(scores[1]["bleu"] >= 0 and math.isfinite(scores[1]["nll"]), f"one process: {scores[1]}")
        for processes in counts[1:]:
            check(scores[processes] == scores[1], f"{processes} processes: {scores[processes]}, one: {scores[1]}")
            check(translations[processes] == translations[1], f"{processes} processes translate in another way")
            check(log_probs[processes] == log_probs[1] and log_probs[1].count("\n") == 20,
                  f"{processes} processes score the pairs in another way: {log_probs}")
        infer = lab.run([*MPIRUN, "-n", "2", lab.stretto, "infer", str(lab.root / "run")], input="the red house\n")
        check(infer.returncode == 2 and infer.stderr.count("is one process") == 1 and "stretto eval" in infer.stderr,
              f"infer: {infer.returncode} {infer.stderr}")


def two_commands(lab, one, other):
    """One job of two processes with a command each, started by mpirun."""
    start = time.monotonic()
    result = lab.run([*MPIRUN, "-n", "1", *one, ":", "-n", "1", *other], timeout=60)
    return result, time.monotonic() - start


def refused(result, seconds, what, *words):
    check(result.returncode == 2, f"{what}: exit code {result.returncode}: {result.stderr[-3000:]}")
    check("the processes were not started alike" in result.stderr, f"{what}: {result.stderr[-3000:]}")
    for word in words:
        check(word in result.stderr, f"{what}: `{word}` is not said: {result.stderr[-3000:]}")
    check(seconds < 30, f"{what}: it took {seconds:.0f} s")


def processes_that_differ_are_refused(stretto):
    with Lab(stretto) as lab:
        free = ("dist.timeout_seconds=5",)
        keys = (("eval.every", "20", "15"), ("dist.strategy", '"all_reduce"', '"sharded"'), ("dist.compress", '"none"', '"fp16"'),
                ("dist.bucket_bytes", "0", "8192"), ("train.max_steps", "60", "50"), ("optim.lr", "0.002", "0.001"))
        for key, value, other in full_or(keys, keys[1::4]):
            result, seconds = two_commands(lab, lab.command("run", *free, f"{key}={value}"),
                                           lab.command("run", *free, f"{key}={other}"))
            refused(result, seconds, key, f"{key}: {value} on rank 0; {other} on rank 1")
        check(not (lab.root / "run" / "metrics.jsonl").exists(), "a refused run has begun")
        for side, kind in (("train", "training"), ("valid", "validation")):
            lines = (lab.root / f"{side}.tgt").read_text().splitlines()
            texts = ("other", ["gross katze"] + lines[1:]), ("short", lines[:-1])
            for name, text in full_or(texts, texts[side == "valid":][:1]):
                (lab.root / f"{side}_{name}.tgt").write_text("\n".join(text) + "\n")
                source = (lab.root / f"{side}.src").read_text().splitlines()[:len(text)]
                (lab.root / f"{side}_{name}.src").write_text("\n".join(source) + "\n")
                theirs = [f'data.{side}_{end}=["{lab.root}/{side}_{name}.{end}"]' for end in ("src", "tgt")]
                run = f"{side}_{name}"  # its own folder: rank 0 writes the configuration before it reads the text
                result, seconds = two_commands(lab, lab.command(run, *free), lab.command(run, *free, *theirs))
                refused(result, seconds, f"{side} {name}", f"{kind} text: ", " on rank 1")
        # What a machine may have its own way, and the same text under another name.
        for end in ("src", "tgt"):
            shutil.copy(lab.root / f"train.{end}", lab.root / f"moved.{end}")
        moved = [f'data.train_{end}=["{lab.root}/moved.{end}"]' for end in ("src", "tgt")]
        result, _ = two_commands(lab, lab.command("own", *FOUR), lab.command("own", *FOUR, "run.threads=2", "data.prefetch=3",
                                                                            f"data.cache_dir={lab.root}/cache2", *moved))
        succeed(result, "threads, prefetch and paths of their own")


def evaluations_that_differ_are_refused(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("run", "train.max_steps=20"), "training")
        (lab.root / "short.src").write_text("the red house\n")
        (lab.root / "short.tgt").write_text("die rot haus\n")
        evaluate = [lab.stretto, "eval", str(lab.root / "run"), "--json"]
        short = ["--src", str(lab.root / "short.src"), "--tgt", str(lab.root / "short.tgt")]
        others = (([*evaluate, *short], ("text: ",)),
                  ([*evaluate, "--per-line", str(lab.root / "pairs")], ("--per-line: no on rank 0",)),
                  ([*evaluate, "eval.max_tokens=50"], ("eval.max_tokens: 4096 on rank 0; 50 on rank 1",)),
                  ([*evaluate, "--checkpoint", "14"], ("checkpoint: ", "step_00000014")))
        for other, words in full_or(others, others[::2]):
            result, seconds = two_commands(lab, evaluate, other)
            refused(result, seconds, " ".join(other[3:]), *words)
            check(result.stdout == "", f"a result was printed: {result.stdout}")


def out_of_memory_on_one_rank_splits_its_micro_batch(stretto):
    lab = shared_lab(stretto)
    once(lab, "reference", *FOUR)
    succeed(lab.run(mpirun(lab, "splits", 2, *FOUR, on_rank=(1, "export STRETTO_FAILPOINT=micro_batch:throw:8"))),
            "no memory on rank 1")
    same_losses(lab, "reference", "splits", "no memory on rank 1")
    single = lab.train("single", *FOUR, env={"STRETTO_FAILPOINT": "micro_batch:throw:8"})
    succeed(single, "no memory in one process")
    same_losses(lab, "reference", "single", "no memory in one process")
    check("no memory" in single.stderr, "nothing was said about the memory")
    hopeless = lab.train("hopeless", *FOUR, env={"STRETTO_FAILPOINT": "micro_batch:throw:8+"})
    check(hopeless.returncode == 71, f"no memory for ever: exit code {hopeless.returncode}: {hopeless.stderr}")
    both = lab.run(mpirun(lab, "both", 2, *FOUR, on_rank=(1, "export STRETTO_FAILPOINT=micro_batch:throw:8+")))
    check(both.returncode == 71 and "data.max_tokens" in both.stderr, f"no memory for ever on rank 1: {both.stderr}")


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        sys.exit(77)
    main({f.__name__: f for f in (
        order_and_losses_do_not_depend_on_the_number, processes_that_outnumber_micro_batches_share_them,
        no_micro_batch_is_shared_where_bits_must_be_the_same, the_noise_scale_needs_two_micro_batches_somewhere,
        every_strategy_follows_one_process, compressed_gradients_follow_the_uncompressed,
        an_overflow_is_skipped_by_all_together, a_rollback_is_made_by_all_together,
        deterministic_runs_are_equal_bit_for_bit, deterministic_runs_do_not_depend_on_threads,
        a_run_goes_on_with_another_number, a_run_goes_on_with_another_strategy,
        evaluation_does_not_depend_on_the_number, processes_that_differ_are_refused,
        evaluations_that_differ_are_refused, out_of_memory_on_one_rank_splits_its_micro_batch)})
