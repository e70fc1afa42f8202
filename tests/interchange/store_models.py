#!/usr/bin/env python3
"""Stores small models of the package transformers with what it computes, so that tests compare without Python.

    store_models.py [--folder tests/assets/transformers] [NAME ...]

bert reads labels, roberta answers, distilbert masked tokens; marian and pegasus translate; gpt2, llama, mistral, qwen2 and
qwen3 are language models. Each is a folder as save_pretrained
writes it; of distilbert the tokenizer is vocab.txt alone, as in folders of earlier versions, and of llama tokenizer.model alone. NAME.json beside it has the
versions that made it, and of each text its ids, segments and logits; of a text without a second one, also the mean of the
encoder's rows. For a translation it has the ids of both sides, logits for each target token, and the text of the target's ids. For a language
model it has log-probabilities of each token behind the first, and the logits behind the last one.
tests/engine/stored_models_test.cpp imports the folders and must find the same, to 1e-4; and again of the folders that Stretto
writes of its runs. Newer versions are no reason to store the models again: crosscheck_models.py and crosscheck_translation.py
compare with those that are installed.
Exits 0, or 77 (skipped) when transformers, PyTorch or sentencepiece is not installed.
"""
import argparse
import io
import json
import pathlib
import random
import shutil
import string
import sys

try:
    import sentencepiece
    import torch
    import transformers
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)

SEED = 1
WIDTH, LAYERS, HEADS, INNER, LONGEST = 16, 2, 2, 32, 32
SPECIALS_OF_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SPECIALS_OF_ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WORDS = ["the", "red", "blue", "house", "dog", "cat", "sees", "who", "is", "##es", "##ing"]
ENGLISH = "the old cat sees a red house and two small birds".split()
GERMAN = "die alte Katze sieht ein rotes Haus und zwei kleine Vögel".split()
MERGES = ["Ġ t", "h e", "Ġt he", "Ġ h", "o u", "s e", "ou se", "Ġh ouse", "Ġ d", "o g", "Ġd og"]

TEXTS = {
    "bert": [("The red house sees a dog.",), ("",), ("Cats, dogs & naïve cafés — 東!",), ("w" * 60,),
             ("a dog sees cats", "The house is blue!"), ("", "red")],
    "roberta": [("Who sees the dog?", "The red house; the dog sees a cat."), ("Where", "naïve 東京 😀 <mask>"), ("the houses",)],
    "distilbert": [("the [MASK] house sees dogs",), ("[MASK][MASK]",), ("Blue.",)],
    "marian": [("the old cat sees a red house", "die alte Katze sieht ein rotes Haus"), ("", "Vögel"),
               (">>deu<<  two small birds, 猫", "zwei  kleine Vögel und"), ("a house", "")],
    "gpt2": [("The old house",), ("naïve 猫, the  dog\n don't",), ("a<|endoftext|>b",)],
    "llama": [("the old cat sees a red house",), ("",), ("  two birds, naïve 猫",), ("a </s> cat",)],
    "mistral": [("the old cat sees a red house and two small birds",), (" birds",), ("猫<s>the",)],
    "qwen2": [("The house, don't 1234 the dog",), ("e\u0301te\u0301  \n\n the",), ("a<|im_end|>b",)],
    "qwen3": [("the house of the dog and the house",), ("猫 the",), ("a",)],
    "pegasus": [("two birds and the cat", "zwei Vögel und die Katze"), ("", "Haus"), ("old", "alte alte alte")],
}


def bert_pieces():
    letters = string.ascii_lowercase
    return [*SPECIALS_OF_BERT, *".,!?-&", *letters, *(f"##{letter}" for letter in letters), *WORDS]


def bert_tokenizer(folder, kind=transformers.BertTokenizerFast):
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in bert_pieces()), encoding="utf-8")
    return kind(vocab_file=str(folder / "vocab.txt"), model_max_length=LONGEST)


def distilbert_tokenizer(folder):
    return bert_tokenizer(folder, transformers.DistilBertTokenizerFast)


def bytes_as_letters():
    """Each byte as GPT-2 writes it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(256 - len(printable))]


def roberta_tokenizer(folder):
    pieces = [*SPECIALS_OF_ROBERTA, *bytes_as_letters(), *(merge.replace(" ", "") for merge in MERGES)]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(merge + "\n" for merge in MERGES), encoding="utf-8")
    return transformers.RobertaTokenizerFast(vocab_file=str(folder / "vocab.json"), merges_file=str(folder / "merges.txt"),
                                             model_max_length=LONGEST)


def sentencepiece_model(words, kind):
    """Without the 240 kB of NFKC, which a model of real text has."""
    rng = random.Random(SEED)
    lines = [" ".join(rng.choice(words) for _ in range(rng.randint(3, 8))) for _ in range(100)]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=written, model_type=kind,
                                             vocab_size=40, hard_vocab_limit=False, normalization_rule_name="identity",
                                             num_threads=1, minloglevel=2)
    return written.getvalue()


def marian_tokenizer(folder):
    """As the real ones are: `</s>` first, `<pad>` last, a language among the pieces, both sides in one vocabulary."""
    pieces = ["</s>", "<unk>"]
    for side, words, kind in (("source", ENGLISH, "unigram"), ("target", GERMAN, "bpe")):
        model = sentencepiece_model(words, kind)
        (folder / f"{side}.spm").write_bytes(model)
        side_model = sentencepiece.SentencePieceProcessor(model_proto=model)
        of_side = map(side_model.id_to_piece, range(side_model.get_piece_size()))
        pieces += [piece for piece in of_side if piece not in {"<s>", *pieces}]
    pieces += [">>deu<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    return transformers.MarianTokenizer(source_spm=str(folder / "source.spm"), target_spm=str(folder / "target.spm"),
                                        vocab=str(folder / "vocab.json"), model_max_length=LONGEST)


def bert_model(vocab):
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=vocab, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=INNER,
        max_position_embeddings=LONGEST, num_labels=3))


def roberta_model(vocab):
    return transformers.RobertaForQuestionAnswering(transformers.RobertaConfig(
        vocab_size=vocab, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=INNER,
        max_position_embeddings=LONGEST + 2, type_vocab_size=1, layer_norm_eps=1e-5))


def distilbert_model(vocab):
    return transformers.DistilBertForMaskedLM(transformers.DistilBertConfig(
        vocab_size=vocab, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER, max_position_embeddings=LONGEST))


def translation_settings(vocab, begin, **more):
    return {"vocab_size": vocab, "d_model": 12, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
            "decoder_attention_heads": 3, "encoder_ffn_dim": 20, "decoder_ffn_dim": 16, "max_position_embeddings": LONGEST,
            "scale_embedding": True, "pad_token_id": vocab - 1, "eos_token_id": 0, "forced_eos_token_id": 0,
            "decoder_start_token_id": begin, **more}


def marian_model(vocab):
    return transformers.MarianMTModel(transformers.MarianConfig(
        **translation_settings(vocab, begin=vocab - 1, activation_function="swish")))


def pegasus_model(vocab):
    """Pegasus's layers with Marian's tokenizer, and a decoder that does not begin with padding."""
    return transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(
        **translation_settings(vocab, begin=0, activation_function="relu")))


def byte_tokenizer(folder, kind, last, **more):
    """Pieces of bytes; `last` are special tokens behind them."""
    pieces = [*bytes_as_letters(), *(merge.replace(" ", "") for merge in MERGES), *last]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(merge + "\n" for merge in MERGES), encoding="utf-8")
    return kind(vocab_file=str(folder / "vocab.json"), merges_file=str(folder / "merges.txt"), **more)


def gpt2_tokenizer(folder):
    return byte_tokenizer(folder, transformers.GPT2TokenizerFast, ["<|endoftext|>"])


def qwen_tokenizer(folder):
    """Special tokens are behind vocab.json here."""
    return byte_tokenizer(folder, transformers.Qwen2TokenizerFast, [], additional_special_tokens=["<|im_end|>"])


def llama_tokenizer(folder):
    """Llama's first form: tokenizer.model alone, with bytes for characters that have no piece."""
    rng = random.Random(SEED)
    lines = [" ".join(rng.choice(ENGLISH) for _ in range(rng.randint(3, 8))) for _ in range(100)]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, model_type="bpe", vocab_size=256 + 3 + 40, byte_fallback=True,
        hard_vocab_limit=False, normalization_rule_name="identity", remove_extra_whitespaces=False, num_threads=1, minloglevel=2)
    (folder / "tokenizer.model").write_bytes(written.getvalue())
    settings = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False, "legacy": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return transformers.AutoTokenizer.from_pretrained(folder)


def mistral_tokenizer(folder):
    """Llama's later form: tokenizer.json alone, with a mark of a space in front of the first word and nowhere else."""
    llama_tokenizer(folder)
    settings = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    for file in ("tokenizer.model", "special_tokens_map.json"):
        (folder / file).unlink()
    return transformers.AutoTokenizer.from_pretrained(folder)


def gpt2_model(vocab):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=vocab, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=LONGEST, bos_token_id=vocab - 1,
        eos_token_id=vocab - 1))


def llama_settings(vocab, **more):
    return {"vocab_size": vocab, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
            "num_key_value_heads": 2, "intermediate_size": INNER, "max_position_embeddings": LONGEST, "rms_norm_eps": 1e-5, **more}


def llama_model(vocab):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 16}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **llama_settings(vocab, rope_scaling=scaling, rope_theta=100.0, attention_bias=True)))


def mistral_model(vocab):
    return transformers.MistralForCausalLM(transformers.MistralConfig(
        **llama_settings(vocab, sliding_window=4, tie_word_embeddings=True), attn_implementation="eager"))


def qwen2_model(vocab):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        **llama_settings(vocab, rope_theta=1e6, tie_word_embeddings=True, use_sliding_window=False)))


def qwen3_model(vocab):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        **llama_settings(vocab, head_dim=6, rope_theta=1e4, rope_scaling={"rope_type": "yarn", "factor": 4.0},
                         tie_word_embeddings=True)))


KINDS = {"bert": (bert_tokenizer, bert_model), "roberta": (roberta_tokenizer, roberta_model),
         "distilbert": (distilbert_tokenizer, distilbert_model), "marian": (marian_tokenizer, marian_model),
         "pegasus": (marian_tokenizer, pegasus_model), "gpt2": (gpt2_tokenizer, gpt2_model),
         "llama": (llama_tokenizer, llama_model), "mistral": (mistral_tokenizer, mistral_model),
         "qwen2": (qwen_tokenizer, qwen2_model), "qwen3": (qwen_tokenizer, qwen3_model)}
TRANSLATES = {"marian", "pegasus"}
CONTINUES = {"gpt2", "llama", "mistral", "qwen2", "qwen3"}
FILES_ARE_WHOLE = {"distilbert", "llama", "mistral"}  # as their tokenizers were made


def rounded(tensor):
    return [[round(value, 6) for value in row] for row in tensor.tolist()]


@torch.no_grad()
def translated(model, tokenizer, texts):
    source, target = texts
    ids, target_ids = tokenizer(source).input_ids, tokenizer(text_target=target).input_ids
    before = [model.config.decoder_start_token_id] + target_ids[:-1]
    logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([before])).logits[0]
    decoded = tokenizer.decode(target_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return {"text": source, "ids": ids, "target": target, "target_ids": target_ids, "decoded": decoded,
            "logits": rounded(logits)}


@torch.no_grad()
def continued(model, tokenizer, texts):
    ids = tokenizer(texts[0]).input_ids
    logits = model(input_ids=torch.tensor([ids])).logits[0]
    of_next = torch.log_softmax(logits[:-1], -1).gather(1, torch.tensor(ids[1:], dtype=torch.long).unsqueeze(1))
    return {"text": texts[0], "ids": ids, "log_probs": rounded(of_next.reshape(1, -1))[0], "last": rounded(logits[-1:])[0],
            "decoded": tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)}


@torch.no_grad()
def computed(model, tokenizer, texts):
    given = tokenizer(*texts, truncation=True, max_length=LONGEST, return_tensors="pt")
    ids = given["input_ids"][0].tolist()
    out = model(**given)
    if hasattr(out, "start_logits"):
        logits = torch.stack([out.start_logits[0], out.end_logits[0]], -1)
    else:
        logits = out.logits.reshape(-1, out.logits.shape[-1])
    found = {"text": texts[0], "ids": ids, "segments": given.get("token_type_ids", torch.zeros(1, len(ids), dtype=torch.long))[0].tolist(),
             "logits": rounded(logits)}
    if len(texts) == 2:
        found["second"] = texts[1]
    else:
        found["mean"] = rounded(model.base_model(**given).last_hidden_state.mean(1))[0]
    return found


def store(name, place):
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_tokenizer, make_model = KINDS[name]
    tokenizer = make_tokenizer(folder)
    torch.manual_seed(SEED)
    model = make_model(len(tokenizer)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # far from a start, so that every bias and norm shows
            if parameter.requires_grad:  # sinusoids do not
                parameter.add_(torch.randn_like(parameter) * 0.2)
        if name in TRANSLATES:
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    if name not in FILES_ARE_WHOLE:
        tokenizer.save_pretrained(folder)
    compute = translated if name in TRANSLATES else continued if name in CONTINUES else computed
    result = {"made_with": {"torch": torch.__version__, "transformers": transformers.__version__, "seed": SEED},
              "class": type(model).__name__,
              "texts": [compute(model, tokenizer, texts) for texts in TEXTS[name]]}
    lines = json.dumps(result, ensure_ascii=False, separators=(",", ":")).replace('{"text"', '\n{"text"')
    (place / f"{name}.json").write_text(lines + "\n", encoding="utf-8")


def main():
    assets = pathlib.Path(__file__).resolve().parent.parent / "assets"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=assets / "transformers")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of those to store; all without one")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names or KINDS:
        store(name, options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
