"""What a run begins with: another run's weights and tokenizer (train.init_from), and text that its tokenizer knows.

    initial_run_test.py PATH/TO/stretto
"""
import json
import re

from harness import CONFIG, Lab, check, main

SHORT = CONFIG.replace("warmup_steps = 10", "warmup_steps = 0")  # runs of one update too


def expect(result, code, *words):
    check(result.returncode == code, f"exit code {result.returncode} instead of {code}: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"`{word}` is not in: {result.stderr}")
    return result


def files(lab, run):
    return {path.name: path.read_bytes() for path in (lab.root / run / "tokenizer").iterdir()}


def first_loss(lab, run):
    return next(event["loss"] for event in lab.events(run) if event["event"] == "train")


def newest(lab, run):
    return sorted((lab.root / run / "checkpoints").iterdir())[-1]


def write_pairs(lab, name, pairs):
    (lab.root / f"{name}.src").write_text("\n".join(src for src, _ in pairs) + "\n")
    (lab.root / f"{name}.tgt").write_text("\n".join(tgt for _, tgt in pairs) + "\n")
    return f"data.train_src={lab.root}/{name}.src", f"data.train_tgt={lab.root}/{name}.tgt"


def fine_tuning_takes_the_other_runs_tokenizer(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first"), 0)
        # Another text and another size would train another model.
        other = write_pairs(lab, "other", [("a small blue bird", "ein klein blau vogel")] * 50)
        for run, source in (("run", f"{lab.root}/first"), ("checkpoint", newest(lab, "first")),
                            ("slash", f"{newest(lab, 'first')}/")):
            tuned = expect(lab.train(run, *other, "tokenizer.vocab_size=60", "train.max_steps=3",
                                     f"train.init_from={source}"), 0,
                           f"tokenizer of {lab.root}/first, from which the weights come; it takes the place of "
                           "tokenizer.vocab_size")
            check(files(lab, run) == files(lab, "first"), f"{run}: another tokenizer")
            check("warning: train.init_from" not in tuned.stderr, tuned.stderr)
        again = lab.train("run", *other, "tokenizer.vocab_size=60", "train.max_steps=5",
                          f"train.init_from={lab.root}/first")
        expect(again, 0, "resuming from the checkpoint of step 3")
        check("from which the weights come" not in again.stderr, again.stderr)
        out = lab.run([stretto, "infer", str(lab.root / "run")], input="the small house\n")
        check(out.returncode == 0 and out.stdout.count("\n") == 1, out.stderr)


def a_run_that_goes_on_needs_the_other_one_no_more(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        arguments = ("tuned", f"train.init_from={lab.root}/first")
        expect(lab.train(*arguments, "train.max_steps=4"), 0)
        (lab.root / "first").rename(lab.root / "gone")
        expect(lab.train(*arguments, "train.max_steps=6"), 0, "resuming from the checkpoint of step 4")


def a_tokenizer_that_is_named_and_differs_is_refused(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        expect(lab.train("other", "train.max_steps=1", "tokenizer.vocab_size=60"), 0)
        model = lab.root / "other" / "tokenizer" / "tokenizer.model"
        arguments = ("new", "train.max_steps=1", f"train.init_from={lab.root}/first", f"tokenizer.model={model}")
        expect(lab.train(*arguments), 2, "was trained with another tokenizer (tokenizer.model: SHA-256",
               "train.init_vocabulary")
        # Nothing was trained: the same folder takes the mended configuration.
        same = lab.root / "first" / "tokenizer" / "tokenizer.model"
        expect(lab.train(*arguments[:-1], f"tokenizer.model={same}"), 0)
        # A checkpoint that was copied out of its run has hashes, and no tokenizer to take.
        newest(lab, "first").rename(lab.root / "alone")
        arguments = ("third", "train.max_steps=1", f"train.init_from={lab.root}/alone")
        expect(lab.train(*arguments), 2, f"there is no tokenizer beside {lab.root}/alone", "tokenizer.model")
        expect(lab.train(*arguments, f"tokenizer.model={model}"), 2, "was trained with another tokenizer")
        expect(lab.train(*arguments, f"tokenizer.model={same}"), 0)


def a_folder_that_failed_takes_the_tokenizer_of_what_it_begins_with_now(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        # The tokenizer does not know this text, and by then the folder has it.
        foreign = write_pairs(lab, "foreign", [("жук пьёт чай", "the small house")] * 20)
        expect(lab.train("new", *foreign, "train.max_steps=1", f"train.init_from={lab.root}/first"), 65,
               "of the source's tokens are `<unk>`")
        check(files(lab, "new") == files(lab, "first"), "it failed before it had a tokenizer")
        expect(lab.train("new", "train.max_steps=1", "tokenizer.vocab_size=60"), 0)
        check(files(lab, "new") != files(lab, "first"), "the tokenizer of a run that it does not begin with")


def match_takes_over_the_rows_of_pieces_that_both_have(stretto):
    words = [word for word in "the a red blue big small house dog cat sees has wants".split()]
    pairs = [(f"{a} {b} {c}", f"{c} {b} {a}") for a in words[:2] for b in words[2:6] for c in words[6:]]
    with Lab(stretto, SHORT) as lab:
        lab.root.joinpath("old.vocab").write_text("\n".join(words) + "\n")
        lab.root.joinpath("new.vocab").write_text("\n".join([*words[6:], "zebra", *words[:6], "yak"]) + "\n")
        data = (*write_pairs(lab, "words", pairs), f"data.valid_src={lab.root}/words.src",
                f"data.valid_tgt={lab.root}/words.tgt", "tokenizer.type=vocab")
        old, new = (f"tokenizer.src_vocab={lab.root}/{name}.vocab" for name in ("old", "new"))
        expect(lab.train("first", *data, old, "train.max_steps=200"), 0)
        arguments = (*data, new, "train.max_steps=1", f"train.init_from={lab.root}/first")
        expect(lab.train("refused", *arguments), 2, "was trained with another tokenizer")
        # 12 words and 4 specials match; two words are new. Rows are rounded up to 24 from 16.
        expect(lab.train("matched", *arguments, "train.init_vocabulary=match"), 0,
               "train.init_vocabulary: 16 of 18 pieces keep their rows, 2 begin anew: `zebra`, `yak`")
        expect(lab.train("fresh", *data, new, "train.max_steps=1"), 0)
        before = [event["loss"] for event in lab.events("first") if event["event"] == "train"][-1]
        matched, fresh = first_loss(lab, "matched"), first_loss(lab, "fresh")
        check(matched < before + 0.1 * (fresh - before),
              f"first loss {matched:.3f}; the other run ended at {before:.3f}, a fresh one begins at {fresh:.3f}")
        check(lab.root.joinpath("matched/tokenizer/src.vocab").read_bytes()
              == lab.root.joinpath("new.vocab").read_bytes(), "the run has another vocabulary than it was given")


def unknown_tokens_are_said_warned_of_and_refused(stretto):
    with Lab(stretto, SHORT) as lab:
        vocabulary = lab.root / "words.vocab"
        known, tokenizer = ("ab cd", "ef gh"), ("tokenizer.type=vocab", f"tokenizer.src_vocab={vocabulary}")
        vocabulary.write_text("ab\ncd\nef\ngh\n")
        def overrides(run, pairs):
            name = f"{run}_text"
            return (*write_pairs(lab, name, pairs), f"data.valid_src={lab.root}/{name}.src",
                    f"data.valid_tgt={lab.root}/{name}.tgt", *tokenizer, "train.max_steps=1")
        def train(run, pairs, *more):
            return lab.train(run, *overrides(run, pairs), *more)
        def look(run, pairs, *more):
            return lab.run([stretto, "check", str(lab.config), "--full", *overrides(run, pairs), *more])
        result = expect(train("good", [known] * 100), 0, "training text, unknown tokens: source 0 %, target 0 %",
                        "training text, pieces a word: source 1.00, target 1.00",
                        "validation text, unknown tokens: source 0 %, target 0 %")
        check("<unk>" not in result.stderr, result.stderr)
        some = [known] * 95 + [("ab what", "ef gh")] * 5
        for _ in range(2):  # the second time the token cache is warm
            result = expect(train("some", some), 0, "training text, unknown tokens: source 2.50 %, target 0 %",
                            "warning: training text: 2.50 % of the source's tokens are `<unk>`")
        many = [known] * 50 + [("ab cd", "who knows")] * 50
        result = expect(train("many", many), 65, "training text: 50.0 % of the target's tokens are `<unk>`, "
                        "more than data.max_unknown = 0.2 allows", "split the text as the vocabulary is split",
                        "data.max_unknown = 1")
        check(not (lab.root / "many" / "checkpoints").exists(), "training began")
        expect(look("many", many), 65, "`data.train_src`: training text: 50.0 % of the target's tokens are `<unk>`")
        expect(look("many", many, "data.max_unknown=1"), 0)
        expect(look("some", some), 0)
        expect(train("many", many, "data.max_unknown=1"), 0, "warning: training text: 50.0 %")
        # The report shows the rates too.
        html = expect(train("page", some, "report.html=true"), 0)
        page = (lab.root / "page" / "report.html").read_text()
        check(re.search(r"unknown tokens.*?source 2\.50 %", page, re.S), "no rate in report.html: " + html.stderr)


def check_says_what_training_will_say(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        expect(lab.train("other", "train.max_steps=1", "tokenizer.vocab_size=60"), 0)
        first, match = f"train.init_from={lab.root}/first", "train.init_vocabulary=match"
        other = f"tokenizer.model={lab.root}/other/tokenizer/tokenizer.model"
        def look(code, words, *arguments):
            for how in ((), ("--full",)):
                expect(lab.run([stretto, "check", str(lab.config), *how, *arguments]), code, *words)
        look(0, (), first)
        look(0, (), first, "tokenizer.vocab_size=60")
        look(2, ("was trained with another tokenizer",), first, other)
        look(0, (), first, other, match)
        look(0, (), first, "tokenizer.vocab_size=60", match)
        look(65, ("`embedding.weight` is [80, 32], the model wants [",), first, "model.d_model=64", match)
        foreign = write_pairs(lab, "foreign", [("жук пьёт чай", "the small house")] * 20)
        for command in ((stretto, "check", str(lab.config), "--full"), lab.command("foreign")):
            expect(lab.run([*command, first, *foreign]), 65, "of the source's tokens are `<unk>`")
        newest(lab, "first").rename(lab.root / "alone")
        alone = (f"train.init_from={lab.root}/alone", match)
        look(2, ("there is no tokenizer beside",), *alone)
        # Training says so before it reads any text.
        result = expect(lab.train("new", *alone), 2, "there is no tokenizer beside")
        check("tokenised" not in result.stderr, result.stderr)


def what_shapes_hide_and_what_they_show_is_told_at_once(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        first = f"train.init_from={lab.root}/first"
        hidden, shown = "model.encoder.num_heads=4", "model.decoder.ffn_dim=48"
        for command in ([stretto, "check", str(lab.config)], lab.command("new", "train.max_steps=1")):
            result = expect(lab.run([*command, first, hidden]), 2, "belong to another model: ",
                            "model.encoder.num_heads: 2 there, 4 here")
            check("2 errors" not in result.stderr, result.stderr)
            expect(lab.run([*command, first, hidden, shown]), 2, "model.encoder.num_heads: 2 there, 4 here",
                   "`decoder.layers.0.ffn.up.weight` is [64, 32], the model wants [48, 32]", "2 errors")
        check(not (lab.root / "new").exists(), "a run folder was made for weights that are refused")


def all_that_check_finds_is_told_before_there_is_a_folder(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        with open(lab.root / "train.tgt", "a") as file:
            file.write("one more\n")
        wrong = (f"train.init_from={lab.root}/first", "model.d_model=64", 'optim.groups=["encodr.* lr_scale=0.5"]')
        words = ("`optim.groups`: `encodr.*` matches no parameter", "`data.train_src`: the two sides do not have", "401",
                 "`embedding.weight` is [80, 32], the model wants [80, 64]", "3 errors")
        line = "  `decoder.layers.0.ffn.up.weight` is [64, 32], the model wants [64, 64]"
        before = sorted(lab.root.rglob("*"))
        checked = expect(lab.run([stretto, "check", str(lab.config), *wrong]), 2, *words)
        check(line in checked.stdout.splitlines(), checked.stdout)
        for more in ((), ("--processes", "2"), ("--seeds", "2")):
            result = expect(lab.train("new", *wrong, *more), 2, *words)
            check(result.stderr.count("error: ") == 3, result.stderr)
            check(result.stderr.splitlines().count(line) == 1, result.stderr)
            check(sorted(lab.root.rglob("*")) == before, f"training wrote something: {more}")
        # What the look finds sound is told once, by training.
        (lab.root / "train.tgt").write_text("".join((lab.root / "train.tgt").read_text().splitlines(True)[:-1]))
        looked = expect(lab.train("second", "train.max_steps=1", wrong[0]), 0)
        check(looked.stderr.count("from which the weights come") == 1, looked.stderr)


def tensors_of(checkpoint):
    data = (checkpoint / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name: data[begin + head["data_offsets"][0]:begin + head["data_offsets"][1]]
            for name, head in json.loads(data[8:begin]).items() if name != "__metadata__"}


def a_part_of_another_run_is_taken_over_and_stays_frozen(stretto):
    with Lab(stretto, SHORT.replace('norm = "pre"', 'norm = "pre"\ntie_embeddings = "decoder"')) as lab:
        expect(lab.train("first", "train.max_steps=8"), 0)
        other = ("model.decoder.ffn_dim=48", f"train.init_from={lab.root}/first")
        part = (*other, 'train.init_only=["encoder.*"]')
        frozen = (*part, 'train.freeze=["encoder.*"]')
        expect(lab.run([stretto, "check", str(lab.config), *frozen]), 0)
        for processes in ("1", "2"):
            run = f"of_{processes}"
            result = lab.run([*lab.command(run, *frozen, "train.max_steps=3"), "--processes", processes])
            if processes == "2" and result.returncode == 2 and "mpi" in result.stderr.lower():
                continue  # built without MPI
            expect(result, 0, "(train.init_only); the others begin anew", "frozen parameters: ", "trained parameters: ")
            before, after = tensors_of(newest(lab, "first")), tensors_of(newest(lab, run))
            encoder = [name for name in before if name.startswith("encoder.")]
            check(len(encoder) > 10 and before.keys() == after.keys(), str(after.keys()))
            for name, values in after.items():
                check((values == before[name]) == (name in encoder), f"{run}: {name}")
        # What is wrong is told at once, and by training alike.
        slips = (*other, 'train.init_only=["encodr.*"]', 'train.freeze=["*"]', 'model.init=["*.bias orthogonal"]')
        for command in ((stretto, "check", str(lab.config)), lab.command("refused")):
            expect(lab.run([*command, *slips]), 2, "`encodr.*` matches no parameter", "there is nothing to train",
                   "its initialiser needs rows and columns")
            expect(lab.run([*command, *part, "model.encoder.ffn_dim=48"]), 65,
                   "`encoder.layers.0.ffn.up.weight` is [64, 32], the model wants [48, 32]",
                   "`encoder.layers.0.ffn.down.weight` is [32, 64], the model wants [32, 48]")
        check(not (lab.root / "refused" / "checkpoints").exists() or
              not list((lab.root / "refused" / "checkpoints").iterdir()), "it trained")


def every_process_takes_over_the_same(stretto):
    with Lab(stretto, SHORT) as lab:
        expect(lab.train("first", "train.max_steps=20"), 0)
        arguments = ("train.max_steps=3", f"train.init_from={lab.root}/first", "tokenizer.vocab_size=60")
        expect(lab.train("one", *arguments), 0)
        result = lab.run([*lab.command("two", *arguments), "--processes", "2"])
        if result.returncode == 2 and "mpi" in result.stderr.lower():
            return  # built without MPI
        expect(result, 0)
        losses = [[event["loss"] for event in lab.events(run) if event["event"] == "train"] for run in ("one", "two")]
        check(all(abs(a - b) < 1e-4 for a, b in zip(*losses)) and len(losses[1]) == 3, json.dumps(losses))


if __name__ == "__main__":
    helpers = {"expect", "files", "first_loss", "newest", "tensors_of", "write_pairs"}
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in helpers})
