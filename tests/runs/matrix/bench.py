"""What the cells of the matrix share: one folder with text and configurations, and runs that are trained once."""
import array
import json
import math
import re
import shutil
import signal

from harness import TIMING, Lab, check, compare

from matrix.text import write_text

TIMING |= {"comm_seconds", "comm_wait_seconds", "processes"}

UPDATES = 10
LAST = f"checkpoints/step_{UPDATES:08}"

# Each update has two micro-batches, one for each of two processes. A save is made in front of the next update, so that a
# kill meets no writer at work.
EXPERIMENT = f"""
[run]
seed = 3
threads = 1
device = "cpu"
[schedule]
warmup_steps = 2
[train]
max_steps = {UPDATES}
update_freq = 2
save_every = 3
save_in_background = false
[dist]
deterministic = true
[report]
every = 1
samples = 2
tensorboard = false
html = false
"""


class NoProcesses(Exception):
    """There is no mpirun."""


def losses_of(events):
    """The losses of the updates that were made; those that were skipped are left out."""
    return [event["loss"] for event in events if event["event"] == "train" and not event.get("skipped")]


def bytes_of(checkpoint):
    """The bytes of each tensor."""
    data = (checkpoint / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name: data[begin + head["data_offsets"][0]:begin + head["data_offsets"][1]]
            for name, head in json.loads(data[8:begin]).items() if name != "__metadata__"}


def tensors_of(checkpoint):
    """The numbers of each tensor, all of which are float32."""
    return {name: array.array("f", data) for name, data in bytes_of(checkpoint).items()}


def far(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def listed(said, begin):
    """The names behind `begin: `, of which there is one line."""
    found = re.findall(rf"{begin}: (.*)", said)
    check(len(found) == 1, f"not one line of `{begin}`: {said}")
    return set(found[0].split(", "))


class Bench:
    """A lab in which each row has a configuration. Runs are called ROW_name."""

    def __init__(self, stretto, rows):
        self.lab = Lab(stretto)
        self.root = self.lab.root
        self.rows = rows
        self.done = set()
        self.scores = {}
        write_text(self.root)
        for row in rows.values():
            row.write_data(self.root)
            (self.root / f"{row.name}.toml").write_text(EXPERIMENT + row.config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def events(self, row, run):
        return self.lab.events(f"{row.name}_{run}")

    def losses(self, row, run):
        return losses_of(self.events(row, run))

    def folder(self, row, run):
        return self.root / f"{row.name}_{run}"

    def train(self, row, run, *words, env=None, code=0):
        """Trains ROW_run; what it said."""
        self.lab.config = self.root / f"{row.name}.toml"
        result = self.lab.train(f"{row.name}_{run}", *words, env=env)
        check(result.returncode == code, f"{row.name}, {run}: exit code {result.returncode}: {result.stderr[-3000:]}")
        return result.stderr

    def once(self, row, run, *words):
        """The folder of ROW_run, which is trained if no other cell has done so."""
        folder = self.folder(row, run)
        if folder not in self.done:
            shutil.rmtree(folder, ignore_errors=True)  # of a cell that failed
            self.train(row, run, *words)
            self.done.add(folder)
        return folder

    def reference(self, row):
        """The folder of an undisturbed run of one process. It has more than one slice of dist.strategy = "sharded"."""
        folder = self.once(row, "reference")
        size = (folder / LAST / "model.safetensors").stat().st_size
        check(size > 4 * 65536, f"the test is stale: the model of {row.name} has {size} bytes")
        return folder

    def output(self, *words, input=None, code=0):
        result = self.lab.run([self.lab.stretto, *map(str, words)], input=input)
        what = " ".join(map(str, words))
        check(result.returncode == code, f"{what}: exit code {result.returncode}: {result.stderr[-3000:]}")
        return result.stdout if code == 0 else result.stderr

    def infer(self, row, folder, *words):
        """What comes out for the lines of the row."""
        return self.output("infer", folder, *row.infer_words, *words, input="".join(line + "\n" for line in row.lines))

    def falls(self, row, run):
        losses = self.losses(row, run)
        check(len(losses) == UPDATES and all(map(math.isfinite, losses)), f"{row.name}, {run}: losses {losses}")
        check(min(losses[-3:]) < losses[0], f"{row.name}, {run}: the loss does not fall: {losses}")

    def same(self, row, reference, run):
        """To the bit: weights and metrics."""
        compare(self.lab, f"{row.name}_{reference}", f"{row.name}_{run}", f"{row.name}, {run}")

    def same_curve(self, row, reference, run, tolerance=1e-4):
        """Losses of training and of validations agree up to rounding."""
        def curve(name):
            return [event["loss"] for event in self.events(row, name) if event["event"] in ("train", "valid")]
        want, got = curve(reference), curve(run)
        check(len(want) == len(got) and all(abs(a - b) <= tolerance * abs(a) for a, b in zip(want, got)),
              f"{row.name}, {run}: losses {got}, expected {want}")

    def killed_and_resumed(self, row, reference, run, *words):
        self.train(row, run, *words, env={"STRETTO_FAILPOINT": "micro_batch:kill:11"}, code=-signal.SIGKILL)
        saved = [path.name for path in (self.folder(row, run) / "checkpoints").glob("step_*")]
        check("step_00000003" in saved and len(self.losses(row, run)) == 5,
              f"the test is stale: {row.name}, {run} was killed in another update, with {saved}")
        said = self.train(row, run, *words)
        check("resuming from the checkpoint of step" in said, said)
        self.same(row, reference, run)

    def two_processes(self, row, run, *words):
        if shutil.which("mpirun") is None:
            raise NoProcesses
        self.train(row, run, *words, "--processes", "2")
