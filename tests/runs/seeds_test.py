#!/usr/bin/env python3
"""Several seeds are several runs; the command that trains them survives kills, and tells means and deviations.

    tests/runs/seeds_test.py build/release/stretto [TEST...]
"""
import json
import pathlib
import signal
import statistics
import subprocess

from harness import Lab, check, compare, main

KEYS = ("train.max_steps=24", "eval.every=8")
TEXT = pathlib.Path(__file__).resolve().parents[2] / "configs/smoke/text_classification.toml"


def validations(lab, run):
    return [event for event in lab.events(run) if event["event"] == "valid"]


def several_seeds_are_the_runs_of_each_seed(stretto):
    with Lab(stretto) as lab:
        result = lab.train("three", *KEYS, "--seeds", "1,4,9", "--json")
        check(result.returncode == 0, result.stderr)
        told = json.loads(result.stdout)
        check(told == json.loads((lab.root / "three/seeds.json").read_text()), "--json and seeds.json differ")
        check([run["state"] for run in told["runs"]] == ["finished"] * 3, f"{told['runs']}")
        single = lab.train("single", *KEYS, "run.seed=4")
        check(single.returncode == 0, single.stderr)
        compare(lab, "single", "three/seed_4", "seed 4 of several")
        runs = [validations(lab, f"three/seed_{seed}") for seed in (1, 4, 9)]
        for which, chosen in (("last", [run[-1] for run in runs]), ("best", [min(run, key=lambda e: e["nll"]) for run in runs])):
            for name in ("loss", "nll", "ppl"):
                values = [event[name] for event in chosen]
                got = told[which][name]
                check(abs(got["mean"] - statistics.mean(values)) < 1e-12, f"{which} {name}: {got}, of {values}")
                check(abs(got["deviation"] - statistics.stdev(values)) < 1e-12, f"{which} {name}: {got}, of {values}")
        check(told["last"]["nll"]["deviation"] > 0, "all seeds are the same run")
        again = lab.train("three", *KEYS, "--seeds", "1,4,9")
        check(again.returncode == 0 and "seed 9: finished already" in again.stderr, again.stderr)
        check("time: mean" in again.stdout and "deviation" in again.stdout, again.stdout)
        longer = lab.train("three", "train.max_steps=26", "eval.every=8", "--seeds", "1,4,9", "--quiet")
        check(longer.returncode == 0, longer.stderr)
        check([validations(lab, f"three/seed_{seed}")[-1]["step"] for seed in (1, 4, 9)] == [26] * 3, "they did not go on")


def several_seeds_of_a_family_of_text_tell_of_accuracy(stretto):
    """For text with labels, `best` is the most accurate validation."""
    with Lab(stretto) as lab:
        lab.config = TEXT
        env = {"STRETTO_CACHE": str(lab.root / "cache")}
        keys = ("train.max_steps=45", "schedule.warmup_steps=4", "eval.every=15", "eval.best_metric=accuracy", "optim.lr=3e-3",
                "report.tensorboard=false", "report.html=false", "--seeds", "2")
        result = lab.train("two", *keys, "--json", env=env, timeout=300)
        check(result.returncode == 0, result.stderr)
        told = json.loads(result.stdout)
        check([(run["seed"], run["state"]) for run in told["runs"]] == [(1, "finished"), (2, "finished")], f"{told['runs']}")
        runs = [validations(lab, f"two/seed_{seed}") for seed in (1, 2)]
        accuracies = [[event["accuracy"] for event in run] for run in runs]
        check(accuracies[0] != accuracies[1], f"the test is stale: both seeds have {accuracies}")
        for which, choose in (("last", lambda values: values[-1]), ("best", max)):
            values = [choose(one) for one in accuracies]
            got = told[which]["accuracy"]
            check(abs(got["mean"] - statistics.mean(values)) < 1e-12, f"{which}: {got}, of {values}")
            check(abs(got["deviation"] - statistics.stdev(values)) < 1e-12, f"{which}: {got}, of {values}")
            check(got["runs"] == 2 and "ppl" not in told[which], f"{which}: {told[which]}")
        for run, one in zip(told["runs"], runs):
            best = max(one, key=lambda event: event["accuracy"])  # the first of equal ones
            check(run["best"]["step"] == best["step"], f"seed {run['seed']}: {run['best']}, not {best}")
        again = lab.train("two", *keys, env=env)
        check(again.returncode == 0 and "seed 2: finished already" in again.stderr, again.stderr)
        check("\nAccuracy " in again.stdout, again.stdout)


def several_seeds_that_are_killed_end_as_without(stretto):
    with Lab(stretto) as lab:
        # Long enough that no seed ends between its fifth update and the signal.
        keys = ("train.max_steps=200", "eval.every=100", "train.save_every=50", "--seeds", "2", "--quiet")
        result = lab.train("whole", *keys)
        check(result.returncode == 0, result.stderr)
        for name, sent in (("killed", signal.SIGKILL), ("stopped", signal.SIGTERM)):
            for seed in (1, 2):
                code = lab.train_and_kill(name, lambda: lab.updates(f"{name}/seed_{seed}") >= 5, *keys, signal_number=sent)
                check(code == (-sent if sent == signal.SIGKILL else 75), f"{name} in seed {seed}: it left with {code}")
            result = lab.train(name, *keys)
            check(result.returncode == 0, result.stderr)
            for seed in (1, 2):
                check(validations(lab, f"{name}/seed_{seed}")[-1]["nll"] == validations(lab, f"whole/seed_{seed}")[-1]["nll"],
                      f"{name}: seed {seed} ends with another loss")


def folders_of_seeds_and_of_runs_are_kept_apart(stretto):
    with Lab(stretto) as lab:
        check(lab.train("one", "train.max_steps=12").returncode == 0, "a run")
        refused = lab.train("one", "train.max_steps=12", "--seeds", "2")
        check(refused.returncode == 2 and "holds a single run" in refused.stderr, refused.stderr)
        check(lab.train("two", "train.max_steps=12", "--seeds", "2").returncode == 0, "two seeds")
        refused = lab.train("two", "train.max_steps=12")
        check(refused.returncode == 2 and "holds the runs of several seeds" in refused.stderr, refused.stderr)
        refused = lab.train("two", "train.max_steps=12", "--seeds", "3,1")
        check(refused.returncode == 2 and "not asked for: 2" in refused.stderr, refused.stderr)
        refused = lab.train("two", "optim.lr=1e-3", "--seeds", "2")
        check(refused.returncode == 2 and "optim.lr" in refused.stderr, refused.stderr)


def a_training_ends_with_the_command_that_started_it(stretto):
    with Lab(stretto) as lab:
        process = subprocess.Popen(lab.command("killed", "train.max_steps=100000", "--seeds", "2"), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if "step" in line:
                break
        process.kill()
        rest = process.stderr.read()  # until the last of the processes has left
        process.wait()
        check("saved and stopped at step" in line + rest, rest)


if __name__ == "__main__":
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__"
          and name.startswith(("several", "folders", "a_training"))})
