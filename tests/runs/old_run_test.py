#!/usr/bin/env python3
"""Run folders of earlier programs: today's one evaluates, translates, averages and resumes them.

    tests/runs/old_run_test.py build/release/stretto [TEST...]
    tests/runs/old_run_test.py OLD_PROGRAM --make tests/assets/run_NAME      trains the run that is stored

tests/assets/run_NAME holds text, configuration and run folder, and expected.json: what the program that trained the run made of it.
The configuration names the text below /proc/self/cwd, the folder that a program was started in. So a copy of the run in any folder has
the paths that it was trained with, and can go on.
"""
import functools
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from harness import WORDS_SRC, WORDS_TGT, check, main

ASSETS = pathlib.Path(__file__).resolve().parent.parent / "assets"
HERE = "/proc/self/cwd"
RUN = f"{HERE}/run"
UPDATES = 120
LONGER = (f"train.max_steps={UPDATES + 4}", "report.every=1")

CONFIG = f"""# Two vocabularies of 19 words, one layer on each side: as small as a run can be.
[run]
seed = 3
threads = 1
device = "cpu"
[data]
train_src = ["{HERE}/train.src"]
train_tgt = ["{HERE}/train.tgt"]
valid_src = ["{HERE}/valid.src"]
valid_tgt = ["{HERE}/valid.tgt"]
max_tokens = 100
max_src_tokens = 20
max_tgt_tokens = 20
cache_dir = "{HERE}/cache"
[tokenizer]
type = "vocab"
src_vocab = "{HERE}/src.vocab"
tgt_vocab = "{HERE}/tgt.vocab"
[model]
d_model = 8
encoder = {{ num_layers = 1, num_heads = 2, ffn_dim = 16 }}
decoder = {{ num_layers = 1, num_heads = 2, ffn_dim = 16 }}
tie_embeddings = "decoder"
[optim]
lr = 2e-2
clip_norm = 1.0
[schedule]
warmup_steps = 10
[train]
max_steps = {UPDATES}
update_freq = 2
save_every = 40
keep_last = 3
[eval]
every = 40
bleu = false
[report]
every = 20
tensorboard = false
html = false
"""


def processor():
    """Maker and flags: programs choose kernels by them, and so the last bits."""
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    flags = facts.get("flags") or facts.get("Features", "")
    return " ".join([facts.get("vendor_id", "unknown"), *sorted(flags.split())])


class Old:
    """A folder with a run, and a program that is started in it."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def call(self, *words, text=None):
        done = subprocess.run([self.program, *words], cwd=self.folder, input=text or "", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        check(done.returncode == 0, f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def train(self, *overrides):
        return self.call("train", "old.toml", "--run", RUN, *overrides)

    def nll(self, *words):
        # A run that has no mark of its user yet reads no text that its configuration names.
        return json.loads(self.call("eval", RUN, "--json", "--src", "valid.src", "--tgt", "valid.tgt", *words))["nll"]

    def lines(self):
        return self.call("infer", RUN, text=(self.folder / "valid.src").read_text()).splitlines()

    def averaged_nll(self):
        self.call("average", RUN, "--last", "2")
        return self.nll("--checkpoint", "averaged")

    def events(self):
        return [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]

    def losses(self):
        """The losses of the updates that the stored run did not have, by step."""
        return {str(e["step"]): e["loss"] for e in self.events() if e["event"] == "train" and e["step"] > UPDATES}

    def weights_hash(self):
        return self.events()[-1]["weights_hash"]

    def libtorch(self):
        newest = sorted((self.folder / "run/checkpoints").glob("step_*"))[-1]
        return json.loads((newest / "manifest.json").read_text())["libtorch"]


# --- making one

def write_text(folder):
    generator = random.Random(1)
    for name, count in (("train", 60), ("valid", 8)):
        picks = [[generator.randrange(len(WORDS_SRC)) for _ in range(generator.randint(2, 9))] for _ in range(count)]
        for side, words in (("src", WORDS_SRC), ("tgt", WORDS_TGT)):
            (folder / f"{name}.{side}").write_text("".join(" ".join(words[i] for i in line) + "\n" for line in picks))
    for side, words in (("src", WORDS_SRC), ("tgt", WORDS_TGT)):
        (folder / f"{side}.vocab").write_text("\n".join(words) + "\n")
    (folder / "old.toml").write_text(CONFIG)


def make(program, folder):
    folder.mkdir(parents=True)
    write_text(folder)
    run = Old(str(pathlib.Path(program).resolve()), folder)
    run.train()
    shutil.rmtree(folder / "cache")
    with tempfile.TemporaryDirectory(prefix="stretto_old_run_") as place:
        copy = Old(run.program, pathlib.Path(place) / "copy")
        shutil.copytree(folder, copy.folder)
        expected = {"nll": copy.nll(), "lines": copy.lines(), "averaged_nll": copy.averaged_nll()}
        copy.train(*LONGER)
        expected |= {"losses": copy.losses(), "weights_hash": copy.weights_hash(), "libtorch": copy.libtorch(), "processor": processor()}
    (folder / "expected.json").write_text(json.dumps(expected, indent=2, ensure_ascii=False) + "\n")
    print(f"{folder}: {sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()):,} bytes")


# --- tests

def copied(test):
    """Runs a test on a copy of the asset: test(run, expected, same), `same` if bits can be the same here."""
    @functools.wraps(test)
    def on_copy(program, asset):
        expected = json.loads((asset / "expected.json").read_text())
        with tempfile.TemporaryDirectory(prefix="stretto_old_run_") as place:
            run = Old(program, pathlib.Path(place) / "copy")
            shutil.copytree(asset, run.folder)
            test(run, expected, expected["processor"] == processor())
    return on_copy


def is_near(found, expected, same):
    return abs(found - expected) < (5e-7 if same else 1e-4 * expected)


@copied
def is_evaluated_as_it_was(run, expected, same):
    found = run.nll()
    check(is_near(found, expected["nll"], same), f"nll {found}, it was {expected['nll']}")


@copied
def translates_as_it_did(run, expected, same):
    found = run.lines()
    check(found == expected["lines"], f"lines {found}, they were {expected['lines']}")


@copied
def is_averaged_as_it_was(run, expected, same):
    found = run.averaged_nll()
    check(is_near(found, expected["averaged_nll"], same), f"nll {found} of the average, it was {expected['averaged_nll']}")


@copied
def goes_on_as_it_did(run, expected, same):
    run.train(*LONGER)
    log = (run.folder / "run/log.txt").read_text()
    check(f"resuming from the checkpoint of step {UPDATES}" in log, f"it did not resume: {log}")
    found = run.losses()
    check(found.keys() == expected["losses"].keys(), f"updates {list(found)}, expected {list(expected['losses'])}")
    for step, loss in expected["losses"].items():
        check(abs(found[step] - loss) <= 1e-4 * loss, f"step {step}: loss {found[step]}, it was {loss}")
    if same and run.libtorch() == expected["libtorch"]:
        check(run.weights_hash() == expected["weights_hash"], f"weights {run.weights_hash()}, they were {expected['weights_hash']}")
    else:
        print("        another processor or libtorch: losses are compared, bits are not")


@copied
def of_another_model_is_refused(run, expected, same):
    done = subprocess.run([run.program, "train", "old.toml", "--run", RUN, *LONGER, "model.encoder.ffn_dim=32"], cwd=run.folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    check(done.returncode == 2 and "model.encoder.ffn_dim: 16 in the run, 32 now" in done.stderr,
          f"exit code {done.returncode}: {done.stderr}")


TESTS = (is_evaluated_as_it_was, translates_as_it_did, is_averaged_as_it_was, goes_on_as_it_did, of_another_model_is_refused)

if __name__ == "__main__":
    if sys.argv[2:3] == ["--make"] and len(sys.argv) == 4:
        make(sys.argv[1], pathlib.Path(sys.argv[3]))
    else:
        stored = sorted(path.parent for path in ASSETS.glob("run_*/expected.json"))
        if not stored:
            sys.exit(f"no {ASSETS}/run_*/expected.json; --make makes one")
        main({f"{asset.name}_{test.__name__}": functools.partial(test, asset=asset) for asset in stored for test in TESTS})
