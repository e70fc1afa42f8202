#!/usr/bin/env python3
"""Compares imported and exported models with the package transformers.

    crosscheck_models.py STRETTO_BINARY LOGITS_TOOL [--folder DIR_OF_A_MODEL ...]

Random models of BERT, RoBERTa and DistilBERT with every head, in several file formats, are imported; what the run computes
must be what transformers computes, to 1e-4. Each run is exported, and transformers must load the folder without a missing or
an unexpected tensor and compute the same again. The same of published models: of the packages in published_models.py that are
installed, and of folders that are named. Then models that Stretto has trained for two updates are exported. transformers must
compute what the run computes, and its tokenizer must give the run's ids.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when transformers or PyTorch is not installed.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)

from published_models import published_models

TOLERANCE = 1e-4
HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForQuestionAnswering")
BERT_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(35)] + ["##s", "##t"]
ROBERTA_PIECES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WORDS = "Åsa lives in Kraków while her brother sees red houses near the old river , and nobody knows why .".split()
HARD_LINES = ["", "The RED house", "  two   spaces ", "naïve café", "猫が家を見る", "emoji 😀 here", "tab\there", "½ ﬁne", "river's"]
BYTES = {"tokenizer": "byte_bpe", "vocab": 300}
TRAINED = {
    "trained masked tokens": {"task": "masked_lm", "class": "BertForMaskedLM", "model": ['activation = "gelu_tanh"']},
    "trained masked tokens without segments": {"task": "masked_lm", "class": "DistilBertForMaskedLM",
                                               "model": ["num_segments = 0", 'activation = "relu"']},
    "trained masked tokens of bytes": {"task": "masked_lm", "class": "RobertaForMaskedLM", **BYTES,
                                       "model": ["norm_epsilon = 1e-5"]},
    "trained masked tokens of bytes without segments": {"task": "masked_lm", "class": "RobertaForMaskedLM", **BYTES,
                                                        "model": ["num_segments = 0"]},
    "trained labels": {"task": "text_classification", "class": "BertForSequenceClassification",
                       "model": ['pooling = "cls_tanh"']},
    "trained labels without segments": {"task": "text_classification", "class": "DistilBertForSequenceClassification",
                                        "model": ["num_segments = 0", 'pooling = "cls_relu"']},
    "trained labels of bytes": {"task": "text_classification", "class": "RobertaForSequenceClassification", **BYTES,
                                "model": ["num_segments = 1", 'pooling = "cls_tanh"']},
    "trained spans": {"task": "question_answering", "class": "BertForQuestionAnswering"},
    "trained spans without segments": {"task": "question_answering", "class": "DistilBertForQuestionAnswering",
                                       "model": ["num_segments = 0"]},
    "trained spans of bytes": {"task": "question_answering", "class": "RobertaForQuestionAnswering", **BYTES},
}


class Difference(Exception):
    pass


def write_tokenizer(folder, kind):
    if kind != "roberta":
        (folder / "vocab.txt").write_text("\n".join(BERT_PIECES) + "\n", encoding="utf-8")
        return len(BERT_PIECES)
    # The bytes as GPT-2 writes them, and one merge.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(b) for b in printable] + [chr(256 + i) for i in range(256 - len(printable))]
    pieces = ROBERTA_PIECES + letters + ["th"]
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\nt h\n", encoding="utf-8")
    return len(pieces)


def config_of(kind, vocab, **more):
    if kind == "bert":
        return transformers.BertConfig(vocab_size=vocab, hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
                                       intermediate_size=40, max_position_embeddings=32, **more)
    if kind == "roberta":
        return transformers.RobertaConfig(vocab_size=vocab, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                                          intermediate_size=56, max_position_embeddings=34, type_vocab_size=1,
                                          layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2, **more)
    return transformers.DistilBertConfig(vocab_size=vocab, dim=24, n_layers=2, n_heads=4, hidden_dim=40,
                                         max_position_embeddings=32, **more)


def random_model(kind, head, folder, **more):
    """Weights far from those of a start, so that every bias and norm shows."""
    folder.mkdir(parents=True)
    config = config_of(kind, write_tokenizer(folder, kind), **more)
    stem = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert"}[kind]
    model = getattr(transformers, stem + head)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def random_batch(rng, config, longest=30):
    pads = {0, 1, config.pad_token_id}
    batch = [[rng.choice([i for i in range(config.vocab_size) if i not in pads]) for _ in range(rng.randint(1, longest))]
             for _ in range(5)]
    kinds = getattr(config, "type_vocab_size", 1)
    return batch, [sorted(rng.randrange(kinds) for _ in text) for text in batch]


@torch.no_grad()
def expected(model, batch, segments):
    """Rows and logits of each text by itself."""
    rows, logits = [], []
    for ids, kinds in zip(batch, segments):
        given = {"input_ids": torch.tensor([ids])}
        if not model.config.model_type.startswith("distil"):
            given["token_type_ids"] = torch.tensor([kinds])
        base = model.base_model(**given)
        rows.append(base.last_hidden_state[0])
        out = model(**given)
        if hasattr(out, "start_logits"):
            logits.append(torch.stack([out.start_logits[0], out.end_logits[0]], -1))
        elif "MaskedLM" in type(model).__name__:
            logits.append(torch.log_softmax(out.logits[0], -1))
        elif hasattr(out, "logits"):
            logits.append(out.logits)
        elif getattr(base, "pooler_output", None) is not None:
            logits.append(base.pooler_output)
        else:
            logits.append(base.last_hidden_state.mean(1))
    return torch.cat(rows), torch.cat(logits)


def run_command(*command, text=""):
    result = subprocess.run([str(word) for word in command], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=300, encoding="utf-8")
    if result.returncode != 0:
        raise Difference(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stderr}")
    return result.stdout


def computed(tool, run, batch, segments, place):
    offsets = [0]
    for text in batch:
        offsets.append(offsets[-1] + len(text))
    save_file({"ids": torch.tensor(sum(batch, [])), "segments": torch.tensor(sum(segments, [])),
               "offsets": torch.tensor(offsets)}, str(place / "in.safetensors"))
    (place / "out.safetensors").unlink(missing_ok=True)
    run_command(tool, run, place / "in.safetensors", place / "out.safetensors")
    out = load_file(str(place / "out.safetensors"))
    return out["rows"], out["logits"]


def compare(name, got, wanted):
    for what, a, b in zip(("rows", "logits"), got, wanted):
        if a.shape != b.shape:
            raise Difference(f"{name}: {what} are {list(a.shape)}, transformers has {list(b.shape)}")
        worst = (a - b).abs().max().item()
        if not worst <= TOLERANCE:
            raise Difference(f"{name}: {what} differ by {worst}")
        yield worst


def load_whole(folder, model_class):
    model, report = model_class.from_pretrained(folder, output_loading_info=True)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if report[key]:
            raise Difference(f"{folder}: {key}: {sorted(report[key])[:5]}")
    return model.eval()


def check(name, model, folder, options, rng, place, published=False):
    batch, segments = random_batch(rng, model.config)
    wanted = expected(model, batch, segments)
    run = place / (name.replace(" ", "_") + "_run")
    run_command(options.stretto, "import", folder, "--run", run)
    worst = max(compare(name, computed(options.tool, run, batch, segments, place), wanted))
    out = place / (name.replace(" ", "_") + "_out")
    run_command(options.stretto, "export", run, "--format", "hf", out)
    again = load_whole(out, type(model))
    worst = max(worst, *compare(name + ", exported", expected(again, batch, segments), wanted))
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    if len(tokenizer) != model.config.vocab_size and not published:
        raise Difference(f"{name}: the exported tokenizer has {len(tokenizer)} tokens")
    if not published:
        check_call(name, again, tokenizer, has_segments(model))
    print(f"{name}: {worst:.1e}")


def has_segments(model):
    return getattr(model.config, "type_vocab_size", 1) > 1


@torch.no_grad()
def check_call(name, model, tokenizer, tells_texts_apart):
    """What users write: the model takes what the tokenizer gives."""
    given = tokenizer("w1 w2", "w3", return_tensors="pt")
    kinds = given.get("token_type_ids")
    if (kinds is not None and kinds.max().item() > 0) != tells_texts_apart:
        raise Difference(f"{name}: the exported tokenizer gives segments {kinds}")
    model(**given)


def write_data(place):
    """Texts, with a label, and with a question on each."""
    rng = random.Random(1)
    texts, rows, paragraphs = [], ["text\tlabel"], []
    for number in range(200):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(5, 12)))
        answer = rng.choice(text.split())
        texts.append(text)
        rows.append(f"{text}\t{('north', 'middle', 'south')[number % 3]}")
        paragraphs.append({"context": text, "qas": [{"id": str(number), "question": f"where is {answer}?", "answers": [
            {"text": answer, "answer_start": text.index(answer)}]}]})
    (place / "masked_lm.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (place / "text_classification.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    squad = {"version": "1.1", "data": [{"title": "towns", "paragraphs": paragraphs}]}
    (place / "question_answering.json").write_text(json.dumps(squad), encoding="utf-8")
    return texts


def train(name, case, options, place):
    """A run of two updates. Each moves every weight by about the rate, so that every bias and norm shows."""
    task = case["task"]
    data = {"masked_lm": ['train = ["masked_lm.txt"]', 'documents = "line"'],
            "text_classification": ['train = ["text_classification.tsv"]', 'text = "text"', 'label = "label"'],
            "question_answering": ['train = ["question_answering.json"]', "max_question_tokens = 16", "stride = 8"]}[task]
    config = place / (name.replace(" ", "_") + ".toml")
    config.write_text("\n".join(
        ["[task]", f'name = "{task}"', "[data]", *data, "max_text_tokens = 40", "max_tokens = 400",
         "[tokenizer]", f'type = "{case.get("tokenizer", "wordpiece")}"', f"vocab_size = {case.get('vocab', 80)}",
         "[model]", 'preset = "none"', "num_layers = 2", "d_model = 24", "num_heads = 3", "ffn_dim = 40", "max_positions = 40",
         *case.get("model", []), "[optim]", 'name = "adamw"', "lr = 0.1", "[schedule]", "warmup_steps = 1", "[train]",
         "max_steps = 2"]) + "\n", encoding="utf-8")
    run = place / (name.replace(" ", "_") + "_run")
    run_command(options.stretto, "train", config, "--run", run)
    return run


def check_ids(name, options, run, tokenizer, lines):
    said = run_command(options.stretto, "tokenizer", "encode", run, "--ids", "--specials", text="\n".join(lines) + "\n")
    for line, ids in zip(lines, said.splitlines(), strict=True):
        wanted = tokenizer(line).input_ids
        if list(map(int, ids.split())) != wanted:
            raise Difference(f"{name}: {line!r} is {ids}, transformers has {wanted}")


def check_trained(name, case, texts, options, rng, place):
    """A model that Stretto has made: what transformers computes is compared with the run."""
    run = train(name, case, options, place)
    out, again = (place / (name.replace(" ", "_") + end) for end in ("_out", "_again"))
    run_command(options.stretto, "export", run, "--format", "hf", out)
    model_class = json.loads((out / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    if model_class != case["class"]:
        raise Difference(f"{name}: exported as {model_class}")
    model = load_whole(out, getattr(transformers, model_class))
    batch, segments = random_batch(rng, model.config)
    wanted = computed(options.tool, run, batch, segments, place)
    worst = max(compare(name, expected(model, batch, segments), wanted))
    run_command(options.stretto, "import", out, "--run", again)
    worst = max(worst, *compare(name + ", imported again", computed(options.tool, again, batch, segments, place), wanted))
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    check_ids(name, options, run, tokenizer, HARD_LINES + texts[:20])
    # As RoBERTa's, a tokenizer of bytes gives both texts of a pair the first segment.
    check_call(name, model, tokenizer, has_segments(model) and case.get("tokenizer") != "byte_bpe")
    print(f"{name}: {worst:.1e}")


def save(model, folder, form):
    if form == "safetensors":
        model.save_pretrained(folder)
    elif form == "shards":
        model.save_pretrained(folder, max_shard_size="8KB")
    else:
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "bin")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stretto", type=pathlib.Path)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, action="append", default=[])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng = random.Random(1)
    forms = ("safetensors", "shards", "bin", "old bin")
    with tempfile.TemporaryDirectory(prefix="stretto_models_") as directory:
        place = pathlib.Path(directory)
        try:
            for number, (kind, head) in enumerate((k, h) for k in ("bert", "roberta", "distilbert") for h in HEADS):
                form = forms[number % len(forms)]
                name = f"{kind} {head} {form}"
                folder = place / name.replace(" ", "_")
                model = random_model(kind, head, folder, **({"num_labels": 3} if head == HEADS[2] else {}))
                save(model, folder, form)
                check(name, model, folder, options, rng, place)
            for name, folder in [*published_models().items(), *((folder.name, folder) for folder in options.folder)]:
                model = load_whole(folder, transformers.AutoModel)
                check(name, model, folder, options, rng, place, published=True)
            texts = write_data(place)
            for name, case in TRAINED.items():
                check_trained(name, case, texts, options, rng, place)
        except Difference as difference:
            print(difference, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
