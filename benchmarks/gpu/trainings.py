"""Trainings of base and big on a GPU: speed, losses and memory of each precision, resuming, lack of memory, a peer.

The text is the phrasebook's, which needs no network: sentences of several seeds, joined to lines of one to six, so that lengths are those
of real text (about 30 tokens). The vocabulary has 32,768 rows, as the published models; the phrasebook uses some thousand of them, and
the others cost what they cost anybody: products, softmax and update. Losses say whether precisions agree, not how well a model translates.
"""
import csv
import itertools
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
from collections import Counter

from session import has_torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SEEDS = 4  # phrasebooks of 30,000 pairs
ROWS = 32_768
PRECISIONS = ("fp32", "mixed_bf16", "tf32", "mixed_fp16")  # fp32 first: the others are compared with it
TINY = ["model.d_model=64", "model.encoder.num_layers=1", "model.decoder.num_layers=1", "model.encoder.num_heads=4",
        "model.decoder.num_heads=4", "model.encoder.ffn_dim=128", "model.decoder.ffn_dim=128", "data.max_tokens=512"]

CONFIG = """include = "{root}/configs/models/transformer_{model}.toml"
[data]
train_src = ["train.en"]
train_tgt = ["train.fr"]
max_tokens = 8192
cache_dir = "cache"
[tokenizer]
type = "vocab"
src_vocab = "vocabulary.txt"
[loss]
label_smoothing = 0.1
[optim]
name = "adam"
lr = 5e-4
beta2 = 0.98
[schedule]
name = "inverse_sqrt"
warmup_steps = 20
[train]
save_every = 1000000
[eval]
every = 1000000
bleu = false
[report]
every = 1
html = false
tensorboard = false
"""


# Masked words and labels: BERT base, of which specials and pieces fill the rows of the published vocabulary.
BERT_ROWS = 30_522
BERT_CONFIG = """[task]
name = "{task}"
[tokenizer]
type = "wordpiece"
model = "pieces.txt"
lowercase = "no"
[model]
preset = "base"
[optim]
name = "adamw"
lr = 1e-4
weight_decay = 0.01
clip_norm = 1.0
[schedule]
name = "constant"
warmup_steps = 0
[train]
save_every = 1000000
[eval]
every = 1000000
[report]
every = 1
html = false
tensorboard = false
[data]
"""
BERT_DATA = {"masked_lm": 'train = ["lines.txt"]\npacking = "packed"\nmax_text_tokens = 512\nmax_tokens = 16384\n',
             "text_classification": 'train = ["labelled.tsv"]\nmax_text_tokens = 512\nmax_tokens = 16384\nmax_samples = 128\n'}
BERT_TINY = ["model.preset=tiny", "data.max_tokens=1024"]


def make_text(folder, phrasebook):
    """train.en, train.fr, vocabulary.txt and a configuration for each model; lines.txt, labelled.tsv (a line and its number of sentences)
    and pieces.txt for BERT."""
    generator = random.Random(1)
    sides = {"en": [], "fr": []}
    labels = []
    for seed in range(1, SEEDS + 1):
        subprocess.run([phrasebook, folder / f"book{seed}", str(seed)], check=True, stdout=subprocess.DEVNULL)
        pairs = list(zip(*((folder / f"book{seed}/train.{side}").read_text().splitlines() for side in ("en", "fr"))))
        at = 0
        while at < len(pairs):
            count = generator.randint(1, 6)
            labels.append(len(pairs[at:at + count]))
            for side, lines in zip(("en", "fr"), zip(*pairs[at:at + count])):
                sides[side].append(" ".join(lines))
            at += count
        shutil.rmtree(folder / f"book{seed}")
    words = Counter()
    for side, lines in sides.items():
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n")
        words.update(word for line in lines for word in line.split())
    tokens = [word for word, _ in words.most_common(ROWS - 4)]  # four specials come before them
    tokens += [f"unused{i}" for i in range(ROWS - 4 - len(tokens))]
    (folder / "vocabulary.txt").write_text("\n".join(tokens) + "\n")
    for model in ("base", "big"):
        (folder / f"{model}.toml").write_text(CONFIG.format(root=ROOT, model=model))
    pieces = Counter(piece for line in sides["en"] for piece in re.findall(r"\w+|[^\w\s]", line))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(piece for piece, _ in pieces.most_common(BERT_ROWS - 5))]
    pieces += [f"[unused{i}]" for i in range(BERT_ROWS - len(pieces))]
    (folder / "pieces.txt").write_text("\n".join(pieces) + "\n")
    (folder / "lines.txt").write_text("\n".join(sides["en"]) + "\n")
    (folder / "labelled.tsv").write_text("text\tlabel\n" + "".join(f"{line}\t{label}\n" for line, label in zip(sides["en"], labels)))
    for task, data in BERT_DATA.items():
        (folder / f"{task}.toml").write_text(BERT_CONFIG.format(task=task) + data)
    return (f"{len(sides['en']):,} lines, {sum(len(line.split()) + 1 for line in sides['fr']):,} target tokens, "
            f"{len(words):,} words in {ROWS:,} rows")


class Trainings:
    def __init__(self, session, programs, work, options):
        self.session, self.programs, self.work, self.options = session, programs, work, options
        self.numbers = itertools.count(1)  # also for jobs at the same time
        self.fp32_losses = {}
        self.losses = session.out / "losses.csv"
        if not session.dry_run:
            self.losses.write_text("run,update,loss,nll,target_tokens,seconds,loss_scale,skipped\n")

    def command(self, run, model, updates, *overrides):
        small = TINY if self.options.tiny else []
        if self.options.tiny or updates in range(21):  # a warm-up must be shorter than its run
            small = [*small, "schedule.warmup_steps=1"]
        return [self.programs["stretto"], "train", self.work / f"{model}.toml", "--run", run, "--quiet",
                f"run.device={self.options.device}", f"train.max_steps={updates}", *small, *overrides]

    def new_run(self):
        return self.work / f"run{next(self.numbers)}"

    @staticmethod
    def events(run, kind="train"):
        """Events of a run, also of one that was stopped; a figure that was not finite, which is null there, is NaN here."""
        try:
            lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [{key: math.nan if value is None else value for key, value in e.items()} for e in events if e["event"] == kind]

    def keep_losses(self, name, events):
        with open(self.losses, "a", encoding="utf-8") as file:
            for e in events:
                file.write(f"{name},{e['step']},{e.get('loss', '')},{e.get('nll', '')},{e.get('target_tokens', '')},{e['seconds']:.4f},"
                           f"{e.get('loss_scale', '')},{int(e.get('skipped', False))}\n")

    # --- speed, losses, memory ---------------------------------------------------------------------

    HEAD = ("model", "precision", "updates", "target tokens/s", "ms an update", "tensors' peak MiB", "GPU memory MiB", "GPU busy %",
            "first loss", "last loss", "from fp32, largest in the last third")

    def speed(self, model, precision, updates, limit, *overrides, name=None):
        name = name or f"{model} {precision}"
        run = self.new_run()
        done = self.session.run(f"train {name}", limit, self.command(run, model, updates, f"train.precision={precision}", *overrides),
                                watch=True)
        if not done:
            return
        events = self.events(run)
        self.keep_losses(name, events)
        warm = len(events) // 3  # the first third warms up
        if len(events) - warm >= 2:
            seconds = events[-1]["seconds"] - events[warm]["seconds"]
            tokens = sum(e["target_tokens"] for e in events[warm + 1:])
            losses = [e.get("loss") for e in events]
            apart = self.apart(name, model, precision, losses, bool(overrides))
            self.session.row("Speed, losses and memory", self.HEAD, [
                name.replace(f" {precision}", ""), precision, len(events), f"{tokens / seconds:,.0f}",
                f"{1e3 * seconds / (len(events) - 1 - warm):.1f}", self.tensors_peak(events), "" if done.peak is None else f"{done.peak:,.0f}",
                "" if done.load is None else f"{done.load:.0f}", f"{losses[0]:.4f}", f"{losses[-1]:.4f}", apart])
        self.checkpoint_row(name, run)
        shutil.rmtree(run, ignore_errors=True)

    @staticmethod
    def peak_mib(events):
        """What tensors held on the GPU at most, None on a CPU. nvidia-smi also counts the driver's part and blocks kept for reuse."""
        peaks = [e["peak_device_memory_bytes"] for e in events if "peak_device_memory_bytes" in e]
        return max(peaks) / 2**20 if peaks else None

    def tensors_peak(self, events):
        peak = self.peak_mib(events)
        return "" if peak is None else f"{peak:,.0f}"

    def apart(self, name, model, precision, losses, other):
        """How far losses are from those of the same training in fp32, if that has run."""
        if other:
            return ""
        if precision == "fp32":
            self.fp32_losses[model] = losses
        want = self.fp32_losses.get(model)
        if not want or precision == "fp32":
            return ""
        last = range(2 * min(len(want), len(losses)) // 3, min(len(want), len(losses)))
        return f"{max((abs(losses[i] - want[i]) / want[i] for i in last), default=0):.3%}"

    def checkpoint_row(self, name, run):
        try:
            lines = [line for line in (run / "log.txt").read_text().splitlines() if "training waited" in line]
        except FileNotFoundError:
            return
        if lines:
            self.session.row("Checkpoints from the GPU's memory", ("run", "log"), [name, lines[-1].split("  ", 1)[-1].strip()])

    def all_speeds(self):
        base, big = (6, 4) if self.options.tiny else (120, 60)
        for model, updates, limit in (("base", base, 60), ("big", big, 75)):
            for precision in PRECISIONS:
                self.speed(model, precision, updates, limit)

    def more_speeds(self):
        updates = 4 if self.options.tiny else 40
        if not self.options.tiny:
            self.speed("base", "mixed_bf16", updates, 40, "data.max_tokens=32768", name="base, 32,768 tokens mixed_bf16")
        self.speed("base", "mixed_bf16", updates, 40, "model.attention_dropout=0.1", name="base, dropout of attention mixed_bf16")
        self.chosen_fp16()
        self.decoding()

    def chosen_fp16(self):
        """train.precision = "auto_fp16" is mixed_fp16 where the GPU has tensor cores for it (capability 7.0), with fairseq's scale."""
        run, updates = self.new_run(), 4
        done = self.session.run("auto_fp16", 40, self.command(run, "base", updates, "train.precision=auto_fp16"), note=False)
        if not (done and done.passed):
            return
        said = [line for line in (run / "log.txt").read_text().splitlines() if "auto_fp16: " in line]
        events = self.events(run)
        half = any("tensor cores" in line and "no tensor cores" not in line for line in said)
        scaled = events[0]["loss_scale"] == (128 if half else 1)
        made = sum(not e.get("skipped", False) for e in events)  # a skipped update is made up for
        bad = len(said) != 1 or not scaled or made != updates or (self.options.device == "cuda" and not half)
        verdict = f"{said[0].split('auto_fp16: ', 1)[1] if said else 'says nothing'}; loss scale {events[0]['loss_scale']:g}, {made} updates"
        self.session.note("auto_fp16", ("FAILED: " if bad else "passed: ") + verdict, done.seconds, fail=bad)
        shutil.rmtree(run, ignore_errors=True)

    def decoding(self):
        """`infer` by eval.precision, of a model that has hardly begun: its outputs are as long as they may be."""
        run, lines = self.new_run(), self.work / "decoded.en"
        if not self.session.dry_run:
            text = (self.work / "train.en").read_text().splitlines(keepends=True)
            lines.write_text("".join(text[:8 if self.options.tiny else 256]))
        done = self.session.run("a model that is decoded", 40, self.command(run, "base", 2), note=False)
        if not self.session.dry_run and not (done and done.passed):
            return
        for precision in PRECISIONS:
            done = self.session.run(f"infer, {precision}", 60, [
                self.programs["stretto"], "infer", run, lines, "--checkpoint", "last", "--stats", f"run.device={self.options.device}",
                f"eval.precision={precision}", "decode.max_len_a=0", "decode.max_len_b=30"])
            found = re.findall(r"([\d,]+) lines? in .*?([\d,.]+) s\s*$", done.output, re.M) if done else []
            if found:
                count, seconds = (float(number.replace(",", "")) for number in found[-1])
                self.session.row("Decoding, beam of 5", ("eval.precision", "lines/s"), [precision, f"{count / max(seconds, 1e-3):.1f}"])
        shutil.rmtree(run, ignore_errors=True)

    # --- several GPUs --------------------------------------------------------------------------------

    def overlap(self, gpus):
        """What dist.overlap hides of the time in which gradients travel."""
        updates = 4 if self.options.tiny else 40
        for wanted in ("true", "false"):
            run = self.new_run()
            done = self.session.run(f"train on {gpus} GPUs, dist.overlap={wanted}", 60, [
                *self.command(run, "base", updates, "train.precision=mixed_bf16", f"dist.overlap={wanted}", f"train.update_freq={gpus}"),
                "--processes", str(gpus)])
            events = self.events(run) if done else []
            warm = len(events) // 3
            if len(events) - warm >= 2:
                steady = events[warm + 1:]
                each = (events[-1]["seconds"] - events[warm]["seconds"]) / len(steady)
                sent, waited = (1e3 * sum(e[key] for e in steady) / len(steady) for key in ("comm_seconds", "comm_wait_seconds"))
                self.session.row("Overlap", ("GPUs", "dist.overlap", "ms an update", "ms under way", "ms waited for", "hidden"), [
                    gpus, wanted, f"{1e3 * each:.1f}", f"{sent:.1f}", f"{waited:.1f}", f"{1 - waited / sent:.0%}" if sent else ""])
            shutil.rmtree(run, ignore_errors=True)

    # --- resuming ------------------------------------------------------------------------------------

    def resume_in(self, precision):
        """12 updates at once, the same again, and stopped after 6: weights and losses to the bit."""
        half, whole = (2, 4) if self.options.tiny else (6, 12)
        runs = [self.new_run() for _ in range(3)]
        plan = [("at once", runs[0], whole), ("again", runs[1], whole), ("the first half", runs[2], half), ("the second half", runs[2], whole)]
        for what, run, updates in plan:
            done = self.session.run(f"resume in {precision}, {what}", 40,
                                    self.command(run, "base", updates, f"train.precision={precision}"), note=False)
            if not self.session.dry_run and not (done and done.passed):
                return
        if self.session.dry_run:
            return
        repeats, resumed = (self.difference(runs[0], other) for other in runs[1:])
        self.session.row("Bits", ("precision", "the same command again", "stopped and resumed"), [precision, repeats, resumed])
        lost = resumed != "equal" and repeats == "equal"  # else the arithmetic itself does not repeat
        self.session.note(f"resume in {precision}", f"FAILED: resumed {resumed}" if lost else f"again: {repeats}; resumed: {resumed}", fail=lost)
        for run in runs:
            shutil.rmtree(run, ignore_errors=True)

    def difference(self, one, other):
        a, b = self.events(one), self.events(other)
        if [e["batch_hash"] for e in a] != [e["batch_hash"] for e in b]:
            return "sees other batches"
        if self.events(one, "end")[-1]["weights_hash"] == self.events(other, "end")[-1]["weights_hash"]:
            return "equal"
        first = next((x["step"] for x, y in zip(a, b) if x["loss"] != y["loss"]), None)
        if first is None:
            return "other weights, equal losses"
        return f"differs from update {first} on, in the loss by {max(abs(x['loss'] - y['loss']) / x['loss'] for x, y in zip(a, b)):.1e}"

    # --- lack of memory --------------------------------------------------------------------------------

    def out_of_memory(self):
        """The allocator is held to a share of what the run took: micro-batches must be split, and losses stay."""
        updates, name = 4, "out of GPU memory"
        free, short = self.new_run(), self.new_run()
        done = self.session.run(f"{name}: with enough", 40, self.command(free, "base", updates, "train.precision=fp32"), note=False)
        if self.session.dry_run:
            self.session.run(f"{name}: with less", 60, self.command(short, "base", updates, "train.precision=fp32"),
                             env={"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:X"})
            return
        if not (done and done.passed):
            return
        total, enough = self.options.gpu_memory, self.peak_mib(self.events(free))
        if not enough or not total:
            self.session.note(name, "not run: the GPU's memory is not known")
            return
        fraction = f"per_process_memory_fraction:{0.7 * enough / total:.5f}"
        done = self.session.run(f"{name}: with less", 60, self.command(short, "base", updates, "train.precision=fp32"),
                                env={"PYTORCH_ALLOC_CONF": fraction, "PYTORCH_CUDA_ALLOC_CONF": fraction}, note=False)
        if not (done and done.passed):
            return
        if self.peak_mib(self.events(short)) > 0.9 * enough:
            self.session.note(name, f"not run: the allocator did not keep to {fraction}")
            return
        a, b = self.events(free), self.events(short)
        apart = max(abs(x["loss"] - y["loss"]) / x["loss"] for x, y in zip(a, b))
        split = sum("split" in e.get("note", "") for e in b)
        verdict = f"{split} of {updates} updates done again with split micro-batches, losses within {apart:.1e}"
        bad = split == 0 or apart > 1e-4
        self.session.note(name, ("FAILED: " if bad else "passed: ") + verdict, done.seconds, fail=bad)
        for run in (free, short):
            shutil.rmtree(run, ignore_errors=True)

    # --- a peer ------------------------------------------------------------------------------------------

    def peers(self):
        """torch.nn.Transformer on the same text, in turn with Stretto, if this machine's Python has torch."""
        if not self.session.dry_run and not has_torch():
            self.session.note("beside torch", "not run: this Python has no torch")
            return
        updates, warm = (4, 2) if self.options.tiny else (80, 20)
        # The most telling row first.
        for model, precision in (("base", "mixed_bf16"), ("big", "mixed_bf16"), ("base", "fp32")):
            ours = " ".join(map(str, self.command("{RUN}", model, "{U}", f"train.precision={precision}")))
            follow = f"{sys.executable} {ROOT}/benchmarks/follow_metrics.py {{RUN}} -- {ours}"
            small = " --tiny" if self.options.tiny else ""
            torch = (f"{sys.executable} {ROOT}/benchmarks/gpu/torch_peer.py --text {self.work} --model {model} --precision {precision} "
                     f"--device {self.options.device} --updates {{U}}{small}")
            done = self.session.run(f"beside torch: {model} {precision}", 90, [
                sys.executable, ROOT / "benchmarks/beside_peers.py", "--rounds", self.options.rounds, "--warm", warm, "--updates", updates,
                "--tool", f"stretto={follow}", "--tool", f"torch={torch}"])
            self.peer_rows(done, "Beside torch.nn.Transformer, target tokens", ("model", "precision"), [model, precision],
                           ("stretto", "torch"))

    # --- BERT --------------------------------------------------------------------------------------------

    def understanding(self, compiled=False):
        """BERT base beside transformers on the same text: masked words on full rows, and labels on lines of many lengths."""
        if not self.session.dry_run and not has_torch("transformers"):
            self.session.note("beside transformers", "not run: this Python has no torch with transformers")
            return
        updates, warm = (4, 2) if self.options.tiny else (80, 20)
        rows = [("text_classification", "finetune", "0.1"), ("masked_lm", "pretrain", "0.1"),
                ("text_classification", "finetune", "0.0"), ("masked_lm", "pretrain", "0.0")]
        for task, of_peer, dropout in rows[-1:] if compiled else rows:
            small = " ".join(BERT_TINY) if self.options.tiny else ""
            ours = (f"{self.programs['stretto']} train {self.work}/{task}.toml --run {{RUN}} --quiet run.device={self.options.device} "
                    f"train.max_steps={{U}} train.precision=mixed_bf16 model.attention_dropout={dropout} {small}")
            follow = f"{sys.executable} {ROOT}/benchmarks/follow_metrics.py {{RUN}} -- {ours}"
            peer = (f"{sys.executable} {ROOT}/benchmarks/gpu/bert_peer.py --text {self.work} --task {of_peer} --precision mixed_bf16 "
                    f"--device {self.options.device} --updates {{U}} --attention-dropout {dropout}{' --tiny --tokens 1024 --samples 16' if self.options.tiny else ''}"
                    f"{' --compile' if compiled else ''}")
            name = f"{of_peer}, attention_dropout {dropout}{', compiled' if compiled else ''}"
            done = self.session.run(f"beside transformers: {name}", 150 if compiled else 90, [
                sys.executable, ROOT / "benchmarks/beside_peers.py", "--rounds", 1 if compiled else self.options.rounds, "--warm", warm,
                "--updates", updates, "--tool", f"stretto={follow}", "--tool", f"transformers={peer}"])
            self.peer_rows(done, "Beside transformers: BERT base, mixed_bf16", ("task",), [name], ("stretto", "transformers"))

    def peer_rows(self, done, title, head, cells, tools):
        if not (done and done.passed):
            return
        for line in done.output.splitlines():
            found = [cell.strip() for cell in line.strip("|").split("|")]
            if found[0] in tools:
                self.session.row(title, (*head, "trainer", "tokens/s: median (min – max)", "ratio", "tokens an update"), [*cells, *found[:4]])

    # --- time by kernel ------------------------------------------------------------------------------------

    def profile(self):
        """Which kernels take the time: a stretch of launches after the first updates. ncu serialises, so gaps do not show."""
        for model in ("base", "text_classification"):
            run = self.new_run()
            config = self.work / f"{model}.toml"
            command = [self.programs["stretto"], "train", config, "--run", run, "--quiet", f"run.device={self.options.device}",
                       "train.max_steps=12", "schedule.warmup_steps=1", "train.precision=mixed_bf16"]
            done = self.session.run(f"time by kernel: {model}", 60, [
                "ncu", "--target-processes", "all", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--launch-skip", "6000",
                "--launch-count", "2400", "--csv", "--page", "raw", "--print-units", "base", *command])
            times = Counter()
            launches = Counter()
            rows = csv.DictReader(line for line in (done.output.splitlines() if done else []) if line.startswith('"'))
            for row in rows:
                if row["ID"].isdigit():  # below the heads stands a line of units
                    times[row["Kernel Name"]] += float(row["gpu__time_duration.sum"].replace(",", ""))
                    launches[row["Kernel Name"]] += 1
            for name, nanoseconds in times.most_common(30):
                self.session.row(f"Time by kernel: {model}, mixed_bf16", ("kernel", "launches", "ms", "share"), [
                    name[:110].replace("|", "/"), launches[name], f"{nanoseconds / 1e6:.3f}", f"{nanoseconds / times.total():.1%}"])
            shutil.rmtree(run, ignore_errors=True)
