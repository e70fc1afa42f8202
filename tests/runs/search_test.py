#!/usr/bin/env python3
"""A search trains real trials, survives kills, and a run that pauses with --until ends as one that does not.

    tests/runs/search_test.py build/release/stretto [TEST...]
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from harness import Lab, check, main, wait_for
from matrix.bench import EXPERIMENT
from matrix.speech_rows import CONVOLUTIONS, END, TEXTS, WORDS, write_sounds

SEARCH = """
[search]
config = "tiny.toml"
overrides = ["train.max_steps=16", "schedule.warmup_steps=4"]
max_trials = 6
slots = 2
deterministic = true
[method]
name = "asha"
mode = "aggressive"
divisor = 2
[[space]]
key = "optim.lr"
name = "log"
min = 1e-4
max = 3e-2
[[space]]
key = "model.d_model"
name = "numbers"
values = [16, 32]
"""


RECIPES = pathlib.Path(__file__).resolve().parents[2] / "configs/smoke"
SMOKE = RECIPES / "search.toml"
# The first rate learns nothing.
TEXT_SEARCH = f"""
[search]
config = "{RECIPES / "text_classification.toml"}"
overrides = ["train.max_steps=60", "schedule.warmup_steps=4", "report.tensorboard=false", "report.html=false"]
metric = "accuracy"
max_trials = 4
slots = 2
deterministic = true
points = ["optim.lr=1e-7", "optim.lr=3e-3"]
[method]
name = "asha"
mode = "aggressive"
divisor = 2
[[space]]
key = "optim.lr"
name = "log"
min = 1e-7
max = 1e-2
"""
# A trained recogniser validates under each weight of the language model; its weights stay. The first one leaves no word.
DECODING_SEARCH = """
[search]
config = "tiny.toml"
overrides = ["train.init_from=run", "optim.lr=1e-9", "train.max_steps=1", "schedule.warmup_steps=0", "train.update_freq=1", "eval.every=1",
             "decode.method=beam", "decode.beam_size=8", "decode.lm=words.arpa"]
metric = "wer"
max_trials = 2
deterministic = true
points = ["decode.alpha=100", "decode.alpha=0"]
[[space]]
key = "decode.alpha"
name = "double"
min = 0
max = 100
"""
STAND_IN_SSH = pathlib.Path(__file__).resolve().parent.parent / "search/stand_in_ssh.py"


def on_hosts(lab, hosts, text=SEARCH):
    """The search on other hosts: this one under other names, behind a stand-in for ssh."""
    (lab.root / "hosts").write_text(hosts)
    return text.replace("slots = 2\n", f"""hosts = "hosts"\nremote_shell = ["{sys.executable}", "{STAND_IN_SSH}"]\n""")


def trainings_below(directory):
    found = []
    for path in os.listdir("/proc"):
        if path.isdigit():
            try:
                words = open(f"/proc/{path}/cmdline").read()
            except OSError:
                continue
            if str(directory) in words:
                found.append(path)
    return found


def kill_at_work(lab, directory, process, trials):
    """Kills a search as soon as all these trials train; they save and end."""
    for trial in trials:
        lab.wait_for_updates(f"{directory}/trials/{trial}", 3, process)
    process.kill()
    process.wait()
    folder = lab.root / directory / "trials"
    wait_for(lambda: not trainings_below(folder), "the end of trials without their search")
    for trial in trials:
        check((folder / str(trial) / "checkpoints").exists(), f"trial {trial} did not save")


def search(lab, directory, *options, text=SEARCH):
    (lab.root / "space.toml").write_text(text)
    return [lab.stretto, "search", str(lab.root / "space.toml"), "--dir", str(lab.root / directory), *options]


def table(lab, directory):
    lines = [json.loads(line) for line in (lab.root / directory / "trials.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def a_run_that_pauses_ends_as_one_that_does_not(stretto):
    """Also with a schedule that ends where the run does, and between validations and saves."""
    with Lab(stretto) as lab:
        keys = ("schedule.name=linear", "train.max_steps=30", "eval.every=100")
        result = lab.train("whole", *keys)
        check(result.returncode == 0, result.stderr)
        for until in (1, 9, 9, 20):
            result = lab.train("parts", *keys, "--until", str(until))
            check(result.returncode == 0, result.stderr)
            check(f"saved and stopped at step {until}" in result.stderr, result.stderr)
            events = lab.events("parts")
            check(events[-1]["event"] == "valid" and events[-1]["step"] == until, f"the last event is {events[-1]}")
            check(not any(event["event"] == "end" for event in events), "a run that pauses has not ended")
        result = lab.train("parts", *keys)
        check(result.returncode == 0, result.stderr)
        whole, parts = lab.essence("whole"), lab.essence("parts")
        check(parts[-1]["weights_hash"] == whole[-1]["weights_hash"], "other final weights")
        check([event for event in parts if event["event"] == "train"] == [event for event in whole if event["event"] == "train"],
              "other updates")
        # Further than the end is the end.
        result = lab.train("whole", *keys, "--until", "31")
        check(result.returncode == 0, result.stderr)
        check(lab.essence("whole") == whole, "a finished run was changed")


def train_the_best_again(lab, directory, best):
    """Its last result is lost from the journal, and a bit of each of its checkpoints is flipped."""
    trials, journal = table(lab, directory), lab.root / directory / "journal"
    lines = journal.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if f'"event":"run","trial":{best},' in line)
    journal.write_text("".join(lines[:last + 1]))
    for path in (lab.root / directory / f"trials/{best}/checkpoints").glob("*/model.safetensors"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    result = lab.run(search(lab, directory), timeout=300)
    check(result.returncode == 0, result.stderr)
    check(f"trial {best} is trained again from its start: " in result.stderr, result.stderr)
    check(table(lab, directory) == trials, f"another table: {table(lab, directory)}, it was {trials}")


def an_older_journal_is_as_good(lab, directory, best):
    """A journal of the time when the best trial began: it is ahead, and the others have no checkpoints."""
    trials, journal = table(lab, directory), lab.root / directory / "journal"
    lines = journal.read_text().splitlines(keepends=True)
    first = min(number for number, line in enumerate(lines) if f'"event":"run","trial":{best},' in line)
    journal.write_text("".join(lines[:first + 1]))
    result = lab.run(search(lab, directory), timeout=300)
    check(result.returncode == 0, result.stderr)
    check(f"trial {best} has made 16 updates, more than the journal knows of" in result.stderr, result.stderr)
    check(table(lab, directory) == trials, f"another table: {table(lab, directory)}, it was {trials}")


def a_search_finds_the_best_and_its_configuration_trains(stretto):
    with Lab(stretto) as lab:
        result = lab.run(search(lab, "found", "--json"), timeout=300)
        check(result.returncode == 0, result.stderr)
        told = json.loads(result.stdout)
        trials = table(lab, "found")
        check([{k: v for k, v in trial.items() if k != "seconds"} for trial in told["trials"]] == trials, "--json has another table")
        best = trials[told["best"]]
        check(best["updates"] == 16 and best["state"] == "finished", f"the best is {best}")
        kept = [int(path.parent.name) for path in (lab.root / "found/trials").glob("*/checkpoints")]
        check(kept == [told["best"]], f"checkpoints are kept of {kept}")
        text = (lab.root / "found/best.toml").read_text()
        check("found/" not in text, "best.toml names the folder of the search")
        result = lab.run([lab.stretto, "train", str(lab.root / "found/best.toml"), "--run", str(lab.root / "again")])
        check(result.returncode == 0, result.stderr)
        last = [event for event in lab.events("again") if event["event"] == "valid"][-1]
        check(abs(last["nll"] - best["value"]) < 1e-9, f"trained from best.toml: {last['nll']}, in the search: {best['value']}")
        explained = lab.run([lab.stretto, "search", "explain", str(lab.root / "found")])
        check(explained.returncode == 0 and "---- cut-off" in explained.stdout, explained.stdout + explained.stderr)
        check((lab.root / "found/search.html").read_text().count("class=\"ranked") >= 6, "search.html has no curves")
        # The trial that is trained again validates at its end alone, and has no values of lower rungs any more.
        an_older_journal_is_as_good(lab, "found", told["best"])
        train_the_best_again(lab, "found", told["best"])


def the_smoke_search_ends_within_three_minutes(stretto):
    """The recipe's promise, with what `./dev build` leaves; its best configuration stands by itself."""
    with Lab(stretto) as lab:
        directory = lab.root / "smoke"
        result = lab.run([lab.stretto, "search", str(SMOKE), "--dir", str(directory), "--json"],
                         env={"STRETTO_CACHE": str(lab.root / "cache")}, timeout=180)
        check(result.returncode == 0, result.stderr)
        trials = table(lab, "smoke")
        check(len(trials) == 9, f"{len(trials)} trials")
        check(all(trial["state"] != "failed" for trial in trials), f"a trial failed: {trials}")
        updates = [trial["updates"] for trial in trials]
        check(set(updates) <= {6, 18, 54} and 54 in updates, f"updates {updates}")
        best = trials[json.loads(result.stdout)["best"]]
        check(best["updates"] == 54, f"the best is {best}")
        text = (directory / "best.toml").read_text()
        check(str(directory) not in text and "smoke/trials" not in text, "best.toml names the folder of the search")
        result = lab.run([lab.stretto, "check", str(directory / "best.toml")])
        check(result.returncode == 0, result.stdout + result.stderr)


def a_search_of_a_family_of_text_takes_the_most_accurate(stretto):
    """Text with labels, from end to end: more accuracy is better, at each rung and in the end."""
    with Lab(stretto) as lab:
        result = lab.run(search(lab, "found", "--json", text=TEXT_SEARCH), env={"STRETTO_CACHE": str(lab.root / "cache")},
                         timeout=300)
        check(result.returncode == 0, result.stderr)
        told, trials = json.loads(result.stdout), table(lab, "found")
        check((told["metric"], told["goal"]) == ("accuracy", "maximize"), f"{told['metric']} {told['goal']}")
        check(all(0 <= value <= 1 for trial in trials for _, value in trial["reports"]), f"no accuracies: {trials}")
        whole = [trial for trial in trials if trial["state"] == "finished"]
        best = trials[told["best"]]
        check(best in whole and best["value"] == max(trial["value"] for trial in whole), f"trial {told['best']} of {trials}")
        check(trials[0]["state"] == "stopped" and trials[0]["updates"] == 15, f"the worst went on: {trials}")
        check(best["value"] > trials[0]["value"], f"the test is stale: nothing was learnt: {trials}")
        for trial in trials:
            last = [event for event in lab.events(f"found/trials/{trial['trial']}") if event["event"] == "valid"][-1]
            check((last["step"], last["accuracy"]) == (trial["updates"], trial["value"]), f"{trial}, but {last}")
        explained = lab.run([lab.stretto, "search", "explain", str(lab.root / "found")])
        check("asha by accuracy, more is better; 4 of 4" in explained.stdout, explained.stdout + explained.stderr)
        first = explained.stdout.split("rung at ")[1].splitlines()[1:]
        values = [float(line.split()[2]) for line in first if line.startswith("    trial")]
        check(len(values) == 4 and values == sorted(values, reverse=True), f"the first rung: {first}")
        check("---- cut-off 0." in explained.stdout, explained.stdout)
        check("Best accuracy" in (lab.root / "found/search.html").read_text(), "search.html has another metric")
        result = lab.run([lab.stretto, "check", str(lab.root / "found/best.toml")])
        check(result.returncode == 0, result.stdout + result.stderr)


def the_weight_of_a_language_model_is_tuned_on_a_trained_recogniser(stretto):
    with Lab(stretto) as lab:
        write_sounds(lab.root)
        unigrams = ["-1 </s>", "-99 <s>", "-3 <unk>", *(f"-0.6 {word}" for word in WORDS)]
        (lab.root / "words.arpa").write_text(f"\\data\\\nngram 1={len(unigrams)}\n\n\\1-grams:\n" +
                                             "".join(line.replace(" ", "\t") + "\n" for line in unigrams) + "\n\\end\\\n")
        lab.config.write_text(EXPERIMENT + TEXTS + CONVOLUTIONS + END)
        result = lab.train("run", "train.max_steps=80", "train.update_freq=1", "train.save_every=80", "eval.every=80")
        check(result.returncode == 0, result.stderr)
        result = lab.run(search(lab, "found", "--json", text=DECODING_SEARCH))
        check(result.returncode == 0, result.stderr)
        told, trials = json.loads(result.stdout), table(lab, "found")
        check([trial["state"] for trial in trials] == ["finished"] * 2, f"{trials}")
        check(told["best"] == 1 and trials[1]["value"] < trials[0]["value"], f"the search does not see the weight: {trials}")


def a_search_goes_on_from_another_folder(stretto):
    """Paths of its values are beside its file, wherever the shell stands."""
    with Lab(stretto) as lab:
        (lab.root / "more").mkdir()
        shutil.copy(lab.root / "train.src", lab.root / "more/train.src")
        text = SEARCH + '[[space]]\nkey = "data.train_src"\nname = "categorical"\nvalues = ["train.src", "more/train.src"]\n'
        for trials, folder in ((2, "/"), (4, lab.root)):
            command = search(lab, "found", text=text.replace("max_trials = 6", f"max_trials = {trials}"))
            result = subprocess.run(command, cwd=folder, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
            check(result.returncode == 0, result.stderr)
            check(len(table(lab, "found")) == trials, f"{table(lab, 'found')}")
        texts = {trial["point"]["data.train_src"] for trial in table(lab, "found")}
        check(texts <= {str(lab.root / "train.src"), str(lab.root / "more/train.src")}, f"texts {texts}")


def a_search_that_is_killed_ends_with_the_same_table(stretto):
    with Lab(stretto) as lab:
        result = lab.run(search(lab, "whole"), timeout=300)
        check(result.returncode == 0, result.stderr)
        for number, sent in ((0, signal.SIGKILL), (1, signal.SIGTERM)):
            trials = lab.root / f"killed{number}/trials"

            def updates():
                return sum(lab.updates(path) for path in trials.glob("*"))

            kills = 0
            # Each time more updates than before: then this search has its handlers. All of its trials make some 50.
            for more in (1, 3, 9, 5, None):
                before = updates()
                process = subprocess.Popen(search(lab, f"killed{number}", "--quiet"), stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if more:
                    wait_for(lambda: updates() >= before + more or process.poll() is not None, f"{more} more updates", process)
                    process.send_signal(sent)
                process.wait(timeout=300)
                if process.returncode == 0:
                    break
                check(process.returncode == (75 if sent == signal.SIGTERM else -sent), f"it left with {process.returncode}")
                kills += 1
            check(process.returncode == 0, process.stderr.read())
            check(kills > 1, "the test is stale: the search ends before it is killed")
            check(table(lab, f"killed{number}") == table(lab, "whole"), f"another table after {kills} kills")


def trials_end_with_a_killed_search(stretto):
    with Lab(stretto) as lab:
        process = subprocess.Popen(search(lab, "killed", "--quiet", text=SEARCH.replace("max_steps=16", "max_steps=100000")),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kill_at_work(lab, "killed", process, (0, 1))


def trials_on_other_hosts_make_the_same_table(stretto):
    """Hosts fail, one of them for good, and the search is killed and goes on."""
    with Lab(stretto) as lab:
        result = lab.run(search(lab, "here"), timeout=300)
        check(result.returncode == 0, result.stderr)
        failures = lab.root / "failures"
        failures.mkdir()
        (failures / "node1").write_text("255\n")
        (failures / "node3").write_text("down\n")
        env = {"STAND_IN_HOSTS": str(failures)}
        text = on_hosts(lab, "node1\nnode2 slots=1\n")
        result = lab.run(search(lab, "there", text=text), env=env, timeout=300)
        check(result.returncode == 0, result.stderr)
        check("host node1 failed: connect to host node1: no route; trial 0 is tried again" in result.stderr, result.stderr)
        check(table(lab, "there") == table(lab, "here"), "another table on other hosts")
        check({"node1", "node2"} <= set((failures / "log").read_text().split()), "a host was not used")

        text = on_hosts(lab, "node2\nnode3\n", SEARCH.replace("max_steps=16", "max_steps=100000"))
        process = subprocess.Popen(search(lab, "killed", "--quiet", text=text), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env})
        kill_at_work(lab, "killed", process, (0,))  # on the one host that works

        # A host with another program, and one that does not see the folder, run nothing.
        words = [stretto, "search", "watch", "--build", "0", "--folder=/", "--run=/", "--word=/bin/true"]
        result = lab.run(words)
        check(result.returncode == 126 and "another build of Stretto" in result.stderr, result.stderr)


TESTS = (a_run_that_pauses_ends_as_one_that_does_not, a_search_finds_the_best_and_its_configuration_trains,
         the_smoke_search_ends_within_three_minutes, a_search_of_a_family_of_text_takes_the_most_accurate,
         the_weight_of_a_language_model_is_tuned_on_a_trained_recogniser, a_search_goes_on_from_another_folder,
         a_search_that_is_killed_ends_with_the_same_table,
         trials_end_with_a_killed_search, trials_on_other_hosts_make_the_same_table)

if __name__ == "__main__":
    main({test.__name__: test for test in TESTS})
