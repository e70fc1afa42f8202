#!/usr/bin/env python3
"""Compares imported and exported translation models with MarianMTModel and Pegasus of the package transformers.

    crosscheck_translation.py STRETTO_BINARY LOGITS_TOOL [--folder DIR_OF_A_MODEL ...]

Random models of Marian with every tie of tables, activation and kind of positions are imported: log-probabilities of each
token, decoded one at a time, and losses of whole sentences must be those of transformers, to 1e-4, and ids and text those of
MarianTokenizer. Each run is exported and compared again. Then models that Stretto has trained for two updates are exported.
A folder of a real model may be named too.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from crosscheck_models import Difference, TOLERANCE, load_whole, run_command

try:
    import sentencepiece
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)

WORDS = {"source": "the old cat sees a red house and two small birds near our river".split(),
         "target": "die alte Katze sieht ein rotes Haus und zwei kleine Vögel an unserem Fluss".split()}
HARD_LINES = ["", " ", "The old CAT", "  two   spaces ", "naïve café", "猫が家を見る", ">>deu<< the old cat", ">>xyz<< the cat",
              ">> no language", "emoji 😀 here", "tab\there", "\u00a0no-break", "a<<b>>c", "½ ﬁne", "ßÜÖ Vögel"]


def sentences(side, rng, count=400):
    return [" ".join(rng.choice(WORDS[side]) for _ in range(rng.randint(3, 12))) for _ in range(count)]


def train_model(side, folder, rng, size):
    text = folder / f"{side}.txt"
    text.write_text("\n".join(sentences(side, rng)) + "\n", encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(folder / side), vocab_size=size, minloglevel=2,
                                             model_type="unigram" if side == "source" else "bpe", hard_vocab_limit=False)
    (folder / f"{side}.model").rename(folder / f"{side}.spm")
    for extra in (text, folder / f"{side}.vocab"):
        extra.unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))


def pieces_of(model):
    specials = {model.unk_id(), model.bos_id(), model.eos_id(), model.pad_id()}
    return [model.id_to_piece(i) for i in range(model.get_piece_size()) if i not in specials]


def write_tokenizer(folder, rng, separate):
    """As the real ones are: `</s>` first, `<pad>` last, languages among the pieces."""
    models = [train_model(side, folder, rng, 60) for side in ("source", "target")]
    sides = [pieces_of(model) for model in models]
    vocabularies = sides if separate else [sides[0] + [piece for piece in sides[1] if piece not in set(sides[0])]]
    length = max(map(len, vocabularies))
    for name, pieces in zip(("vocab.json", "target_vocab.json"), vocabularies):
        pieces = ["</s>", "<unk>"] + pieces + [f"unused{i}" for i in range(length - len(pieces))] + [">>deu<<", "<pad>"]
        (folder / name).write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    settings = {"separate_vocabs": separate, "tokenizer_class": "MarianTokenizer", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return length + 4


def random_model(folder, rng, case):
    folder.mkdir(parents=True)
    vocab = write_tokenizer(folder, rng, case.get("separate", False))
    config = transformers.MarianConfig(
        vocab_size=vocab, d_model=24, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3, decoder_attention_heads=4,
        encoder_ffn_dim=40, decoder_ffn_dim=56, max_position_embeddings=40, pad_token_id=vocab - 1,
        decoder_start_token_id=vocab - 1, eos_token_id=0, forced_eos_token_id=0, **case.get("config", {}))
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        if case.get("bias"):
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    if case.get("positions"):
        tensors = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
        for side in ("encoder", "decoder"):
            tensors[f"model.{side}.embed_positions.weight"] = torch.randn(40, 24)
        save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
        model = load_whole(folder, transformers.MarianMTModel)
    if case.get("bin"):
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    return model


def random_pairs(rng, vocab, eos, forbidden):
    ids = [i for i in range(vocab) if i not in forbidden]
    return [[[rng.choice(ids) for _ in range(rng.randint(0, 20))] + [eos] for _ in range(6)] for _ in range(2)]


@torch.no_grad()
def expected(model, src, tgt):
    logits = []
    for source, target in zip(src, tgt):
        before = torch.tensor([[model.config.decoder_start_token_id] + target[:-1]])
        logits.append(model(input_ids=torch.tensor([source]), decoder_input_ids=before).logits[0])
    log_p = torch.log_softmax(torch.cat(logits), -1)
    return log_p, -log_p.gather(1, torch.tensor(sum(tgt, [])).unsqueeze(1)).squeeze(1)


def offsets(sequences):
    ends = [0]
    for sequence in sequences:
        ends.append(ends[-1] + len(sequence))
    return torch.tensor(ends)


def computed(tool, run, src, tgt, place):
    save_file({"src": torch.tensor(sum(src, [])), "src_offsets": offsets(src), "tgt": torch.tensor(sum(tgt, [])),
               "tgt_offsets": offsets(tgt)}, str(place / "in.safetensors"))
    (place / "out.safetensors").unlink(missing_ok=True)
    run_command(tool, run, place / "in.safetensors", place / "out.safetensors")
    out = load_file(str(place / "out.safetensors"))
    return out["logits"], out["nll"]


def compare(name, got, wanted):
    worst = 0.0
    for what, a, b in zip(("log-probabilities", "losses"), got, wanted):
        if a.shape != b.shape:
            raise Difference(f"{name}: {what} are {list(a.shape)}, transformers has {list(b.shape)}")
        distance = (a - b).abs().max().item()
        if not distance <= TOLERANCE:
            raise Difference(f"{name}: {what} differ by {distance}")
        worst = max(worst, distance)
    return worst


def compare_tokenizers(name, tool, run, tokenizer, lines):
    result = subprocess.run([str(tool), str(run)], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True,
                            timeout=300, check=True, encoding="utf-8")
    for line, answer in zip(lines, map(json.loads, result.stdout.splitlines()), strict=True):
        src = tokenizer(line, add_special_tokens=False).input_ids
        tgt = tokenizer(text_target=line, add_special_tokens=False).input_ids
        unknown = tokenizer.unk_token_id in tgt  # transformers leaves it out with the specials, Stretto shows it
        text = answer["text"] if unknown else tokenizer.decode(tgt, skip_special_tokens=True,
                                                               clean_up_tokenization_spaces=False)
        wanted = {"src": src, "tgt": tgt, "text": text}
        if answer != wanted:
            raise Difference(f"{name}: {line!r} is {answer}, transformers has {wanted}")


def check_export(name, options, run, out, src, tgt, wanted, lines):
    run_command(options.stretto, "export", run, "--format", "hf", out)
    model = load_whole(out, transformers.MarianMTModel)
    worst = compare(name + ", exported", expected(model, src, tgt), wanted)
    compare_tokenizers(name + ", exported", options.tool, run, transformers.AutoTokenizer.from_pretrained(out), lines)
    return model, worst


def check_import(name, model, folder, options, rng, place):
    config = model.config
    src, tgt = random_pairs(rng, config.vocab_size, config.eos_token_id, {config.pad_token_id, config.eos_token_id})
    wanted = expected(model, src, tgt)
    run = place / (name.replace(" ", "_") + "_run")
    run_command(options.stretto, "import", folder, "--run", run)
    worst = compare(name, computed(options.tool, run, src, tgt, place), wanted)
    lines = HARD_LINES + sentences("source", rng, 50) + sentences("target", rng, 50)
    compare_tokenizers(name, options.tool, run, transformers.MarianTokenizer.from_pretrained(folder), lines)
    _, second = check_export(name, options, run, place / (name.replace(" ", "_") + "_out"), src, tgt, wanted, lines)
    print(f"{name}: {max(worst, second):.1e}")


def check_trained(name, keys, options, rng, place):
    """A model that Stretto has made: what transformers computes is compared with the run."""
    data = place / "data"
    data.mkdir(exist_ok=True)
    for side in ("source", "target"):
        (data / side).write_text("\n".join(sentences(side, random.Random(1))) + "\n", encoding="utf-8")
    config = place / (name.replace(" ", "_") + ".toml")
    config.write_text("\n".join(
        ["[task]", 'name = "translation"', "[data]", f'train_src = "{data}/source"', f'train_tgt = "{data}/target"',
         "max_src_tokens = 40", "max_tgt_tokens = 40",
         "[train]", "max_steps = 2", "[schedule]", "warmup_steps = 1", "[tokenizer]", "vocab_size = 50", *keys.get("tokenizer", []), "[model]", "d_model = 24",
         "max_positions = 50", "dropout = 0.1", *keys.get("model", []), "[model.encoder]", "num_layers = 2", "num_heads = 3",
         "ffn_dim = 40", "[model.decoder]", "num_layers = 2", "num_heads = 4", "ffn_dim = 40"]) + "\n", encoding="utf-8")
    run, out = place / (name.replace(" ", "_") + "_run"), place / (name.replace(" ", "_") + "_out")
    run_command(options.stretto, "train", config, "--run", run)
    run_command(options.stretto, "export", run, "--format", "hf", out)
    model = load_whole(out, getattr(transformers, keys.get("class", "MarianMTModel")))
    settings = model.config
    src, tgt = random_pairs(rng, settings.vocab_size, settings.eos_token_id,
                            {settings.pad_token_id, settings.eos_token_id, settings.decoder_start_token_id})
    wanted = computed(options.tool, run, src, tgt, place)
    worst = compare(name, expected(model, src, tgt), wanted)
    again = place / (name.replace(" ", "_") + "_again")
    run_command(options.stretto, "import", out, "--run", again)
    worst = max(worst, compare(name + ", imported again", computed(options.tool, again, src, tgt, place), wanted))
    lines = [line for line in HARD_LINES if not line.startswith(">>")] + sentences("source", rng, 50)
    compare_tokenizers(name, options.tool, run, transformers.AutoTokenizer.from_pretrained(out), lines)
    print(f"{name}: {worst:.1e}")


CASES = {
    "tied": {"config": {"activation_function": "swish", "scale_embedding": True}, "bias": True},
    "tied relu bin": {"config": {"activation_function": "relu"}, "bin": True},
    "own output": {"config": {"activation_function": "gelu", "tie_word_embeddings": False}, "bias": True},
    "tables apart": {"config": {"activation_function": "gelu_new", "share_encoder_decoder_embeddings": False,
                                "scale_embedding": True}},
    "vocabularies apart": {"config": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
                           "separate": True, "bias": True},
    "other positions": {"config": {"activation_function": "swish", "scale_embedding": True}, "positions": True},
}
TRAINED = {
    "trained sinusoidal": {},
    "trained learned": {"model": ['positions = "learned"', 'tie_embeddings = "decoder"', 'activation = "gelu"',
                                  'embedding_scale = "none"']},
    "trained pre-norm": {"class": "PegasusForConditionalGeneration", "model": ['norm = "pre"']},
    "trained apart": {"tokenizer": ["joint = false"], "model": ['tie_embeddings = "none"']},
}


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
    with tempfile.TemporaryDirectory(prefix="stretto_translation_") as directory:
        place = pathlib.Path(directory)
        try:
            for name, case in CASES.items():
                folder = place / name.replace(" ", "_")
                check_import(name, random_model(folder, rng, case), folder, options, rng, place)
            for name, keys in TRAINED.items():
                check_trained(name, keys, options, rng, place)
            for folder in options.folder:
                check_import(folder.name, load_whole(folder, transformers.MarianMTModel), folder, options, rng, place)
        except Difference as difference:
            print(difference, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
