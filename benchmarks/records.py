"""What the programs that write result pages share: the head of a page, medians with their spread, files written whole, and a small
text for a dry run."""
import contextlib
import datetime
import json
import os
import pathlib
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def commit():
    """The commit of this checkout, with a word when files differ from it."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)

    head = git("rev-parse", "--short", "HEAD")
    if head.returncode != 0:
        return "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    return head.stdout.strip() + (" with changes" if changed else "")


def processor():
    """Name, family and model, since a virtual machine often gives no more of the name than the maker; and the cores."""
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name", "unknown")
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts.get('model', '?')})"
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def shorter(word):
    """An argument without the folders of this machine: relative to the checkout, or only the last part of the path."""
    key, sign, value = word.partition("=") if "=" in word else ("", "", word)
    if not value.startswith("/"):
        return word
    path = pathlib.Path(value)
    inside = path.is_relative_to(ROOT)
    return key + sign + str(path.relative_to(ROOT) if inside else pathlib.Path("…") / path.name)


def command_line():
    """This program's command, for the page."""
    script = pathlib.Path(sys.argv[0]).resolve()
    words = [shorter(str(script)), *map(shorter, sys.argv[1:])]
    return " ".join(word if "…" in word else shlex.quote(word) for word in words)


def page(title, notes, body, duration="hours", head=None):
    """A dated Markdown page. `head` holds commit, processor, date and command of the time of measuring; None: of now."""
    head = head or head_of_now()
    parts = [f"# {title}: {head['date']}", f"Commit {head['commit']}. Processor: {head['processor']}.", *notes,
             f"```bash skip: {duration}\n{head['command']}\n```", body]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def head_of_now():
    return {"date": datetime.date.today().isoformat(), "commit": commit(), "processor": processor(), "command": command_line()}


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def spread(values, unit=1.0, decimals=2):
    """median (least – most)"""
    least, middle, most = (f"{f(values) / unit:,.{decimals}f}" for f in (min, statistics.median, max))
    return middle if len(values) == 1 else f"{middle} ({least} – {most})"


def write_whole(path, text):
    """A reader, or an interruption, finds the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def publish(text, out):
    """Prints a page, and writes it to `out` if that is a path."""
    print(text, end="", flush=True)
    if out:
        write_whole(out, text)


def json_lines(path):
    """Objects of a JSONL file, [] if there is none. A last line that was not written to its end is left out."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            pass
    return found


def append_json(path, record):
    """Adds a line, on the disk when this returns. If the line before was cut off, the new one does not join it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write((json.dumps(record) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())


def program(parser, name):
    """Absolute path of a program, or an error of the parser."""
    found = shutil.which(str(name)) or shutil.which(str(ROOT / name))
    return str(pathlib.Path(found).resolve()) if found else parser.error(f"{name} is no program: ./dev build makes it")


def made_up_text(folder, pairs=400, seed=1):
    """train, val and test_2016_flickr as .en and .de, for a dry run: each word has one translation."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abdegiklmnorstu", k=draw.randint(2, 6))) for _ in range(200)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", pairs), ("val", 20), ("test_2016_flickr", 20)):
        lines = [draw.choices(words, k=draw.randint(3, 12)) for _ in range(count)]
        for side, turn in (("en", 1), ("de", -1)):
            text = "".join(" ".join(word[::turn] for word in line) + "\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")


@contextlib.contextmanager
def work_folder(options, prefix):
    """Makes options.work, a temporary folder if it names none; of a program with --smoke, options.data is then a made-up text in it."""
    temporary = None if options.work else pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    options.work = (options.work or temporary).resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    if getattr(options, "smoke", False):
        options.data = options.work / "text"
        made_up_text(options.data)
    try:
        yield
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def text_file(folder, name):
    """NAME or NAME.gz in a folder, or in its sub-folder multi30k; ends the program if there is none."""
    for place in (folder, folder / "multi30k"):
        for ending in ("", ".gz"):
            if (place / (name + ending)).is_file():
                return (place / (name + ending)).resolve()
    sys.exit(f"error: no {name} or {name}.gz in {folder}\n  name the folder of the Multi30k data set: --data DIR")


def text_keys(folder):
    """key=value for every file of the data set."""
    names = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    return [f"data.{kind}_{side}={text_file(folder, f'{name}.{language}')}" for kind, name in names.items()
            for side, language in (("src", "en"), ("tgt", "de"))]
