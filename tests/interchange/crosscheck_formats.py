#!/usr/bin/env python3
"""Compares what `stretto export` writes for other programs with the runs: CTranslate2, ONNX Runtime, and files of GGUF.

    crosscheck_formats.py STRETTO_BINARY LOGITS_TOOL [--part ctranslate2|onnx|gguf ...]

ctranslate2  Translation models that Stretto has trained for two updates, with each place of norms, tie and kind of positions:
             log-probabilities of target tokens must be those of the run, to 1e-4 in fp32; in int8 they may differ by 0.1 on the
             average, and the folder is at most 0.4 of the size. Random GPT-2, Llama, Qwen2 and Qwen3: log-probabilities of lines
             must be those of transformers, to 1e-4 a token.
onnx         Encoders of texts with each head, and in the forms that transformers has no class for: rows and logits of a padded
             batch must be those of the run, to 1e-4; in int8 they may differ by 0.1 on the average.
gguf         Random Llama, Qwen2 and Qwen3: the package reads every key and tensor, values are those of transformers (with the
             columns of a head in llama.cpp's order), in F32, F16 and Q8_0. Where the package llama_cpp is installed, it computes
             the log-probabilities too.

What a format cannot express must be refused, with the key in the message.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when no package of a part is installed.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import random
import sys
import tempfile

try:
    import numpy
    import tokenizers
    import torch
    import transformers  # noqa: F401
    import crosscheck_language_models as language
    import crosscheck_models as encoders
    import crosscheck_translation as translation
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)

from crosscheck_models import Difference, TOLERANCE, run_command

PACKAGES = {"ctranslate2": "ctranslate2", "onnx": "onnxruntime", "gguf": "gguf"}
INT8_TOLERANCE, INT8_SHARE = 0.05, 0.45

TRANSLATION = {
    "ties all": [],
    "learned, own output": ['positions = "learned"', 'tie_embeddings = "none"', 'activation = "gelu"', 'embedding_scale = "none"'],
    "pre-norm, marian": ['norm = "pre"', 'positions = "marian"', 'tie_embeddings = "decoder"', "output_bias = true"],
    "rotary, rms, swiglu": ['norm = "pre"', 'norm_layer = "rms_norm"', 'positions = "rotary"', 'activation = "swiglu"'],
}
REFUSED_TRANSLATION = {"alibi": ['positions = "alibi"'], "res_post": ['norm = "res_post"'], "batch_norm": ['norm_layer = "batch_norm"']}
# Cases of crosscheck_language_models.py; the others are refused, with these words.
GENERATORS = {"gpt2": "", "gpt2 vocab.json, own output": "", "llama tokenizer.model": "", "llama no beginning, biases": "",
              "llama linear": "", "qwen2": "", "llama yarn": "model.rope.scaling", "mistral": "model.sliding_window"}
LLAMAS = {"llama tokenizer.model": "", "llama linear": "", "qwen2": "", "gpt2": "model.norm_layer", "llama yarn": "model.rope.scaling",
          "mistral": "model.sliding_window"}
ENCODERS = {
    "masked": {"task": "masked_lm"},
    "masked bytes, own output": {"task": "masked_lm", "tokenizer": "byte_bpe", "vocab": 300, "model": ["tie_embeddings = false", 'activation = "gelu_tanh"']},
    "masked pre-norm, rotary, swiglu": {"task": "masked_lm", "model": ['norm = "pre"', 'norm_layer = "rms_norm"', 'positions = "rotary"',
                                                                       'activation = "swiglu"', "num_segments = 0"]},
    "labels": {"task": "text_classification"},
    "labels, mean, sinusoids, geglu": {"task": "text_classification", "model": ['pooling = "mean"', 'positions = "sinusoidal"', 'activation = "geglu"']},
    "labels, cls_relu, relu": {"task": "text_classification", "model": ['pooling = "cls_relu"', 'activation = "relu"', "num_segments = 0"]},
    "spans": {"task": "question_answering"},
}


def require_refused(stretto, run, format_name, out, words):
    try:
        run_command(stretto, "export", run, "--format", format_name, out)
    except Difference as refusal:
        if words in str(refusal) and not out.exists():
            return
        raise
    raise Difference(f"{run} is exported as {format_name}, in spite of {words}")


def folder_bytes(folder, name):
    return (folder / name).stat().st_size


def translation_run(name, keys, options, place):
    data = place / "data"
    data.mkdir(exist_ok=True)
    for side in ("source", "target"):
        (data / side).write_text("\n".join(translation.sentences(side, random.Random(1))) + "\n", encoding="utf-8")
    config = place / f"{name}.toml"
    config.write_text("\n".join(
        ["[task]", 'name = "translation"', "[data]", f'train_src = "{data}/source"', f'train_tgt = "{data}/target"',
         "max_src_tokens = 40", "max_tgt_tokens = 40", "[train]", "max_steps = 2", "[schedule]", "warmup_steps = 1", "[tokenizer]",
         "vocab_size = 50", "[model]", "d_model = 24", "max_positions = 50", "dropout = 0.1", *keys, "[model.encoder]",
         "num_layers = 2", "num_heads = 3", "ffn_dim = 40", "[model.decoder]", "num_layers = 2", "num_heads = 4", "ffn_dim = 40"])
        + "\n", encoding="utf-8")
    run = place / f"{name}_run"
    run_command(options.stretto, "train", config, "--run", run)
    return run


def vocabulary(folder, side):
    shared = folder / "shared_vocabulary.json"
    return json.loads((shared if shared.exists() else folder / f"{side}_vocabulary.json").read_text(encoding="utf-8"))


def translator_scores(folder, src, tgt, compute_type):
    import ctranslate2
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type=compute_type, intra_threads=1)
    sources, targets = vocabulary(folder, "source"), vocabulary(folder, "target")
    found = translator.score_batch([[sources[i] for i in ids[:-1]] for ids in src], [[targets[i] for i in ids[:-1]] for ids in tgt])
    return torch.tensor([score for one in found for score in one.log_probs])


def check_translation(name, keys, options, rng, place):
    run = translation_run(name.replace(" ", "_").replace(",", ""), keys, options, place)
    out, small = (place / (run.name + ending) for ending in ("_ct2", "_int8"))
    run_command(options.stretto, "export", run, "--format", "ctranslate2", out)
    run_command(options.stretto, "export", run, "--format", "ctranslate2", "--weights", "int8", small)
    target = vocabulary(out, "target")
    specials = json.loads((out / "config.json").read_text(encoding="utf-8"))
    end = target.index(specials["eos_token"])
    # Sources are among the ids of both sides.
    size = min(len(target), len(vocabulary(out, "source")))
    src, tgt = translation.random_pairs(rng, size, end, set(range(4)) | {end})
    src, tgt = zip(*[(a, b) for a, b in zip(src, tgt) if len(a) > 1 and len(b) > 1])
    _, nll = translation.computed(options.tool, run, list(src), list(tgt), place)
    worst = (translator_scores(out, src, tgt, "float32") + nll).abs().max().item()
    if not worst <= TOLERANCE:
        raise Difference(f"{name}: log-probabilities differ by {worst}")
    # Its own rounding of activations moves more than that of the weights, which must be as its own.
    mean = (translator_scores(small, src, tgt, "float32") + nll).abs().mean().item()
    if not mean <= INT8_TOLERANCE:
        raise Difference(f"{name}: log-probabilities of int8 weights differ by {mean}")
    own = (translator_scores(small, src, tgt, "int8") - translator_scores(out, src, tgt, "int8")).abs().max().item()
    if not own <= TOLERANCE:
        raise Difference(f"{name}: in int8, log-probabilities differ by {own} from those of weights that CTranslate2 rounds")
    share = folder_bytes(small, "model.bin") / folder_bytes(out, "model.bin")
    if share > INT8_SHARE:
        raise Difference(f"{name}: int8 has {share} of the size")
    print(f"{name}: {worst:.1e}, int8 {mean:.1e}, {share:.2f} of the size", flush=True)


def check_generator(name, refusal, options, place):
    import ctranslate2
    torch.manual_seed(1)
    model, tokenizer = language.random_model(language.CASES[name], place / "model")
    run, out = place / "run", place / "ct2"
    run_command(options.stretto, "import", place / "model", "--run", run)
    if refusal:
        return require_refused(options.stretto, run, "ctranslate2", out, refusal)
    run_command(options.stretto, "export", run, "--format", "ctranslate2", out)
    generator = ctranslate2.Generator(str(out), device="cpu", compute_type="float32", intra_threads=1)
    pieces = json.loads((out / "vocabulary.json").read_text(encoding="utf-8"))
    worst = 0.0
    for line in language.LINES:
        ids = [language.begin_of(tokenizer), *tokenizer(line, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        wanted, tokens = language.log_probability(model, tokenizer, line)
        got = sum(generator.score_batch([[pieces[i] for i in ids]])[0].log_probs)
        worst = max(worst, abs(got - wanted) / tokens)
    if not worst <= TOLERANCE:
        raise Difference(f"{name}: log-probabilities of CTranslate2 differ by {worst} a token")
    print(f"{name}: {worst:.1e} a token in CTranslate2", flush=True)


def check_ctranslate2(options, place):
    rng = random.Random(1)
    for name, keys in TRANSLATION.items():
        check_translation(name, keys, options, rng, place)
    for name, keys in REFUSED_TRANSLATION.items():
        run = translation_run(name, keys, options, place)
        require_refused(options.stretto, run, "ctranslate2", place / "refused", name)
    for number, (name, refusal) in enumerate(GENERATORS.items()):
        check_generator(name, refusal, options, place / f"generator{number}")


def encoder_inputs(session, batch, segments):
    longest = max(map(len, batch))
    padded = {"input_ids": batch, "token_type_ids": segments, "attention_mask": [[1] * len(text) for text in batch]}
    wanted = {given.name for given in session.get_inputs()}
    return {name: numpy.array([row + [0] * (longest - len(row)) for row in rows], dtype=numpy.int64)
            for name, rows in padded.items() if name in wanted}


def rows_of_texts(batch, values):
    """Of a padded batch, those of texts alone."""
    return torch.cat([torch.tensor(values[i, : len(text)]) for i, text in enumerate(batch)])


def onnx_logits(session, batch, segments):
    names = [one.name for one in session.get_outputs()]
    found = dict(zip(names, session.run(None, encoder_inputs(session, batch, segments))))
    if "start_logits" in found:
        return torch.stack([rows_of_texts(batch, found[name]) for name in ("start_logits", "end_logits")], -1)
    if found["logits"].ndim == 3:
        return torch.log_softmax(rows_of_texts(batch, found["logits"]), -1)
    return torch.tensor(found["logits"])


class Sizes:
    """What encoders.random_batch() asks of a configuration."""

    def __init__(self, folder, has_segments):
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.vocab_size = tokenizer.get_vocab_size()
        pads = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>")]
        self.pad_token_id = next(one for one in pads if one is not None)
        self.type_vocab_size = 2 if has_segments else 1


def check_encoder(name, case, options, rng, place):
    import onnxruntime
    run = encoders.train(name.replace(",", ""), case, options, place)
    out = place / (run.name + "_onnx")
    run_command(options.stretto, "export", run, "--format", "onnx", out)
    session = onnxruntime.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
    has_segments = any(given.name == "token_type_ids" for given in session.get_inputs())
    batch, segments = encoders.random_batch(rng, Sizes(out, has_segments))
    _, wanted = encoders.computed(options.tool, run, batch, segments, place)
    got = onnx_logits(session, batch, segments)
    if got.shape != wanted.shape:
        raise Difference(f"{name}: logits are {list(got.shape)}, the run has {list(wanted.shape)}")
    worst = (got - wanted).abs().max().item()
    if not worst <= TOLERANCE:
        raise Difference(f"{name}: logits of ONNX differ by {worst}")
    small = place / (run.name + "_int8")
    run_command(options.stretto, "export", run, "--format", "onnx", "--weights", "int8", small)
    session = onnxruntime.InferenceSession(str(small / "model.onnx"), providers=["CPUExecutionProvider"])
    mean = (onnx_logits(session, batch, segments) - wanted).abs().mean().item()
    if not mean <= INT8_TOLERANCE:
        raise Difference(f"{name}: logits of ONNX in int8 differ by {mean}")
    sizes = [sum(folder_bytes(folder, file) for file in ("model.onnx", "model.onnx_data")) for folder in (small, out)]
    if sizes[0] >= sizes[1]:
        raise Difference(f"{name}: int8 has {sizes[0]} bytes, fp32 {sizes[1]}")
    print(f"{name}: {worst:.1e} in ONNX, int8 {mean:.1e}", flush=True)


def check_onnx(options, place):
    rng = random.Random(1)
    encoders.write_data(place)
    for name, case in ENCODERS.items():
        check_encoder(name, case, options, rng, place)


def neighbouring_pairs(values, heads):
    """llama.cpp's order of the columns of a head, in the architecture `llama`."""
    rows = values.shape[0]
    return values.reshape(heads, 2, rows // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


GGUF_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
              "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def gguf_name(name):
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    if name in whole:
        return whole[name]
    _, _, layer, rest = name.split(".", 3)
    part, ending = rest.rsplit(".", 1)
    return f"blk.{layer}.{GGUF_NAMES[part]}.{ending}"


def wanted_tensors(model, vocab, is_llama):
    config, wanted = model.config, {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = value.numpy()
        if name in ("lm_head.weight", "model.embed_tokens.weight"):
            values = values[:vocab]
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        for part, count in heads.items():
            if is_llama and f".{part}." in name:
                values = neighbouring_pairs(values, count)
        wanted[gguf_name(name)] = values
    return wanted


def check_gguf_file(name, path, wanted, tolerance):
    import gguf
    reader = gguf.GGUFReader(str(path))
    found = {tensor.name: tensor for tensor in reader.tensors}
    others = set(found) - {"rope_freqs.weight"}
    if others != set(wanted):
        raise Difference(f"{name}: tensors {sorted(others ^ set(wanted))} are missing or too many")
    for tensor_name, values in wanted.items():
        tensor = found[tensor_name]
        got = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
        bound = tolerance * max(numpy.abs(values).max(), 1e-6)
        if not numpy.abs(got - values).max() <= bound:
            raise Difference(f"{name}: {tensor_name} differs by {numpy.abs(got - values).max()}")
    return reader


def gguf_strings(reader, key):
    field = reader.fields[key]
    return [bytes(field.parts[i]).decode("utf-8") for i in field.data]


def check_llama_cpp(name, path, model, tokenizer):
    """Needs a build of llama.cpp: where there is none, nothing is checked."""
    if importlib.util.find_spec("llama_cpp") is None:
        return
    import llama_cpp
    engine = llama_cpp.Llama(str(path), n_ctx=256, logits_all=True, n_threads=1, verbose=False)
    for line in language.LINES[:4]:
        ids = tokenizer(line).input_ids
        said = engine.tokenize(line.encode("utf-8"), add_bos=True, special=True)
        if said != ids:
            raise Difference(f"{name}: llama.cpp cuts {line!r} into {said}, transformers into {ids}")
        engine.reset()
        engine.eval(ids)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, :, : len(tokenizer)]
        got = torch.tensor(engine.scores[: len(ids)])
        worst = (torch.log_softmax(got, -1) - torch.log_softmax(logits, -1)).abs().max().item()
        if not worst <= 1e-2:  # its keys and values are fp16
            raise Difference(f"{name}: log-probabilities of llama.cpp differ by {worst}")


def check_llama(name, refusal, options, place):
    torch.manual_seed(1)
    model, tokenizer = language.random_model(language.CASES[name], place / "model")
    run, out = place / "run", place / "model.gguf"
    run_command(options.stretto, "import", place / "model", "--run", run)
    if refusal:
        return require_refused(options.stretto, run, "gguf", out, refusal)
    for weights, tolerance in (("float32", 0), ("float16", 1e-3), ("int8", 1 / 200)):
        path = place / f"{weights}.gguf"
        run_command(options.stretto, "export", run, "--format", "gguf", "--weights", weights, path)
        wanted = wanted_tensors(model, len(tokenizer), model.config.model_type == "llama")
        reader = check_gguf_file(name, path, wanted, tolerance)
    pieces = gguf_strings(reader, "tokenizer.ggml.tokens")
    if pieces != tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))):
        raise Difference(f"{name}: other tokens than those of transformers")
    check_llama_cpp(name, place / "float32.gguf", model, tokenizer)
    print(f"{name}: {len(wanted)} tensors of GGUF", flush=True)


def check_gguf(options, place):
    for number, (name, refusal) in enumerate(LLAMAS.items()):
        check_llama(name, refusal, options, place / f"llama{number}")


PARTS = {"ctranslate2": check_ctranslate2, "onnx": check_onnx, "gguf": check_gguf}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stretto", type=pathlib.Path)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--part", action="append", default=[], choices=PARTS, help="all without one")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    present = [part for part in options.part or PARTS if importlib.util.find_spec(PACKAGES[part]) is not None]
    for part in set(options.part or PARTS) - set(present):
        print(f"{PACKAGES[part]} is not installed: {part} is skipped")
    if not present:
        return 77
    for part in present:
        with tempfile.TemporaryDirectory(prefix="stretto_formats_") as directory:
            try:
                PARTS[part](options, pathlib.Path(directory))
            except Difference as difference:
                print(difference, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
