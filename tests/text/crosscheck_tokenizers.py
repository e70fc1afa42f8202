#!/usr/bin/env python3
"""Compares `stretto tokenizer encode` with Hugging Face's package `tokenizers`, id for id and offset for offset.

    crosscheck_tokenizers.py STRETTO_BINARY [--lines 100000] [--seed 1] [--vocabularies FOLDER]

The lines are drawn to be awkward: code points of every plane, unassigned ones and noncharacters among them, marks in
wrong orders, every white space, control characters, ideographs, Hangul, emoji sequences, words of a thousand
characters, tokens of the vocabulary glued to words; and the lines of this repository's pages. The tokenizers are trained
on a part of them by the package, by Stretto, or made by hand, with every option that Stretto reads. FOLDER may hold
published ones: *vocab.txt of BERT, *tokenizer.json, and *encoder.json beside *vocab.bpe.

Exits 0 when all agree, 1 with the first difference, 77 (skipped) when the package is not installed.
"""
import argparse
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    from tokenizers import (AddedToken, BertWordPieceTokenizer, ByteLevelBPETokenizer, Regex, Tokenizer, decoders, models,
                            normalizers, pre_tokenizers, processors, trainers)
except ImportError:
    print("tokenizers is not installed: skipped")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = (
    "the a cat's dogs' house sees runs quickly Red GREEN don't I'll we've they're it'S 'tis well-known 1,000 3.14 2021-11-05 "
    "U.S. e.g. 10% $5 (see) [x] \"quoted\" &amp; <skipped> -- … „so“ «là» straße ÉTÉ İstanbul ΣΟΦΟΣ ǅungla ﬁn naïve Ångström "
    "e\u0301te\u0301 中文 句子。 日本語、 한국어 각 \u1112\u1161\u11ab กำลัง हिन्दी العربية עברית 😀 👩‍👩‍👧 🇩🇪 ½ ² ٣٫٥ ١٬٠٠٠ € ₿ a_b x/y "
    "##ing ## [ ] [MASK] [UNK] [CLS]x <mask> <s> </s> <|endoftext|> , . ; : ! ? - ' `` Ⅷ ㎏ ꟊ 𐵐 𖺠 ᠎ ؀"
).split()
SPACES = ([" "] * 40 + ["  ", "   ", "\t", "\r", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029"]
          + ["\u202f", "\u205f", "\u3000", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u180e"])
MARKS = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c))]
DECOMPOSED = [chr(c) for c in range(0x110000) if unicodedata.decomposition(chr(c)) and "<" not in unicodedata.decomposition(chr(c))]
ODD = [chr(c) for c in (0x1, 0x7F, 0x80, 0x9F, 0x378, 0xD7FF, 0xE000, 0xF8FF, 0xFDD0, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFF, 0xE0001, 0xF0000, 0x10FFFF)]
BLOCKS = [(0x20, 0x7F), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600), (0x600, 0x1000), (0x1000, 0x2000), (0x2000, 0x3000),
          (0x3000, 0x3400), (0x3400, 0xA000), (0xA000, 0xD7A4), (0xF900, 0x10000), (0x10000, 0x12000), (0x16000, 0x17000),
          (0x1D000, 0x1F000), (0x1F000, 0x20000), (0x20000, 0x32000), (0xE0000, 0xE0200), (1, 0x110000)]


def code_point(rng):
    while True:
        c = rng.randrange(*rng.choice(BLOCKS))
        if not 0xD800 <= c <= 0xDFFF and c not in (0, 10):
            return chr(c)


def random_word(rng):
    kind = rng.random()
    if kind < 0.70:
        return rng.choice(WORDS)
    if kind < 0.80:
        return "".join(code_point(rng) for _ in range(rng.choice([1, 2, 3, 8])))
    if kind < 0.86:
        return rng.choice("aeouAКαहก가") + "".join(rng.choice(MARKS) for _ in range(rng.choice([1, 2, 3, 5, 20])))
    if kind < 0.90:
        return "".join(rng.choice(DECOMPOSED) + rng.choice(["", rng.choice(MARKS), rng.choice(DECOMPOSED)]) for _ in range(3))
    if kind < 0.94:
        return rng.choice(WORDS) + rng.choice(ODD) + rng.choice(WORDS)
    if kind < 0.98:
        return rng.choice(WORDS) + rng.choice(WORDS)
    if kind < 0.996:
        return "".join(chr(rng.randrange(0x4E00, 0xA000)) for _ in range(rng.randint(1, 12)))
    return rng.choice(["a", "ab", "é", "中", "'s", "!", "1", "e\u0301\u0316", "😀", " ", "the"]) * rng.choice([30, 99, 100, 101, 300, 1000])


def random_line(rng, pages):
    kind = rng.random()
    if kind < 0.02:
        return rng.choice(["", " ", "\t", ".", "😀", "中", "a", "\u0301", "\u0344\u0316", "[MASK]", " [MASK] ", "\ufffd", "\x01"])
    if kind < 0.30:
        return rng.choice(pages)
    words = [random_word(rng) for _ in range(rng.choice([1, 2, 5, 12, 30]))]
    return "".join(rng.choice([rng.choice(SPACES), rng.choice(SPACES), ""]) * (rng.random() < 0.95) + word for word in words)


def hostile_lines(rng, count):
    pages = [line for page in sorted(ROOT.glob("docs/*.md")) + [ROOT / "README.md"] for line in page.read_text("utf-8").split("\n")]
    return [random_line(rng, pages).replace("\n", " ").replace("\0", " ").rstrip("\r") for _ in range(count)]


# ---- The tokenizers: (name, arguments of `stretto tokenizer encode`, the package's)

def saved(folder, name, tokenizer):
    path = folder / f"{name}.json"
    tokenizer.save(str(path))
    return name, [str(path)], tokenizer


def bert_pieces(lines):
    trainer = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    trainer.train_from_iterator(lines, vocab_size=4000, min_frequency=1, show_progress=False, limit_alphabet=1500)
    vocab = trainer.get_vocab()
    return sorted(vocab, key=vocab.get)


def from_vocab_txt(folder, name, pieces, **options):
    path = folder / f"{name}.vocab.txt"
    path.write_text("".join(piece + "\n" for piece in pieces), "utf-8", newline="")
    return name, [str(path)], BertWordPieceTokenizer(str(path), **options)


def wordpiece(pieces, normalizer, added=(), longest=100, prefix="##"):
    vocab = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=longest, continuing_subword_prefix=prefix))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_tokens(list(added))
    return tokenizer


def wordpieces(folder, lines):
    pieces = bert_pieces(lines)
    yield from_vocab_txt(folder, "bert_cased", pieces, lowercase=False)
    lower = [p for p in pieces if p.lower() == p or p in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    yield from_vocab_txt(folder, "bert_lower", lower)
    letters = [chr(c) for c in range(33, 127)] + list("éüß中文가\u0301\u1112\u1161")
    hand = ["[UNK]", "[CLS]", "[SEP]"] + letters + ["##" + c for c in letters] + ["##", "##ing", "the", "##he", "t", " x ", "", "e\u0301"]
    yield from_vocab_txt(folder, "by_hand", hand, lowercase=False)
    for number, (clean, chinese, strip, lowercase) in enumerate(
            [(False, False, True, True), (True, False, False, True), (False, True, True, False), (True, True, None, True), (False, False, False, False)]):
        normalizer = normalizers.BertNormalizer(clean_text=clean, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lowercase)
        added = [AddedToken("[MASK]", lstrip=True, normalized=False, special=True), AddedToken("cat", single_word=True),
                 AddedToken("ÉTÉ", rstrip=True), AddedToken("hou", lstrip=True, rstrip=True), AddedToken("<s>", normalized=False),
                 AddedToken("e\u0301", normalized=False), AddedToken("中", single_word=True, normalized=False), AddedToken(" the", normalized=False)]
        yield saved(folder, f"wordpiece_{number}", wordpiece(pieces, normalizer, added, longest=(100, 5, 1000)[number % 3]))
    plain = wordpiece(["[UNK]"] + letters + ["in", "ing", "an"], None, prefix="")
    plain.decoder = decoders.WordPiece(prefix="")
    yield saved(folder, "wordpiece_without_marks", plain)


def byte_bpe(vocab, merges, prefix_space=False, use_regex=True, **options):
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, **options))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=use_regex)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def byte_bpes(folder, lines):
    trainer = ByteLevelBPETokenizer()
    trainer.train_from_iterator(lines, vocab_size=6000, min_frequency=1, show_progress=False, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    trainer.save_model(str(folder))
    files = [str(folder / "vocab.json"), str(folder / "merges.txt")]
    yield "vocab.json", [files[0], "--merges", files[1]], ByteLevelBPETokenizer(*files)
    model = json.loads(trainer.to_str())["model"]
    vocab, merges = model["vocab"], [tuple(m) for m in model["merges"]]
    added = [AddedToken("<mask>", lstrip=True, normalized=False, special=True), AddedToken("</s>", normalized=False, special=True),
             AddedToken("<|endoftext|>", rstrip=True), AddedToken(" ##", single_word=True), AddedToken("\u0301", normalized=False)]
    for number, (prefix_space, use_regex, trim) in enumerate([(True, True, True), (False, True, True), (True, False, False), (False, False, True)]):
        tokenizer = byte_bpe(vocab, merges, prefix_space, use_regex, ignore_merges=number % 2 == 1)
        tokenizer.add_tokens(added)
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", vocab["</s>"]), ("<s>", vocab["<s>"]), trim_offsets=trim,
                                                                add_prefix_space=number != 1)
        yield saved(folder, f"byte_bpe_{number}", tokenizer)
    lower = byte_bpe(vocab, merges)
    lower.normalizer = normalizers.BertNormalizer()
    yield saved(folder, "byte_bpe_normalized", lower)
    for fuse in (False, True):
        few = {piece: i for i, piece in enumerate(["?", "a", "e", "h", "t", "Ġ", "Ġt", "he", "Ġthe", "??", "?a"])}
        joined = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("?", "?"), ("?", "a")]
        yield saved(folder, f"byte_bpe_unknown_{fuse}", byte_bpe(few, joined, unk_token="?", fuse_unk=fuse))


# Those of Llama 3 (three digits) and of Qwen2 (one).
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
           r"|\s+(?!\S)|\s+")


def split_byte_bpe(lines, digits, composed):
    tokenizer = Tokenizer(models.BPE(ignore_merges=not composed))
    if composed:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN % digits), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def character_bpe(lines, scheme):
    """As Llama has it: marks of spaces by the normalizer (scheme "normalizer") or by Metaspace."""
    cut = Tokenizer(models.BPE(unk_token="<unk>"))
    cut.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    bytes_of_llama = [f"<0x{byte:02X}>" for byte in range(256)]
    cut.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=3000, special_tokens=["<unk>", "<s>", "</s>", *bytes_of_llama],
                                                       limit_alphabet=300, show_progress=False))
    trained = json.loads(cut.to_str())["model"]
    tokenizer = Tokenizer(models.BPE(vocab=trained["vocab"], merges=[tuple(merge) for merge in trained["merges"]], unk_token="<unk>",
                                     byte_fallback=True, fuse_unk=True))
    if scheme == "normalizer":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tokenizer


def language_model_bpes(folder, lines):
    for scheme in ("normalizer", "first", "always", "never"):
        yield saved(folder, f"character_bpe_{scheme}", character_bpe(lines, scheme))
    yield saved(folder, "llama3", split_byte_bpe(lines, r"\p{N}{1,3}", composed=False))
    yield saved(folder, "qwen2", split_byte_bpe(lines, r"\p{N}", composed=True))


def published(folder):
    for path in sorted(folder.glob("*vocab.txt")):
        lowercase = "uncased" in path.name
        yield path.name, [str(path)], BertWordPieceTokenizer(str(path), lowercase=lowercase)
    for path in sorted(folder.glob("*encoder.json")):
        merges = str(next(folder.glob("*vocab.bpe")))
        yield path.name, [str(path), "--merges", merges], ByteLevelBPETokenizer(str(path), merges)
    for path in sorted(folder.glob("*tokenizer.json")):
        yield path.name, [str(path)], Tokenizer.from_file(str(path))


def trained_by_stretto(binary, folder, text):
    for kind in ("wordpiece", "byte_bpe"):
        path = folder / f"stretto_{kind}.json"
        command = [binary, "tokenizer", "train", "--type", kind, "--vocab-size", "3000", "--output", str(path), str(text)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield f"stretto_{kind}", [str(path)], Tokenizer.from_file(str(path))


def trainings_agree(folder, sample):
    """Byte-level BPE to the piece; WordPiece, where chance decides between equals, nearly."""
    bpe, wordpiece = (json.loads((folder / f"stretto_{kind}.json").read_text("utf-8"))["model"] for kind in ("byte_bpe", "wordpiece"))
    peer = ByteLevelBPETokenizer()
    peer.train_from_iterator(sample, vocab_size=3000, show_progress=False, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    theirs = json.loads(peer.to_str())["model"]
    if bpe["vocab"] != theirs["vocab"] or bpe["merges"] != theirs["merges"]:
        print("trained byte-level BPE differs:", next((pair for pair in zip(bpe["merges"], theirs["merges"]) if pair[0] != pair[1]), None))
        return False
    bert = BertWordPieceTokenizer()
    bert.train_from_iterator(sample, vocab_size=3000, show_progress=False)
    pieces = set(bert.get_vocab())
    common = len(pieces & set(wordpiece["vocab"])) / len(pieces)
    print(f"trained byte-level BPE is equal, {common:.1%} of the trained WordPiece")
    return common > 0.9


# ---- Comparing

def output(binary, arguments, text):
    done = subprocess.run([binary, "tokenizer", "encode", *arguments], stdin=text.open("rb"), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode("utf-8").split("\n")[:-1]


def loses_bytes(tokenizer):
    """A byte without a piece is left out; offsets behind it are right in Stretto alone."""
    model = json.loads(tokenizer.to_str())["model"]
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    return "merges" in model and not model["unk_token"] and not alphabet <= set(model["vocab"])


def compare(binary, name, arguments, tokenizer, text, lines):
    ids, offsets = output(binary, [*arguments, "--ids"], text), output(binary, [*arguments, "--offsets"], text)
    whole = output(binary, [*arguments, "--ids", "--specials"], text)
    assert len(ids) == len(offsets) == len(whole) == len(lines), (name, len(ids), len(offsets), len(whole), len(lines))
    # A character that was composed of several begins at the first of them, here.
    skips_offsets = loses_bytes(tokenizer) or isinstance(tokenizer.normalizer, normalizers.NFC)
    for begin in range(0, len(lines), 5000):
        encodings = tokenizer.encode_batch(lines[begin:begin + 5000], add_special_tokens=True)
        for i, encoding in enumerate(encodings, start=begin):
            inside = [not special for special in encoding.special_tokens_mask]
            expected = [(whole[i], encoding.ids), (ids[i], list(itertools.compress(encoding.ids, inside)))]
            if not skips_offsets:
                pairs = itertools.compress(encoding.offsets, inside)
                expected.append((offsets[i].replace(":", " "), list(itertools.chain.from_iterable(pairs))))
            for ours, reference in expected:
                if list(map(int, ours.split())) != reference:
                    print(f"{name}, line {i + 1}: {lines[i]!r}\nstretto:    {ours}\ntokenizers: {reference}\n{encoding.tokens}")
                    return False
    print(f"{name}: {len(lines)} lines agree" + (" (ids alone)" if skips_offsets else ""))
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocabularies", type=pathlib.Path)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    lines = hostile_lines(rng, arguments.lines)
    sample = [line for line in lines[:5000] if line.strip(" \t\r\v\f")]  # Stretto trains on no others
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        text, sample_text = folder / "lines.txt", folder / "sample.txt"
        text.write_bytes("".join(line + "\n" for line in lines).encode())
        sample_text.write_bytes("".join(line + "\n" for line in sample).encode())
        cases = list(wordpieces(folder, sample)) + list(byte_bpes(folder, sample)) + list(language_model_bpes(folder, sample))
        cases += trained_by_stretto(arguments.binary, folder, sample_text)
        if arguments.vocabularies:
            cases += published(arguments.vocabularies)
        agree = trainings_agree(folder, sample)
        sys.exit(0 if agree & all([compare(arguments.binary, *case, text, lines) for case in cases]) else 1)


if __name__ == "__main__":
    main()
