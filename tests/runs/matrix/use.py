"""Columns of the matrix about what a run is for: scores, answers, vectors, folders of `transformers`."""
import json
import math
import shutil

from harness import FULL, check

from matrix.bench import LAST, NoProcesses, far, tensors_of

TEXTS = "Åsa lives in Kraków.\nNora lives in Oslo.\n\n"


def scored(bench, folder, *words):
    return json.loads(bench.output("eval", folder, "--json", *words))


def agrees_with_training(bench, row, run, scores):
    last = [event for event in bench.events(row, run) if event["event"] == "valid"][-1]
    both = row.scores & set(last)
    check(both, f"{row.name}: {last}")
    for key in both:
        check(abs(scores[key] - last[key]) < 1e-5, f"{row.name}: {key} is {scores[key]} in eval and {last[key]} in training")


def last_scores(bench, row):
    """The last scores of the undisturbed run; cells share them."""
    if row.name not in bench.scores:
        bench.scores[row.name] = scored(bench, bench.reference(row), "--checkpoint", "last")
    return bench.scores[row.name]


def evaluate(bench, row):
    """Scores are finite, and those of the last validation in training."""
    scores = last_scores(bench, row)
    check(row.scores <= set(scores), f"{row.name}: {scores}")
    check(all(math.isfinite(scores[key]) for key in row.scores), f"{row.name}: {scores}")
    agrees_with_training(bench, row, "reference", scores)


def shared_eval(bench, row):
    """Two processes have the scores of one."""
    if shutil.which("mpirun") is None:
        raise NoProcesses
    alone = last_scores(bench, row)
    shared = scored(bench, bench.reference(row), "--checkpoint", "last", "--processes", "2")
    check(alone.keys() == shared.keys(), f"{row.name}: {alone} and {shared}")
    for key, value in alone.items():
        same = abs(value - shared[key]) < 1e-5 if isinstance(value, float) else value == shared[key]
        check(same, f"{row.name}: {key} of two processes is {shared[key]}, of one {value}")


def infer(bench, row):
    """Every line gets exactly one line, in text and as JSON, and they say the same."""
    row.check_answers(bench, bench.reference(row))


def eval_bf16(bench, row):
    """eval.precision: weights stay those of the run in fp32; validation, eval and infer round alike."""
    reference = bench.reference(row)
    said = bench.train(row, "scored_in_bf16", "eval.precision=mixed_bf16")
    check("eval.precision: mixed_bf16" in said, said)
    folder = bench.folder(row, "scored_in_bf16")
    weights = [bench.events(row, run)[-1]["weights_hash"] for run in ("reference", "scored_in_bf16")]
    check(weights[0] == weights[1], f"{row.name}: validation in half precision changed the weights")
    exact, rounded = ([event["loss"] for event in bench.events(row, run) if event["event"] == "valid"]
                      for run in ("reference", "scored_in_bf16"))
    check(exact != rounded and all(abs(a - b) < 0.02 * a for a, b in zip(exact, rounded, strict=True)),
          f"{row.name}: validations in fp32 {exact}, in bf16 {rounded}")
    agrees_with_training(bench, row, "scored_in_bf16", scored(bench, folder, "--checkpoint", "last"))

    def answers(run, *words):
        return bench.infer(row, run, "--json", "--checkpoint", "last", *words)
    plain, near = answers(reference), answers(folder)
    check(near != plain, f"{row.name}: infer rounds nothing")
    check(answers(reference, "eval.precision=mixed_bf16") == near, f"{row.name}: the key does not decide alone")
    if FULL:
        check(answers(folder, "eval.precision=fp32") == plain, f"{row.name}: other answers in fp32")


def vectors(bench, folder, *words):
    rows = [json.loads(line) for line in bench.output("embed", folder, "--checkpoint", "last", *words, input=TEXTS).splitlines()]
    width = len(rows[0])
    check(len(rows) == 3 and width >= 32, f"{folder}: {len(rows)} vectors, the first has {width} numbers")
    check(all(len(row) == width and all(map(math.isfinite, row)) for row in rows), f"{folder}: {rows}")
    return rows


def embed(bench, row):
    """Each line gets one vector."""
    rows = vectors(bench, bench.reference(row))
    check(far(rows[0], rows[1]) > 1e-3, f"{row.name}: lines that differ have one vector")


def there_and_back(bench, row, run):
    """The folder that a run is exported to, and the run that is imported from it."""
    folder, back = bench.root / f"{run.name}_folder", bench.root / f"{run.name}_back"
    bench.output("export", run, "--format", "hf", "--checkpoint", "last", folder)
    bench.output("import", folder, "--run", back)
    answers = [bench.infer(row, name, "--checkpoint", "last", *row.answer_words) for name in (run, back)]
    check(row.same_answers(*answers), f"{row.name}: {answers}")
    return folder, back


def export(bench, row):
    """A run that was exported and imported answers as before."""
    there_and_back(bench, row, bench.reference(row))


def lora_export(bench, row):
    """LoRA is merged by export: what comes back has the same vectors and answers."""
    source, run = bench.reference(row), lora_run(bench, row)
    folder, back = there_and_back(bench, row, run)
    check(not any("lora" in name for name in tensors_of(folder)), "LoRA was exported apart")
    if row.reason("embed"):
        return
    merged, again, plain = (vectors(bench, name) for name in (run, back, source))
    check(all(far(a, b) < 1e-5 for a, b in zip(merged, again)), f"{row.name}: export has other vectors")
    check(far(merged[0], plain[0]) > 1e-3, f"{row.name}: LoRA changed nothing")


def lora_words(bench, row):
    return (*row.lora[0], f"train.init_from={bench.reference(row) / LAST}")


def lora_run(bench, row):
    """A run that trains LoRA behind the weights of the undisturbed one."""
    return bench.once(row, "lora", *lora_words(bench, row))
