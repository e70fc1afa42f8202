#!/usr/bin/env python3
"""Data that change between a stop and its resume: refused with the file and the place, or accepted and noted.

    tests/runs/changed_data_test.py build/release/stretto [TEST...]
"""
import contextlib
import functools
import json

from harness import CONFIG, Lab, check, main
from matrix.image_rows import BEGIN as IMAGE_BEGIN, picture, write_pictures
from opens import Opens

KEYS = ("train.max_steps=4", "train.save_every=2", "eval.every=2", "train.update_freq=1")
LONGER = ("train.max_steps=6", *KEYS[1:])

COMMON = """
[run]
seed = 3
threads = 1
device = "cpu"
[optim]
lr = 3e-3
[schedule]
warmup_steps = 2
[report]
every = 1
tensorboard = false
html = false
"""
# As small as a family of text can be.
TEXT = COMMON + """
[tokenizer]
vocab_size = 80
[model]
num_layers = 1
d_model = 16
num_heads = 2
ffn_dim = 32
max_positions = 40
"""
FAMILIES = {
    "language_model": """
[task]
name = "language_model"
[data]
train = ["train.txt"]
valid = ["valid.txt"]
max_text_tokens = 24
max_tokens = 192
cache_dir = "cache"
""",
    # Its state goes from update to update, and with it from before the stop.
    "recurrent": """
[task]
name = "language_model"
[data]
train = ["train.txt"]
valid = ["valid.txt"]
format = "lines"
lanes = 4
bptt = 8
cache_dir = "cache"
[model]
name = "lstm"
num_layers = 1
d_model = 16
hidden_dim = 16
[tokenizer]
type = "word"
vocab_size = 80
""",
    "masked_lm": """
[task]
name = "masked_lm"
[data]
train = ["train.txt"]
valid = ["valid.txt"]
documents = "line"
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
""",
}
# The products of its weights are not finite.
OVERFLOW = ('model.init=["encoder.layers.0.ffn.up.bias constant value=1e29", '
            '"encoder.layers.0.ffn.down.weight constant value=1e29"]')
NAMES = ("Anna", "Bela", "Jose", "Nora", "Peter")
TOWNS = ("Oslo", "Turku", "Riga", "Lyon")


def write_text(lab):
    """Who lives where: as lines, as questions on paragraphs, and with the part of the map as a label."""
    for name, count in (("train", 60), ("valid", 8)):
        lines, paragraphs, rows = [], [], ["text\tlabel\n"]
        for i in range(count):
            who, where = NAMES[i % len(NAMES)], TOWNS[i * 7 % len(TOWNS)]
            text = f"{who} lives in {where}."
            lines.append(text + "\n")
            rows.append(f"{text}\t{'north' if where in TOWNS[:3] else 'south'}\n")
            paragraphs.append({"context": text, "qas": [{"id": f"{name}{i}{j}", "question": f"{asked} {who} live?", "answers": [
                {"text": where, "answer_start": text.index(where)}]} for j, asked in enumerate(("Where does", "In which town does"))]})
        (lab.root / f"{name}.txt").write_text("".join(lines))
        (lab.root / f"{name}.tsv").write_text("".join(rows))
        (lab.root / f"{name}.json").write_text(json.dumps({"version": "1.1", "data": [{"title": name, "paragraphs": paragraphs}]}))


def with_line(number, change):
    """An edit of a text: its line of this number, from 1, as `change` makes it; None removes it."""
    def edited(text):
        lines = text.splitlines(keepends=True)
        line = change(lines[number - 1])
        lines[number - 1:number] = [] if line is None else [line]
        return "".join(lines)
    return edited


def without_a_question(text):
    data = json.loads(text)
    data["data"][0]["paragraphs"][0]["qas"].pop()
    return json.dumps(data)


def other_label(line):
    text, label = line.rstrip("\n").split("\t")
    return f"{text}\t{'north' if label != 'north' else 'south'}\n"


# What changes, and what a message says of it: the key, the file and the place.
EDITS = {
    "translation": [("train.src", with_line(5, lambda line: None)), ("train.tgt", with_line(5, lambda line: None))],
    "language_model": [("train.txt", with_line(17, lambda line: "Nora lives in Lyon.\n"))],
    "recurrent": [("train.txt", with_line(17, lambda line: "Nora lives in Lyon.\n"))],
    "masked_lm": [("train.txt", with_line(17, lambda line: "Nora lives in Lyon.\n"))],
    "question_answering": [("train.json", without_a_question)],
    "text_classification": [("train.tsv", with_line(9, other_label))],
}
SAID = {
    "translation": ("data.train_src: {root}/train.src: first differs in line 5 (399 lines now, 400 then)",
                    "data.train_tgt: {root}/train.tgt: first differs in line 5 (399 lines now, 400 then)"),
    "language_model": ("data.train: {root}/train.txt: first differs in line 17",),
    "recurrent": ("data.train: {root}/train.txt: first differs in line 17",),
    "masked_lm": ("data.train: {root}/train.txt: first differs in line 17",),
    "question_answering": ("data.train: {root}/train.json: first differs in line 1, bytes 1 to 4,096 of the content",),
    "text_classification": ("data.train: {root}/train.tsv: first differs in line 9",),
}
VALIDATION_EDITS = {
    "translation": [("valid.src", with_line(3, lambda line: None)), ("valid.tgt", with_line(3, lambda line: None))],
    "language_model": [("valid.txt", with_line(4, lambda line: "Nora lives in Lyon.\n"))],
    "recurrent": [("valid.txt", with_line(4, lambda line: "Nora lives in Lyon.\n"))],
    "masked_lm": [("valid.txt", with_line(4, lambda line: "Nora lives in Lyon.\n"))],
    "question_answering": [("valid.json", without_a_question)],
    "text_classification": [("valid.tsv", with_line(2, other_label))],
}
SAID_OF_VALIDATION = {
    "translation": ("data.valid_src: {root}/valid.src: first differs in line 3 (19 lines now, 20 then)",
                    "data.valid_tgt: {root}/valid.tgt: first differs in line 3 (19 lines now, 20 then)"),
    "language_model": ("data.valid: {root}/valid.txt: first differs in line 4",),
    "recurrent": ("data.valid: {root}/valid.txt: first differs in line 4",),
    "masked_lm": ("data.valid: {root}/valid.txt: first differs in line 4",),
    "question_answering": ("data.valid: {root}/valid.json: first differs in line 1",),
    "text_classification": ("data.valid: {root}/valid.tsv: first differs in line 2",),
}


@contextlib.contextmanager
def lab_with(stretto, family):
    with Lab(stretto) as lab:
        if family != "translation":
            write_text(lab)
        short = CONFIG.replace("warmup_steps = 10", "warmup_steps = 2")
        of_bytes = TEXT.replace("vocab_size = 80", "vocab_size = 280")  # there are 256
        text = {"language_model": of_bytes, "recurrent": COMMON}.get(family, TEXT)
        lab.config.write_text(short if family == "translation" else text + FAMILIES[family])
        yield lab


def edit(lab, edits):
    for name, change in edits:
        text = (lab.root / name).read_text()
        (lab.root / name).write_text(change(text))
        check((lab.root / name).read_text() != text, f"the test is stale: {name} is as it was")


def expect(result, code, *said):
    check(result.returncode == code, f"exit code {result.returncode}: {result.stderr[-3000:]}")
    for text in said:
        check(text in result.stderr, f"`{text}` is not in: {result.stderr[-3000:]}")


def accepted(lab, run):
    return json.loads((lab.root / run / "run.json").read_text()).get("accepted_data", [])


def told(lab, run):
    return [event for event in lab.events(run) if event["event"] == "data"]


def are_refused_and_accepted(stretto, family):
    with lab_with(stretto, family) as lab:
        expect(lab.train("run", *KEYS), 0)
        config = (lab.root / "run/config.toml").read_text()
        edit(lab, EDITS[family])
        said = [text.format(root=lab.root) for text in SAID[family]]
        expect(lab.train("run", *LONGER), 65, "the data have changed since the run in", "--accept-data goes on", *said)
        check((lab.root / "run/config.toml").read_text() == config, "a refused resume has written")
        expect(lab.train("run", *LONGER, "report.html=true", "--accept-data"), 0, "warning: step 4: from here on with", *said)
        [entry] = accepted(lab, "run")
        check(entry["step"] == 4 and len(entry["files"]) == len(said), f"{entry}")
        [event] = told(lab, "run")
        check(event["step"] == 4 and said[0] in event["note"], f"{event}")
        steps = [(e["event"], e["step"]) for e in lab.events("run")]
        check(steps.index(("data", 4)) == steps.index(("train", 5)) - 1, f"{steps}")
        check("first differs in line" in (lab.root / "run/report.html").read_text(), "the report says nothing of it")
        expect(lab.train("run", "train.max_steps=8", *KEYS[1:]), 0)
        check(told(lab, "run") == [event] and len(accepted(lab, "run")) == 1, "it is told again")
        check("is not what it was when the checkpoint" not in (lab.root / "run/log.txt").read_text(), "a false alarm")


def of_validation_are_refused_and_those_put_back_go_on(stretto, family):
    with lab_with(stretto, family) as lab:
        expect(lab.train("run", *KEYS), 0)
        said = [text.format(root=lab.root) for text in SAID_OF_VALIDATION[family]]
        whole = {name: (lab.root / name).read_text() for name, _ in VALIDATION_EDITS[family]}
        edit(lab, VALIDATION_EDITS[family])
        expect(lab.train("run", *LONGER), 65, *said)
        for name, text in whole.items():
            (lab.root / name).write_text(text)
        expect(lab.train("run", *LONGER), 0)
        check(not accepted(lab, "run"), "nothing was accepted")
        edit(lab, VALIDATION_EDITS[family])
        expect(lab.train("run", "train.max_steps=7", *KEYS[1:], "--accept-data"), 0, "of different validation data", *said)


def are_noted_wherever_the_process_is_killed(stretto):
    with lab_with(stretto, "text_classification") as lab:
        expect(lab.train("run", *KEYS), 0)
        edit(lab, EDITS["text_classification"])
        # Between run.json and data.json, before data.json is renamed, and before metrics.jsonl has it.
        for place in ("data_record.write:kill", "file.rename:kill:2", "metrics.write:kill"):
            killed = lab.train("run", *LONGER, "--accept-data", env={"STRETTO_FAILPOINT": place})
            check(killed.returncode == -9, f"{place}: exit code {killed.returncode}: {killed.stderr}")
            check(len(accepted(lab, "run")) <= 1, f"{place}: {accepted(lab, 'run')}")
            if place != "metrics.write:kill":
                expect(lab.train("run", *LONGER), 65, "first differs in line 9")
        # The last kill came behind both files: the run knows what it goes on with.
        expect(lab.train("run", *LONGER), 0)
        check([entry["step"] for entry in accepted(lab, "run")] == [4], f"{accepted(lab, 'run')}")
        check([event["step"] for event in told(lab, "run")] == [4], f"{told(lab, 'run')}")


def of_a_damaged_record_are_not_known(stretto):
    with lab_with(stretto, "text_classification") as lab:
        expect(lab.train("run", *KEYS), 0)
        record = lab.root / "run/data.json"
        whole = record.read_text()
        record.write_text(whole.replace('"lines": ', '"lines": 1', 1))
        expect(lab.train("run", *LONGER), 65, f"{record}: is damaged")
        record.unlink()
        expect(lab.train("run", *LONGER), 65, f"{record}: is missing")
        expect(lab.train("run", *LONGER, "--accept-data"), 0, "is damaged or missing")
        expect(lab.train("run", *LONGER), 0)


def are_noticed_by_replay(stretto):
    with lab_with(stretto, "text_classification") as lab:
        keys = (*KEYS, OVERFLOW, "train.forensics.policy=stop", "train.forensics.stop_after=1")
        expect(lab.train("run", *keys), 70)
        [report] = (lab.root / "run/forensics").glob("step_*.json")
        with Opens(lab.root / "train.tsv") as opens:
            expect(lab.run([stretto, "replay", str(report)]), 0)
        check(opens.count == 1, f"a replay opens its data {opens.count} times")
        edit(lab, EDITS["text_classification"])
        expect(lab.run([stretto, "replay", str(report)]), 65, "first differs in line 9", "put the files back")


def end_a_search_and_several_seeds(stretto, family):
    """First those of validation, and when they are accepted, those of training."""
    with lab_with(stretto, family) as lab:
        keys = list(KEYS)
        space = lab.root / "space.toml"
        search = [stretto, "search", str(space), "--dir", str(lab.root / "search")]

        def more_trials(number):
            space.write_text(f'[search]\nconfig = "{lab.config.name}"\noverrides = {json.dumps(keys)}\nmax_trials = {number}\nslots = 1\n'
                             '[method]\nname = "random"\n[[space]]\nkey = "optim.lr"\nname = "log"\nmin = 1e-4\nmax = 1e-2\n')

        more_trials(1)
        expect(lab.run(search), 0)
        expect(lab.train("seeds", *keys, "--seeds", "1,"), 0)
        for number, (edits, places) in enumerate(((VALIDATION_EDITS, SAID_OF_VALIDATION), (EDITS, SAID)), 1):
            edit(lab, edits[family])
            said = [text.format(root=lab.root) for text in places[family]]
            more_trials(number + 1)
            seeds = [*keys, "--seeds", str(number + 1)]
            expect(lab.train("seeds", *seeds), 65, *said)
            expect(lab.train("seeds", *seeds, "--accept-data"), 0, f"seed {number}: finished already", *said)
            told_by_seeds = json.loads((lab.root / "seeds/seeds.json").read_text())["accepted_data"]
            check(len(told_by_seeds) == number and said[0] in told_by_seeds[-1]["changes"], f"{told_by_seeds}")
            expect(lab.run(search), 65, *said)
            trials = [json.loads(line) for line in (lab.root / "search/trials.jsonl").read_text().splitlines()]
            check([trial["state"] for trial in trials] == ["finished"] * number, f"{trials}")
            expect(lab.run([*search, "--accept-data"]), 0, *said)


PICTURES = COMMON + IMAGE_BEGIN + """[model]
name = "resnet"
preset = "none"
depth = 8
base_width = 8
"""


def of_pictures_are_refused_and_named(stretto):
    """A folder of pictures is compared picture by picture."""
    with Lab(stretto) as lab:
        write_pictures(lab.root)
        lab.config.write_text(PICTURES)
        expect(lab.train("run", *KEYS), 0)
        changed = lab.root / "pictures/train/grey/3.png"
        changed.write_bytes(picture("rows", 3))
        expect(lab.train("run", *LONGER), 65, f"data.train: {lab.root}/pictures/train: ", "grey/3.png")
        expect(lab.train("run", *LONGER, "--accept-data"), 0, "warning: step 4: from here on with", "grey/3.png")


FAMILY_TESTS = {f"{family}_data_{test.__name__}": functools.partial(test, family=family)
                for test in (are_refused_and_accepted, of_validation_are_refused_and_those_put_back_go_on, end_a_search_and_several_seeds)
                for family in EDITS}
TESTS = (of_pictures_are_refused_and_named, are_noted_wherever_the_process_is_killed, of_a_damaged_record_are_not_known, are_noticed_by_replay)

if __name__ == "__main__":
    main(FAMILY_TESTS | {test.__name__: test for test in TESTS})
