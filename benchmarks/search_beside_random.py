#!/usr/bin/env python3
"""ASHA beside random search at an equal budget, and beside Optuna's successive halving, on the smoke recipe of translation.

    benchmarks/search_beside_random.py [--stretto build/release/stretto] [--out FILE.md] [--work FOLDER] [--seeds 5]
        [--trials 27] [--steps 162] [--kills 20] [--tiny]

The space is that of configs/smoke/search.toml. For each seed, ASHA runs first. Its budget, counted in updates, is what random
search may train, rounded up to a whole trial: random search never has less. Optuna's SuccessiveHalvingPruner (random sampler) gets
the same rungs, and begins trials until the budget is used; without the package `optuna` it is left out. The score is the
validation loss of the best trial that was trained to its end. All three train with the same program and seed of training.

Then the search of the first seed runs again, is killed (SIGKILL) and started anew up to --kills times, and must end with the
same table.

With --work, the program goes on where it was stopped. Leaves with 1 if the tables differ.
"""
import argparse
import importlib.util
import json
import pathlib
import random
import statistics
import subprocess
import sys

import records

RECIPE = records.ROOT / "configs/smoke/translation.toml"
SPACE = records.ROOT / "configs/smoke/search.toml"
DIVISOR = 3


def overrides(options):
    """What all trials have in common."""
    return [f"train.max_steps={options.steps}", "train.update_freq=1", f"schedule.warmup_steps={max(1, options.steps // 9)}",
            "eval.bleu=false", "report.tensorboard=false", "report.html=false"]


def search_file(options, path, method, seed, trials):
    space = SPACE.read_text(encoding="utf-8")
    path.write_text(f"""[search]
config = "{RECIPE}"
overrides = {json.dumps(overrides(options))}
max_trials = {trials}
seed = {seed}
slots = {options.slots}
deterministic = true
[method]
{method}
{space[space.index("[[space]]"):]}""", encoding="utf-8")
    return path


def searched(options, name, method, seed, trials):
    """The command of a search and its folder."""
    options.work.mkdir(parents=True, exist_ok=True)
    file = search_file(options, options.work / f"{name}.toml", method, seed, trials)
    folder = options.work / name
    return [options.stretto, "search", str(file), "--dir", str(folder), "--quiet"], folder


def run_search(options, *what):
    command, folder = searched(options, *what)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return table(folder)


def table(folder):
    """The trials without what the clock says."""
    return [{key: value for key, value in trial.items() if key != "seconds"} for trial in records.json_lines(folder / "trials.jsonl")]


def result(options, trials):
    """Trials, updates, and the loss of the best of those that were trained to their end."""
    whole = [trial["value"] for trial in trials if trial["updates"] == options.steps and trial["value"] is not None]
    return {"trials": len(trials), "updates": sum(trial["updates"] for trial in trials), "best": min(whole, default=float("inf"))}


ASHA = f'name = "asha"\nmode = "aggressive"\ndivisor = {DIVISOR}'


def asha(options, seed):
    return result(options, run_search(options, f"asha_{seed}", ASHA, seed, options.trials))


def random_points(options, seed, budget):
    trials = -(-budget // options.steps)
    return result(options, run_search(options, f"random_{seed}", 'name = "random"', seed, trials))


def rungs(options):
    """Those of the bracket that ASHA has."""
    lengths, trials = [options.steps], options.trials
    while lengths[0] // DIVISOR >= 1 and trials >= DIVISOR and len(lengths) < 5:
        lengths.insert(0, options.steps // DIVISOR ** len(lengths))
        trials //= DIVISOR
    return lengths


def suggested(trial):
    """The space of configs/smoke/search.toml in Optuna's words."""
    point = {"optim.name": trial.suggest_categorical("optim.name", ["adam", "lamb"]),
             "optim.lr": trial.suggest_float("optim.lr", 1e-3, 3e-2, log=True)}
    if point["optim.name"] == "adam":
        point["optim.beta2"] = trial.suggest_categorical("optim.beta2", [0.98, 0.999])
    point["model.d_model"] = trial.suggest_categorical("model.d_model", [32, 64])
    point["data.max_tokens"] = trial.suggest_int("data.max_tokens", 520, 1000)
    point["model.dropout"] = trial.suggest_float("model.dropout", 0.0, 0.3)
    return point


def halving(options, seed, budget):
    """Optuna's asynchronous successive halving, one trial at a time; None without the package."""
    if importlib.util.find_spec("optuna") is None:
        return None
    import optuna
    kept = options.work / f"optuna_{seed}.json"
    if kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    lengths = rungs(options)
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=lengths[0], reduction_factor=DIVISOR, min_early_stopping_rate=0))
    done = []
    while sum(trial["updates"] for trial in done) < budget:
        trial = study.ask()
        point = [f"{key}={value}" for key, value in suggested(trial).items()]
        one = {"updates": 0, "value": None}
        done.append(one)
        state = optuna.trial.TrialState.COMPLETE
        for until in lengths:
            one.update(updates=until, value=trained(options, options.work / f"optuna_{seed}/{len(done) - 1}", point, until))
            if one["value"] is None:
                state = optuna.trial.TrialState.FAIL
                break
            trial.report(one["value"], until)
            if until < lengths[-1] and trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        study.tell(trial, one["value"] if state == optuna.trial.TrialState.COMPLETE else None, state=state)
    answer = result(options, done)
    records.write_whole(kept, json.dumps(answer))
    return answer


def trained(options, run, point, until):
    """The validation loss of a training that goes on to so many updates; None if it failed."""
    run.parent.mkdir(parents=True, exist_ok=True)
    command = [options.stretto, "train", str(RECIPE), *overrides(options), *point, "run.threads=1", "--run", str(run), "--until", str(until),
               "--quiet"]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
        return None
    return [event["nll"] for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "valid"][-1]


def killed(options, seed):
    """Kills of a search that goes on each time, and whether its table is that of the undisturbed one."""
    command, folder = searched(options, f"killed_{seed}", ASHA, seed, options.trials)
    draw, kills = random.Random(seed), 0
    while kills < options.kills:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            process.wait(timeout=draw.uniform(0.2, 1.5 if options.tiny else 6))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return kills, table(folder) == table(options.work / f"asha_{seed}")


def body(options, rows, kills, same):
    methods = [name for name in ("ASHA", "random", "Optuna") if any(row.get(name) for row in rows)]
    cells = []
    for row in rows:
        line = [row["seed"]]
        for name in methods:
            line += [row[name]["trials"], f"{row[name]['updates']:,}", f"{row[name]['best']:.4f}"]
        cells.append(line)
    parts = [records.table(["seed", *(f"{name}: {what}" for name in methods for what in ("trials", "updates", "best nll"))], cells)]
    for name in methods:
        bests = [row[name]["best"] for row in rows]
        wins = sum(row["ASHA"]["best"] < row[name]["best"] for row in rows)
        deviation = f" ± {statistics.stdev(bests):.4f}" if len(bests) > 1 else ""
        parts.append(f"{name}: best nll {statistics.mean(bests):.4f}{deviation}" +
                     ("." if name == "ASHA" else f"; ASHA is better for {wins} of {len(rows)} seeds."))
    if "Optuna" not in methods:
        parts.append("The package `optuna` is not installed: it was left out.")
    parts.append(f"Killed {kills} times and started anew, the search of seed {rows[0]['seed']} ended with "
                 f"{'the same table' if same else 'ANOTHER TABLE'}.")
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", default="build/release/stretto")
    parser.add_argument("--out", type=pathlib.Path, help="the page; always on the screen too")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the searches; default: a temporary one")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=27, help="of ASHA")
    parser.add_argument("--steps", type=int, default=162, help="updates of a whole trial")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--tiny", action="store_true", help="two seeds, six trials of nine updates: tries the script")
    options = parser.parse_args()
    options.stretto = records.program(parser, options.stretto)
    if options.tiny:
        options.seeds, options.trials, options.steps, options.kills = 2, 6, 9, 3
    with records.work_folder(options, "stretto_search_"):
        rows = []
        for seed in range(1, options.seeds + 1):
            row = {"seed": seed, "ASHA": asha(options, seed)}
            budget = row["ASHA"]["updates"]
            row["random"] = random_points(options, seed, budget)
            row["Optuna"] = halving(options, seed, budget)
            print(json.dumps(row), file=sys.stderr, flush=True)
            rows.append(row)
        kills, same = killed(options, 1)
        notes = [f"ASHA: one bracket, divisor {DIVISOR}, rungs at {', '.join(map(str, rungs(options)))} updates. Random search has "
                 "at least the updates of ASHA, and Optuna begins trials until it has used them."]
        records.publish(records.page("ASHA beside random search at an equal budget", notes, body(options, rows, kills, same),
                                     duration="an hour"), options.out)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
