"""What the programs about language models share: texts as files, recipes with their paths, and runs that are followed by the clock.

The data folder has ptb/, wikitext2/, tinyshakespeare/ and public_domain_books/ as their projects publish them. Penn Treebank may lack
its test part.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import records
from understanding import Failed, call, read_text, toml_value

SHAKESPEARE_TRAIN = 1_003_854  # of 1,115,394 characters: nine tenths, as nanoGPT splits them


def shakespeare(data, work):
    """Training and validation text of tinyshakespeare: the first nine tenths, and the rest in order."""
    places = work / "shakespeare/train.txt", work / "shakespeare/valid.txt"
    if not all(place.exists() for place in places):
        text = read_text(first_of(data / "tinyshakespeare", "input.txt"))
        for place, part in zip(places, (text[:SHAKESPEARE_TRAIN], text[SHAKESPEARE_TRAIN:])):
            records.write_whole(place, part)
    return places


def words(data, work, name, lines=0):
    """Training and validation text of ptb or wikitext2, unpacked; with `lines`, so many of the first ones of training, a fifth for
    validation."""
    names = ("ptb.train.txt", "ptb.valid.txt") if name == "ptb" else ("train.txt", "valid.txt")
    places = tuple(work / f"{name}_{lines or 'all'}/{part}.txt" for part in ("train", "valid"))
    for place, file, most in zip(places, names, (lines, lines // 5)):
        if not place.exists():
            found = read_text(first_of(data / name, file)).splitlines(keepends=True)
            records.write_whole(place, "".join(found[:most or None]))
    return places


def books(data, work, most=0):
    """Training and validation text of the books: each is a document, whose last twentieth is held out. `most`: characters of a book."""
    places = work / f"books_{most or 'all'}/train", work / f"books_{most or 'all'}/valid"
    parts = ([], [])
    with tarfile.open(data / "public_domain_books/books_train.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if not member.isfile():
                continue
            text = archive.extractfile(member).read().decode("utf-8")[:most or None]
            cut = text.rfind("\n", 0, len(text) * 19 // 20) + 1
            for found, place, part in zip(parts, places, (text[:cut], text[cut:])):
                found.append(place / (pathlib.PurePath(member.name).stem.replace(" ", "_") + ".txt"))
                if not found[-1].exists():
                    records.write_whole(found[-1], part)
    return parts


def first_of(folder, name):
    """NAME or NAME.gz; ends the program if there is neither."""
    for path in (folder / name, folder / (name + ".gz")):
        if path.is_file():
            return path.resolve()
    sys.exit(f"error: no {name} or {name}.gz in {folder}\n  name the folder of the data sets: --data DIR")


def text_keys(train, valid):
    """key=value for the texts of a recipe; each is a path or a list of paths."""
    both = {"train": train, "valid": valid}
    return [f"data.{key}={toml_value(list(value) if isinstance(value, list) else [value])}" for key, value in both.items()] + ["data.test=[]"]


class Followed:
    """Log lines of a process with the seconds, from its start, at which each came: {update: (seconds, tokens so far, loss)}, and
    validations as (update, seconds, values)."""

    def __init__(self, command, env, updates=0):
        self.updates, self.valid, tokens = {}, [], 0
        self.ended = ""  # of a peer, a JSON object
        begin, last = time.monotonic(), ""
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                       env=env)
            try:
                for line in process.stdout:
                    kind, _, rest = line.strip().partition(" ")
                    now = time.monotonic() - begin
                    if kind == "UPD":
                        number, count, loss = rest.split()
                        tokens += int(count)
                        self.updates[int(number)] = (now, tokens, float(loss))
                    elif kind == "VALID":
                        event = json.loads(rest)
                        self.valid.append((event["step"], now, event))
                    elif kind == "END":
                        self.ended = rest
                    last = line.strip() or last
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds, self.peak_mib = time.monotonic() - begin, usage.ru_maxrss / 1024
            if process.returncode != 0 or not self.updates or max(self.updates) < updates:
                errors.seek(0)
                raise Failed(f"{' '.join(map(str, command))[:300]} … left with {process.returncode}: {last}\n{errors.read()[-3000:]}")

    def rate(self, warm):
        """Tokens a second between the lines of update `warm` and of the last one."""
        (begin, first, _), (end, last, _) = self.updates[warm], self.updates[max(self.updates)]
        return (last - first) / (end - begin)


def training(options, recipe, run, *keys):
    """The command of a training that prints a line for each of its `train` and `valid` events."""
    return [sys.executable, records.ROOT / "benchmarks/follow_metrics.py", run, "--", options.stretto, "train",
            records.ROOT / "configs" / recipe, "--run", run, f"run.threads={options.threads}", "run.device=cpu",
            f"data.cache_dir={options.work}/cache", "report.html=false", "report.tensorboard=false", *keys, *options.key]


def evaluation(options, run, *keys, checkpoint="last", processes=1, per_line=None):
    """What `eval --json` prints."""
    command = [options.stretto, "eval", run, "--checkpoint", checkpoint, "--json", f"run.threads={options.threads}", "run.device=cpu",
               f"data.cache_dir={options.work}/cache", *keys]
    command += ["--processes", processes, "dist.timeout_seconds=600"] if processes > 1 else []
    command += ["--per-line", per_line] if per_line else []
    return json.loads(call(command)[0])


def add_options(parser, *, python=True, data=True):
    """Options that these programs share."""
    parser.add_argument("key", nargs="*", metavar="key=value", help="for Stretto's trainings")
    parser.add_argument("--stretto", default="build/release/stretto")
    if data:
        parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with ptb/, tinyshakespeare/ and so on")
    parser.add_argument("--work", type=pathlib.Path, help="folder for texts, caches and runs; a second call goes on from it; default temporary")
    parser.add_argument("--out", type=pathlib.Path, help="file for the page")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each program")
    if python:
        parser.add_argument("--python", default=sys.executable, help="a Python with torch")
        parser.add_argument("--preload", default="", help="a library for the other programs: MKL's fast path on AMD")
        parser.add_argument("--both", action="store_true", help="the other programs without --preload too")


def checked(parser, options):
    """Options with absolute paths; an error of the parser where something is not there. A program that is ended ends what it started."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    options.stretto = records.program(parser, options.stretto)
    if hasattr(options, "data"):
        if not options.data.is_dir():
            parser.error(f"--data: there is no folder {options.data}")
        options.data = options.data.resolve()
    if getattr(options, "preload", ""):
        options.preload = str(pathlib.Path(options.preload).resolve())
        if not pathlib.Path(options.preload).is_file():
            parser.error(f"--preload: there is no file {options.preload}")
    return options


