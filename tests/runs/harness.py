"""What the tests that drive the built `stretto` share: a tiny experiment, runs, and what they must agree in."""
import contextlib
import functools
import inspect
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# `./dev test --full` sets it: what CI tries in part is tried whole.
FULL = os.environ.get("STRETTO_TESTS_FULL", "") not in ("", "0")


def full_or(everything, in_ci):
    """All cases of a test with --full, else those that CI tries: each value of each factor is among them."""
    return everything if FULL else in_ci


# Fields of metrics.jsonl that depend on the clock or the machine, not on the experiment.
TIMING = {"seconds", "tokens_per_second", "pictures_per_second", "frames_per_second", "peak_memory_bytes", "peak_device_memory_bytes",
          "data_wait_seconds"}

WORDS_SRC = "the a red blue big small house dog cat sees has wants two three old new good man woman".split()
WORDS_TGT = "die ein rot blau gross klein haus hund katze sieht hat will zwei drei alt neu gut mann frau".split()

CONFIG = """
[run]
seed = 3
threads = 1
device = "cpu"
[data]
train_src = ["train.src"]
train_tgt = ["train.tgt"]
valid_src = ["valid.src"]
valid_tgt = ["valid.tgt"]
max_tokens = 200
max_src_tokens = 50
max_tgt_tokens = 50
cache_dir = "cache"
[tokenizer]
vocab_size = 80
[model]
d_model = 32
encoder = { num_layers = 1, num_heads = 2, ffn_dim = 64 }
decoder = { num_layers = 1, num_heads = 2, ffn_dim = 64 }
norm = "pre"
[optim]
lr = 2e-3
clip_norm = 1.0
[schedule]
warmup_steps = 10
[train]
max_steps = 60
update_freq = 2
save_every = 7
keep_last = 2
[eval]
every = 20
bleu = false
[report]
every = 1
tensorboard = false
html = false
"""

# A small encoder that labels the lines of `write_labels`.
LABELS = """
[run]
seed = 3
threads = 1
device = "cpu"
[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["valid.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
[tokenizer]
vocab_size = 64
[model]
preset = "none"
num_layers = 1
d_model = 16
num_heads = 2
ffn_dim = 32
[optim]
lr = 1e-3
[schedule]
warmup_steps = 2
[train]
max_steps = 10
save_every = 5
[eval]
every = 5
[report]
every = 1
tensorboard = false
html = false
"""


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def wait_for(condition, what, process=None, said=None, seconds=120):
    """Until the condition holds. A process that ends before has failed, and so has one that takes too long, which is killed.

    `said()` tells why; without it the process's stderr does.
    """
    deadline = time.monotonic() + seconds
    while True:
        ended = process is not None and process.poll() is not None  # asked first: what it did last counts
        if condition():
            return
        if ended or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    how = f"ended with {process.returncode}" if ended else f"waited {seconds} s"
    if process is not None:
        process.kill()
        said = said or (process.stderr.read if process.stderr else None)
    raise Failure(f"{how}, and never came to {what}: {said() if said else ''}")


class Lab:
    """A temporary folder with a tiny corpus and configuration."""

    def __init__(self, stretto, config=CONFIG):
        self.stretto = str(pathlib.Path(stretto).resolve())
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="stretto_runs_"))
        generator = random.Random(1)
        for name, count in (("train", 400), ("valid", 20)):
            src, tgt = [], []
            for _ in range(count):
                picks = [generator.randrange(len(WORDS_SRC)) for _ in range(generator.randint(2, 9))]
                src.append(" ".join(WORDS_SRC[i] for i in picks))
                tgt.append(" ".join(WORDS_TGT[i] for i in picks))
            (self.root / f"{name}.src").write_text("\n".join(src) + "\n")
            (self.root / f"{name}.tgt").write_text("\n".join(tgt) + "\n")
        self.config = self.root / "tiny.toml"
        self.config.write_text(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def command(self, run, *overrides):
        return [self.stretto, "train", str(self.config), "--run", str(self.root / run), *overrides]

    def train(self, run, *overrides, env=None, timeout=120):
        return self.run(self.command(run, *overrides), env=env, timeout=timeout)

    def environment(self):
        """What runs here, with a user's cache of its own where no test names one."""
        return {"STRETTO_CACHE": str(self.root / "user_cache"), **os.environ}

    def run(self, command, env=None, timeout=120, input=None):
        return subprocess.run(command, env={**self.environment(), **(env or {})}, timeout=timeout, input=input,
                              stdin=None if input is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def events(self, run):
        text = (self.root / run / "metrics.jsonl").read_text()
        whole = text[:text.rfind("\n") + 1]  # the last line may be on its way
        return [json.loads(line) for line in whole.splitlines()]

    def updates(self, run):
        """How many updates a run has in its metrics.jsonl by now."""
        if not (self.root / run / "metrics.jsonl").exists():
            return 0
        return sum(event["event"] == "train" for event in self.events(run))

    def wait_for_updates(self, run, count, process):
        wait_for(lambda: self.updates(run) >= count, f"update {count} of {run}", process)

    def essence(self, run):
        """The lines of metrics.jsonl without what the clock says."""
        return [{k: v for k, v in event.items() if k not in TIMING} for event in self.events(run)]

    def train_and_kill(self, run, when, *overrides, signal_number=signal.SIGKILL):
        """Starts training and sends a signal after so many seconds, or as soon as `when()` holds; the exit code."""
        process = subprocess.Popen(self.command(run, *overrides), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, env=self.environment())
        if callable(when):
            wait_for(lambda: when() or process.poll() is not None, "the moment of the signal", process)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=when)
        process.send_signal(signal_number)  # which goes nowhere once it has ended
        process.stderr.read()
        return process.wait(timeout=60)


def compare(lab, reference, run, what):
    want, got = lab.essence(reference), lab.essence(run)
    check(got[-1]["weights_hash"] == want[-1]["weights_hash"], f"{what}: other final weights")
    check(len(got) == len(want), f"{what}: {len(got)} lines of metrics, {len(want)} expected")
    for line, (a, b) in enumerate(zip(want, got), 1):
        check(a == b, f"{what}: metrics.jsonl:{line} is\n  {b}\nexpected\n  {a}")


def forgotten(module, tests):
    """Functions of a test file that take `stretto` alone, as a test does, and are not among its tests.

    What is cached, or takes more, is a helper.
    """
    listed = {test.func if isinstance(test, functools.partial) else test for test in tests.values()}
    return [name for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__ and value not in listed
            and list(inspect.signature(value).parameters) == ["stretto"]]


def check_no_warning(events):
    """No event of a run has a note. A warning about a run by a published recipe would be a false alarm."""
    warned = [f"step {event['step']}: {event['note']}" for event in events if "note" in event]
    check(not warned, "training warned: " + "; ".join(warned))


def write_labels(lab):
    """train.tsv and valid.tsv: lines of the lab's source text, labelled by whether there is a dog."""
    for split, count in (("train", 60), ("valid", 12)):
        lines = (lab.root / f"{split}.src").read_text().splitlines()[:count]
        rows = "".join(f"{line}\t{'yes' if 'dog' in line else 'no'}\n" for line in lines)
        (lab.root / f"{split}.tsv").write_text("text\tlabel\n" + rows)


def main(tests):
    """Runs the test functions named on the command line, or all: TEST_FILE PROGRAM [TEST…]."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH/TO/PROGRAM [TEST...]")
    if missing := forgotten(sys.modules["__main__"], tests):
        sys.exit(f"{sys.argv[0]} has tests that would never run: {', '.join(missing)}; list them")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    chosen = sys.argv[2:] or list(tests)
    failed = 0
    for name in chosen:
        start = time.monotonic()
        try:
            tests[name](program)
            print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except (Failure, subprocess.TimeoutExpired, ValueError) as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)
    sys.exit(1 if failed else 0)
