"""Columns of the matrix about training on from the weights of another run."""
from harness import check

from matrix.bench import LAST, bytes_of, listed
from matrix.use import lora_run, lora_words


def moved(before, after):
    """Names of tensors that both have, and that differ."""
    return {name for name in before if name in after and after[name] != before[name]}


def lora(bench, row):
    """LoRA trains, and nothing else but what is named; killed in an update, it ends as an undisturbed run."""
    run = lora_run(bench, row)
    before, after = bytes_of(bench.reference(row) / LAST), bytes_of(run / LAST)
    parts = [name for name in after if name.endswith((".lora_a", ".lora_b"))]
    check(len(parts) == (row.lora[1] or len(parts)) > 0 and all(any(after[name]) for name in parts), f"{row.name}: {parts}")
    check(set(before) <= set(after), f"{row.name}: {sorted(after)}")
    other = {name for name in moved(before, after) if not row.moves_with_lora(name)}
    check(not other, f"{row.name}: {other} are not frozen")
    bench.killed_and_resumed(row, "lora", "killed_lora", *lora_words(bench, row))


def lora_sharded(bench, row):
    """Two processes train LoRA as one does, with the optimizer's state in slices."""
    lora_run(bench, row)
    bench.two_processes(row, "shared_lora", *lora_words(bench, row), "dist.strategy=sharded")
    bench.same(row, "lora", "shared_lora")


def adapter_words(row):
    train = [f'"{part}*"' if part.endswith(".") else f'"*{part}*"' for part in row.adapter_train]
    return ("model.adapter.dim=4", "optim.lr=1e-2", *([f"model.adapter.train=[{','.join(train)}]"] if train else []))


def adapters_run(bench, row):
    words = (*adapter_words(row), f"train.init_from={bench.reference(row) / LAST}")
    return bench.once(row, "adapters", *words), words


def adapters(bench, row):
    """Adapters train, and nothing else but what is named; killed in an update, they end as in an undisturbed run."""
    run, words = adapters_run(bench, row)
    check(f"{row.adapters} adapters of this model are not there" in (run / "log.txt").read_text(), (run / "log.txt").read_text())
    before, after = bytes_of(bench.reference(row) / LAST), bytes_of(run / LAST)
    parts = [name for name in after if ".adapter." in name]
    check(len(parts) == row.adapters * 4 and all(any(after[name]) for name in parts), f"{row.name}: {parts}")
    check(len(after) == len(before) + len(parts), f"{row.name}: {sorted(after)}")
    for name in before:
        moves = row.moves_with_adapters(name)
        check((after[name] != before[name]) == moves, f"{row.name}: {name} {'stays' if moves else 'moves'}")
    bench.killed_and_resumed(row, "adapters", "killed_adapters", *words)
    row.check_adapted(bench, run)


def adapters_elsewhere(bench, row):
    """Another run begins with them; one without has no place for them, and neither has a class of `transformers`."""
    run, _ = adapters_run(bench, row)
    said = bench.train(row, "more_adapters", *adapter_words(row), f"train.init_from={run}")
    check("not there" not in said, said)
    said = bench.train(row, "no_adapters", "model.adapter.dim=0", f"train.init_from={run}", code=65)
    check("give [model.adapter]" in said, said)
    refused = bench.root / f"{row.name}_refused"
    said = bench.output("export", run, "--format", "hf", refused, code=2)
    check("model.adapter.dim = 4" in said, said)
    check(not refused.exists(), "a folder was written")


def unfreeze(bench, row):
    """Tensors that train from a later update on do so after a kill, too."""
    words, moves = row.unfreeze
    words = (*words, "train.keep_last=9")
    bench.train(row, "unfrozen", *words)
    bench.killed_and_resumed(row, "unfrozen", "killed_unfrozen", *words)
    at = {step: bytes_of(bench.folder(row, "unfrozen") / f"checkpoints/step_{step:08}") for step in (3, 6, 9)}
    early, late = moved(at[3], at[6]), moved(at[6], at[9])
    if moves:
        check(late >= set(moves), f"{row.name}: of {set(moves)} move {late}")
    else:  # all of the encoder; a layer that updates leave out may stay as it is
        moves = dict.fromkeys((name for name in at[3] if name.startswith("encoder")), False)
        check(late & set(moves), f"{row.name}: the encoder stays as it is")
    for name, moving in moves.items():
        check((name in early) == moving, f"{row.name}: {name} from update 3 to 6")


def freeze(bench, row):
    """An encoder is taken over and stays as it is; the rest begins anew and trains."""
    source = bench.reference(row)
    words = (f"train.init_from={source / LAST}", 'train.init_only=["encoder*"]', 'train.freeze=["encoder*"]', "train.max_steps=3")
    said = bench.train(row, "frozen", *words)
    check("(train.init_only); the others begin anew" in said and "frozen parameters: " in said, said)
    before = bytes_of(source / LAST)
    after = bytes_of(bench.folder(row, "frozen") / "checkpoints/step_00000003")
    still = before.keys() - moved(before, after)
    check(before.keys() == after.keys(), f"{row.name}: {sorted(after)}")
    # A table that both sides share is the encoder's too.
    encoder = {name for name in before if name.startswith(("encoder", "embedding."))}
    check(len(still) > 1 and still == encoder, f"{row.name}: {sorted(still)} stayed as they were")


def init_from(bench, row):
    """It begins with the encoder and the tokenizer of a run of another family."""
    other = bench.rows[row.begins_with]
    source = bench.reference(other)
    words = f"train.init_from={source}"
    bench.output("check", bench.root / f"{row.name}.toml", words)
    said = bench.train(row, "tuned", words, "train.max_steps=3")
    check(listed(said, "begin anew") == row.head, said)
    check(listed(said, "left there") == other.head, said)
    check("tokenizer of " in said, said)
    taken = (bench.folder(row, "tuned") / "tokenizer/tokenizer.json").read_bytes()
    check(taken == (source / "tokenizer/tokenizer.json").read_bytes(), "another tokenizer")
