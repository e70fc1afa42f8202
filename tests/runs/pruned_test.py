#!/usr/bin/env python3
"""What a run prunes stays zero: through kills and resumes, in its averages, and in runs that begin with it.

    tests/runs/pruned_test.py build/release/stretto [TEST...]
"""
import array
import json
import math
import signal

from harness import LABELS, Lab, check, compare, main, write_labels

# 20 % after 10 updates, 40 % after 25 and 60 % after 40, of 60.
PRUNED = ("compress.prune.sparsity=0.6", "compress.prune.increment=0.2", "compress.prune.begin=10", "compress.prune.every=15")
SHARES = {9: None, 11: 0.2, 24: 0.2, 26: 0.4, 41: 0.6, 60: 0.6}  # by steps: the updates that were completed before are one less


def tensors(file):
    """Name -> shape and values of a safetensors file: floats, or bytes."""
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array("f" if entry["dtype"] == "F32" else "B")
        values.frombytes(data[8 + size + begin:8 + size + end])
        found[name] = entry["shape"], values
    return found


def zeros(checkpoint):
    """The share of zeros in the matrices of a model, and whether all that a mask names is zero."""
    model = tensors(checkpoint / "model.safetensors")
    masks = tensors(checkpoint / "masks.safetensors") if (checkpoint / "masks.safetensors").exists() else {}
    for name, (_, bits) in masks.items():
        shape, values = model[name]
        check(len(bits) == (math.prod(shape) + 7) // 8, f"{checkpoint}: the mask of {name} has {len(bits)} bytes")
        wrong = [i for i, value in enumerate(values) if bits[i // 8] >> i % 8 & 1 and value != 0]
        check(not wrong, f"{checkpoint}: {len(wrong)} pruned weights of {name} are not zero")
    matrices = [values for shape, values in model.values() if len(shape) > 1]
    return sum(values.count(0.0) for values in matrices) / sum(map(len, matrices))


def trained(lab, run, *overrides):
    result = lab.train(run, *overrides)
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return lab.root / run


def last_checkpoint(run):
    return max(run.glob("checkpoints/step_*"))


def shares_follow_the_schedule(stretto):
    with Lab(stretto) as lab:
        run = trained(lab, "run", *PRUNED)
        events = {event["step"]: event for event in lab.events("run") if event["event"] == "train"}
        for step, share in SHARES.items():
            got = events[step].get("sparsity")
            check(got == share or got is not None and share is not None and abs(got - share) < 1e-3,
                  f"step {step}: sparsity {got}, expected {share}")
        check(zeros(last_checkpoint(run)) >= 0.6 - 1e-3, "too few zeros at the end")


def killed_and_resumed_it_ends_alike(stretto):
    with Lab(stretto) as lab:
        for name, more in (("plain", ()), ("ema", ("train.ema_decay=0.9",))):
            trained(lab, name, *PRUNED, *more)
            # Before the first pruning, behind the second, and behind the last.
            for update in (8, 30, 50):
                lab.train_and_kill(f"{name}_killed", lambda: lab.updates(f"{name}_killed") >= update, *PRUNED, *more,
                                   signal_number=signal.SIGKILL)
            trained(lab, f"{name}_killed", *PRUNED, *more)
            compare(lab, name, f"{name}_killed", name)


def the_mean_of_checkpoints_has_the_zeros_of_the_newest(stretto):
    with Lab(stretto) as lab:
        # Steps 35, 42, 49, 56 and 60: the first has fewer zeros.
        run = trained(lab, "run", *PRUNED, "train.average_last=5", "train.keep_last=5")
        check(zeros(run / "checkpoints/averaged") >= 0.6 - 1e-3, "the mean has fewer zeros")


def a_run_that_begins_with_it_keeps_the_zeros(stretto):
    with Lab(stretto) as lab:
        first = last_checkpoint(trained(lab, "first", *PRUNED))
        begin = (f"train.init_from={first}", "train.max_steps=5", "schedule.warmup_steps=1")
        held = trained(lab, "held", *begin)
        check(zeros(last_checkpoint(held)) >= 0.6 - 1e-3, "zeros were lost")
        free = trained(lab, "free", *begin, "compress.prune.hold=false")
        check(zeros(last_checkpoint(free)) < 0.5, "compress.prune.hold = false held them")


def exported_weights_have_the_zeros(stretto):
    with Lab(stretto, LABELS) as lab:
        write_labels(lab)
        run = trained(lab, "labels", "compress.prune.sparsity=0.6", "compress.prune.schedule=once", "compress.prune.begin=5")
        result = lab.run([stretto, "export", str(run), "--format", "hf", str(lab.root / "folder")])
        check(result.returncode == 0, result.stderr)
        model = tensors(last_checkpoint(run) / "model.safetensors").values()
        exported = tensors(lab.root / "folder/model.safetensors").values()
        want, got = (sum(values.count(0.0) for shape, values in some if len(shape) > 1) for some in (model, exported))
        check(want > 0 and got >= want, f"{got} zeros in the folder, {want} in the run")


def rounded_weights_train_and_resume(stretto):
    rounded = ("compress.quantise.bits=4", "compress.quantise.group=32", "compress.quantise.noise=0.5")
    with Lab(stretto) as lab:
        trained(lab, "run", *rounded, *PRUNED)
        lab.train_and_kill("killed", lambda: lab.updates("killed") >= 30, *rounded, *PRUNED)
        trained(lab, "killed", *rounded, *PRUNED)
        compare(lab, "run", "killed", "rounded")
        losses = [event["loss"] for event in lab.events("run") if event["event"] == "train"]
        check(losses[-1] < losses[0], f"it learned nothing: {losses[0]} to {losses[-1]}")


def wrong_settings_are_refused(stretto):
    once = ("compress.prune.sparsity=0.5", "compress.prune.schedule=once", "compress.prune.begin=5")
    cases = {("compress.prune.sparsity=1",): "compress.prune.sparsity",
             ("compress.prune.sparsity=0.9", "compress.prune.every=50"): "compress.prune.sparsity",
             (*once, "compress.prune.tensors=[\"encodr.*\"]"): "compress.prune.tensors",
             ("compress.prune.scope=row",): "compress.prune.scope",
             ("compress.quantise.bits=5",): "compress.quantise.bits",
             ("compress.quantise.bits=4", "compress.quantise.group=33"): "group"}
    with Lab(stretto) as lab:
        for number, (overrides, key) in enumerate(cases.items()):
            result = lab.train(f"run{number}", *overrides)
            check(result.returncode == 2, f"{overrides}: exit code {result.returncode}: {result.stderr}")
            check(key in result.stderr, f"{overrides}: no word of {key}: {result.stderr}")


if __name__ == "__main__":
    main({test.__name__: test for test in (
        shares_follow_the_schedule, killed_and_resumed_it_ends_alike, the_mean_of_checkpoints_has_the_zeros_of_the_newest,
        a_run_that_begins_with_it_keeps_the_zeros, exported_weights_have_the_zeros, rounded_weights_train_and_resume,
        wrong_settings_are_refused)})
