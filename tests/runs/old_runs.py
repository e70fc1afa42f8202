"""Runs, exported folders, caches and searches that earlier programs made: what is stored of them, and how a program is called on it.

A folder below tests/assets/run_NAME holds text, configuration and what the program NAME made of them, and expected.json: what it said.
The configuration names the text below /proc/self/cwd, the folder that a program was started in. So a copy of the folder in any place has
the paths that it was made with, and can go on.
"""
import dataclasses
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable

from harness import WORDS_SRC, WORDS_TGT, check
from matrix.text import KINDS, squad, table

HERE = "/proc/self/cwd"
RUN = f"{HERE}/run"
SEARCH_FOLDER = f"{HERE}/search"
UPDATES = 120
LONGER = (f"train.max_steps={UPDATES + 4}", "report.every=1")

TRANSLATION = f"""# Two vocabularies of 19 words, one layer on each side: as small as a run can be.
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
save_every = 60
keep_last = 2
[eval]
every = 60
bleu = false
[report]
every = 20
tensorboard = false
html = false
"""

# One layer, and WordPiece that is trained on the text.
ENCODER = f"""[run]
seed = 3
threads = 1
device = "cpu"
[tokenizer]
vocab_size = 96
[model]
preset = "none"
num_layers = 1
d_model = 8
num_heads = 2
ffn_dim = 16
max_positions = 40
[optim]
name = "adamw"
lr = 2e-2
clip_norm = 1.0
[schedule]
warmup_steps = 10
[train]
max_steps = {UPDATES}
update_freq = 2
save_every = {UPDATES}
[eval]
every = {UPDATES}
[report]
every = 20
tensorboard = false
html = false
"""
MASKED = f"""[task]
name = "masked_lm"
[data]
train = ["{HERE}/train.txt"]
valid = ["{HERE}/valid.txt"]
documents = "line"
max_text_tokens = 24
max_tokens = 192
cache_dir = "{HERE}/cache"
"""
QUESTIONS = f"""[task]
name = "question_answering"
[data]
train = ["{HERE}/train.json"]
valid = ["{HERE}/valid.json"]
max_text_tokens = 36
max_question_tokens = 16
stride = 10
max_tokens = 160
"""
LABELS = f"""[task]
name = "text_classification"
[data]
train = ["{HERE}/train.tsv"]
valid = ["{HERE}/valid.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
max_tokens = 160
"""

# Two rungs. The first trial comes to its end, the second waits for the rung to fill.
SEARCH = f"""[search]
config = "{HERE}/old.toml"
overrides = ["train.max_steps=16", "train.keep_last=1"]
metric = "loss"
max_trials = 4
slots = 1
points = ["optim.lr=3e-2 model.ffn_dim=16", "optim.lr=1e-2", "optim.lr=1e-5"]
[method]
name = "asha"
mode = "aggressive"
divisor = 2
max_rungs = 2
[[space]]
key = "optim.lr"
name = "log"
min = 1e-5
max = 3e-2
[[space]]
key = "model.ffn_dim"
name = "numbers"
values = [8, 16]
"""
# The journal has a line of the search, three trainings with their results, and the beginning of a fourth.
KILLED_SEARCH = {"STRETTO_FAILPOINT": "journal.write:kill:9"}


def processor():
    """Maker and flags: programs choose kernels by them, and so the last bits."""
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    flags = facts.get("flags") or facts.get("Features", "")
    return " ".join([facts.get("vendor_id", "unknown"), *sorted(flags.split())])


# --- text

def write_pairs(folder):
    generator = random.Random(1)
    for name, count in (("train", 60), ("valid", 8)):
        picks = [[generator.randrange(len(WORDS_SRC)) for _ in range(generator.randint(2, 9))] for _ in range(count)]
        for side, words in (("src", WORDS_SRC), ("tgt", WORDS_TGT)):
            (folder / f"{name}.{side}").write_text("".join(" ".join(words[i] for i in line) + "\n" for line in picks))
    for side, words in (("src", WORDS_SRC), ("tgt", WORDS_TGT)):
        (folder / f"{side}.vocab").write_text("\n".join(words) + "\n")


def paragraphs():
    """The name of a file, its questions in SQuAD's form, and their paragraphs."""
    generator = random.Random(5)
    for name, count in (("train", 60), ("valid", 8)):
        data = squad(generator, name, count, impossible=False)
        yield name, data, [part["context"].strip() for article in data["data"] for part in article["paragraphs"]]


def write_documents(folder):
    for name, _, texts in paragraphs():
        (folder / f"{name}.txt").write_text("".join(text + "\n" for text in texts))
    (folder / "lines.txt").write_text("".join(text.replace("lives", "[MASK]", 1) + "\n" for text in texts))


def write_questions(folder):
    for name, data, _ in paragraphs():
        (folder / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False) + "\n")
    parts = [part for article in data["data"] for part in article["paragraphs"]]
    (folder / "lines.txt").write_text("".join(f"{part['qas'][0]['question']}\t{part['context']}\n" for part in parts))


def write_labels(folder):
    """The last town of a text decides its label."""
    for name, _, texts in paragraphs():
        table(folder / f"{name}.tsv", ("text", "label"), [(text, KINDS[text.rstrip(".").split()[-1]]) for text in texts])
    (folder / "lines.txt").write_text("".join(text + "\n" for text in texts))


@dataclasses.dataclass(frozen=True)
class Family:
    config: str
    write: Callable[[pathlib.Path], None]
    # Words of `eval`: a run that has no mark of its user yet reads no text that its configuration names.
    data: tuple
    scores: tuple  # of `eval --json`
    given: str = "lines.txt"  # what `infer` reads
    answer: Callable[[str], str] = str  # what stays of a line that it writes
    infer_words: tuple = ()


FAMILIES = {
    "translation": Family(TRANSLATION, write_pairs, ("--src", "valid.src", "--tgt", "valid.tgt"), ("nll",), given="valid.src"),
    # Probabilities are of the last bits.
    "masked_lm": Family(MASKED + ENCODER, write_documents, ("--data", "valid.txt"), ("nll", "accuracy"),
                        answer=lambda line: json.loads(line)["filled"], infer_words=("--json",)),
    "question_answering": Family(QUESTIONS + ENCODER, write_questions, ("--data", "valid.json"), ("exact_match", "f1")),
    "text_classification": Family(LABELS + ENCODER, write_labels, ("--data", "valid.tsv"), ("loss", "accuracy", "macro_f1")),
}


# --- programs

class Old:
    """A folder with what an earlier program made, and a program that is started in it."""

    def __init__(self, program, folder, family):
        self.program, self.folder, self.family = program, folder, FAMILIES.get(family)

    def run(self, *words, text="", env=None):
        return subprocess.run([self.program, *words], cwd=self.folder, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=300, env={**os.environ, "STRETTO_CACHE": f"{HERE}/user_cache", **(env or {})})

    def call(self, *words, text=""):
        done = self.run(*words, text=text)
        check(done.returncode == 0, f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def train(self, *overrides):
        return self.call("train", "old.toml", "--run", RUN, *overrides)

    def scores(self, *words):
        said = json.loads(self.call("eval", RUN, "--json", *self.family.data, *words))
        return {name: said[name] for name in self.family.scores}

    def lines(self, run=RUN):
        text = (self.folder / self.family.given).read_text()
        return [self.family.answer(line) for line in self.call("infer", run, *self.family.infer_words, text=text).splitlines()]

    def averaged_scores(self):
        self.call("average", RUN, "--last", "2")
        return self.scores("--checkpoint", "averaged")

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

    def search(self, env=None):
        return self.run("search", f"{HERE}/search.toml", "--dir", SEARCH_FOLDER, "--quiet", env=env)

    def trials(self):
        lines = [json.loads(line) for line in (self.folder / "search/trials.jsonl").read_text().splitlines()]
        return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def in_copy(program, folder, family, use):
    """Whatever `use` returns, of a program that is started in a copy of the folder."""
    with tempfile.TemporaryDirectory(prefix="stretto_old_run_") as place:
        copy = Old(program, pathlib.Path(place) / "copy", family)
        shutil.copytree(folder, copy.folder, symlinks=True)
        return use(copy)


# --- making them

def make_run(program, folder, family):
    FAMILIES[family].write(folder)
    (folder / "old.toml").write_text(FAMILIES[family].config)
    old = Old(program, folder, family)
    old.train()
    is_averaged = len(list((folder / "run/checkpoints").glob("step_*"))) > 1
    if family != "translation":  # whose tiny model is none of `transformers`
        old.call("export", RUN, "--format", "hf", "exported")

    def said(copy):
        found = {"scores": copy.scores(), "lines": copy.lines()} | ({"averaged": copy.averaged_scores()} if is_averaged else {})
        copy.train(*LONGER)
        return found | {"losses": copy.losses(), "weights_hash": copy.weights_hash(), "libtorch": copy.libtorch()}
    return in_copy(program, folder, family, said)


def make_search(program, folder):
    write_labels(folder)
    (folder / "old.toml").write_text(LABELS + ENCODER)
    (folder / "search.toml").write_text(SEARCH)
    old = Old(program, folder, "search")
    done = old.search(KILLED_SEARCH)
    check(done.returncode == -9, f"the search was not killed: exit code {done.returncode}: {done.stderr}")
    for name in ("search.html", ".lock"):  # the first is large and written anew, the second speaks of this machine
        (folder / "search" / name).unlink(missing_ok=True)

    def said(copy):
        found = {"explained": copy.call("search", "explain", SEARCH_FOLDER)}
        done = copy.search()
        check(done.returncode == 0, f"the search: exit code {done.returncode}: {done.stderr}")
        return found | {"trials": copy.trials()}
    found = in_copy(program, folder, "search", said)
    updates = [trial["updates"] for trial in found["trials"]]
    check(updates[:3] == [16, 16, 8], f"no trial was to go on later: {found['trials']}")
    return found


def make(program, folder):
    program = str(pathlib.Path(program).resolve())
    for name in (*FAMILIES, "search"):
        place = folder / name
        place.mkdir(parents=True)
        found = make_search(program, place) if name == "search" else make_run(program, place, name)
        expected = {"family": name} | found | {"processor": processor()}
        (place / "expected.json").write_text(json.dumps(expected, indent=2, ensure_ascii=False) + "\n")
        print(f"{place}: {sum(path.stat().st_size for path in place.rglob('*') if path.is_file()):,} bytes")
