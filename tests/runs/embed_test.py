#!/usr/bin/env python3
"""`stretto embed` gives each line its vector, whatever stands beside it, of runs with any head.

    tests/runs/embed_test.py build/release/stretto [TEST...]
"""
import array
import json
import math
import subprocess

from harness import Lab, check, main

COMMON = """
[run]
seed = 3
threads = 1
device = "cpu"
[task]
name = "{task}"
[data]
train = ["{train}"]
valid = ["{valid}"]
max_text_tokens = 24
max_tokens = 400
{data}
[tokenizer]
vocab_size = 60
[model]
preset = "none"
num_layers = 2
d_model = 32
num_heads = 2
max_positions = 24
[optim]
lr = 1e-3
[schedule]
warmup_steps = 1
[train]
max_steps = 4
[report]
tensorboard = false
html = false
"""
LINES = ["the red house", "", "a dog", "two old men " * 30, "a cat sees the red house", " ", "the red house", "z" * 50]


def lab_with(stretto, task, more=""):
    lab = Lab(stretto)
    if task == "masked_lm":
        text = COMMON.format(task=task, train="train.src", valid="valid.src", data='documents = "line"\npacking = "document"')
    else:
        for name in ("train", "valid"):
            lines = (lab.root / f"{name}.src").read_text().splitlines()
            rows = [f"{line}\t{'yes' if 'house' in line else 'no'}" for line in lines]
            (lab.root / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
        text = COMMON.format(task=task, train="train.tsv", valid="valid.tsv", data='text = "text"\nlabel = "label"\n' + more)
    lab.config.write_text(text)
    result = lab.train("run")
    check(result.returncode == 0, result.stderr)
    return lab


def embed(lab, lines, *options, code=0):
    data = lines if isinstance(lines, bytes) else "".join(line + "\n" for line in lines).encode()
    done = subprocess.run([lab.stretto, "embed", str(lab.root / "run"), *options], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)
    check(done.returncode == code, done.stderr.decode())
    return [json.loads(line) for line in done.stdout.decode().splitlines()], done.stderr.decode()


def far(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def read_npy(path):
    content = path.read_bytes()
    check(content[:8] == b"\x93NUMPY\x01\x00" and content[127:128] == b"\n", "no header of NumPy")
    header = eval(content[10:128].decode(), {"__builtins__": {}})
    values = array.array("f", content[128:])
    rows, columns = header["shape"]
    check(header["descr"] == "<f4" and not header["fortran_order"] and len(values) == rows * columns, f"{header}, {len(values)} values")
    return [list(values[row * columns:(row + 1) * columns]) for row in range(rows)], columns


def vectors_depend_on_their_line_alone(stretto):
    for task in ("masked_lm", "text_classification"):
        with lab_with(stretto, task) as lab:
            vectors, said = embed(lab, LINES)
            check(len(vectors) == len(LINES) and all(len(vector) == 32 for vector in vectors), f"{task}: {len(vectors)} vectors")
            check("1 line was cut to 24 tokens" in said or "2 lines were cut to 24 tokens" in said, said)
            check(far(vectors[0], vectors[6]) < 1e-5 and far(vectors[0], vectors[2]) > 1e-3, f"{task}: equal lines, other vectors")
            check(vectors[1] == vectors[5] and any(vectors[1]), f"{task}: an empty line is its special tokens")
            for options in (("--batch-tokens", "1"), ("--batch-tokens", "30"), ("run.threads=3",)):
                others, _ = embed(lab, LINES, *options)
                check(all(far(a, b) < 1e-5 for a, b in zip(vectors, others)), f"{task}: {options} gives other vectors")
            alone, _ = embed(lab, LINES[4:5])
            check(far(alone[0], vectors[4]) < 1e-5, f"{task}: a line alone has another vector")
            first, _ = embed(lab, LINES, "--pooling", "cls")
            check(far(first[0], vectors[0]) > 1e-3, f"{task}: both poolings are the same")
            unit, _ = embed(lab, LINES, "--normalize")
            check(all(abs(math.hypot(*vector) - 1) < 1e-5 for vector in unit), f"{task}: vectors have another length")
            length = math.hypot(*vectors[0])
            check(far([value / length for value in vectors[0]], unit[0]) < 1e-5, f"{task}: another direction")


def vectors_in_half_precision_are_near(stretto):
    with lab_with(stretto, "masked_lm") as lab:
        exact, said = embed(lab, LINES)
        check("eval.precision" not in said, said)
        rounded, said = embed(lab, LINES, "eval.precision=mixed_bf16")
        check("eval.precision: mixed_bf16" in said, said)
        apart = [far(a, b) for a, b in zip(exact, rounded, strict=True)]
        check(0 < max(apart) < 0.1, f"vectors differ by {apart}")
        again, _ = embed(lab, LINES, "eval.precision=mixed_bf16", "run.threads=3")
        for what, other in (("other vectors with other threads", rounded), ("threads that did not round", exact)):
            apart = [far(a, b) for a, b in zip(other, again, strict=True)]
            check(max(apart) < 0.05 if other is rounded else min(apart) > 1e-5, f"{what}: {apart}")


def vectors_are_of_the_side_that_texts_of_the_run_keep(stretto):
    long = "two old men " * 30
    pairs = {"end": ("a dog " + long, "the red house " + long), "start": (long + "a dog", long + "the red house")}
    for cut, others in (("start", "end"), ("end", "start")):
        with lab_with(stretto, "text_classification", f'truncation = "{cut}"') as lab:
            vectors, said = embed(lab, [*pairs[cut], *pairs[others]])
            check("4 lines were cut to 24 tokens" in said, said)
            check(far(vectors[0], vectors[1]) > 1e-3, f"{cut}: texts that differ where they are kept have one vector")
            check(far(vectors[2], vectors[3]) < 1e-5, f"{cut}: texts that differ where they are cut have two vectors")


def files_of_numpy_hold_the_same(stretto):
    with lab_with(stretto, "masked_lm") as lab:
        path = lab.root / "vectors.npy"
        text = lab.root / "lines"
        text.write_text("".join(line + "\n" for line in LINES))
        told, _ = embed(lab, [], str(text))
        nothing, said = embed(lab, [], str(text), "--output", str(path), "--stats")
        check(nothing == [] and f"{len(LINES)} lines in" in said, said)
        rows, _ = read_npy(path)
        check(rows == [list(array.array("f", vector)) for vector in told], "JSON and .npy differ")
        embed(lab, [], "--output", str(path))
        check(read_npy(path) == ([], 32), "no lines are no rows")
        embed(lab, LINES, "--max-tokens", "25", "--output", str(path), code=2)
        check(read_npy(path) == ([], 32), "a command that failed wrote a file")


def vectors_that_are_not_finite_are_refused_with_their_line(stretto):
    with lab_with(stretto, "masked_lm") as lab:
        # One update of this length leaves weights whose products fp32 does not hold.
        result = lab.train("huge", "optim.lr=1e30", "schedule.warmup_steps=0", "train.max_steps=1", "data.valid=[]")
        check(result.returncode == 0, result.stderr)
        text = lab.root / "lines"
        text.write_text("a dog\nthe red house\n")
        before = sorted(lab.root.rglob("*"))
        for options in ((), ("--normalize",), ("--output", str(lab.root / "vectors.npy"))):
            result = lab.run([lab.stretto, "embed", str(lab.root / "huge"), str(text), *options])
            check(result.returncode == 70, f"{options}: exit code {result.returncode}: {result.stderr}")
            check(result.stdout == "", f"{options}: {result.stdout}")
            for word in (f"{text}:1: the vector of this line has values that are infinite or NaN", f"{lab.root}/huge", "--checkpoint"):
                check(word in result.stderr, f"{options}: `{word}` is not said: {result.stderr}")
        check(sorted(lab.root.rglob("*")) == before, "something was written")


def vectors_that_are_infinite_but_nowhere_nan_are_refused_too(stretto):
    with lab_with(stretto, "masked_lm") as lab:
        # The gain of the last norm alone is trained, to a length that fp32 just holds: its products with rows of unit variance are
        # infinite where a row has more than 1.2. The first token's vector has no sum in which infinities of both signs meet.
        frozen = ("embedding*", "positions*", "segments*", "layers.0.*", "layers.1.self*", "layers.1.ffn.*", "layers.1.*.bias")
        patterns = json.dumps([f"encoder.{pattern}" for pattern in frozen] + ["head*"])
        result = lab.train("huge", "optim.lr=2.9e38", "optim.beta1=0.0", "optim.weight_decay=0.0", "schedule.warmup_steps=0", "train.max_steps=1",
                           "data.valid=[]", f"train.freeze={patterns}")
        check(result.returncode == 0, result.stderr)
        result = lab.run([lab.stretto, "embed", str(lab.root / "huge"), "--pooling", "cls"], input="a dog\n")
        check(result.returncode == 70 and result.stdout == "", f"exit code {result.returncode}: {result.stdout}{result.stderr}")
        check("stdin:1: the vector of this line has values that are infinite or NaN" in result.stderr, result.stderr)


def odd_lines_keep_their_places(stretto):
    with lab_with(stretto, "masked_lm") as lab:
        vectors, said = embed(lab, b"a dog\n\xff\xfe\na\x00b\na dog")
        check(len(vectors) == 4 and vectors[0] == vectors[3], f"{len(vectors)} vectors")
        check(not any(vectors[1]) and not any(vectors[2]), "lines that cannot be read have vectors")
        check("stdin:2" in said and "stdin:3" in said, said)


def what_has_come_is_answered(stretto):
    with lab_with(stretto, "masked_lm") as lab:
        with subprocess.Popen([lab.stretto, "embed", str(lab.root / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for line in (b"a dog\n", b"the red house\n"):
                process.stdin.write(line)
                process.stdin.flush()
                check(len(json.loads(process.stdout.readline())) == 32, "no answer while the input is open")
            process.stdin.close()
            check(process.wait(timeout=60) == 0, "it did not end")


if __name__ == "__main__":
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__"
          and name.startswith(("vectors", "files", "odd", "what"))})
