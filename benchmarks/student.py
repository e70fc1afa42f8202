#!/usr/bin/env python3
"""A small student of a translation model on one core: from its teacher to sentences a second.

    python benchmarks/student.py --data DATA --work WORK [--python PYTHON] [--teacher RUN] [--student CONFIG] [--updates 2400] [--rounds 5]
        [--out PAGE.md] [--page] [--smoke]

DATA has Multi30k (English to German). What is done, each a line of WORK/student.jsonl or WORK/decoding/decoding.jsonl, so that a second
call goes on:

    teacher           `stretto train`, the recipe configs/translation/multi30k_en_de.toml at twice its width; or --teacher, a run of this text
    student           `stretto distill` of it: model, loss, optimizer and search of --student (wmt16_en_de_student.toml), and the text, the
                      vocabulary and the number of updates of the teacher's recipe. It is packed with 8 bits and has a shortlist
    without a teacher the same model trained on the text's own translations, with the dropout of the recipe
    rounds            all of them translate the test set on one thread of the CPU: the teachers with their beam and greedily, the students
                      greedily, in fp32 and in 8 bits, with and without the shortlist, in turn with CTranslate2 (decoding_beside.py)

Goals: 250 sentences/s, 17 MB. BLEU is that of the test set. Trainings use what the machine has, a GPU too. A WORK belongs to one set of
options. --teacher-key and --student-key give more keys, tokenizer.vocab_size=32000 for instance. On two cores the trainings take hours.
"""
import argparse
import pathlib
import statistics
import sys
import tomllib

import decoding_beside
import language_texts
import records
import understanding

RECIPE = records.ROOT / "configs/translation/multi30k_en_de.toml"
STUDENT = records.ROOT / "configs/translation/wmt16_en_de_student.toml"
OF_STUDENT = ("model", "loss", "optim", "decode")  # sections of --student; the others are those of RECIPE
WIDE = ["model.d_model=512", *(f"model.{side}.{key}" for side in ("encoder", "decoder") for key in ("num_heads=8", "ffn_dim=2048"))]
BEAM = 5  # of the teacher, when it labels too
GOAL_RATE, GOAL_MB = 250, 17
# What a dry run makes of every recipe.
SMALL = ["tokenizer.vocab_size=300", "data.max_tokens=300"]
SMALL_TEACHER = ["model.d_model=64", *(f"model.{side}.{key}" for side in ("encoder", "decoder")
                                       for key in ("num_layers=1", "num_heads=2", "ffn_dim=128"))]
SMALL_STUDENT = [key.replace("=64", "=32").replace("=128", "=64") for key in SMALL_TEACHER]


def settings(path, sections):
    """key=value of these sections of a recipe, those of files that it includes first."""
    found, keys = tomllib.loads(path.read_text(encoding="utf-8")), {}
    included = found.get("include", [])
    for other in [included] if isinstance(included, str) else included:
        keys.update(settings(path.parent / other, sections))
    for section in sections:
        keys.update(flat(section, found.get(section, {})))
    return keys


def flat(name, value):
    """Keys with dots of a table and of tables in it."""
    if not isinstance(value, dict):
        return {name: value}
    return {key: inner for part, one in value.items() for key, inner in flat(f"{name}.{part}", one).items()}


def words_of(keys):
    """As a command line has them: a string stands without quotes."""
    return [f"{key}={value if isinstance(value, str) else understanding.toml_value(value)}" for key, value in keys.items()]


def shared_keys(options):
    third = max(1, options.updates // 3)
    return [*records.text_keys(options.data), f"data.cache_dir={options.work}/cache", f"train.max_steps={options.updates}",
            f"schedule.warmup_steps={third}", f"train.save_every={max(1, third // 4)}", f"eval.every={max(1, third // 4)}", "eval.bleu=false",
            "report.html=false", "report.tensorboard=false", f"run.threads={options.threads}", *(SMALL if options.smoke else []), *options.key]


def student_keys(options):
    return [*shared_keys(options), *words_of(settings(options.student, OF_STUDENT)), *(SMALL_STUDENT if options.smoke else []),
            *options.student_key]


def teacher_of(options):
    return options.teacher or options.work / "teacher"


def train_teacher(options):
    keys = [*shared_keys(options), *(SMALL_TEACHER if options.smoke else WIDE), *options.teacher_key]
    understanding.call([options.stretto, "train", RECIPE, "--run", teacher_of(options), "--quiet", *keys])
    return trained(teacher_of(options))


def distill(options):
    run = options.work / "student"
    understanding.call([options.stretto, "distill", teacher_of(options), "--student", RECIPE, "--run", run, "--quiet", "--teacher-key",
                        f"decode.beam_size={BEAM}", *student_keys(options)])
    labels = (run / "labels/text_0.labels").read_text(encoding="utf-8").splitlines()
    return {**trained(run), "labels": len(labels), "pairs_bytes": (run / "labels/pairs.tsv").stat().st_size}


def train_alone(options):
    """The dropout of --student suits text that a teacher wrote, which has no noise."""
    keys = [*student_keys(options), f"model.dropout={settings(RECIPE, ['model'])['model.dropout']}"]
    understanding.call([options.stretto, "train", RECIPE, "--run", options.work / "alone", "--quiet", *keys])
    return trained(options.work / "alone")


def trained(run):
    """Updates, and minutes by the run's own clock, validations included."""
    end = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "end"][-1]
    return {"updates": end["step"], "minutes": end["seconds"] / 60}


def one_core(options):
    """Options of decoding_beside for the student on one thread."""
    student = options.work / "student"
    work = options.work / "decoding"
    work.mkdir(exist_ok=True)
    for name, side in (("src", "en"), ("tgt", "de")):
        path = work / f"test.{side}"
        if not path.exists():
            records.write_whole(path, understanding.read_text(records.text_file(options.data, f"test_2016_flickr.{side}")))
    return argparse.Namespace(
        stretto=options.stretto, python=options.python, preload=options.preload, run=student, int8=student / "int8",
        shortlist=student / "labels/pairs.tsv", src=work / "test.en", tgt=work / "test.de", beams=[1], batch=options.batch,
        rounds=options.rounds, threads=1, work=work, key=[])


def others(options):
    """Title -> (run, beam) of the models that the student stands beside."""
    teacher = teacher_of(options)
    return {"teacher": (teacher, BEAM), "teacher, greedy": (teacher, 1), "student without a teacher": (options.work / "alone", 1)}


def translate(options, run, beam, name):
    """Rate and BLEU of a run without a shortlist."""
    of_one = one_core(options)
    _, mean_length = decoding_beside.pieces_of(of_one, run)
    output = of_one.work / f"{name.replace(', ', '_').replace(' ', '_')}.txt"
    found = decoding_beside.own(of_one, run, ["decode.shortlist="], beam, mean_length, output)
    return {**found, "bleu": decoding_beside.judged(of_one, output)}


def measure(options, cells):
    steps = [({"step": "student"}, lambda: distill(options)), ({"step": "alone"}, lambda: train_alone(options))]
    if not options.teacher:
        steps.insert(0, ({"step": "teacher"}, lambda: train_teacher(options)))
    if not cells.measure_all(steps[:1]) or not cells.measure_all(steps[1:]):
        return False
    sentences = len(one_core(options).src.read_text(encoding="utf-8").splitlines())
    rounds = [({"model": name, "beam": beam, "round": number, "sentences": sentences},
               lambda run=run, beam=beam, name=name: translate(options, run, beam, name))
              for number in range(1, options.rounds + 1) for name, (run, beam) in others(options).items()]
    well = cells.measure_all(rounds)
    return decoding_beside.measure(one_core(options), decoding_cells(options)) and well


def decoding_cells(options):
    return understanding.Cells(options.work / "decoding/decoding.jsonl")


def row(title, beam, found, goals=("", "")):
    rates = [cell["key"]["sentences"] / cell["seconds"] for cell in found]
    size = found[-1]["bytes"] / 1e6
    return [title, beam, f"{found[-1]['bleu']:.2f}", records.spread(rates, decimals=1), goals[0], f"{size:.1f}", goals[1],
            f"{statistics.median(cell['peak_mib'] for cell in found):,.0f}"]


def sections(options, cells):
    rows = [row(name, beam, found) for name, (_, beam) in others(options).items() if (found := cells.all(model=name))]
    beside = decoding_cells(options)
    for program, title in (("Stretto", "student"), ("Stretto, shortlist", "student, shortlist"), ("Stretto, int8", "student, int8"),
                           ("Stretto, int8, shortlist", "student, int8, shortlist")):
        found = beside.all(program=program)
        if found:
            rows.append(row(title, 1, found, (GOAL_RATE, GOAL_MB) if "int8, shortlist" in title else ("", "")))
    parts = [records.table(["model", "beam", "BLEU", "sentences/s, one thread", "goal", "model file, MB", "goal", "peak MiB of the process"], rows)]
    if beside.all():
        parts += ["## Beside CTranslate2", "The student's weights, greedy, one thread. The shortlist is Stretto's alone.",
                  decoding_beside.sections(one_core(options), beside)]
    return "\n\n".join(parts)


def notes_of(options, cells):
    """What the rates depend on, from what is there."""
    notes = [f"Multi30k, test_2016_flickr, English to German; batches of {options.batch} sentences. Median (least – most) of rounds, in turn. "
             f"The teacher labels with beam {BEAM}."]
    pieces = options.work / "decoding/student_pieces.txt"
    if pieces.exists():
        src = (options.work / "decoding/test.en").read_text(encoding="utf-8").splitlines()
        counts = [sum(len(line.split()) for line in lines) / len(lines) for lines in (src, pieces.read_text(encoding="utf-8").splitlines())]
        notes.append(f"A source has {counts[0]:.1f} words and {counts[1]:.1f} pieces in the mean; those of news are about twice as long, and take "
                     "longer.")
    for step, title in (("teacher", "teacher"), ("student", "student"), ("alone", "student without a teacher")):
        for cell in cells.all(step=step):
            more = f", {cell['labels']:,} sentences labelled, shortlist of {cell['pairs_bytes'] / 1e6:.1f} MB" if "labels" in cell else ""
            notes.append(f"The {title}: {cell['updates']:,} updates, {cell['minutes']:.1f} minutes of training{more}.")
    return notes


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, data=False)
    parser.add_argument("--data", type=pathlib.Path, default=records.ROOT / "data/multi30k",
                        help="folder with train, val and test_2016_flickr, .en and .de")
    parser.add_argument("--teacher", type=pathlib.Path, help="a run that is there already")
    parser.add_argument("--teacher-key", action="append", default=[], metavar="KEY=VALUE", help="for the teacher's training; may be repeated")
    parser.add_argument("--student", type=pathlib.Path, default=STUDENT, help="the recipe whose model the student is")
    parser.add_argument("--student-key", action="append", default=[], metavar="KEY=VALUE", help="for the student's trainings; may be repeated")
    parser.add_argument("--updates", type=int, default=2400, help="of each training")
    parser.add_argument("--batch", type=int, default=32, help="sentences that are translated together")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", action="store_true", help="a made-up text, tiny models, few updates: tries the script, measures nothing")
    options = parser.parse_args()
    if options.smoke:
        options.updates, options.rounds, options.data = 24, 1, records.ROOT  # records.work_folder makes the text
    options = language_texts.checked(parser, options)
    for name in ("student", "teacher"):
        path = getattr(options, name)
        if path and not path.exists():
            parser.error(f"--{name}: there is no {path}")
        setattr(options, name, path and path.resolve())
    return options


def page_of(options, cells):
    body = sections(options, cells) if cells.all() else "Nothing is measured yet."
    return records.page("A distilled student on one core", notes_of(options, cells), body, "hours", cells.head())


def main():
    return understanding.run_cells(parse(), "stretto_student_", "student.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
