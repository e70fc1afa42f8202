#!/usr/bin/env python3
"""What bad input gets: one paragraph with place and remedy, the right exit code, nothing half-written.

    tests/runs/bad_input_test.py build/release/stretto [TEST...]
"""
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import bombs
from harness import WORDS_SRC, WORDS_TGT, Lab, check, main
from matrix.bench import Bench
from matrix.language_rows import ROWS as LANGUAGE_ROWS
from matrix.text_rows import ROWS


FOLDERS = pathlib.Path(__file__).resolve().parents[1] / "assets/transformers"


def paragraphs(message):
    """The errors of a message, each with its lines; what follows the last but for their count is one more."""
    found = []
    for line in message.splitlines():
        if line.startswith("error: "):
            found.append([line])
        elif found and not re.fullmatch(r"\d+ errors(, the first \d+ are above)?", line):
            found[-1].append(line)
    return found


def expect(result, code, *words):
    """The exit code, these words in the message, and of an error: one paragraph, its last line the remedy."""
    check(result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"`{word}` is not in the message: {result.stderr}")
    check("terminate called" not in result.stderr and "Exception raised from" not in result.stderr,
          f"a raw exception reached the user: {result.stderr}")
    errors = paragraphs(result.stderr)
    check(bool(errors) == (code != 0), f"exit code {code} and {len(errors)} errors: {result.stderr}")
    for lines in errors:
        check(all(line.startswith("  ") for line in lines[1:]), f"more than one paragraph: {result.stderr}")
        check(len(lines) > 1 and len(lines[-1].split()) > 2, f"no remedy: {result.stderr}")
        rows = sum(-(-len(line) // 100) for line in lines)
        check(rows <= 7, f"an error of {rows} rows of 100 columns: {result.stderr}")


def refused(stretto, edit, code, *words, overrides=()):
    """`check` of an edited lab must say so, and its training must fail so and leave no checkpoint behind."""
    with Lab(stretto) as lab:
        edit(lab)
        checked(lab, code, *words, overrides=overrides)
        expect(lab.train("run", *overrides), code, *words)
        check(not list(lab.root.glob("run/checkpoints/step_*")), "a checkpoint was written")
        check(not list(lab.root.glob("cache/**/.tmp*")), "half a cache was left behind")


def checked(lab, code, *words, overrides=()):
    """`check` says what training says; it reads everything, however slow this machine is, and writes nothing."""
    before = sorted(lab.root.rglob("*"))
    expect(lab.run([lab.stretto, "check", str(lab.config), "--full", *overrides]), code, *words)
    check(sorted(lab.root.rglob("*")) == before, "`check` wrote something")


def replace(old, new):
    def edit(lab):
        text = lab.config.read_text()
        check(old in text, f"the test is stale: no {old}")
        lab.config.write_text(text.replace(old, new))
    return edit


def with_line(name, number, text):
    def edit(lab):
        path = lab.root / name
        lines = path.read_bytes().split(b"\n")
        lines[number - 1] = text
        path.write_bytes(b"\n".join(lines))
    return edit


def a_mistyped_key_is_named_with_line_and_suggestion(stretto):
    refused(stretto, replace("warmup_steps", "warmup_step"), 2, "tiny.toml:", "schedule.warmup_step",
            "perhaps you meant", "warmup_steps")


def all_errors_come_at_once(stretto):
    def edit(lab):
        replace("warmup_steps = 10", "warmup_steps = -1")(lab)
        replace("lr = 2e-3", "lr = \"fast\"")(lab)
        replace("num_heads = 2", "num_heads = 3")(lab)
    refused(stretto, edit, 2, "tiny.toml:26:1: `schedule.warmup_steps` must be >= 0, got -1",
            "`optim.lr` must be a number", "`model.encoder.num_heads`", "`model.decoder.num_heads`", "4 errors")


def heads_must_divide_the_width(stretto):
    refused(stretto, replace("num_heads = 2", "num_heads = 3"), 2, "tiny.toml:", "`model.encoder.num_heads`: 3 heads",
            "model.d_model = 32", "choose num_heads")


def a_pattern_that_matches_no_tensor_is_named_before_anything_is_made(stretto):
    edit = replace("clip_norm = 1.0", 'clip_norm = 1.0\ngroups = ["encodr.* lr_scale=0.5"]\nno_decay = ["*.bais"]')
    refused(stretto, edit, 2, "tiny.toml:25:1: `optim.groups`: `encodr.*` matches no parameter", "names near it: encoder.",
            "tiny.toml:26:1: `optim.no_decay`: `*.bais` matches no parameter", "2 errors")
    with Lab(stretto) as lab:
        edit(lab)
        for more in ((), ("--processes", "2")):
            result = lab.train("run", *more)
            check(result.returncode == 2, f"exit code {result.returncode}: {result.stderr}")
            check(result.stderr.count("matches no parameter") == 2, f"told more than once: {result.stderr}")
            check(not (lab.root / "run").exists(), "a run folder was made for a configuration that is refused")


def a_mistyped_override_is_refused(stretto):
    refused(stretto, lambda lab: None, 2, "command line, `optim.lrr=1`: unknown key", "did you mean `optim.lr`?",
            overrides=("optim.lrr=1",))


def a_missing_file_is_named(stretto):
    refused(stretto, lambda lab: (lab.root / "train.src").unlink(), 2, "tiny.toml:7:1: `data.train_src`: no file", "train.src",
            "relative paths are relative to the file")


def unequal_line_counts_are_told_with_both(stretto):
    def edit(lab):
        with open(lab.root / "train.tgt", "a") as file:
            file.write("one more\n")
    refused(stretto, edit, 65, "train.src", "train.tgt", "400", "401")


def text_that_does_not_go_together_is_refused_before_anything_is_written(stretto):
    def longer_target(lab):
        with open(lab.root / "train.tgt", "a") as file:
            file.write("one more\n")

    def shorter_second_source(lab):
        for name in ("train", "valid"):
            lines = (lab.root / f"{name}.src").read_text().splitlines()
            (lab.root / f"{name}.src2").write_text("\n".join(lines[:-1] if name == "train" else lines) + "\n")
        replace('valid_tgt = ', 'train_src2 = ["train.src2"]\nvalid_src2 = ["valid.src2"]\nvalid_tgt = ')(lab)
        encoder = "num_layers = 1\nnum_heads = 2\nffn_dim = 64\n"
        replace("encoder = { num_layers = 1, num_heads = 2, ffn_dim = 64 }\n", "")(lab)
        lab.config.write_text(lab.config.read_text() + f"[[model.encoders]]\n{encoder}" * 2)

    for edit, *words in ((longer_target, "`data.train_src`: the two sides do not have", "400", "401"),
                         (shorter_second_source, "`data.train_src2`: sources and target do not have", "400", "399")):
        with Lab(stretto) as lab:
            edit(lab)
            checked(lab, 65, *words)
            before = sorted(lab.root.rglob("*"))
            for more in ((), ("--processes", "2"), ("--seeds", "2")):
                expect(lab.train("run", *more), 65, *words)
                check(sorted(lab.root.rglob("*")) == before, f"training wrote something: {more}")


def a_schedule_longer_than_its_epochs_is_refused_by_check_too(stretto):
    def two_pairs(lab):
        for side in ("src", "tgt"):
            path = lab.root / f"train.{side}"
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
        (lab.root / "words.txt").write_text("\n".join(sorted({*WORDS_SRC, *WORDS_TGT})) + "\n")
        replace("vocab_size = 80", 'type = "vocab"\nsrc_vocab = "words.txt"')(lab)
        replace("warmup_steps = 10", 'name = "cosine"\nwarmup_ratio = 0.1')(lab)
        replace("max_steps = 60", "max_epochs = 1")(lab)
    refused(stretto, two_pairs, 2, 'the decay of "cosine" would begin at update 1', "1 epoch", "raise train.max_epochs")


def an_empty_corpus_is_refused(stretto):
    def edit(lab):
        for side in ("src", "tgt"):
            (lab.root / f"train.{side}").write_text("")
    refused(stretto, edit, 65, "there is no text", "training text that [data] names")


def a_member_that_an_archive_lacks_is_named(stretto):
    def edit(lab):
        with zipfile.ZipFile(lab.root / "a.zip", "w") as archive:
            archive.write(lab.root / "train.src", "train.en")
        replace('train_src = ["train.src"]', 'train_src = ["a.zip:train.eng"]')(lab)
    refused(stretto, edit, 2, "a.zip: no regular file `train.eng` inside", "did you mean `train.en`?")


def a_tokenizer_file_that_is_none_is_refused(stretto):
    refused(stretto, replace("vocab_size = 80", 'model = "train.src"'), 65, "train.src: not a SentencePiece model")


def a_device_that_is_not_there_is_refused_but_for_another_machine(stretto):
    if os.path.exists("/dev/nvidiactl"):
        return  # there is one
    with Lab(stretto) as lab:
        checked(lab, 2, "`run.device`: ", "sees no CUDA device", overrides=("run.device=cuda",))
        checked(lab, 2, '`dist.backend`: "nccl" works between GPUs', overrides=("dist.backend=nccl",))
        for more in ((), ("dist.backend=nccl",)):
            result = lab.train("run", "run.device=cuda", *more)
            expect(result, 2, "sees no CUDA device")
            check("works between GPUs" not in result.stderr, result.stderr)
        checked(lab, 0, overrides=("run.device=cuda", "dist.backend=nccl", "--elsewhere"))


def a_line_of_two_megabytes_is_refused_with_its_place(stretto):
    refused(stretto, with_line("train.src", 7, b"x" * 2_000_000), 65,
            "train.src:7: this line has 2,000,000 bytes", "at most 999,999", "split this line")


def a_nul_byte_is_refused_with_its_place(stretto):
    refused(stretto, with_line("train.tgt", 5, b"a\0b"), 65, "train.tgt:5:2: a NUL byte", "iconv", "tr -d")


def bad_pairs_are_named_together_or_left_out_and_counted(stretto):
    def edit(lab):
        for side, number in (("src", 5), ("tgt", 7), ("src", 9)):
            with_line(f"train.{side}", number, b"a\0b")(lab)
    refused(stretto, edit, 65, "train.src:5:2: a NUL byte", "2 more: train.tgt:7:2: a NUL byte", "9:2: ",
            'data.bad_samples = "skip"')
    with Lab(stretto) as lab:
        edit(lab)
        skip = ("train.max_steps=12", "data.bad_samples=skip", "report.html=true")
        checked(lab, 0, overrides=skip)
        for more in ((), ("--processes", "2")):  # the second finds the cache
            run = f"run{len(more)}"
            expect(lab.train(run, *skip, *more), 0, "3 bad samples: ", "train.src:5:2")
            event = lab.events(run)[0]
            check((event["step"], event["event"]) == (0, "data") and event["note"].startswith("training text: left out 3 bad"),
                  str(event))
            check("train.tgt:7:2: a NUL byte" in (lab.root / run / "report.html").read_text(), "the report does not name them")
        checked(lab, 65, "more than data.max_bad_samples = 2", overrides=(*skip, "data.max_bad_samples=2"))
        expect(lab.train("few", *skip, "data.max_bad_samples=2"), 65, "more than data.max_bad_samples = 2")


def bad_samples_of_text_families_are_left_out_alike_by_check_training_and_eval(stretto):
    skip = ("data.bad_samples=skip", "train.max_steps=3", "train.save_every=3", "eval.every=3")
    with Bench(stretto, {row.name: row for row in (*ROWS, *LANGUAGE_ROWS)}) as bench:
        lab = bench.lab
        rows = (lab.root / "valid.tsv").read_text()
        flat = [{"id": number, "context": f"Nora lives in {town}.", "question": "Where does Nora live?",
                 "answers": {"text": [town], "answer_start": [14]}} for number, town in enumerate(("Oslo", "Riga"))]
        lines = [json.dumps(flat[0]), json.dumps(flat[1] | {"question": ""}), json.dumps(flat[1]), '{"id": 1, "id": 2}']
        data = {"text_classification": (rows.replace("\n", "\none\ttwo\tthree\n", 1) + "Nora lives in Oslo.\tnowhere\n", "bad.tsv", 2,
                                        ":2: 3 fields"),
                "question_answering": ("\n".join(lines), "bad.jsonl", 2, ":2: question 1: its text is empty"),
                "masked_lm": ("Nora lives in Oslo.\nNora\0 lives.\nNora lives in Riga.\n", "bad.txt", 1, ":2:5: a NUL byte")}
        # As many lines as lanes of validation need.
        data |= dict.fromkeys(("language_model", "language_model_lstm"),
                              ("Nora lives in Oslo.\nNora\0 lives.\n" + "Nora lives in Riga.\n" * 40, "lines.txt", 1, ":2:5: a NUL byte"))
        for family, (text, name, count, first) in data.items():
            (lab.root / name).write_text(text)
            lab.config = lab.root / f"{family}.toml"
            valid = f'data.valid=["{lab.root / name}"]'
            expect(lab.train(f"{family}_stopped", *skip[1:], valid), 65, f"{name}{first}")
            checked(lab, 0, overrides=(*skip, valid))
            expect(lab.train(f"{family}_skipped", *skip, valid), 0, f"left out: {count} bad sample", f"{name}{first}")
            note = lab.events(f"{family}_skipped")[0]["note"]
            check(f"left out {count} bad sample" in note and first in note, note)
            run = str(lab.root / f"{family}_skipped")
            told = lab.run([stretto, "eval", run, "--json", "--data", str(lab.root / name)])
            expect(told, 0, f"left out {count} bad sample", first)
            if family == "question_answering":
                answers = lab.root / "answers.json"
                expect(lab.run([stretto, "eval", run, "--data", str(lab.root / name), "--predictions", str(answers)]), 0)
                check(list(json.loads(answers.read_text())) == ["0", "1"], answers.read_text())
                (lab.root / "flat.json").write_text(json.dumps(flat))
                scored = lab.run([stretto, "score", "--metric", "squad1", "--reference", str(lab.root / "flat.json"), "--json"],
                                 input='{"0": "Oslo", "1": "Oslo"}')
                expect(scored, 0)
                check(json.loads(scored.stdout)["exact_match"] == 50, scored.stdout)


def bad_lines_of_every_form_of_documents_are_left_out_or_stop(stretto):
    """What a language model reads as lines is above."""
    forms = {"documents": ("a b c d\na\0b\n" + "a c b d\n" * 40, ":2:2: a NUL byte"),
             "jsonl": ('{"text": "a b c d"}\n{"text": "a", "text": "b"}\n' + '{"text": "a c b d"}\n' * 40,
                       ':2: key "text" stands twice in one object')}
    row = next(row for row in LANGUAGE_ROWS if row.name == "language_model")
    with Bench(stretto, {row.name: row}) as bench:
        lab = bench.lab
        lab.config = lab.root / "language_model.toml"
        for form, (text, fault) in forms.items():
            path = lab.root / f"bad.{form}"
            path.write_text(text)
            words = (f"data.format={form}", f'data.train=["{path}"]', f'data.valid=["{path}"]', "tokenizer.type=word",
                     "tokenizer.vocab_size=60", "train.max_steps=3", "train.save_every=3", "eval.every=3")
            checked(lab, 65, f"{path}{fault}", overrides=words)
            expect(lab.train(f"{form}_stopped", *words), 65, f"{path}{fault}")
            skip = (*words, "data.bad_samples=skip")
            checked(lab, 0, overrides=skip)
            expect(lab.train(form, *skip), 0, "left out: 1 bad sample", f"{path}{fault}")
            expect(lab.run([stretto, "eval", str(lab.root / form), "--data", str(path)]), 0, "left out 1 bad sample", fault)
            few = (*skip, "data.max_bad_samples=0")
            expect(lab.train(f"{form}_few", *few), 65, "more than data.max_bad_samples = 0")


def invalid_utf8_is_skipped_counted_or_refused_as_asked(stretto):
    edit = with_line("train.src", 10, b"a \xff\xfe b")
    with Lab(stretto) as lab:
        edit(lab)
        result = lab.train("run", "train.max_steps=12")
        expect(result, 0)
        check("UTF-8" in result.stderr, f"the skipped pair is not reported: {result.stderr}")
    refused(stretto, edit, 65, "train.src:10", "UTF-8", overrides=('data.invalid_utf8="error"',))


def a_vocabulary_larger_than_the_text_allows_is_refused_and_the_remedy_works(stretto):
    for algorithm in ("bpe", "unigram"):
        with Lab(stretto) as lab:
            overrides = ("train.max_steps=12", f"tokenizer.algorithm={algorithm}")
            result = lab.train("run", *overrides, "tokenizer.vocab_size=30000")
            expect(result, 2, "tokenizer.vocab_size", "30000 pieces")
            checked(lab, 2, "`tokenizer.vocab_size`: ", "30000 pieces", overrides=(*overrides, "tokenizer.vocab_size=30000"))
            check(not list(lab.root.glob("run/checkpoints/step_*")), "a checkpoint was written")
            remedy = re.search(r"set (tokenizer.vocab_size=\d+) or less", result.stderr)
            check(remedy, f"no remedy: {result.stderr}")
            expect(lab.train("run", *overrides, remedy[1]), 0)


def a_vocabulary_too_small_for_the_characters_is_refused(stretto):
    refused(stretto, replace("vocab_size = 80", "vocab_size = 18"), 2, "tokenizer.vocab_size", "18 pieces",
            "set tokenizer.vocab_size=")


def of_two_vocabularies_the_side_that_is_too_small_is_named(stretto):
    def edit(lab):
        path = lab.root / "train.tgt"
        path.write_text("ja nein ja\n" * len(path.read_text().splitlines()))
    refused(stretto, edit, 2, "tokenizer.vocab_size", "target side",
            overrides=("tokenizer.joint=false", "model.tie_embeddings=decoder"))


def filtered_pairs_are_listed_by_file_and_line(stretto):
    with Lab(stretto) as lab:
        for number in (7, 30, 31, 200, 390):
            with_line("train.tgt", number, b"" if number < 300 else b"rot " * 60)(lab)
        for run in ("first", "cached"):
            result = lab.train(run, "train.max_steps=12")
            expect(result, 0, "empty 4", "train.tgt:7", "train.tgt:30", "train.tgt:31", "too long 1", "train.tgt:390")
            check("train.tgt:200" not in result.stderr, f"more than the first few: {result.stderr}")


def when_the_filters_leave_nothing_the_first_lines_are_named(stretto):
    refused(stretto, replace("max_tgt_tokens = 50", "max_tgt_tokens = 1"), 65, "too long 400", "train.tgt:1",
            "data.max_tgt_tokens")


def average_takes_no_overrides_and_says_so(stretto):
    with Lab(stretto) as lab:
        expect(lab.run([stretto, "average", str(lab.root), "train.average_last=3"]), 2,
               "stretto average takes no key=value", "train.average_last=3", "--help")


def another_config_in_the_same_folder_is_refused_with_a_diff(stretto):
    with Lab(stretto) as lab:
        expect(lab.train("run", "train.max_steps=12"), 0)
        before = lab.essence("run")
        result = lab.train("run", "train.max_steps=12", "optim.lr=0.5")
        expect(result, 2, "optim.lr", "0.002", "0.5")
        check(lab.essence("run") == before, "the run was changed")


def free_keys_may_change(stretto):
    with Lab(stretto) as lab:
        expect(lab.train("run", "train.max_steps=12"), 0)
        expect(lab.train("run", "train.max_steps=15", "train.keep_last=3", "run.threads=2"), 0)
        check(lab.events("run")[-1]["step"] == 15, "the run did not go on")


def a_checkpoint_of_another_architecture_is_refused(stretto):
    with Lab(stretto) as lab:
        expect(lab.train("small", "train.max_steps=12"), 0)
        overrides = ("model.d_model=64", f"train.init_from={lab.root}/small")
        words = ("model.safetensors: the checkpoint does not fit this model: `embedding.weight` is [80, 32]",
                 "the model wants [80, 64]", "more", "give [model] and [tokenizer] the values of that run")
        wide = lab.train("wide", *overrides)
        expect(wide, 65, "`train.init_from`: ", *words)
        check(not (lab.root / "wide").exists(), "a run folder was made for weights that are refused")
        checked(lab, 65, "`train.init_from`: ", *words, overrides=overrides)
        # Names and shapes are compared without --full too. What the error has no room for is listed: of `check` on stdout.
        result = lab.run([stretto, "check", str(lab.config), *overrides])
        expect(result, 65, *words, "`stretto check` lists every tensor")
        for told in (result.stdout, wide.stderr):
            rest = told.partition("`train.init_from`, in full:\n")[2].splitlines()
            listed = list(itertools.takewhile(lambda line: line.startswith("  `"), rest))
            left = re.search(r"; and (\d+) tensors more", result.stderr)
            check(left and len(listed) == int(left[1]) + 3, f"{result.stderr}{told}")
            check("  `decoder.layers.0.ffn.up.weight` is [64, 32], the model wants [64, 64]" in listed, told)
        checked(lab, 0, overrides=(f"train.init_from={lab.root}/small",))
        checked(lab, 2, "no file", "a model folder of transformers", overrides=(f"train.init_from={lab.root}/smal",))


def weights_of_what_is_neither_a_run_nor_a_checkpoint_are_refused_with_what_was_found(stretto):
    with Lab(stretto) as lab:
        (lab.root / "empty").mkdir()
        for name, found in (("train.src", "is a file"), ("empty", "is neither a run folder nor a checkpoint")):
            overrides = (f"train.init_from={lab.root}/{name}",)
            words = (f"{lab.root}/{name} {found}", "give a run folder that has a checkpoint")
            checked(lab, 2, "`train.init_from`: ", *words, overrides=overrides)
            expect(lab.train("run", *overrides), 2, "`train.init_from`: ", *words)
            check(not (lab.root / "run").exists(), "a run folder was made for weights that are refused")


def a_vocabulary_that_does_not_fit_the_checkpoint_is_refused(stretto):
    with Lab(stretto) as lab:
        expect(lab.train("small", "train.max_steps=12"), 0)
        overrides = ("tokenizer.vocab_multiple=32", f"train.init_from={lab.root}/small")
        words = ("`embedding.weight` is [80, 32], the model wants [96, 32]", "give [model] and [tokenizer] the values of that run")
        expect(lab.train("more", *overrides), 65, *words)
        checked(lab, 65, *words, overrides=overrides)


def two_runs_in_one_folder_are_refused_with_the_holder(stretto):
    with Lab(stretto) as lab:
        first = subprocess.Popen(lab.command("run", "train.max_steps=100000"),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            lab.wait_for_updates("run", 1, first)
            expect(lab.train("run"), 2, "is in use by stretto train", f"process {first.pid} on ", "since 20",
                   "use another folder")
        finally:
            first.kill()
            first.wait()


def eval_and_infer_of_a_folder_that_is_no_run_say_so(stretto):
    with Lab(stretto) as lab:
        expect(lab.run([stretto, "eval", str(lab.root / "nothing")]), 2, f"no run folder at {lab.root}/nothing",
               "stretto train CONFIG --run")
        expect(lab.run([stretto, "infer", str(lab.root)], input=""), 2, f"{lab.root} is not a run", "run.json is missing")


def a_folder_without_write_permission_is_74(stretto):
    with Lab(stretto) as lab:
        locked = lab.root / "locked"
        locked.mkdir()
        if os.geteuid() == 0:  # root writes everywhere; /proc takes no folders even from root
            result = lab.run([stretto, "train", str(lab.config), "--run", "/proc/stretto_run"])
        else:
            locked.chmod(0o500)
            result = lab.run([stretto, "train", str(lab.config), "--run", str(locked / "run")])
        expect(result, 74, "cannot create", "run")


def a_full_disk_before_the_first_step_is_74(stretto):
    with Lab(stretto) as lab:
        result = lab.train("run", env={"STRETTO_FAILPOINT": "metrics.write:enospc:1+"})
        expect(result, 74, "run/metrics.jsonl: No space left on device", "free some space")


def infer_keeps_line_for_line(stretto):
    with Lab(stretto) as lab:
        expect(lab.train("run", "train.max_steps=12"), 0)
        source = "the red house\n\nxyzzy \u4f60\u597d\nthe dog sees a cat\n"
        result = lab.run([stretto, "infer", str(lab.root / "run")], input=source)
        expect(result, 0)
        check(result.stdout.count("\n") == 4, f"{result.stdout!r}")
        check(result.stdout.split("\n")[1] == "", "an empty line must stay empty")


def imports_of_small_files_take_little_memory(stretto):
    def imported(lab, *options):
        # Data of 2 GB: each of these folders asked for more, and ended with 71.
        limit = ["bash", "-c", 'ulimit -d 2000000; exec "$@"', "-"]
        return lab.run([*limit, stretto, "import", str(lab.root / "model"), "--run", str(lab.root / "run"), *options])

    with Lab(stretto) as lab:
        folder = lab.root / "model"
        bombs.write_folder(folder)
        (folder / "model.safetensors").unlink()
        bombs.storage_asked_for_often(folder / "pytorch_model.bin")
        expect(imported(lab), 65, "the key of a storage is longer than 1,000 bytes")
        (folder / "pytorch_model.bin").unlink()
        bombs.write_folder(folder, pieces=bombs.PIECES + "x" * 60_000_000 + "\n")
        expect(imported(lab), 65, "vocab.txt:9: a piece of 60,000,000 bytes", "at most 65,536")
        bombs.write_folder(folder, bombs.bert_config(hidden_size=65536, num_hidden_layers=1000, num_attention_heads=64))
        expect(imported(lab, "--allow-missing"), 65, "config.json describes tensors of", "num_hidden_layers")
        check(not (lab.root / "run").exists(), "a run folder was left behind")


def imports_of_small_language_models_take_little_memory(stretto):
    """Of the readers of folders with GPT-2's files, and with a SentencePiece model."""
    def refused_folder(kind, said, change, *options):
        with Lab(stretto) as lab:
            folder = shutil.copytree(FOLDERS / kind, lab.root / "model")
            change(folder)
            limit = ["bash", "-c", 'ulimit -d 2000000; exec "$@"', "-"]
            expect(lab.run([*limit, stretto, "import", str(folder), "--run", str(lab.root / "run"), *options]), 65, *said)
            check(not (lab.root / "run").exists(), "a run folder was left behind")

    def with_config(tensor, **changes):
        """A folder with this tensor alone."""
        def change(folder):
            path = folder / "config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | changes))
            (folder / "model.safetensors").write_bytes(bombs.safetensors({tensor: [65536]}))
        return change

    def with_a_piece(folder):
        (folder / "tokenizer.json").unlink()
        vocab = json.loads((folder / "vocab.json").read_text())
        (folder / "vocab.json").write_text(json.dumps(vocab | {"x" * 60_000_000: len(vocab)}))

    def with_merges(folder):
        (folder / "tokenizer.json").unlink()
        (folder / "merges.txt").write_text("a b\n" * 12_000_000)

    def with_pieces(pieces):
        return lambda folder: (folder / "tokenizer.model").write_bytes(bombs.sentencepiece(pieces))

    layers = dict(num_hidden_layers=1000, hidden_size=65536, num_attention_heads=64, num_key_value_heads=64, head_dim=1024,
                  intermediate_size=65536)
    refused_folder("gpt2", ("vocab.json", "a piece of 60,000,000 bytes", "at most 65,536"), with_a_piece)
    refused_folder("gpt2", ("its merges would take more than", "8 times as much"), with_merges)
    refused_folder("gpt2", ("config.json describes tensors of",), with_config("transformer.ln_f.bias", n_layer=1000, n_embd=65536, n_head=64),
                   "--allow-missing")
    refused_folder("llama", ("config.json describes tensors of",), with_config("model.norm.weight", **layers), "--allow-missing")
    refused_folder("llama", ("tokenizer.model", "bytes; at most 4096"), with_pieces(["x" * 60_000_000]))
    refused_folder("llama", ("tokenizer.model",), with_pieces([f"{number:x}" for number in range(2_000_001)]))


if __name__ == "__main__":
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__"
          and name not in ("paragraphs", "expect", "refused", "checked", "replace", "with_line")})
