#!/usr/bin/env python3
"""Makes a model with random weights and prompts for it, and continues them with another program: the peer of generation_beside.py.

    generation_peer.py make FOLDER TEXT [--form llama] [--alone] [--tiny]
        FOLDER/model of transformers, a GPT-2 or a Llama of its size; FOLDER/prompts.json; FOLDER/pieces.json: what the other calls need
        of the tokenizer; and, without --alone, FOLDER/ct2 of CTranslate2
    generation_peer.py transformers|ctranslate2 FOLDER --batch 8 --kinds equal unequal sampled [--new 128] [--threads 2] [--answers FILE]
    generation_peer.py ctranslate2|llama.cpp FOLDER --model MODEL [--type int8] …
        MODEL is a folder of CTranslate2 or a file of GGUF. Neither transformers nor PyTorch is loaded beside it
    generation_peer.py quantise FROM TO        a file of GGUF in fp32 with all its matrices in Q4_0, by llama.cpp's package gguf

The second and the third print an object with the seconds of each kind, of the first tokens and of all, without loading and behind a short
warm-up, and write the pieces of all continuations, where the engine gives them. TEXT is what the tokenizer, a byte-level BPE of GPT-2's
size, is trained on and prompts are cut from.
"""
import argparse
import importlib.metadata
import itertools
import json
import pathlib
import random
import time

PROMPTS, LENGTH = 64, 32


def make(options):
    import tokenizers
    import torch
    import transformers
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
    made = random_model(options.form, options.tiny, dict(vocab_size=len(tokenizer), bos_token_id=end, eos_token_id=end))
    made.save_pretrained(model)
    prompts = write_prompts(options, tokenizer, " ".join(text.split()))
    write_pieces(options, tokenizer, prompts, sum(parameter.numel() for parameter in made.parameters()))
    if options.alone:
        return
    import ctranslate2
    ctranslate2.converters.TransformersConverter(str(model)).convert(str(options.folder / "ct2"), force=True)


def random_model(form, tiny, ids):
    """GPT-2's smallest, or a Llama with as many weights in each layer: its three feed-forward maps are 2/3 as wide."""
    import transformers
    if form == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**ids, **(dict(n_layer=2, n_embd=64, n_head=2) if tiny else {})))
    layers, width, heads = (2, 64, 2) if tiny else (12, 768, 12)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **ids, num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, num_key_value_heads=heads,
        intermediate_size=width * 8 // 3 // 32 * 32, max_position_embeddings=1024, tie_word_embeddings=True))


def write_pieces(options, tokenizer, prompts, weights):
    """What StoredTokenizer reads, and the number of weights, where a table that is the output too counts once."""
    ids = {text: tokenizer(text)["input_ids"] for found in prompts.values() for text in found}
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    (options.folder / "pieces.json").write_text(json.dumps({"pieces": pieces, "ids": ids, "end": tokenizer.eos_token_id,
                                                            "weights": weights}), encoding="utf-8")


class StoredTokenizer:
    """The ids of the prompts and the pieces of all ids, without the package transformers."""

    def __init__(self, folder):
        found = json.loads((folder / "pieces.json").read_text(encoding="utf-8"))
        self.pieces, self.ids, self.eos_token_id = found["pieces"], found["ids"], found["end"]

    def __call__(self, text):
        return {"input_ids": self.ids[text]}

    def convert_ids_to_tokens(self, ids):
        return [self.pieces[one] for one in ids]


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
    return made


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
    generator = ctranslate2.Generator(str(options.model or options.folder / "ct2"), device="cpu", compute_type=options.type, inter_threads=1,
                                      intra_threads=options.threads)

    def run(prompts, new, sampled):
        tokens = [tokenizer.convert_ids_to_tokens(prompt) for prompt in prompts]
        found = generator.generate_batch(tokens, max_length=new, min_length=new, sampling_topk=0 if sampled else 1,
                                         include_prompt_in_result=False)
        return [one.sequences_ids[0] for one in found]
    return run


def llama_engine(options, tokenizer):
    """llama.cpp of llama-cpp-python, or else of xllamacpp; one prompt at a time."""
    longest = max(256, max(map(len, tokenizer.ids.values())) + options.new)
    try:
        import llama_cpp
    except ImportError:
        return xllamacpp_engine(options, longest)
    llama = llama_cpp.Llama(str(options.model), n_ctx=longest, n_threads=options.threads, n_threads_batch=options.threads, verbose=False)

    def one(prompt, new, sampled):
        llama.reset()  # it would take keys and values of an equal prompt from the call before
        how = dict(top_k=0, top_p=1.0, min_p=0.0, temp=1.0) if sampled else dict(top_k=1, temp=0.0)
        return list(itertools.islice(llama.generate(prompt, repeat_penalty=1.0, **how), new))  # goes on behind the end of a text
    return lambda prompts, new, sampled: [one(prompt, new, sampled) for prompt in prompts]


def xllamacpp_engine(options, longest):
    """The server of llama.cpp within this process. It gives text, no ids: run() is None."""
    import xllamacpp
    how = xllamacpp.CommonParams()
    how.model.path, how.n_ctx, how.n_parallel, how.warmup, how.cache_ram_mib = str(options.model), longest, 1, False, 0
    how.cpuparams.n_threads = how.cpuparams_batch.n_threads = options.threads
    server = xllamacpp.Server(how)

    def run(prompts, new, sampled):
        for prompt in prompts:
            found = server.handle_completions({
                "prompt": prompt, "n_predict": new, "ignore_eos": True, "cache_prompt": False,
                **({"samplers": ["temperature"], "temperature": 1.0} if sampled else {"temperature": 0})})
            if found.get("usage", {}).get("completion_tokens") != new:
                raise SystemExit(f"error: llama.cpp answers {str(found)[:300]}")
    return run


def quantise(options):
    """By llama.cpp's own package for its files, gguf: all matrices, the table of tokens too."""
    import gguf
    kind = gguf.GGMLQuantizationType.Q4_0
    reader = gguf.GGUFReader(options.folder)
    keys = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    writer = gguf.GGUFWriter(options.text, keys.pop("general.architecture").contents())
    for name in ("general.file_type", "general.quantization_version"):
        keys.pop(name, None)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for name, field in keys.items():
        is_array = field.types[0] == gguf.GGUFValueType.ARRAY
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=field.types[-1] if is_array else None)
    for tensor in reader.tensors:
        if len(tensor.shape) > 1:
            writer.add_tensor(tensor.name, gguf.quants.quantize(tensor.data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


ENGINES = {"transformers": transformers_engine, "ctranslate2": ctranslate2_engine, "llama.cpp": llama_engine}


def tokenizer_of(options):
    if options.model:
        return StoredTokenizer(options.folder)
    import transformers
    return transformers.GPT2TokenizerFast.from_pretrained(options.folder / "model")


def continue_prompts(options):
    tokenizer = tokenizer_of(options)
    run = ENGINES[options.command](options, tokenizer)
    prompts = json.loads((options.folder / "prompts.json").read_text(encoding="utf-8"))
    first, seconds, answers = {}, {}, {}
    for kind in options.kinds:
        chosen = [tokenizer(text)["input_ids"] for text in prompts[kind][:options.batch]]
        run(chosen, 4, kind == "sampled")
        begin = time.perf_counter()
        run(chosen, 1, kind == "sampled")
        first[kind] = time.perf_counter() - begin
        begin = time.perf_counter()
        answers[kind] = run(chosen, options.new, kind == "sampled")
        seconds[kind] = time.perf_counter() - begin
        if any(len(answer) != options.new for answer in answers[kind] or []):
            raise SystemExit("error: a continuation has another length")
    options.answers.write_text(json.dumps({kind: [tokenizer.convert_ids_to_tokens(answer) for answer in found]
                                           for kind, found in answers.items() if found}), encoding="utf-8")
    print(json.dumps({"first": first, "seconds": seconds, "about": about(options.command)}))


def about(program):
    """The version of an engine and, of llama.cpp, the instructions that it was built for."""
    if program != "llama.cpp":
        return importlib.metadata.version(program)
    try:
        import llama_cpp
        said, package = llama_cpp.llama_print_system_info().decode(), f"llama-cpp-python {llama_cpp.__version__}"
    except ImportError:
        import xllamacpp
        said, package = xllamacpp.get_system_info(), f"xllamacpp {xllamacpp.__version__}"
    return f"of {package}, {said.strip(' |')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "quantise", *ENGINES))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path, nargs="?")
    parser.add_argument("--form", choices=("gpt2", "llama"), default="gpt2")
    parser.add_argument("--alone", action="store_true", help="make no model of CTranslate2")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--model", type=pathlib.Path, help="a folder of CTranslate2, or a file of GGUF")
    parser.add_argument("--type", default="float32", help="compute_type of CTranslate2")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", default=["equal", "unequal"])
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--answers", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "llama.cpp" and not options.model:
        parser.error("llama.cpp needs --model FILE")
    {"make": make, "quantise": quantise}.get(options.command, continue_prompts)(options)


if __name__ == "__main__":
    main()
