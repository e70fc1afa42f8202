#!/usr/bin/env python3
"""What earlier programs made: today's one evaluates, uses, averages and resumes their runs, and goes on with their searches.

    tests/runs/old_run_test.py build/release/stretto [TEST...]
    tests/runs/old_run_test.py OLD_PROGRAM --make tests/assets/run_NAME      makes what is stored

old_runs.py says what is stored in tests/assets/run_NAME.
"""
import functools
import json
import pathlib
import re
import sys

from harness import check, main
from old_runs import HERE, LONGER, RUN, SEARCH_FOLDER, UPDATES, in_copy, make, processor

ASSETS = pathlib.Path(__file__).resolve().parent.parent / "assets"


def copied(test):
    """Runs a test on a copy of the asset: test(old, expected, same), `same` if bits can be the same here."""
    @functools.wraps(test)
    def on_copy(program, asset):
        expected = json.loads((asset / "expected.json").read_text())
        same = expected["processor"] == processor()
        in_copy(program, asset, expected["family"], lambda old: test(old, expected, same))
    return on_copy


def is_near(found, expected, same):
    """Numbers are equal up to rounding, lists and objects have equal numbers, and all else is the same."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_near(found[key], expected[key], same) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(is_near(a, b, same) for a, b in zip(found, expected, strict=True))
    if isinstance(expected, float):
        return abs(found - expected) <= (5e-7 if same else 1e-4 * abs(expected))
    return found == expected


@copied
def is_evaluated_as_it_was(old, expected, same):
    found = old.scores()
    check(is_near(found, expected["scores"], same), f"scores {found}, they were {expected['scores']}")


@copied
def is_used_as_it_was(old, expected, same):
    found = old.lines()
    check(found == expected["lines"], f"lines {found}, they were {expected['lines']}")


@copied
def is_averaged_as_it_was(old, expected, same):
    found = old.averaged_scores()
    check(is_near(found, expected["averaged"], same), f"scores of the average {found}, they were {expected['averaged']}")


def contents_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@copied
def goes_on_as_it_did(old, expected, same):
    before, cached = (old.folder / "run/log.txt").read_text(), contents_of(old.folder / "cache")
    old.train(*LONGER)
    log = (old.folder / "run/log.txt").read_text().removeprefix(before)
    check(f"resuming from the checkpoint of step {UPDATES}" in log, f"it did not resume: {log}")
    found = old.losses()
    check(found.keys() == expected["losses"].keys(), f"updates {list(found)}, expected {list(expected['losses'])}")
    for step, loss in expected["losses"].items():
        check(abs(found[step] - loss) <= 1e-4 * loss, f"step {step}: loss {found[step]}, it was {loss}")
    if same and old.libtorch() == expected["libtorch"]:
        check(old.weights_hash() == expected["weights_hash"], f"weights {old.weights_hash()}, they were {expected['weights_hash']}")
    else:
        print("        another processor or libtorch: losses are compared, bits are not")
    # A cache of an earlier form stays for the program that made it. Then text is tokenised once more, and the log says so.
    now = contents_of(old.folder / "cache")
    check(cached.items() <= now.items(), "the cache of the earlier program was changed")
    is_used = {path.parent for path in now} == {path.parent for path in cached}
    check(is_used or "tokenised" in log, f"nothing is said of the cache: {log}")


@copied
def of_another_model_is_refused(old, expected, same):
    is_translation = expected["family"] == "translation"
    key, given = ("model.encoder.ffn_dim" if is_translation else "model.ffn_dim"), old.folder / "old.toml"
    done = old.run("train", given.name, "--run", RUN, *LONGER, f"{key}=32")
    check(done.returncode == 2 and f"{key}: 16 in the run, 32 now" in done.stderr, f"exit code {done.returncode}: {done.stderr}")


@copied
def is_drawn(old, expected, same):
    old.call("report", RUN)
    page = (old.folder / "run/report.html").read_text()
    check("<svg" in page, f"report.html has no curve: {page[:1000]}")


@copied
def exports_and_imports_what_was_exported(old, expected, same):
    old.call("export", RUN, "--format", "hf", "again")
    weights = [(old.folder / name / "model.safetensors").read_bytes() for name in ("exported", "again")]
    check(weights[0] == weights[1], "other tensors are exported")
    old.call("import", "exported", "--run", "imported")
    found = old.lines("imported")
    check(found == expected["lines"], f"lines of the exported model {found}, those of the run were {expected['lines']}")


def numbers_of(text):
    return re.findall(r"[-+.\w]*\d[-+.\w]*", text)


@copied
def search_is_explained_as_it_was(old, expected, same):
    found = old.call("search", "explain", SEARCH_FOLDER)
    check(numbers_of(found) == numbers_of(expected["explained"]), f"explained:\n{found}\nit was:\n{expected['explained']}")


@copied
def search_ends_as_it_did(old, expected, same):
    done = old.search()
    check(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    check("goes on: 3 trials so far" in (old.folder / "search/log.txt").read_text(), "the search began anew")
    found = old.trials()
    check(is_near(found, expected["trials"], same), f"trials {found}, they were {expected['trials']}")
    page = (old.folder / "search/search.html").read_text()
    drawn = {int(number) for number in re.findall(r"trial (\d+): [\d.]+ at", page)}
    check(drawn == {trial["trial"] for trial in found}, f"search.html shows the trials {drawn}")
    old.call("check", f"{HERE}/search/best.toml")


RUN_TESTS = (is_evaluated_as_it_was, is_used_as_it_was, is_averaged_as_it_was, goes_on_as_it_did, of_another_model_is_refused,
             is_drawn, exports_and_imports_what_was_exported)
SEARCH_TESTS = (search_is_explained_as_it_was, search_ends_as_it_did)


def tests_of(asset):
    if (asset / "search.toml").exists():
        return SEARCH_TESTS
    lacks = {is_averaged_as_it_was} if len([*asset.glob("run/checkpoints/step_*")]) < 2 else set()
    lacks |= set() if (asset / "exported").exists() else {exports_and_imports_what_was_exported}
    return tuple(test for test in RUN_TESTS if test not in lacks)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--make"] and len(sys.argv) == 4:
        make(sys.argv[1], pathlib.Path(sys.argv[3]))
    else:
        stored = sorted(path.parent for path in ASSETS.glob("run_*/**/expected.json"))
        if not stored:
            sys.exit(f"no {ASSETS}/run_*/…/expected.json; --make makes one")
        main({f"{'_'.join(asset.relative_to(ASSETS).parts)}_{test.__name__}": functools.partial(test, asset=asset)
              for asset in stored for test in tests_of(asset)})
