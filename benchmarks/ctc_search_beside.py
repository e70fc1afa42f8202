#!/usr/bin/env python3
"""Speed of CTC's beam search beside flashlight-text and pyctcdecode, one core each, in turn, over the same frames.

    benchmarks/ctc_search_beside.py build/release/ctc_search_bench [--beam 100] [--beam-token 30] [--rounds 5]
        [--words 20000] [--utterances 40] [--text FILE] [--write FILE]

The Python that runs this needs numpy, and the packages flashlight-text, kenlm and pyctcdecode; a peer that is not installed
is left out and named. Without --text, sentences are made up: words of syllables by Zipf's law. A trigram model is counted
from the text (absolute discounting), the lexicon has its words, and frames are made of other sentences: two to four a
letter, blanks between, with Gaussian noise on the scores, so that each frame has several likely labels.

All have the same lexicon, language model, beam, token beam and threshold, without sums of alignments in flashlight
(log_add = False, its usual form). pyctcdecode has no lexicon. Prints frames a second, the word errors of each, and how many
texts are equal to flashlight's. Ends with 1 below 1.5 times the faster peer.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import records

LETTERS = "abcdefghijklmnopqrstuvwxyz'"
TOKENS = [*LETTERS, "|"]
BLANK = len(TOKENS)
ALPHA, BETA, THRESHOLD = 0.8, 1.0, 25.0


def made_up_words(count, rng):
    onsets = ["b", "br", "c", "ch", "d", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "th", "tr", "v", "w", ""]
    vowels, codas = ["a", "e", "i", "o", "u", "ea", "ou"], ["", "n", "r", "s", "t", "l", "nd", "ng", "m"]
    words = {}
    while len(words) < count:
        word = "".join(rng.choice(onsets) + rng.choice(vowels) + rng.choice(codas) for _ in range(rng.choice((1, 1, 2, 2, 3))))
        words.setdefault(word)
    return list(words)


def made_up_sentences(words, count, rng):
    """Words by Zipf's law; each word has a few that often follow it, so that a trigram model knows something."""
    weights = [1 / (rank + 2) for rank in range(len(words))]
    followers = collections.defaultdict(list)
    drawn = iter(rng.choices(words, weights, k=count * 40))
    sentences = []
    for _ in range(count):
        sentence = [next(drawn)]
        while len(sentence) < rng.randint(6, 20):
            known = followers[sentence[-1]]
            if known and rng.random() < 0.6:
                sentence.append(rng.choice(known))
            else:
                sentence.append(next(drawn))
                if len(known) < 4:
                    known.append(sentence[-1])
        sentences.append(sentence)
    return sentences


def read_sentences(path):
    sentences = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        words = ["".join(c for c in word if c in LETTERS) for word in line.lower().split()]
        words = [word for word in words if word]
        if 3 <= len(words) <= 30:
            sentences.append(words)
    return sentences


def write_arpa(path, sentences, order=3, discount=0.7):
    """Back-off with absolute discounting (Ney et al. 1994)."""
    counts = [collections.Counter() for _ in range(order)]
    for sentence in sentences:
        words = ["<s>", *sentence, "</s>"]
        for n in range(1, order + 1):
            counts[n - 1].update(tuple(words[i:i + n]) for i in range(len(words) - n + 1))
    followers = [collections.defaultdict(list) for _ in range(order)]
    for n in range(1, order):
        for ngram, count in counts[n].items():
            followers[n][ngram[:-1]].append((ngram[-1], count))
    del counts[0][("<s>",)]
    total = sum(counts[0].values())
    probs = [{ngram: count / (total + 1) for ngram, count in counts[0].items()}]
    probs[0][("<unk>",)] = 1 / (total + 1)

    def prob(ngram):
        if ngram in probs[len(ngram) - 1]:
            return probs[len(ngram) - 1][ngram]
        return backoffs.get(ngram[:-1], 1.0) * prob(ngram[1:])

    backoffs = {}
    for n in range(1, order):
        probs.append({})
        for context, words in followers[n].items():
            sum_of = sum(count for _, count in words)
            for word, count in words:
                probs[n][(*context, word)] = (count - discount) / sum_of
            left = discount * len(words) / sum_of
            lower = 1 - sum(prob((*context[1:], word)) for word, _ in words)
            backoffs[context] = left / max(lower, 1e-9)
    probs[0][("<s>",)] = 1e-99
    with open(path, "w", encoding="utf-8") as file:
        file.write("\\data\\\n" + "".join(f"ngram {n + 1}={len(probs[n])}\n" for n in range(order)))
        for n in range(order):
            file.write(f"\n\\{n + 1}-grams:\n")
            for ngram, p in probs[n].items():
                backoff = f"\t{math.log10(backoffs[ngram]):.6f}" if ngram in backoffs else ""
                file.write(f"{math.log10(p):.6f}\t{' '.join(ngram)}{backoff}\n")
        file.write("\n\\end\\\n")


def made_frames(sentences, noise, rng):
    """Scores [T, classes] of each sentence: the right class has a lead over Gaussian noise."""
    import numpy
    all_frames = []
    for sentence in sentences:
        classes = [BLANK]
        for label in "|".join(sentence) + "|":
            classes += [TOKENS.index(label)] * rng.choice((1, 1, 2)) + [BLANK] * rng.choice((1, 1, 2))
        generator = numpy.random.default_rng(rng.getrandbits(32))
        scores = generator.normal(0, noise, (len(classes), BLANK + 1))
        scores[numpy.arange(len(classes)), classes] += 6
        scores -= numpy.log(numpy.exp(scores).sum(1, keepdims=True))
        all_frames.append(numpy.ascontiguousarray(scores, numpy.float32))
    return all_frames


def write_input(folder, args):
    rng = random.Random(args.seed)
    if args.text:
        sentences = read_sentences(args.text)
        rng.shuffle(sentences)
    else:
        sentences = made_up_sentences(made_up_words(args.words, rng), 30000, rng)
    held_out, sentences = sentences[:args.utterances], sentences[args.utterances:]
    words = sorted({word for sentence in sentences for word in sentence})
    (folder / "tokens.txt").write_text("\n".join(TOKENS) + "\n")
    (folder / "lexicon.txt").write_text("".join(f"{word}\t{' '.join(word)} |\n" for word in words))
    write_arpa(folder / "lm.arpa", sentences)
    frames = made_frames(held_out, args.noise, rng)
    (folder / "lengths.txt").write_text("\n".join(str(len(part)) for part in frames) + "\n")
    with open(folder / "frames.f32", "wb") as file:
        for part in frames:
            part.tofile(file)
    return held_out


def peer_decoders(folder, name, args):
    """(decode of one utterance) of a package, in a process of its own."""
    import numpy
    tokens = (folder / "tokens.txt").read_text().split()
    if name == "flashlight":
        from flashlight.lib.text.decoder import (CriterionType, LexiconDecoder, LexiconDecoderOptions, SmearingMode, Trie)
        from flashlight.lib.text.decoder.kenlm import KenLM
        from flashlight.lib.text.dictionary import Dictionary, create_word_dict, load_words
        lexicon = load_words(str(folder / "lexicon.txt"))
        words, labels = create_word_dict(lexicon), Dictionary([*tokens, "<blank>"])
        lm = KenLM(str(folder / "lm.arpa"), words)
        separator = labels.get_index("|")
        trie, start = Trie(labels.index_size(), separator), lm.start(False)
        for word, spellings in lexicon.items():
            index = words.get_index(word)
            _, score = lm.score(start, index)
            for spelling in spellings:
                trie.insert([labels.get_index(label) for label in spelling], index, score)
        trie.smear(SmearingMode.MAX)
        options = LexiconDecoderOptions(args.beam, args.beam_token, THRESHOLD, ALPHA * math.log(10), BETA, -math.inf, 0.0, False,
                                        CriterionType.CTC)
        decoder = LexiconDecoder(options, trie, lm, separator, labels.get_index("<blank>"), words.get_index("<unk>"), [], False)

        def decode(frames):
            best = decoder.decode(frames.ctypes.data, *frames.shape)[0]
            return " ".join(words.get_entry(index) for index in best.words if index >= 0)
        return decode
    from pyctcdecode import build_ctcdecoder
    words = [line.split()[0] for line in (folder / "lexicon.txt").read_text().splitlines()]
    decoder = build_ctcdecoder([*(" " if token == "|" else token for token in tokens), ""], str(folder / "lm.arpa"), words,
                               alpha=ALPHA, beta=BETA)
    return lambda frames: decoder.decode(numpy.asarray(frames), beam_width=args.beam, beam_prune_logp=-THRESHOLD)


def peer(args):
    """One round of a peer: its seconds and texts as JSON."""
    import numpy
    folder = pathlib.Path(args.peer_input)
    decode = peer_decoders(folder, args.peer, args)
    lengths = [int(line) for line in (folder / "lengths.txt").read_text().split()]
    flat = numpy.fromfile(folder / "frames.f32", numpy.float32).reshape(-1, BLANK + 1)
    parts = numpy.split(flat, numpy.cumsum(lengths)[:-1])
    begin = time.perf_counter()
    texts = [decode(numpy.ascontiguousarray(part)) for part in parts]
    print(json.dumps({"seconds": time.perf_counter() - begin, "texts": texts}))


def on_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run_peer(name, folder, args):
    command = [sys.executable, __file__, args.bench, "--peer", name, "--peer-input", str(folder), "--beam", str(args.beam),
               "--beam-token", str(args.beam_token)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=on_one_core)
    if done.returncode != 0:
        if "ModuleNotFoundError" in done.stderr:
            return None
        sys.exit(f"error: {name} left with {done.returncode}:\n{done.stderr}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["texts"]


def run_ours(folder, args):
    done = subprocess.run([args.bench, f"--input={folder}", f"--lm={folder / 'lm.arpa'}", "--passes=1", f"--beam={args.beam}",
                           f"--beam_token={args.beam_token}", f"--threshold={THRESHOLD}", f"--alpha={ALPHA}", f"--beta={BETA}"],
                          capture_output=True, text=True, preexec_fn=on_one_core,
                          env={**os.environ, "STRETTO_CACHE": str(folder / "cache")})
    if done.returncode != 0:
        sys.exit(f"error: {args.bench} left with {done.returncode}:\n{done.stderr}")
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    seconds = [float(words[1]) for words in lines if words[0] == "UPD"]
    opened = [float(words[1]) for words in lines if words[0] == "OPEN"]
    return seconds[0], [words[2] if len(words) > 2 else "" for words in lines if words[0] == "TEXT"], opened[0]


def word_errors(texts, sentences):
    errors = 0
    for text, right in zip(texts, sentences):
        words, row = text.split(), list(range(len(right) + 1))
        for i, word in enumerate(words, 1):
            before, row = row, [i]
            for j, other in enumerate(right, 1):
                row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (word != other)))
        errors += row[-1]
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--beam", type=int, default=100)
    parser.add_argument("--beam-token", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--words", type=int, default=20000)
    parser.add_argument("--utterances", type=int, default=40)
    parser.add_argument("--noise", type=float, default=1.8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--peer-input", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args)
    args.bench, head = records.program(parser, args.bench), records.head_of_now()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sentences = write_input(folder, args)
        num_frames = sum(int(line) for line in (folder / "lengths.txt").read_text().split())
        seconds, texts, opened = collections.defaultdict(list), {}, []
        for round_number in range(args.rounds):
            for peer_name in ("stretto", "flashlight", "pyctcdecode"):
                if peer_name == "pyctcdecode" and round_number > 0:
                    continue  # a hundredth of the speed: once is enough
                if peer_name == "stretto":
                    took, texts[peer_name], open_seconds = run_ours(folder, args)
                    opened.append(open_seconds)
                elif (answer := run_peer(peer_name, folder, args)) is None:
                    continue
                else:
                    took, texts[peer_name] = answer
                seconds[peer_name].append(took)
    rows = []
    for peer_name, took in seconds.items():
        equal = sum(a == b for a, b in zip(texts[peer_name], texts.get("flashlight", [])))
        rows.append([peer_name, records.spread([num_frames / one for one in took], decimals=0),
                     f"{word_errors(texts[peer_name], sentences)} of {sum(map(len, sentences))}", f"{equal} of {len(sentences)}"])
    missing = [name for name in ("flashlight", "pyctcdecode") if name not in seconds]
    notes = [f"A beam of {args.beam}, the likeliest {args.beam_token} labels of a frame, one core each. Medians of {args.rounds} rounds, in turn "
             "(least – most); pyctcdecode's is one round.",
             f"Lexicon and language model open in {opened[-1]:.3f} s from the cache ({opened[0]:.3f} s the first time).",
             *(f"{name} is not installed: left out." for name in missing)]
    titles = ["program", "frames a second", "word errors", "texts as flashlight's"]
    records.publish(records.page("CTC's beam search beside other packages", notes, records.table(titles, rows), "minutes", head), args.write)
    ours = statistics.median(seconds.pop("stretto"))
    if seconds and min(map(statistics.median, seconds.values())) < 1.5 * ours:
        sys.exit("error: less than 1.5 times the faster peer")


if __name__ == "__main__":
    main()
