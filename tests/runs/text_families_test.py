#!/usr/bin/env python3
"""What training has holds for the families of text too: resume, several processes, half precision, replay, fine-tuning.

    tests/runs/text_families_test.py build/release/stretto [TEST...]

A test is called FAMILY_what_holds. All families share one text; a run makes ten updates.
"""
import array
import atexit
import functools
import json
import math
import random
import re
import shutil
import signal

from harness import TIMING, Lab, check, compare, main
from question_answering_test import squad

TIMING |= {"comm_seconds", "comm_wait_seconds", "processes"}

UPDATES = 10
# Each update has two micro-batches, one for each of two processes. A save is made in front of the next update, so that a
# kill meets no writer at work. The model has more than 65,536 parameters: where dist.strategy = "sharded" cuts.
EXPERIMENT = """
[run]
seed = 3
threads = 1
device = "cpu"
[optim]
name = "adamw"
lr = 3e-3
clip_norm = 1.0
[schedule]
warmup_steps = 2
[train]
max_steps = 10
update_freq = 2
save_every = 3
save_in_background = false
[dist]
deterministic = true
[eval]
every = 4
[report]
every = 1
samples = 2
tensorboard = false
html = false
[tokenizer]
vocab_size = 120
[model]
num_layers = 2
d_model = 32
num_heads = 2
ffn_dim = 512
max_positions = 40
"""
FAMILIES = {
    "masked_lm": """
[task]
name = "masked_lm"
[data]
train = ["train.txt"]
valid = ["valid.txt"]
documents = "line"
packing = "packed"
whole_words = true
max_text_tokens = 24
max_tokens = 192
cache_dir = "cache"
""",
    "question_answering": """
[task]
name = "question_answering"
[data]
train = ["train.json"]
valid = ["valid.json"]
max_text_tokens = 36
max_question_tokens = 16
stride = 10
max_tokens = 160
""",
    "text_classification": """
[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["valid.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
max_tokens = 160
[loss]
class_weights = "balanced"
label_smoothing = 0.1
""",
}
# Another family each, whose encoder and tokenizer one can begin with.
BEGINS_WITH = {"masked_lm": "text_classification", "question_answering": "masked_lm", "text_classification": "masked_lm"}
HEADS = {
    "masked_lm": {"head.dense.weight", "head.dense.bias", "head.norm.weight", "head.norm.bias", "head.bias"},
    "question_answering": {"head.output.weight", "head.output.bias"},
    "text_classification": {"head.pooler.weight", "head.pooler.bias", "head.output.weight", "head.output.bias"},
}
EVAL_KEYS = {
    "masked_lm": {"nll", "ppl", "accuracy"},
    "question_answering": {"exact_match", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1", "best_f1_thresh"},
    "text_classification": {"loss", "accuracy", "f1", "macro_f1", "matthews"},
}
LINES = {
    "masked_lm": ["Åsa lives in [MASK].", "Nora lives in Oslo.", "[MASK] lives in [MASK]. "],
    "question_answering": ["Where does Åsa live?\tÅsa lives in Kraków. Nora lives in Oslo.",
                           "Where does Nora live?\tÅsa lives in Kraków."],
    "text_classification": ["Åsa lives in Kraków.", "Nora lives in Oslo. José lives in Riga."],
}


def write_text(lab):
    """Questions on paragraphs; the paragraphs alone; and with a label, which their last town decides."""
    generator = random.Random(5)
    kinds = {"Oslo": "north", "Malmö": "north", "Turku": "north", "Kraków": "middle", "Riga": "middle", "Lyon": "south"}
    for name, paragraphs in (("train", 60), ("valid", 8)):
        data = squad(generator, name, paragraphs, impossible=True)
        (lab.root / f"{name}.json").write_text(json.dumps(data))
        texts = [paragraph["context"].strip() for article in data["data"] for paragraph in article["paragraphs"]]
        (lab.root / f"{name}.txt").write_text("".join(text + "\n" for text in texts))
        rows = [f"{text}\t{kinds[text.rstrip('.').split()[-1]]}\n" for text in texts]
        (lab.root / f"{name}.tsv").write_text("text\tlabel\n" + "".join(rows))


@functools.cache
def lab_of(stretto):
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    write_text(lab)
    for family, sections in FAMILIES.items():
        (lab.root / f"{family}.toml").write_text(EXPERIMENT + sections)
    return lab


def trained(lab, family, run, *words, env=None, code=0):
    """Trains FAMILY_RUN; what it said."""
    lab.config = lab.root / f"{family}.toml"
    result = lab.train(f"{family}_{run}", *words, env=env)
    check(result.returncode == code, f"{family}, {run}: exit code {result.returncode}: {result.stderr[-3000:]}")
    return result.stderr


def output(lab, *words, input=None, code=0):
    result = lab.run([lab.stretto, *map(str, words)], input=input)
    check(result.returncode == code, f"{' '.join(map(str, words))}: exit code {result.returncode}: {result.stderr}")
    return result.stdout


@functools.cache
def undisturbed(stretto, family):
    """The name of a run of one process. It has more than one slice."""
    lab = lab_of(stretto)
    trained(lab, family, "reference")
    model = lab.root / f"{family}_reference/checkpoints/step_{UPDATES:08}/model.safetensors"
    check(model.stat().st_size > 4 * 65536, f"the test is stale: {family} has {model.stat().st_size} bytes")
    return f"{family}_reference"


def updates_of(lab, run):
    """The updates that were made; those that were skipped are left out."""
    return [event for event in lab.events(run) if event["event"] == "train" and not event.get("skipped")]


def losses_of(lab, run):
    return [event["loss"] for event in updates_of(lab, run)]


def loss_falls(lab, run):
    losses = losses_of(lab, run)
    check(len(losses) == UPDATES and all(map(math.isfinite, losses)), f"{run}: losses {losses}")
    check(min(losses[-3:]) < losses[0], f"{run}: the loss does not fall: {losses}")


def same_curve(lab, reference, run, tolerance):
    """Losses of training and of validations agree up to rounding."""
    def curve(name):
        return [event["loss"] for event in lab.events(name) if event["event"] in ("train", "valid")]
    want, got = curve(reference), curve(run)
    check(len(want) == len(got) and all(abs(a - b) <= tolerance * abs(a) for a, b in zip(want, got)),
          f"{run}: losses {got}, expected {want}")


def ends_the_same_after_a_kill(stretto, family):
    lab, reference = lab_of(stretto), undisturbed(stretto, family)
    loss_falls(lab, reference)
    killed_and_resumed(lab, family, reference, "killed")


def killed_and_resumed(lab, family, reference, run, *words):
    trained(lab, family, run, *words, env={"STRETTO_FAILPOINT": "micro_batch:kill:11"}, code=-signal.SIGKILL)
    saved = [path.name for path in (lab.root / f"{family}_{run}/checkpoints").glob("step_*")]
    check("step_00000003" in saved and len(updates_of(lab, f"{family}_{run}")) == 5,
          f"the test is stale: killed in another update, with {saved}")
    said = trained(lab, family, run, *words)
    check("resuming from the checkpoint of step" in said, said)
    compare(lab, reference, f"{family}_{run}", f"{family}, {run}, killed in update 6")


def has_the_same_bits_on_two_processes(stretto, family):
    if shutil.which("mpirun") is None:
        print(f"        no mpirun: {family} was not trained by two processes", flush=True)
        return
    lab, reference = lab_of(stretto), undisturbed(stretto, family)
    for strategy in ("all_reduce", "sharded"):
        trained(lab, family, strategy, f"dist.strategy={strategy}", "--processes", "2")
        compare(lab, reference, f"{family}_{strategy}", f"{family}, two processes, {strategy}")
    # Each process computes a part of the samples of each micro-batch, and sends gradients while backward runs.
    parts = ("dist.deterministic=false", "train.update_freq=1")
    trained(lab, family, "whole", *parts)
    trained(lab, family, "parts", *parts, "--processes", "2")
    same_curve(lab, f"{family}_whole", f"{family}_parts", 1e-4)
    alone, shared = (json.loads(output(lab, "eval", lab.root / reference, "--json", *words))
                     for words in ((), ("--processes", 2)))
    check(alone.keys() == shared.keys(), f"{family}: {alone} and {shared}")
    for key, value in alone.items():
        same = abs(value - shared[key]) < 1e-5 if isinstance(value, float) else value == shared[key]
        check(same, f"{family}: {key} of two processes is {shared[key]}, of one {value}")


def trains_in_half_precision(stretto, family):
    lab = lab_of(stretto)
    exact = losses_of(lab, undisturbed(stretto, family))
    for precision in ("mixed_fp16", "mixed_bf16"):
        run = f"{family}_{precision}"
        trained(lab, family, precision, f"train.precision={precision}")
        loss_falls(lab, run)
        scales = [event.get("loss_scale") for event in updates_of(lab, run)]
        check(None not in scales and (min(scales) > 1) == (precision == "mixed_fp16"), f"{run}: loss scales {scales}")
        check(losses_of(lab, run) != exact, f"{run}: nothing was rounded")
        check(abs(losses_of(lab, run)[0] - exact[0]) < 0.02 * exact[0], f"{run}: another first loss")


def scores_in_half_precision(stretto, family):
    """eval.precision: weights stay those of the run in fp32; validation, eval and infer round alike."""
    lab, reference = lab_of(stretto), undisturbed(stretto, family)
    said = trained(lab, family, "scored_in_bf16", "eval.precision=mixed_bf16")
    check("eval.precision: mixed_bf16" in said, said)
    run = f"{family}_scored_in_bf16"
    weights = [lab.essence(name)[-1]["weights_hash"] for name in (reference, run)]
    check(weights[0] == weights[1], f"{family}: validation in half precision changed the weights")
    exact, rounded = ([event["loss"] for event in lab.events(name) if event["event"] == "valid"] for name in (reference, run))
    check(exact != rounded and all(abs(a - b) < 0.02 * a for a, b in zip(exact, rounded, strict=True)),
          f"{family}: validations in fp32 {exact}, in bf16 {rounded}")
    lines = "\n".join(LINES[family]) + "\n"

    def told(name, *words):
        words = ("--checkpoint", "last", *words)
        return (json.loads(output(lab, "eval", lab.root / name, "--json", *words)),
                output(lab, "infer", lab.root / name, "--json", *words, input=lines))
    scores, answers = told(run)
    last = [event for event in lab.events(run) if event["event"] == "valid"][-1]
    for key in (EVAL_KEYS[family] - {"loss"}) & set(last):
        check(abs(scores[key] - last[key]) < 1e-5, f"{family}: {key} is {scores[key]} in eval and {last[key]} in training")
    plain = told(reference)[1]
    check(answers != plain, f"{family}: infer rounds nothing")
    check(told(run, "eval.precision=fp32")[1] == plain, f"{family}: other answers in fp32")
    check(told(reference, "eval.precision=mixed_bf16")[1] == answers, f"{family}: the key does not decide alone")


# Their products are not finite.
OVERFLOW = ('model.init=["encoder.layers.1.ffn.up.bias constant value=1e29", '
            '"encoder.layers.1.ffn.down.weight constant value=1e29"]')


def replays_an_update_that_was_not_finite(stretto, family):
    lab = lab_of(stretto)
    said = trained(lab, family, "infinite", OVERFLOW, "train.forensics.policy=stop", "train.forensics.stop_after=1", code=70)
    check("first not finite was the output of encoder.layers.1.ffn.down (forward)" in said, said)
    [report] = (lab.root / f"{family}_infinite/forensics").glob("step_*.json")
    found = json.loads(report.read_text())
    check(found["first"]["name"] == "encoder.layers.1.ffn.down" and found["first"]["kind"] == "output", f"{found['first']}")
    check(found["first"]["last_finite"].startswith("encoder.layers.1.ffn"), f"{found['first']}")
    again = json.loads(output(lab, "replay", report, "--json"))
    check(again["reproduced"] and again["same_tensor"], f"{again}")
    [trial] = again["trials"]
    check(trial["first"]["name"] == "encoder.layers.1.ffn.down" and trial["samples"] == found["samples"], f"{trial}")
    check(found["samples"], "no sample is named")
    name, shown = {"masked_lm": ("texts", {"text", "masked"}),
                   "question_answering": ("windows", {"id", "question", "paragraph", "answer"}),
                   "text_classification": ("texts", {"text", "label"})}[family]
    check(again[name] and all(set(sample) == {"sample"} | shown for sample in again[name]), f"{again[name]}")
    check(all(sample["sample"] in found["samples"] for sample in again[name]), f"{again[name]}")
    text = output(lab, "replay", report)
    check("as recorded: not finite, first the output of encoder.layers.1.ffn.down" in text, text)
    parts = "id: .*; question: .*; paragraph: .*; answer: " if family == "question_answering" else ".* -> "
    check(re.search(f"\nsample {again[name][0]['sample']}: {parts}", text) and text.endswith("\nreproduced\n"), text)


def accumulates_what_one_micro_batch_has(stretto, family):
    """Updates of a whole epoch: as one micro-batch, as several, and as one that had to be halved."""
    lab = lab_of(stretto)
    large = ("train.max_steps=4", "eval.every=2", "data.max_tokens=100000", "train.update_freq=1")
    said = trained(lab, family, "one", *large)
    [samples] = re.findall(r"training (?:text|windows): ([\d,]+) samples", said)
    samples = int(samples.replace(",", ""))
    check("micro-batches an epoch: 1\n" in said, said)
    each = -(-samples // 3)
    said = trained(lab, family, "several", *large[:-1], "train.update_freq=3", f"data.max_samples={each}")
    check("micro-batches an epoch: 3\n" in said, said)
    same_curve(lab, f"{family}_one", f"{family}_several", 1e-4)
    said = trained(lab, family, "halved", *large, env={"STRETTO_FAILPOINT": "backward:enomem:1"})
    check("update 1: no memory for a micro-batch of" in said, said)
    same_curve(lab, f"{family}_one", f"{family}_halved", 1e-4)


def evaluates_and_infers(stretto, family):
    lab = lab_of(stretto)
    run = lab.root / undisturbed(stretto, family)
    scores = json.loads(output(lab, "eval", run, "--json"))
    check(EVAL_KEYS[family] <= set(scores), f"{family}: {scores}")
    check(all(math.isfinite(scores[key]) for key in EVAL_KEYS[family]), f"{family}: {scores}")
    last = [event for event in lab.events(run.name) if event["event"] == "valid"][-1]
    both = (EVAL_KEYS[family] - {"loss"}) & set(last)
    check(both, f"{family}: {last}")
    for key in both:
        given = json.loads(output(lab, "eval", run, "--json", "--checkpoint", "last"))[key]
        check(abs(given - last[key]) < 1e-5, f"{family}: {key} is {given} in eval and {last[key]} in training")
    lines = LINES[family]
    text = output(lab, "infer", run, input="\n".join(lines) + "\n").splitlines()
    answers = [json.loads(line) for line in output(lab, "infer", run, "--json", input="\n".join(lines) + "\n").splitlines()]
    check(len(answers) == len(lines), f"{family}: {answers}")
    has_the_keys_of(family, answers, text)
    if family == "masked_lm":
        few = output(lab, "infer", run, "--json", "--nbest", 2, input="\n".join(lines) + "\n").splitlines()
        counts = [len(mask["fillers"]) for line in few for mask in json.loads(line)["masks"]]
        check(counts == [2, 2, 2], f"{few}")


def has_the_keys_of(family, answers, text):
    if family == "masked_lm":
        check(all({"text", "masks", "filled"} <= set(answer) for answer in answers), f"{answers}")
        check([len(answer["masks"]) for answer in answers] == [1, 0, 2], f"{answers}")
        for answer in answers:
            check("[MASK]" not in answer["filled"], f"{answer}")
            for mask in answer["masks"]:
                chances = [filler["probability"] for filler in mask["fillers"]]
                check(chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1 + 1e-6, f"{mask}")
                check(all(filler["token"] for filler in mask["fillers"]), f"{mask}")
    elif family == "question_answering":
        check([answer["answer"] for answer in answers] == text, f"{answers}, {text}")
        check(all(answer["answers"] for answer in answers), f"{answers}")
    else:
        for answer, line in zip(answers, text, strict=True):
            check(answer["label"] == line and line in ("north", "middle", "south"), f"{answer}, {line}")
            check(abs(sum(answer["probabilities"].values()) - 1) < 1e-5, f"{answer}")


def listed(said, begin):
    found = re.findall(rf"{begin}: (.*)", said)
    check(len(found) == 1, f"not one line of `{begin}`: {said}")
    return set(found[0].split(", "))


def begins_with_the_encoder_of_another_family(stretto, family):
    lab, other = lab_of(stretto), BEGINS_WITH[family]
    source = undisturbed(stretto, other)
    init = f"train.init_from={lab.root}/{source}"
    lab.config = lab.root / f"{family}.toml"
    output(lab, "check", lab.config, init)
    said = trained(lab, family, "tuned", init, "train.max_steps=3")
    # A tied output is the table of tokens.
    check(listed(said, "begin anew") == HEADS[family], said)
    check(listed(said, "left there") == HEADS[other], said)
    check("tokenizer of " in said, said)
    files = {path.name: path.read_bytes() for path in (lab.root / f"{family}_tuned/tokenizer").iterdir()}
    check(files["tokenizer.json"] == (lab.root / source / "tokenizer/tokenizer.json").read_bytes(), "another tokenizer")


def a_head_of_two_labels_is_no_head_of_answers(stretto):
    lab = lab_of(stretto)
    rows = (lab.root / "train.tsv").read_text().replace("\tsouth\n", "\tmiddle\n")
    (lab.root / "two.tsv").write_text(rows)
    two = [f'data.{name}=["{lab.root}/two.tsv"]' for name in ("train", "valid")]
    trained(lab, "text_classification", "two", *two, "train.max_steps=3")
    init = f"train.init_from={lab.root}/text_classification_two"
    said = trained(lab, "question_answering", "from_two", init, "train.max_steps=3")
    check(listed(said, "begin anew") == HEADS["question_answering"], said)
    check(listed(said, "left there") == HEADS["text_classification"], said)


LORA = ("model.lora.rank=4", "model.lora.alpha=8", 'model.lora.maps=["*attention*", "*ffn*"]', "optim.lr=1e-2")


def tensors_of(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    heads = json.loads(data[8:begin])
    return {name: array.array("f", data[begin + head["data_offsets"][0]:begin + head["data_offsets"][1]])
            for name, head in heads.items() if name != "__metadata__"}


def far(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def exports_its_lora_merged(stretto, family):
    lab, source = lab_of(stretto), undisturbed(stretto, family)
    trained(lab, family, "lora", *LORA, f"train.init_from={lab.root}/{source}")
    run = lab.root / f"{family}_lora"
    weights, before = (tensors_of(lab.root / name / f"checkpoints/step_{UPDATES:08}/model.safetensors")
                       for name in (run.name, source))
    lora = [name for name in weights if name.endswith((".lora_a", ".lora_b"))]
    check(len(lora) == 16, f"{family}: {lora}")
    best = [name for name in before if name.startswith("encoder.")]
    check(all(any(weights[name]) for name in lora), f"{family}: LoRA is zero")
    check(all(name in weights for name in best), f"{family}: {sorted(weights)}")
    folder = lab.root / f"{family}_folder"
    output(lab, "export", run, "--format", "hf", "--checkpoint", "last", folder)
    check(not any("lora" in name for name in tensors_of(folder / "model.safetensors")), "LoRA was exported apart")
    back = lab.root / f"{family}_back"
    output(lab, "import", folder, "--run", back)
    lines = "Åsa lives in Kraków.\nNora lives in Oslo.\n\n"
    vectors = {}
    for name in (run, back, lab.root / source):
        rows = output(lab, "embed", name, "--checkpoint", "last", input=lines).splitlines()
        vectors[name] = [json.loads(row) for row in rows]
        check(len(rows) == 3 and all(len(row) == 32 for row in vectors[name]), f"{name}: {rows}")
    check(all(far(a, b) < 1e-5 for a, b in zip(vectors[run], vectors[back])), f"{family}: export has other vectors")
    check(far(vectors[run][0], vectors[lab.root / source][0]) > 1e-3, f"{family}: LoRA changed nothing")
    given = "\n".join(LINES[family]) + "\n"
    # The folder does not say whether a question may have no answer.
    words = ("data.version=2",) if family == "question_answering" else ()
    answers = [output(lab, "infer", name, "--checkpoint", "last", *words, input=given) for name in (run, back)]
    check(answers[0] == answers[1], f"{family}: {answers}")


def trains_lora_alike_after_a_kill_and_on_two_processes(stretto, family):
    lab, source = lab_of(stretto), undisturbed(stretto, family)
    words = (*LORA, f"train.init_from={lab.root}/{source}")
    if not (lab.root / f"{family}_lora").exists():
        trained(lab, family, "lora", *words)
    killed_and_resumed(lab, family, f"{family}_lora", "killed_lora", *words)
    if shutil.which("mpirun") is not None:
        trained(lab, family, "shared_lora", *words, "dist.strategy=sharded", "--processes", "2")
        compare(lab, f"{family}_lora", f"{family}_shared_lora", f"{family}, LoRA, two processes")


ADAPTERS = ("model.adapter.dim=4", 'model.adapter.train=["head.*", "*norm*"]', "optim.lr=1e-2")


def trains_adapters_alike_after_a_kill(stretto, family):
    lab, source = lab_of(stretto), undisturbed(stretto, family)
    last = f"checkpoints/step_{UPDATES:08}"
    words = (*ADAPTERS, f"train.init_from={lab.root}/{source}/{last}")
    said = trained(lab, family, "adapters", *words)
    check("adapters of this model are not there" in said, said)
    run = lab.root / f"{family}_adapters"
    weights, before = (tensors_of(lab.root / name / last / "model.safetensors") for name in (run.name, source))
    adapters = [name for name in weights if ".adapter." in name]
    check(len(adapters) == 16 and all(any(weights[name]) for name in adapters), f"{family}: {adapters}")
    for name in before:
        # A tied output is the table of tokens.
        moves = name.startswith("head.") or "norm" in name or (family, name) == ("masked_lm", "encoder.embedding.weight")
        check((weights[name] != before[name]) == moves, f"{family}: {name}")
    killed_and_resumed(lab, family, run.name, "killed_adapters", *words)
    # Another run begins with them, and one without has no place for them.
    said = trained(lab, family, "more_adapters", *ADAPTERS, f"train.init_from={run}")
    check("not there" not in said, said)
    said = trained(lab, family, "no_adapters", "model.adapter.dim=0", f"train.init_from={run}", code=65)
    check("give [model.adapter]" in said, said)
    said = lab.run([lab.stretto, "export", str(run), "--format", "hf", str(lab.root / f"{family}_refused")])
    check(said.returncode == 2 and "model.adapter.dim = 4" in said.stderr, said.stderr)
    check(not (lab.root / f"{family}_refused").exists(), "a folder was written")


UNFREEZE = ('train.unfreeze=["encoder.layers.1.* 2", "encoder.layers.0.* 5", "encoder.* 8"]', "optim.layer_decay=0.8",
            "train.keep_last=9")


def unfreezes_alike_after_a_kill(stretto, family):
    lab = lab_of(stretto)
    trained(lab, family, "unfrozen", *UNFREEZE)
    killed_and_resumed(lab, family, f"{family}_unfrozen", "killed_unfrozen", *UNFREEZE)
    at = {step: tensors_of(lab.root / f"{family}_unfrozen/checkpoints/step_{step:08}/model.safetensors") for step in (3, 6, 9)}
    for name, moves in (("layers.1.ffn.up", True), ("layers.0.ffn.up", True), ("embedding", False)):
        tensor = f"encoder.{name}.weight"
        check((at[3][tensor] != at[6][tensor]) == moves, f"{family}: {tensor} from update 3 to 6")
        check(at[6][tensor] != at[9][tensor], f"{family}: {tensor} stays as it was")


HOLDS = (ends_the_same_after_a_kill, has_the_same_bits_on_two_processes, trains_in_half_precision, scores_in_half_precision,
         replays_an_update_that_was_not_finite, accumulates_what_one_micro_batch_has, evaluates_and_infers,
         begins_with_the_encoder_of_another_family, exports_its_lora_merged,
         trains_lora_alike_after_a_kill_and_on_two_processes, trains_adapters_alike_after_a_kill, unfreezes_alike_after_a_kill)

if __name__ == "__main__":
    main({f"{family}_{holds.__name__}": functools.partial(holds, family=family) for family in FAMILIES for holds in HOLDS}
         | {a_head_of_two_labels_is_no_head_of_answers.__name__: a_head_of_two_labels_is_no_head_of_answers})
