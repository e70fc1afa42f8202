#!/usr/bin/env python3
"""Outputs that a user names, run folders of strangers, answers that nobody should get.

    tests/runs/outputs_test.py build/release/stretto [TEST...]

Tests share small runs: of translation, of labels, and of the latter with weights whose products overflow. Those that hold for every
family have a run of each beside them.
"""
import atexit
import contextlib
import functools
import json
import os
import pathlib
import pty
import shutil
import stat
import subprocess
import threading

from harness import Lab, check, main
from opens import Opens

SHORT = ("train.max_steps=2", "train.save_every=2", "eval.every=2", "schedule.warmup_steps=1")
# One update of this length leaves weights whose products fp32 does not hold.
HUGE = ("train.max_steps=1", "optim.lr=1e30", "schedule.warmup_steps=0", "optim.clip_norm=0")
ESCAPE = "\x1b[31mred"
# What the runs of all families have, but for those of translation.
SMALL_RUN = """
[run]
seed = 3
threads = 1
device = "cpu"
[optim]
lr = 1e-3
[schedule]
warmup_steps = 1
[report]
html = false
tensorboard = false
[train]
max_steps = 2
"""
SMALL = "num_layers = 1\nd_model = 16\nnum_heads = 2\nffn_dim = 32\nmax_positions = 40\n"
LABELS = SMALL_RUN + """
[task]
name = "text_classification"
[data]
train = ["train.tsv"]
valid = ["valid.tsv"]
text = "text"
label = "label"
max_text_tokens = 24
[tokenizer]
vocab_size = 60
[model]
""" + SMALL

# What each other family reads, and what its model is.
OTHERS = {
    "language_model": ("language_model", "txt", 'format = "lines"\nmax_text_tokens = 24', 'preset = "none"\n' + SMALL),
    "recurrent": ("language_model", "txt", 'format = "lines"\nlanes = 2\nbptt = 8', 'name = "lstm"\nnum_layers = 1\nd_model = 16\n'),
    "masked_lm": ("masked_lm", "txt", 'documents = "line"\nmax_text_tokens = 24', SMALL),
    "questions": ("question_answering", "json", "max_text_tokens = 30\nmax_question_tokens = 12\nstride = 8", SMALL),
}
# Every path leads out of the run folder.
ELSEWHERE = SMALL_RUN + """{begin}
[task]
name = "{task}"
[data]
train = ["{there}/train.{ending}"]
valid = ["{there}/valid.{ending}"]
test = ["{there}/test.{ending}"]
cache_dir = "{there}/cache"
max_unknown = 1
{data}
[tokenizer]
{tokenizer}
[model]
{model}"""


def succeed(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result


def fail(result, code, *words):
    check(result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"`{word}` is not in the message: {result.stderr}")
    check("\n  " in result.stderr, f"no remedy: {result.stderr}")


@functools.cache
def lab_of(stretto):
    lab = Lab(stretto)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    # A home of its own: its key says whose runs these are.
    os.environ |= {"STRETTO_STATE": str(lab.root / "state"), "STRETTO_CACHE": str(lab.root / "own_cache")}
    succeed(lab.train("run", *SHORT))
    for name in ("train", "valid"):
        lines = (lab.root / f"{name}.src").read_text().splitlines()[:40]
        rows = [f"{line}\t{('blue', ESCAPE)[i % 2]}\n" for i, line in enumerate(lines)]
        (lab.root / f"{name}.tsv").write_text("text\tlabel\n" + "".join(rows))
    lab.config = lab.root / "labels.toml"
    lab.config.write_text(LABELS)
    succeed(lab.train("labels"))
    succeed(lab.train("huge_labels", "optim.lr=1e30", "schedule.warmup_steps=0", "train.max_steps=1", "data.valid=[]"))
    lab.config = lab.root / "tiny.toml"
    return lab


def questions_on(lines):
    """Flat ones, as `datasets` stores SQuAD: who or what the second word is."""
    return json.dumps([{"id": str(i), "context": line, "question": "who is it?",
                        "answers": {"text": [line.split()[1]], "answer_start": [line.index(" ") + 1]}} for i, line in enumerate(lines)])


@functools.cache
def family_runs(stretto):
    """The folder with the data and tokenizers of a run of each family, which are beside that of the runs themselves."""
    lab = lab_of(stretto)
    there = lab.root / "there"
    there.mkdir(exist_ok=True)
    for split, source, count in (("train", "train", 60), ("valid", "valid", 12), ("test", "valid", 12)):
        lines = [line for line in (lab.root / f"{source}.src").read_text().splitlines() if len(line.split()) > 1][:count]
        (there / f"{split}.txt").write_text("".join(line + "\n" for line in lines))
        (there / f"{split}.tsv").write_text("text\tlabel\n" + "".join(f"{line}\t{'yes' if 'dog' in line else 'no'}\n" for line in lines))
        (there / f"{split}.json").write_text(questions_on(lines))
    words = sorted({word for line in (there / "train.txt").read_text().splitlines() for word in line.split()})
    (there / "vocab.txt").write_text("".join(f"{piece}\n" for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words)))
    (there / "words.txt").write_text("".join(f"{word} 1\n" for word in words))
    for name, (task, ending, data, model) in (OTHERS | {"texts": ("text_classification", "tsv", "max_text_tokens = 24", SMALL)}).items():
        file = 'type = "word"\nmodel = "{}/words.txt"' if task == "language_model" else 'model = "{}/vocab.txt"'
        for begin in ("", f'init_from = "{lab.root}/{name}_first"'):
            lab.config = lab.root / f"{name}.toml"
            lab.config.write_text(ELSEWHERE.format(task=task, there=there, ending=ending, data=data, model=model, begin=begin,
                                                   tokenizer=file.format(there)))
            succeed(lab.train(name if begin else f"{name}_first"))
    lab.config = lab.root / "tiny.toml"
    return there


def call(lab, *words, input=None, env=None):
    return lab.run([lab.stretto, *map(str, words)], input=input, env=env)


def per_line(lab, path):
    return call(lab, "eval", lab.root / "run", "--per-line", path)


# --- outputs that a user names

def outputs_to(stretto, path):
    """A command for each option that names a file to write, in every family that has it."""
    lab, _ = lab_of(stretto), family_runs(stretto)
    return (*(("eval", lab.root / run, "--per-line", path) for run in ("run", "language_model", "recurrent")),
            ("eval", lab.root / "run", "--hypotheses", path),
            *(("eval", lab.root / run, "--predictions", path) for run in ("labels", "questions")),
            *(("eval", lab.root / "questions", option, path) for option in ("--nbest", "--none-scores")),
            ("embed", lab.root / "labels", "--output", path), ("report", lab.root / "run", "--output", path),
            ("tokenizer", "train", "--vocab-size", "40", "--output", path, lab.root / "train.src"))


def links_and_pipes_of_every_option_are_written_through(stretto):
    lab, count = lab_of(stretto), len(outputs_to(stretto, ""))
    (lab.root / "through").mkdir()
    for number in range(count):
        # An array has a name of its own.
        target, link, pipe = (lab.root / f"through/{number}.{name}.npy" for name in ("target", "link", "pipe"))
        target.write_text("old")
        link.symlink_to(target.name)
        words = outputs_to(stretto, link)[number]
        succeed(call(lab, *words, input="a dog\n"))
        check(link.is_symlink() and not target.is_symlink(), f"{words}: the link was replaced")
        written = target.read_bytes()
        check(written and written != b"old", f"{words}: the target has its old content")
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda pipe=pipe, got=got: got.append(pipe.read_bytes()), daemon=True)
        reader.start()
        words = outputs_to(stretto, pipe)[number]
        succeed(call(lab, *words, input="a dog\n"))
        reader.join(timeout=60)
        check(len(got) == 1 and len(got[0]) > 0 and stat.S_ISFIFO(pipe.stat().st_mode), f"{words}: the reader of the pipe got {got}")
        if words[0] not in ("report", "tokenizer"):  # a page tells when it was made
            check(got == [written], f"{words}: a pipe gets other bytes")


def devices_and_pipes_are_written_through(stretto):
    lab = lab_of(stretto)
    expected = lab.root / "expected"
    succeed(per_line(lab, expected))
    lines = expected.read_text()
    check(lines.count("\n") == 20, lines)
    device = lab.root / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_text("")
    except PermissionError:
        # Only root can rename over this one.
        device = pathlib.Path("/dev/null") if os.geteuid() != 0 else None
    for words in () if device is None else outputs_to(stretto, device):
        succeed(call(lab, *words, input="a dog\n"))
        check(stat.S_ISCHR(device.stat().st_mode), f"{words}: the device is gone")
    pipe, got = lab.root / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    succeed(per_line(lab, pipe))
    reader.join(timeout=60)
    check(got == [lines] and stat.S_ISFIFO(pipe.stat().st_mode), f"the reader of the pipe got {got}")
    fail(per_line(lab, "/dev/full"), 74, "/dev/full")
    # Where a shell has put stdout, and what is printed comes behind it.
    both = lab.root / "both"
    with open(both, "w", encoding="utf-8") as out:
        out.write("first\n")
        out.flush()
        command = [lab.stretto, "eval", str(lab.root / "run"), "--json", "--per-line", "/dev/stdout"]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False, timeout=60)
    check(done.returncode == 0, done.stderr.decode())
    check(both.read_text().startswith("first\n" + lines + "{"), both.read_text())


def a_command_that_fails_ends_its_pipe(stretto):
    lab = lab_of(stretto)
    pipe, broken = lab.root / "ended", lab.root / "broken.tsv"
    os.mkfifo(pipe)
    broken.write_text("text\tlabel\na row without a label\n")
    for data in (broken, lab.root / "no_such.tsv"):
        got = []
        reader = threading.Thread(target=lambda got=got: got.append(pipe.read_text()), daemon=True)
        reader.start()
        result = call(lab, "eval", lab.root / "labels", "--data", data, "--predictions", pipe)
        check(result.returncode != 0, result.stdout)
        reader.join(timeout=60)
        check(got == [""], f"the reader of the pipe got {got}: {result.stderr}")


def links_are_followed_and_files_keep_their_rights(stretto):
    lab = lab_of(stretto)
    (lab.root / "kept").mkdir()
    target, link = lab.root / "kept/target", lab.root / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("kept/target")
    (lab.root / "dangling").symlink_to(lab.root / "kept/new")
    for path in (link, lab.root / "dangling"):
        succeed(per_line(lab, path))
        check(path.is_symlink() and path.read_text().count("\n") == 20, f"{path}")
    check(stat.S_IMODE(target.stat().st_mode) == 0o640, oct(target.stat().st_mode))
    check(sorted(path.name for path in (lab.root / "kept").iterdir()) == ["new", "target"], "something was left")
    fail(per_line(lab, lab.root / "kept"), 74, "is a folder")
    fail(per_line(lab, lab.root / "none/file"), 74, "no folder", "--per-line")


def a_folder_beside_an_import_or_export_stays(stretto):
    lab = lab_of(stretto)
    for name in (".tmp-model", ".tmp-again"):
        (lab.root / name).mkdir()
        (lab.root / name / "notes").write_text("precious")
    succeed(call(lab, "export", lab.root / "labels", "--format", "hf", lab.root / "model"))
    succeed(call(lab, "import", lab.root / "model", "--run", lab.root / "again"))
    for name in (".tmp-model", ".tmp-again"):
        check((lab.root / name / "notes").read_text() == "precious", f"{name} was taken")
    check(not list(lab.root.rglob(".stretto-lock")), "a lock was left")


# --- run folders of strangers

SECRET = "swordfish"


def without_leak(lab, *words, env=None):
    """A command on a run whose `config.toml` names a secret, whose text must go nowhere."""
    result = call(lab, *words, input="der hund\n", env=env)
    check(SECRET not in result.stdout + result.stderr, f"{words} prints the secret")
    for path in lab.root.rglob("*"):
        if path.is_file() and path.suffix != ".secret":
            check(SECRET.encode() not in path.read_bytes(), f"{words}: the secret is in {path}")
    return result


def a_strangers_configuration_names_no_files(stretto):
    lab = lab_of(stretto)
    secret = lab.root / "one.secret"
    secret.write_text(f"{SECRET}\n" * 5)
    cache = lab.root / "theft"
    run = lab.root / "stranger"
    succeed(lab.train("stranger", *SHORT, f"data.test_src={secret}", f"data.test_tgt={secret}", f"data.cache_dir={cache}"))
    succeed(call(lab, "eval", run))  # the user's own
    check(stat.S_IMODE(cache.stat().st_mode) == 0o700, oct(cache.stat().st_mode))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in cache.iterdir() if path.is_dir()}
    check(modes == {0o700}, f"{[oct(mode) for mode in modes]}")
    shutil.rmtree(cache)
    shutil.rmtree(lab.root / "own_cache", ignore_errors=True)
    text = ("--src", lab.root / "valid.src", "--tgt", lab.root / "valid.tgt")

    def refused(env=None):
        fail(without_leak(lab, "eval", run, env=env), 78, "data.test_src", str(secret), "--src FILE --tgt FILE")
        for words in (("infer", run), ("report", run), ("export", run, "--format", "hf", lab.root / "nowhere")):
            result = without_leak(lab, *words, env=env)
            check(result.returncode in (0, 2), f"{words}: {result.stderr}")
        result = succeed(without_leak(lab, "eval", run, *text, env=env))
        check(f"{cache} of config.toml is not used" in result.stderr, result.stderr)
        succeed(call(lab, "eval", run, f"data.test_src={secret}", f"data.test_tgt={secret}", env=env))
        check(not cache.exists(), "the folder of the stranger's cache was made")
        shutil.rmtree(lab.root / "own_cache", ignore_errors=True)
    # A folder of another user; then one that was edited, with and without a seal.
    refused(env={"STRETTO_STATE": str(lab.root / "other_state")})
    check(not (lab.root / "other_state").exists(), "eval made a key")
    config = run / "config.toml"
    whole = config.read_text()
    config.write_text(whole.replace("beam_size = ", "beam_size = 1"))
    refused()
    config.write_text("\n".join(line for line in whole.splitlines() if not line.startswith("# ")) + "\n")
    refused()
    # Training with the user's own configuration marks the folder.
    config.write_text(whole)
    words = (*SHORT, f"data.test_src={secret}", f"data.test_tgt={secret}")
    succeed(lab.train("stranger", *words, env={"STRETTO_STATE": str(lab.root / "third_state")}))
    fail(call(lab, "eval", run), 78)
    succeed(lab.train("stranger", *words))
    succeed(call(lab, "eval", run))


def a_strangers_run_of_any_family_opens_nothing_outside(stretto):
    lab, there = lab_of(stretto), family_runs(stretto)
    own = {ending: lab.root / f"own.{ending}" for ending in ("txt", "tsv", "json")}
    for ending, path in own.items():
        shutil.copy(there / f"valid.{ending}", path)
    stranger = {"STRETTO_STATE": str(lab.root / "strange_state"), "STRETTO_CACHE": str(lab.root / "strange_cache")}
    for name, ending in {**{name: ending for name, (_, ending, _, _) in OTHERS.items()}, "texts": "tsv"}.items():
        run = lab.root / name
        line = '{"question": "who is it?", "context": "the dog"}\n' if name == "questions" else "the [MASK]\n"
        # Each folder by itself: what is below it has a watch of its own.
        watched = [there, there / "cache", lab.root / f"{name}_first", lab.root / f"{name}_first/tokenizer",
                   lab.root / f"{name}_first/checkpoints/step_00000002"]
        with contextlib.ExitStack() as stack:
            opens = [stack.enter_context(Opens(folder)) for folder in watched]
            fail(call(lab, "eval", run, env=stranger), 78, "data.test", f"{there}/test.{ending}", "--data FILE")
            succeed(call(lab, "eval", run, "--data", own[ending], env=stranger))
            succeed(call(lab, "infer", run, input=line, env=stranger))
            succeed(call(lab, "report", run, env=stranger))
            for words in (("embed", run), ("export", run, "--format", "hf", lab.root / f"{name}_folder")):
                result = call(lab, *words, input="a dog\n", env=stranger)
                check(result.returncode in (0, 2), f"{words}: {result.stderr}")
        for folder, seen in zip(watched, opens, strict=True):
            check(seen.count == 0, f"{name}: {folder} was opened {seen.count} times")
    check(not (lab.root / "strange_state").exists(), "a key was made")
    with Opens(there) as seen:
        succeed(call(lab, "eval", lab.root / "texts"))  # the user's own
    check(seen.count > 0, "the test is stale: a watch sees nothing")


# --- answers

def an_empty_line_gets_a_problem_and_no_label(stretto):
    lab = lab_of(stretto)
    result = succeed(call(lab, "infer", lab.root / "labels", "--json", input="a dog\n\n  \t \na dog\n"))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    check([line.get("problem") for line in lines] == [None, "an empty text", "an empty text", None], f"{lines}")
    check(["label" in line for line in lines] == [True, False, False, True], f"{lines}")
    check("stdin:2: an empty text" in result.stderr, result.stderr)
    result = succeed(call(lab, "infer", lab.root / "labels", input="\na dog\n"))
    check(result.stdout.startswith("\n") and len(result.stdout.splitlines()) == 2, repr(result.stdout))


def on_screen(command, text=b""):
    """What a program writes to its stdout, which is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        process.stdin.write(text)
        process.stdin.close()
        said = b""
        try:
            while more := os.read(ours, 4096):
                said += more
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        check(process.wait(timeout=60) == 0, f"{command}: {said!r}")
    return said


def nobodys_data_drive_a_terminal(stretto):
    lab = lab_of(stretto)
    for options in ((), ("--json",)):
        said = on_screen([stretto, "infer", lab.root / "labels", "--scores", *options], b"a dog\n")
        check(b"\x1b" not in said and b"[31mred" in said, f"{said!r}")
    piped = succeed(call(lab, "infer", lab.root / "labels", "--scores", input="a dog\n")).stdout
    check(f"\t{ESCAPE}=" in piped, f"a pipe gets other bytes: {piped!r}")
    folder = lab.root / "a\x1b[31mb"
    said = on_screen([stretto, "export", lab.root / "labels", "--format", "hf", folder])
    said += on_screen([stretto, "import", folder, "--run", lab.root / "c\x1b[31md"])
    check(b"\x1b" not in said and said.count(b"[31m") == 2, f"{said!r}")


def answers_that_overflow_are_refused(stretto):
    lab = lab_of(stretto)
    succeed(lab.train("huge", *HUGE, "data.valid_src=[]", "data.valid_tgt=[]"))
    text = lab.root / "lines"
    text.write_text("\nder hund\n")
    for run, words in (("huge", ()), ("huge", ("--sample", "--json")), ("huge_labels", ()), ("huge_labels", ("--json",))):
        result = call(lab, "infer", lab.root / run, text, *words)
        fail(result, 70, f"{text}:2: ", "infinite or NaN", str(lab.root / run), "--checkpoint")
    predictions = lab.root / "never"
    fail(call(lab, "eval", lab.root / "huge_labels", "--data", lab.root / "valid.tsv", "--predictions", predictions), 70, "infinite or NaN")
    check(not predictions.exists(), "predictions were written")
    fail(call(lab, "eval", lab.root / "huge", "--src", lab.root / "valid.src", "--tgt", lab.root / "valid.tgt"), 70, "infinite or NaN")


def a_file_that_a_manifest_lists_must_be_there(stretto):
    lab = lab_of(stretto)
    shutil.copytree(lab.root / "labels", lab.root / "lost")
    (lost,) = [path for path in (lab.root / "lost/tokenizer").iterdir() if path.name == "labels.json"]
    lost.unlink()
    for words in (("eval",), ("infer",), ("embed",), ("average", "--last", "1")):
        fail(call(lab, words[0], lab.root / "lost", *words[1:], input="a dog\n"), 65, "labels.json")


if __name__ == "__main__":
    main({f.__name__: f for f in (devices_and_pipes_are_written_through, a_command_that_fails_ends_its_pipe,
                                  links_are_followed_and_files_keep_their_rights, links_and_pipes_of_every_option_are_written_through,
                                  a_folder_beside_an_import_or_export_stays, a_strangers_configuration_names_no_files,
                                  a_strangers_run_of_any_family_opens_nothing_outside,
                                  an_empty_line_gets_a_problem_and_no_label, nobodys_data_drive_a_terminal,
                                  answers_that_overflow_are_refused, a_file_that_a_manifest_lists_must_be_there)})
