#!/usr/bin/env python3
"""Translates pieces with CTranslate2: the peer of decoding_beside.py.

    decoding_peer.py MODEL PIECES OUTPUT [--type int8] [--beam 5] [--batch 32] [--inter 1] [--intra 2]

MODEL is a folder of CTranslate2. Each line of PIECES holds the pieces of a sentence, parted by spaces; OUTPUT gets those of its
translation. Prints an object with the seconds of the call, without loading and behind a warm-up of one batch.
"""
import argparse
import json
import pathlib
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("pieces", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--type", default="float32", help="compute_type of CTranslate2")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="sentences")
    parser.add_argument("--longest", type=int, default=256, help="pieces of a translation at most")
    parser.add_argument("--inter", type=int, default=1, help="batches side by side")
    parser.add_argument("--intra", type=int, default=1, help="threads of each")
    options = parser.parse_args()
    import ctranslate2
    translator = ctranslate2.Translator(str(options.model), device="cpu", compute_type=options.type, inter_threads=options.inter,
                                        intra_threads=options.intra)
    sentences = [line.split() for line in options.pieces.read_text(encoding="utf-8").splitlines()]

    def translate(some):
        return translator.translate_batch(some, max_batch_size=options.batch, batch_type="examples", beam_size=options.beam,
                                          length_penalty=1, max_decoding_length=options.longest)
    translate(sentences[:options.batch])
    begin = time.perf_counter()
    found = translate(sentences)
    seconds = time.perf_counter() - begin
    options.output.write_text("".join(" ".join(one.hypotheses[0]) + "\n" for one in found), encoding="utf-8")
    print(json.dumps({"seconds": seconds, "version": ctranslate2.__version__}))


if __name__ == "__main__":
    main()
