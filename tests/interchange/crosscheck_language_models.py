#!/usr/bin/env python3
"""Compares imported and exported language models with GPT-2, Llama, Mistral, Qwen2 and Qwen3 of the package transformers.

    crosscheck_language_models.py STRETTO_BINARY [--case NAME ...] [--folder DIR_OF_A_MODEL ...]

Random models of each class are imported: with shared keys, wide heads, biases, scaled rotary positions, windows, tied and own
outputs, more rows than the tokenizer has ids, and with each kind of tokenizer files. Ids of awkward lines, log-probabilities of
lines (`eval --per-line`) and greedy continuations (`infer`) must be those of transformers: 1e-4 for each token. Each run is
exported, and transformers must compute the same logits from the folder that it computes from its own.
A folder of a real model may be named too.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

try:
    import google.protobuf  # noqa: F401  (tokenizers of Llama)
    import sentencepiece
    import torch
    import transformers
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)

from crosscheck_models import Difference, TOLERANCE, load_whole, run_command
from store_models import gpt2_tokenizer, llama_tokenizer, qwen_tokenizer

LINES = ["the old cat sees a red house", "two small birds and the house", "don't 1234 we'll", "  two   spaces", "naïve 猫 😀 é",
         "a</s>b <s> c", "<|endoftext|>the dog", "x", "the house of the dog " * 4]
PROMPTS = ["the old cat", "naïve 猫", "x"]
NEW_TOKENS = 8
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}


def settings(vocab, **more):
    return {"vocab_size": vocab, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "intermediate_size": 96, "max_position_embeddings": 256, "attn_implementation": "eager", **more}


def gpt2(vocab, **more):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=vocab, n_embd=64, n_layer=2, n_head=4, n_positions=256, bos_token_id=vocab - 1, eos_token_id=vocab - 1, **more))


def llama(vocab, **more):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings(vocab, **more)))


def mistral(vocab, **more):
    return transformers.MistralForCausalLM(transformers.MistralConfig(**settings(vocab, **more)))


def qwen2(vocab, **more):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**settings(vocab, **more)))


def qwen3(vocab, **more):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**settings(vocab, **more)))


def saved(make):
    def write(folder):
        make(folder).save_pretrained(folder)
        return transformers.AutoTokenizer.from_pretrained(folder)
    return write


def without_json(make):
    def write(folder):
        saved(make)(folder)
        (folder / "tokenizer.json").unlink()
        return transformers.AutoTokenizer.from_pretrained(folder)
    return write


def pieces(**config):
    """tokenizer.model alone, with these keys in tokenizer_config.json."""
    def write(folder):
        llama_tokenizer(folder)
        stated = {"tokenizer_class": "LlamaTokenizer", **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(stated), encoding="utf-8")
        return transformers.AutoTokenizer.from_pretrained(folder)
    return write


# The model, its tokenizer, options of its configuration; `spare` rows stand behind the tokenizer's ids.
CASES = {
    "gpt2": (gpt2, saved(gpt2_tokenizer), {}),
    "gpt2 vocab.json, own output": (gpt2, gpt2_tokenizer, {"tie_word_embeddings": False, "n_inner": 80, "spare": 47}),
    "llama tokenizer.model": (llama, pieces(), {"rope_scaling": LLAMA3, "rope_theta": 500.0}),
    "llama no beginning, biases": (llama, pieces(add_bos_token=False, legacy=False),
                                   {"attention_bias": True, "tie_word_embeddings": True}),
    "llama linear": (llama, saved(pieces(add_prefix_space=False)),
                     {"rope_scaling": {"type": "linear", "factor": 4.0}, "num_key_value_heads": 4}),
    "llama yarn": (llama, pieces(), {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 16.0, "mscale": 0.7,
                                                      "mscale_all_dim": 1.0, "original_max_position_embeddings": 64}}),
    "mistral": (mistral, saved(pieces(legacy=False)), {"sliding_window": 6, "head_dim": 32}),
    "qwen2": (qwen2, saved(qwen_tokenizer), {"tie_word_embeddings": True, "spare": 300}),
    "qwen2 vocab.json, windows": (qwen2, without_json(qwen_tokenizer), {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
    "qwen3": (qwen3, saved(qwen_tokenizer), {"head_dim": 24, "tie_word_embeddings": True,
                                            "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
}


def random_model(case, folder):
    """Weights far from those of a start, so that every bias and norm shows."""
    make, write_tokenizer, options = case
    options = dict(options)
    folder.mkdir(parents=True)
    tokenizer = write_tokenizer(folder)
    model = make(len(tokenizer) + options.pop("spare", 0), **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model, tokenizer


def begin_of(tokenizer):
    """What the first token of a line is predicted from: the last of the tokens in front, else the end of the text before."""
    front = tokenizer("x").input_ids[: -len(tokenizer("x", add_special_tokens=False).input_ids)]
    return front[-1] if front else tokenizer.eos_token_id


@torch.no_grad()
def log_probability(model, tokenizer, line):
    """Of a line and its end, among the ids that the tokenizer has."""
    ids = [begin_of(tokenizer), *tokenizer(line, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
    log_p = torch.log_softmax(model(input_ids=torch.tensor([ids[:-1]])).logits[0, :, : len(tokenizer)], -1)
    return log_p.gather(1, torch.tensor(ids[1:]).unsqueeze(1)).sum().item(), len(ids) - 1


@torch.no_grad()
def greedy(model, tokenizer, prompt):
    ids = tokenizer(prompt).input_ids
    begin = len(ids)
    for _ in range(NEW_TOKENS):
        best = model(input_ids=torch.tensor([ids])).logits[0, -1, : len(tokenizer)].argmax().item()
        if best == tokenizer.eos_token_id:
            break
        ids.append(best)
    return [tokenizer.convert_ids_to_tokens(one) for one in ids[begin:]]


def check_ids(name, stretto, run, tokenizer):
    said = run_command(stretto, "tokenizer", "encode", run, "--ids", text="\n".join(LINES) + "\n").splitlines()
    for line, ids in zip(LINES, said, strict=True):
        wanted = tokenizer(line, add_special_tokens=False).input_ids
        if list(map(int, ids.split())) != wanted:
            raise Difference(f"{name}: {line!r} is {ids}, transformers has {wanted}")


def check_lines(name, stretto, run, model, tokenizer, place):
    (place / "lines.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    run_command(stretto, "eval", run, "--data", place / "lines.txt", "--per-line", place / "scores.tsv", "data.format=lines")
    worst = 0.0
    for line, row in zip(LINES, (place / "scores.tsv").read_text(encoding="utf-8").splitlines(), strict=True):
        wanted, tokens = log_probability(model, tokenizer, line)
        got = float(row.split("\t")[0])
        worst = max(worst, abs(got - wanted) / tokens)
        if int(row.split("\t")[1]) != tokens or not abs(got - wanted) <= TOLERANCE * tokens:
            raise Difference(f"{name}: {line!r} has {row!r}, transformers {wanted} of {tokens} tokens")
    return worst


def check_continuations(name, stretto, run, model, tokenizer):
    said = run_command(stretto, "infer", run, "--json", "decode.method=beam", "decode.beam_size=1",
                       f"decode.max_new_tokens={NEW_TOKENS}", text="\n".join(PROMPTS) + "\n").splitlines()
    for prompt, answer in zip(PROMPTS, map(json.loads, said), strict=True):
        wanted = greedy(model, tokenizer, prompt)
        got = answer["continuations"][0]["pieces"]
        if got[: len(wanted)] != wanted:
            raise Difference(f"{name}: {prompt!r} goes on with {got}, in transformers with {wanted}")


@torch.no_grad()
def check_export(name, stretto, run, model, tokenizer, place):
    out = place / "exported"
    run_command(stretto, "export", run, "--format", "hf", out)
    again = load_whole(out, type(model))
    own = transformers.AutoTokenizer.from_pretrained(out)
    worst = 0.0
    for line in LINES:
        ids = tokenizer(line).input_ids
        if own(line).input_ids != ids:
            raise Difference(f"{name}: the exported tokenizer gives {own(line).input_ids} for {line!r}, not {ids}")
        given = torch.tensor([ids])
        worst = max(worst, (again(given).logits - model(given).logits[:, :, : len(tokenizer)]).abs().max().item())
    if not worst <= TOLERANCE:
        raise Difference(f"{name}: logits of the exported folder differ by {worst}")
    return worst


def check(name, model, tokenizer, folder, stretto, place):
    run = place / "run"
    run_command(stretto, "import", folder, "--run", run)
    check_ids(name, stretto, run, tokenizer)
    of_lines = check_lines(name, stretto, run, model, tokenizer, place)
    check_continuations(name, stretto, run, model, tokenizer)
    print(f"{name}: {of_lines:.1e} a token, exported {check_export(name, stretto, run, model, tokenizer, place):.1e}", flush=True)


def check_refusal(stretto, place):
    """A kind of scaling that is not known, before anything is written."""
    folder = place / "dynamic"
    random_model((llama, pieces(), {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}), folder)
    try:
        run_command(stretto, "import", folder, "--run", place / "refused")
    except Difference as refusal:
        if "dynamic" in str(refusal) and not (place / "refused").exists():
            return
        raise
    raise Difference("rope_type = dynamic is imported")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stretto", type=pathlib.Path)
    parser.add_argument("--case", action="append", default=[], choices=CASES, help="all without one")
    parser.add_argument("--folder", type=pathlib.Path, action="append", default=[])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="stretto_language_models_") as directory:
        try:
            for number, name in enumerate(options.case or CASES):
                torch.manual_seed(1)
                place = pathlib.Path(directory) / str(number)
                model, tokenizer = random_model(CASES[name], place / "model")
                check(name, model, tokenizer, place / "model", options.stretto, place)
            for number, folder in enumerate(options.folder):
                place = pathlib.Path(directory) / f"given{number}"
                place.mkdir()
                model = load_whole(folder, transformers.AutoModelForCausalLM)
                check(folder.name, model, transformers.AutoTokenizer.from_pretrained(folder), folder, options.stretto, place)
            if not options.case:
                check_refusal(options.stretto, pathlib.Path(directory))
        except Difference as difference:
            print(difference, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
