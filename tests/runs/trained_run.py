"""The run that tests of `infer` and `eval` share, and how they call the program on it."""
import atexit
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from harness import check

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PHRASEBOOK = ROOT / "build/phrasebook"


@functools.cache
def trained(stretto):
    """The folder of the smoke recipe's run: checkpoints 50, 100, 150 (the best: validated alone) and 200.

    It was killed where the next would have been saved: at its end a run validates, and the last would be the best."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_infer_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["STRETTO_CACHE"] = str(folder / "cache")
    killed = {"STRETTO_FAILPOINT": "checkpoint.mkdir:kill:9"}  # each save makes two folders
    result = call(stretto, "train", ROOT / "configs/smoke/translation.toml", "--run", folder / "run", *OVERRIDES,
                  "train.max_steps=250", env=killed)
    check(result.returncode == -signal.SIGKILL, f"the smoke recipe left with {result.returncode}: {result.stderr}")
    saved = sorted(path.name for path in (folder / "run/checkpoints").glob("step_*"))
    check(saved == [f"step_{step:08}" for step in (50, 100, 150, 200)], f"the test is stale: saved were {saved}")
    return folder / "run"


OVERRIDES = ("train.update_freq=1", "train.save_every=50", "train.keep_last=4", "eval.every=150", "eval.bleu=false")


class copy_of_the_run:
    """A copy that a test may damage."""

    def __init__(self, stretto):
        self.run = trained(stretto)

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_infer_copy_"))
        return shutil.copytree(self.run, self.folder / "run")

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


def call(stretto, *words, data=b"", stdin=None, env=None):
    """Runs a command; its stdin is a file that is open, or a pipe with these bytes."""
    given = {"stdin": stdin} if stdin else {"input": data}
    result = subprocess.run([stretto, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                            env={**os.environ, **(env or {})}, **given)
    result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
    return result


def succeed(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result.stdout


def fail(result, code, *words):
    check(result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"`{word}` is not in the message: {result.stderr}")


def infer(stretto, *words, data=b""):
    return succeed(call(stretto, "infer", trained(stretto), *words, data=data))


def source(count):
    """So many lines of the held-out text, as bytes."""
    return b"".join((PHRASEBOOK / "test.en").read_bytes().splitlines(keepends=True)[:count])


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def evaluate(stretto, *words):
    text = succeed(call(stretto, "eval", trained(stretto), "--json", *words))
    check(text.count("\n") == 1, f"one line is expected: {text}")
    return json.loads(text)
