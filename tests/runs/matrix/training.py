"""Columns of the matrix about training: each is a function of the bench and a row."""
import json
import re

from harness import check

SHORT = ("train.max_steps=4", "eval.every=2")


def train(bench, row):
    """A run folder, and a loss that is finite and falls."""
    folder = bench.reference(row)
    bench.falls(row, "reference")
    for name in ("config.toml", "log.txt", "metrics.jsonl", "run.json"):
        check((folder / name).exists(), f"{row.name}: the run folder has no {name}")
    row.check_reference(bench)


def resume(bench, row):
    """Killed in an update, a run ends as an undisturbed one."""
    bench.reference(row)
    bench.killed_and_resumed(row, "reference", "killed")


def all_reduce(bench, row):
    """Two processes have the bits of one."""
    bench.reference(row)
    bench.two_processes(row, "all_reduce", "dist.strategy=all_reduce")
    bench.same(row, "reference", "all_reduce")


def sharded(bench, row):
    """Two processes with an optimizer's state in slices have the bits of one."""
    bench.reference(row)
    bench.two_processes(row, "sharded", "dist.strategy=sharded")
    bench.same(row, "reference", "sharded")


def shared_batches(bench, row):
    """Each process computes a part of the samples of each micro-batch, and sends gradients while backward runs."""
    parts = ("dist.deterministic=false", "train.update_freq=1")
    bench.two_processes(row, "parts", *parts)
    bench.train(row, "whole", *parts)
    bench.same_curve(row, "whole", "parts", row.rounding)


def in_half_precision(bench, row, precision):
    bench.reference(row)
    bench.train(row, precision, f"train.precision={precision}")
    bench.falls(row, precision)
    exact, rounded = bench.losses(row, "reference"), bench.losses(row, precision)
    scales = [event.get("loss_scale") for event in bench.events(row, precision)
              if event["event"] == "train" and not event.get("skipped")]
    check(None not in scales and (min(scales) > 1) == (precision == "mixed_fp16"), f"{row.name}: loss scales {scales}")
    check(rounded != exact, f"{row.name}, {precision}: nothing was rounded")
    check(abs(rounded[0] - exact[0]) < 0.02 * exact[0], f"{row.name}, {precision}: first losses {rounded[0]} and {exact[0]}")


def fp16(bench, row):
    """Trains with fp16 products and a loss scale."""
    in_half_precision(bench, row, "mixed_fp16")


def bf16(bench, row):
    """Trains with bf16 products."""
    in_half_precision(bench, row, "mixed_bf16")


def micro_batches(bench, row):
    """Updates of a whole epoch: as one micro-batch, as several, and as one that had to be halved."""
    said = bench.train(row, "one", *SHORT, *row.large, "train.update_freq=1")
    [samples] = re.findall(r"training (?:text|windows|pairs|pictures|speech): ([\d,]+)", said)
    check("micro-batches an epoch: 1\n" in said, said)
    each = -(-int(samples.replace(",", "")) // 3)
    said = bench.train(row, "several", *SHORT, *row.large, "train.update_freq=3", f"data.max_samples={each}")
    check("micro-batches an epoch: 3\n" in said, said)
    bench.same_curve(row, "one", "several", row.rounding)
    said = bench.train(row, "halved", *SHORT, *row.large, "train.update_freq=1", env={"STRETTO_FAILPOINT": "backward:enomem:1"})
    check("update 1: no memory for a micro-batch of" in said, said)
    bench.same_curve(row, "one", "halved", row.rounding)


def replay(bench, row):
    """An update that was not finite is reported with the module and the samples, and computed again."""
    words, module, before = row.overflow
    said = bench.train(row, "infinite", f"model.init={json.dumps(words)}", "train.forensics.policy=stop",
                       "train.forensics.stop_after=1", code=70)
    check(f"first not finite was the output of {module} (forward)" in said, said)
    [report] = (bench.folder(row, "infinite") / "forensics").glob("step_*.json")
    found = json.loads(report.read_text())
    check(found["first"]["name"] == module and found["first"]["kind"] == "output", f"{row.name}: {found['first']}")
    check(found["first"]["last_finite"].startswith(before), f"{row.name}: {found['first']}")
    check(found["samples"] and not found["nonfinite_weights"], f"{row.name}: {found['samples']}, {found['nonfinite_weights']}")
    again = json.loads(bench.output("replay", report, "--json"))
    check(again["reproduced"] and again["same_tensor"], f"{row.name}: {again}")
    [trial] = again["trials"]
    check(trial["first"] == found["first"] and trial["samples"] == found["samples"], f"{row.name}: {trial}")
    check(trial["largest_gradients"] == found["largest_gradients"], f"{row.name}: {trial}")
    kind, keys = row.replayed
    shown = again[kind]
    check(shown and all(set(sample) == {"sample"} | keys for sample in shown), f"{row.name}: {shown}")
    check(all(sample["sample"] in found["samples"] for sample in shown), f"{row.name}: {shown}")
    text = bench.output("replay", report)
    check(f"as recorded: not finite, first the output of {module} (forward)" in text, text)
    check(re.search(f"\nsample {shown[0]['sample']}: {row.replay_pattern}", text) and text.endswith("\nreproduced\n"), text)
