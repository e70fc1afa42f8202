#!/usr/bin/env python3
"""Makes a GPT-2 with random weights and prompts for it, and continues them with transformers or CTranslate2: the peer of
generation_beside.py.

    generation_peer.py make FOLDER TEXT [--tiny]      FOLDER/model of transformers, FOLDER/ct2 of CTranslate2, FOLDER/prompts.json
    generation_peer.py transformers|ctranslate2 FOLDER --batch 8 --kinds equal unequal sampled [--new 128] [--threads 2] [--answers FILE]

The second prints an object with the seconds of each kind, without loading and behind a short warm-up, and writes the ids of all
continuations. TEXT is what the tokenizer, a byte-level BPE of GPT-2's size, is trained on and prompts are cut from.
"""
import argparse
import json
import pathlib
import random
import time

PROMPTS, LENGTH = 64, 32


def make(options):
    import tokenizers
    import torch
    import transformers
    size = dict(n_layer=2, n_embd=64, n_head=2) if options.tiny else {}
    text = options.text.read_text(encoding="utf-8")
    text = text[:200_000] if options.tiny else text
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(text.splitlines(keepends=True), vocab_size=1000 if options.tiny else 50257, min_frequency=1,
                                special_tokens=["<|endoftext|>"])
    model = options.folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    trained.save_model(str(model))
    tokenizer = transformers.GPT2TokenizerFast(str(model / "vocab.json"), str(model / "merges.txt"), bos_token="<|endoftext|>",
                                               eos_token="<|endoftext|>", unk_token="<|endoftext|>")
    tokenizer.save_pretrained(model)
    end = tokenizer.eos_token_id
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=len(tokenizer), bos_token_id=end, eos_token_id=end, **size)
    transformers.GPT2LMHeadModel(config).save_pretrained(model)
    write_prompts(options, tokenizer, " ".join(text.split()))
    import ctranslate2
    ctranslate2.converters.TransformersConverter(str(model)).convert(str(options.folder / "ct2"), force=True)


def write_prompts(options, tokenizer, text):
    """Texts that are tokenised as they are to be: of 32 tokens, and of 8 to 56."""
    draw, made = random.Random(1), {}
    for kind in ("equal", "unequal"):
        found = []
        while len(found) < PROMPTS:
            length = LENGTH if kind == "equal" else 8 + 48 * len(found) // (PROMPTS - 1)
            begin = text.index(" ", draw.randrange(len(text) - 2000)) + 1
            cut = tokenizer.decode(tokenizer(text[begin:begin + 1000])["input_ids"][:length])
            if len(tokenizer(cut)["input_ids"]) == length:
                found.append(cut)
        draw.shuffle(found)
        made[kind] = found
    made["sampled"] = made["equal"]
    (options.folder / "prompts.json").write_text(json.dumps(made), encoding="utf-8")


def transformers_engine(options, tokenizer):
    import torch
    import transformers
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    model = transformers.GPT2LMHeadModel.from_pretrained(options.folder / "model").eval()
    end = tokenizer.eos_token_id

    def run(prompts, new, sampled):
        width = max(map(len, prompts))
        ids = torch.tensor([[end] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        with torch.inference_mode():
            found = model.generate(ids, attention_mask=mask, do_sample=sampled, max_new_tokens=new, min_new_tokens=new, pad_token_id=end,
                                   **({"top_k": 0} if sampled else {}))
        return found[:, width:].tolist()
    return run


def ctranslate2_engine(options, tokenizer):
    import ctranslate2
    generator = ctranslate2.Generator(str(options.folder / "ct2"), device="cpu", compute_type="float32", inter_threads=1,
                                      intra_threads=options.threads)

    def run(prompts, new, sampled):
        tokens = [tokenizer.convert_ids_to_tokens(prompt) for prompt in prompts]
        found = generator.generate_batch(tokens, max_length=new, min_length=new, sampling_topk=0 if sampled else 1,
                                         include_prompt_in_result=False)
        return [one.sequences_ids[0] for one in found]
    return run


def continue_prompts(options):
    import transformers
    tokenizer = transformers.GPT2TokenizerFast.from_pretrained(options.folder / "model")
    run = {"transformers": transformers_engine, "ctranslate2": ctranslate2_engine}[options.command](options, tokenizer)
    prompts = json.loads((options.folder / "prompts.json").read_text(encoding="utf-8"))
    seconds, answers = {}, {}
    for kind in options.kinds:
        chosen = [tokenizer(text)["input_ids"] for text in prompts[kind][:options.batch]]
        run(chosen, 4, kind == "sampled")
        begin = time.perf_counter()
        answers[kind] = run(chosen, options.new, kind == "sampled")
        seconds[kind] = time.perf_counter() - begin
        if any(len(answer) != options.new for answer in answers[kind]):
            raise SystemExit("error: a continuation has another length")
    options.answers.write_text(json.dumps({kind: [tokenizer.convert_ids_to_tokens(answer) for answer in found]
                                           for kind, found in answers.items()}), encoding="utf-8")
    print(json.dumps({"seconds": seconds}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "transformers", "ctranslate2"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path, nargs="?")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", default=["equal", "unequal"])
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--answers", type=pathlib.Path)
    options = parser.parse_args()
    make(options) if options.command == "make" else continue_prompts(options)


if __name__ == "__main__":
    main()
