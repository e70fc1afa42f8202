#!/usr/bin/env python3
"""A configuration names a model folder of transformers, or a run of one, as train.init_from, and leaves [model] out.

    tests/runs/fine_tune_test.py build/release/stretto [TEST...]
"""
import json
import pathlib
import re
import shutil

from harness import Lab, check, main

FOLDERS = pathlib.Path(__file__).resolve().parents[1] / "assets/transformers"
EXPERIMENT = """
[run]
seed = 3
threads = 1
device = "cpu"
[optim]
name = "adamw"
lr = 1e-3
[schedule]
warmup_steps = 0
[train]
max_steps = 3
save_every = 2
[eval]
every = 9
[report]
every = 1
tensorboard = false
html = false
"""
TASKS = {
    "text_classification": """
[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["train.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
max_unknown = 1
""",
    "question_answering": """
[task]
name = "question_answering"
[data]
train = ["train.json"]
valid = ["train.json"]
max_text_tokens = 28
max_question_tokens = 8
stride = 8
max_unknown = 1
""",
    "masked_lm": """
[task]
name = "masked_lm"
[data]
train = ["train.txt"]
valid = ["train.txt"]
documents = "line"
max_text_tokens = 24
max_unknown = 1
cache_dir = "cache"
""",
    "translation": """
[data]
train_src = ["train.txt"]
train_tgt = ["train.txt"]
valid_src = ["train.txt"]
valid_tgt = ["train.txt"]
max_src_tokens = 24
max_tgt_tokens = 24
max_unknown = 1
cache_dir = "cache"
""",
}
LINES = ["the red dog sees the house", "who is the blue cat", "the cat sees the red house", "is the dog red"]


def lab_of(stretto, task):
    lab = Lab(stretto, EXPERIMENT + TASKS[task])
    (lab.root / "train.txt").write_text("".join(line + "\n" for line in LINES))
    labels = ["LABEL_0", "LABEL_1", "LABEL_2", "LABEL_1"]
    rows = "".join(f"{line}\t{label}\n" for line, label in zip(LINES, labels))
    (lab.root / "train.tsv").write_text("text\tlabel\n" + rows)
    questions = [{"id": str(i), "question": "who is it?",
                  "answers": [{"text": line.split()[1], "answer_start": line.index(line.split()[1])}]}
                 for i, line in enumerate(LINES)]
    paragraphs = [{"context": line, "qas": [question]} for line, question in zip(LINES, questions)]
    (lab.root / "train.json").write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    return lab


def folder_in(lab, name):
    shutil.copytree(FOLDERS / name, lab.root / name)
    return f"train.init_from={lab.root}/{name}"


def succeeded(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result.stderr


def weights(lab, run):
    return lab.events(run)[-1]["weights_hash"]


def model_section(run):
    """[model] of a run, with its sections, as somebody would copy it."""
    lines, inside = [], False
    for line in (run / "config.toml").read_text().splitlines():
        if line.startswith("["):
            inside = line.startswith("[model")
        if inside and not line.startswith("head ="):
            lines.append(line)
    return "\n".join(lines) + "\n"


def listed(said, begin):
    """The names behind `begin: `."""
    found = re.findall(rf"  {begin}: (.*)", said)
    check(len(found) == 1, f"not one line of `{begin}`: {said}")
    return set(found[0].split(", "))


def files_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def a_folder_alone_is_its_import_with_the_whole_model(stretto):
    with lab_of(stretto, "text_classification") as lab:
        folder = folder_in(lab, "bert")
        succeeded(lab.run([stretto, "import", str(lab.root / "bert"), "--run", str(lab.root / "imported")]))
        before = files_below(lab.root)
        line = (f"keys of [model] that are not given are those of {lab.root}/bert: preset = \"none\", num_layers = 2, "
                "d_model = 16, num_heads = 2, ffn_dim = 32, max_positions = 32")
        checked = lab.run([stretto, "check", str(lab.config), folder])
        check(checked.returncode == 0 and line in checked.stdout.splitlines(), checked.stdout + checked.stderr)
        told = json.loads(lab.run([stretto, "check", str(lab.config), folder, "--json"]).stdout)
        check(told["taken"] == line, told)
        check(files_below(lab.root) == before, "check wrote something")
        said = succeeded(lab.train("direct", folder))
        check(line in said and "imported BertForSequenceClassification of " in said, said)
        after = {path: bytes for path, bytes in files_below(lab.root).items()
                 if not {lab.root / "direct", lab.root / "user_cache"} & set(path.parents)}
        check(after == before, "training wrote something outside of its run")
        imported = f"train.init_from={lab.root}/imported"
        said = succeeded(lab.train("of_run", imported))
        check(f"are those of {lab.root}/imported: preset" in said, said)
        recipe = lab.config.read_text()
        lab.config.write_text(recipe + model_section(lab.root / "imported"))
        said = succeeded(lab.train("typed", imported))
        check("are those of" not in said, f"nothing was left to the other run: {said}")
        lab.config.write_text(recipe)
        check(weights(lab, "direct") == weights(lab, "typed") == weights(lab, "of_run"), "other weights")
        # The run is whole: what it began with may go.
        (lab.root / "bert").rename(lab.root / "gone")
        said = succeeded(lab.train("direct", folder, "train.max_steps=5"))
        check("resuming from the checkpoint of step 3" in said, said)
        out = lab.run([stretto, "infer", str(lab.root / "direct")], input="the red dog\n")
        check(out.returncode == 0 and out.stdout.startswith("LABEL_"), out.stdout + out.stderr)
        succeeded(lab.run([stretto, "eval", str(lab.root / "direct")]))
        # An export looks at its target before it reads a checkpoint.
        (lab.root / "there").mkdir()
        (lab.root / "there/mine").write_text("x")
        shutil.rmtree(lab.root / "of_run/checkpoints")
        taken = lab.run([stretto, "export", str(lab.root / "of_run"), "--format", "hf", str(lab.root / "there")])
        check(taken.returncode == 2 and "there is there already" in taken.stderr, taken.stderr)
        fresh = lab.train("fresh", folder)
        check(fresh.returncode == 2 and "no file" in fresh.stderr, fresh.stderr)


def what_is_new_and_what_is_left_out_is_said(stretto):
    with lab_of(stretto, "text_classification") as lab:
        said = succeeded(lab.train("run", folder_in(lab, "distilbert")))
        check("imported DistilBertModel of " in said and "  left out: vocab_" in said, said)
        check("  begin anew: head.output.bias, head.output.weight, head.pooler.bias, head.pooler.weight" in said or
              all(name in said.partition("begin anew: ")[2] for name in ("head.pooler.weight", "head.output.bias")), said)
        config = (lab.root / "run/config.toml").read_text()
        check('pooling = "cls_relu"' in config and 'head = "auto"' in config, config)


def each_family_begins_with_its_folder(stretto):
    for task, name in (("masked_lm", "distilbert"), ("question_answering", "roberta"), ("translation", "marian")):
        with lab_of(stretto, task) as lab:
            folder = folder_in(lab, name)
            succeeded(lab.run([stretto, "check", str(lab.config), folder]))
            said = succeeded(lab.train("direct", folder))
            check("begin anew" not in said, said)
            succeeded(lab.run([stretto, "import", str(lab.root / name), "--run", str(lab.root / "imported")]))
            succeeded(lab.train("of_run", f"train.init_from={lab.root}/imported"))
            check(weights(lab, "direct") == weights(lab, "of_run"), f"{task}: other weights")


def seeds_processes_and_a_search_begin_with_it_too(stretto):
    with lab_of(stretto, "text_classification") as lab:
        folder = folder_in(lab, "bert")
        for run, more in (("seeds", ("--seeds", "2")), ("two", ("--processes", "2"))):
            result = lab.train(run, folder, "train.max_steps=2", "train.update_freq=2", *more)
            if run == "two" and result.returncode == 2 and "mpi" in result.stderr.lower():
                continue  # built without MPI
            succeeded(result)
            check("num_layers = 2, d_model = 16" in result.stderr or run == "seeds", result.stderr)
        (lab.root / "search.toml").write_text(
            f'[search]\nconfig = "tiny.toml"\noverrides = ["{folder}"]\nmetric = "loss"\nmax_trials = 2\nslots = 1\n'
            '[method]\nname = "random"\n'
            '[[space]]\nkey = "optim.lr"\nname = "log"\nmin = 1e-4\nmax = 1e-3\n')
        succeeded(lab.run([stretto, "search", str(lab.root / "search.toml"), "--dir", str(lab.root / "search")]))
        best = (lab.root / "search/best.toml").read_text()
        check("\nd_model = 16" in best, best)


def a_head_of_two_labels_is_no_head_of_answers(stretto):
    """Both are two rows, `head.output`: of the same shape, and of another meaning."""
    with lab_of(stretto, "question_answering") as lab:
        answers = lab.config
        lab.config = lab.root / "labels.toml"
        lab.config.write_text(EXPERIMENT + TASKS["text_classification"])
        table = (lab.root / "train.tsv").read_text()
        (lab.root / "train.tsv").write_text(table.replace("LABEL_2", "LABEL_0"))
        succeeded(lab.train("two", folder_in(lab, "bert")))
        lab.config = answers
        said = succeeded(lab.train("answers", f"train.init_from={lab.root}/two"))
        check(listed(said, "begin anew") == {"head.output.bias", "head.output.weight"}, said)
        check(listed(said, "left there") == {"head.output.bias", "head.output.weight", "head.pooler.bias",
                                             "head.pooler.weight"}, said)


def what_does_not_fit_is_refused(stretto):
    with lab_of(stretto, "text_classification") as lab:
        folder = folder_in(lab, "bert")
        def refused(code, words, *overrides):
            for command in ([stretto, "check", str(lab.config)], lab.command("run")):
                result = lab.run([*command, *overrides])
                check(result.returncode == code and all(word in result.stderr for word in words), result.stderr)
            check(not (lab.root / "run").exists(), "a run folder was made")
        refused(2, ("belong to another model: model.num_heads: 2 there, 4 here", "leave these keys out: "), folder, "model.num_heads=4")
        refused(65, ("`encoder.embedding.weight` is [80, 16], the model wants [80, 32]",), folder, "model.d_model=32")
        refused(2, ("data.max_text_tokens", "32 learned positions"), folder, "data.max_text_tokens=64")
        folder_in(lab, "marian")
        refused(2, ("holds a MarianMTModel, a translation model", "BERT, RoBERTa or DistilBERT"),
                f"train.init_from={lab.root}/marian")
        (lab.root / "bert/model.safetensors").unlink()
        refused(2, ("`train.init_from`: ", "bert: no weights"), folder)
        (lab.root / "bert/config.json").write_text('{"model_type": "electra"}')
        refused(65, ("`model_type` is `electra`",), folder)


if __name__ == "__main__":
    helpers = {"files_below", "folder_in", "lab_of", "listed", "model_section", "succeeded", "weights"}
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in helpers})
