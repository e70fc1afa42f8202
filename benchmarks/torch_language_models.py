#!/usr/bin/env python3
"""Language models as plain PyTorch trains them: nanoGPT's form by characters, and AWD-LSTM's and the tied LSTM's by words.

    torch_language_models.py chars TRAIN VALID [--layers 4 --heads 4 --width 128 --block 64 --batch 12 --updates 2000] [--compile]
    torch_language_models.py words TRAIN VALID [--widths 200 200 --embedding 200 --batch 20 --bptt 35 …]

Each prints `UPD n tokens loss`, the validation as `VALID {…}`, and `END {…}` with its number of parameters.

chars: as nanoGPT (karpathy/nanoGPT@3adf61e, model.py and train.py): pre-norm, GELU, one matrix for query, key and value,
scaled_dot_product_attention, tied embeddings, normal first weights of 0.02, those behind a sum smaller, AdamW that decays matrices, a
cosine behind a warm-up, blocks at random places. At the end the whole validation text in disjoint blocks; the first character is
predicted from a line end.

words: as awd-lstm-lm@19470c8 and pytorch/examples, word_language_model: plain SGD, gradients clipped, state carried on, lanes of equal
length. Weight drop puts a dropped recurrent matrix among `_flat_weights` of nn.LSTM in each update: it is part of the graph, and in
evaluation the matrix is whole. Dropout is locked with --locked. Stretches of varying length scale the rate.
"""
import argparse
import json
import math
import pathlib
import random
import signal
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.inner = nn.Linear(width, 4 * width, bias=False)
        self.inner_out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x, dropout):
        batch, length, width = x.shape
        query, key, value = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                             for part in self.qkv(self.norm_1(x)).split(width, dim=2))
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=dropout)
        x = x + functional.dropout(self.attention_out(seen.transpose(1, 2).reshape(batch, length, width)), dropout)
        return x + functional.dropout(self.inner_out(functional.gelu(self.inner(self.norm_2(x)))), dropout)


class CharacterModel(nn.Module):
    def __init__(self, rows, options):
        super().__init__()
        self.tokens = nn.Embedding(rows, options.width)
        self.positions = nn.Embedding(options.block, options.width)
        self.blocks = nn.ModuleList(Block(options.width, options.heads) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                behind_sum = name.endswith(("attention_out.weight", "inner_out.weight"))
                nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * options.layers) if behind_sum else 1))

    def forward(self, ids, labels, dropout):
        x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
        x = functional.dropout(x, dropout)
        for block in self.blocks:
            x = block(x, dropout)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.reshape(-1))


def rate_of(update, options):
    """nanoGPT's get_lr; updates count from 0."""
    if update < options.warmup:
        return options.lr * (update + 1) / (options.warmup + 1)
    share = (update - options.warmup) / max(1, options.updates - options.warmup)
    return options.min_lr + 0.5 * (1 + math.cos(math.pi * share)) * (options.lr - options.min_lr)


def train_chars(options):
    text = options.train.read_text(encoding="utf-8")
    letters = sorted(set(text + options.valid.read_text(encoding="utf-8")))
    number = {letter: i for i, letter in enumerate(letters)}
    train, valid = (torch.tensor([number[letter] for letter in path.read_text(encoding="utf-8")]) for path in (options.train, options.valid))
    model = CharacterModel(len(letters), options)
    parameters = sum(weight.numel() for weight in model.parameters())
    decayed, spared = ([weight for weight in model.parameters() if (weight.dim() >= 2) == matrix] for matrix in (True, False))
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": spared, "weight_decay": 0.0}], lr=options.lr,
                                  betas=(0.9, 0.99), fused=options.fused)
    run = torch.compile(model) if options.compile else model
    places = torch.arange(options.block)
    for update in range(options.updates):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(update, options)
        begins = torch.randint(len(train) - options.block, (options.batch,))
        rows = begins[:, None] + places
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            loss = run(train[rows], train[rows + 1], options.dropout)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (update + 1) % options.report == 0 or update + 1 == options.updates or update == 0:
            tokens = options.batch * options.block * (1 if update == 0 else (update + 1 - told))
            told = update + 1
            print("UPD", update + 1, tokens, f"{loss.item():.4f}", flush=True)
    begin = time.perf_counter()
    inputs = torch.cat([torch.tensor([number["\n"]]), valid[:-1]])
    total = 0.0
    with torch.inference_mode():
        whole = len(valid) // options.block * options.block
        blocks, labels = (part[:whole].view(-1, options.block) for part in (inputs, valid))
        for first in range(0, len(blocks), 64):
            count = labels[first:first + 64].numel()
            total += float(model(blocks[first:first + 64], labels[first:first + 64], 0.0)) * count
        if whole < len(valid):
            total += float(model(inputs[None, whole:], valid[None, whole:], 0.0)) * (len(valid) - whole)
    print("VALID", json.dumps({"step": options.updates, "nll": total / len(valid), "tokens": len(valid),
                               "seconds": time.perf_counter() - begin}), flush=True)
    return parameters


def locked(x, dropout, training):
    """One mask for all steps of a lane; x is [steps, lanes, width]."""
    if not training or dropout == 0:
        return x
    return x * functional.dropout(x.new_ones(1, x.shape[1], x.shape[2]), dropout)


class WordModel(nn.Module):
    def __init__(self, rows, options):
        super().__init__()
        self.options, inner = options, [options.embedding, *options.widths]
        self.table = nn.Embedding(rows, options.embedding)
        self.layers = nn.ModuleList(nn.LSTM(a, b) for a, b in zip(inner, inner[1:]))
        self.bias = nn.Parameter(torch.zeros(rows))
        nn.init.uniform_(self.table.weight, -0.1, 0.1)

    def layer(self, i, x, state):
        layer = self.layers[i]
        whole = layer.weight_hh_l0
        dropped = functional.dropout(whole, self.options.weight_drop, self.training)
        layer._flat_weights = [layer.weight_ih_l0, dropped, layer.bias_ih_l0, layer.bias_hh_l0]
        return layer(x, state)

    def drop(self, x, share):
        return locked(x, share, self.training) if self.options.locked else functional.dropout(x, share, self.training)

    def forward(self, ids, states):
        """Rows behind the last dropout and before it, [steps, lanes, width], and states."""
        weight = self.table.weight
        if self.training and self.options.embedding_dropout > 0:
            weight = weight * functional.dropout(weight.new_ones(len(weight), 1), self.options.embedding_dropout)
        x = self.drop(functional.embedding(ids, weight), self.options.input_dropout)
        after = []
        for i in range(len(self.layers)):
            x, state = self.layer(i, x, states[i] if states else None)
            after.append(tuple(part.detach() for part in state))
            raw = x
            x = self.drop(x, self.options.output_dropout if i + 1 == len(self.layers) else self.options.hidden_dropout)
        return x, raw, after

    def loss(self, rows, labels):
        return functional.cross_entropy(functional.linear(rows.flatten(0, 1), self.table.weight, self.bias), labels.flatten())


def lanes_of(ids, lanes):
    """[steps, lanes]: the text cut into parts of equal length, its rest left out."""
    steps = len(ids) // lanes
    return ids[:steps * lanes].view(lanes, steps).t().contiguous()


def evaluate(model, text, bptt):
    model.eval()
    states, total, count = None, 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(text) - 1, bptt):
            labels = text[begin + 1:begin + 1 + bptt]
            rows, _, states = model(text[begin:begin + len(labels)], states)
            total += float(model.loss(rows, labels)) * labels.numel()
            count += labels.numel()
    model.train()
    return total / count, count


def train_words(options):
    number = {}
    train, valid = ([number.setdefault(word, len(number)) for line in path.read_text(encoding="utf-8").splitlines()
                     for word in [*line.split(), "<eos>"]] for path in (options.train, options.valid))
    text, valid = lanes_of(torch.tensor(train), options.batch), lanes_of(torch.tensor(valid), options.eval_lanes)
    model = WordModel(len(number), options)
    parameters, draw = sum(weight.numel() for weight in model.parameters()), random.Random(options.seed)
    lr, best, update, begin, states = options.lr, math.inf, 0, 0, None
    if options.keep and options.keep.exists():
        kept = torch.load(options.keep)
        model.load_state_dict(kept["model"])
        lr, best, update, begin, states = (kept[name] for name in ("lr", "best", "update", "begin", "states"))
        draw.setstate(kept["draw"])
        torch.set_rng_state(kept["torch"])

    def keep():
        if options.keep:
            half = options.keep.with_suffix(".half")
            torch.save({"model": model.state_dict(), "lr": lr, "best": best, "update": update, "begin": begin, "states": states,
                        "draw": draw.getstate(), "torch": torch.get_rng_state()}, half)
            half.replace(options.keep)

    stop = []
    if options.keep:
        signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    while update < options.updates:
        if begin >= len(text) - 2:
            begin, states = 0, None
        while begin < len(text) - 2 and update < options.updates:
            usual = options.bptt if options.deviation == 0 or draw.random() < 0.95 else options.bptt / 2
            steps = max(5, int(draw.gauss(usual, options.deviation))) if options.deviation > 0 else options.bptt
            steps = min(steps, len(text) - 1 - begin)
            labels = text[begin + 1:begin + 1 + steps]
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
                rows, raw, states = model(text[begin:begin + steps], states)
                nll = model.loss(rows, labels)
            loss = nll
            if options.activation_reg > 0:
                loss = loss + options.activation_reg * rows.pow(2).mean()
            if options.temporal_reg > 0 and steps > 1:
                loss = loss + options.temporal_reg * (raw[1:] - raw[:-1]).pow(2).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            scale = lr * (steps / options.bptt if options.deviation > 0 else 1)
            with torch.no_grad():
                weights = list(model.parameters())
                if options.weight_decay > 0:
                    torch._foreach_add_([w.grad for w in weights], weights, alpha=options.weight_decay)
                torch._foreach_add_(weights, [w.grad for w in weights], alpha=-scale)
            model.zero_grad(set_to_none=True)
            begin, update = begin + steps, update + 1
            print("UPD", update, labels.numel(), f"{nll.item():.4f}", flush=True)
            if (options.every and update % options.every == 0) or update == options.updates:
                value, count = evaluate(model, valid, options.bptt)
                print("VALID", json.dumps({"step": update, "nll": value, "tokens": count}), flush=True)
                lr, best = (lr / 4 if options.quarter and value >= best else lr), min(best, value)
                keep()
            elif stop:
                keep()
                return parameters
    return parameters


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("chars", "words"))
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("valid", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=12, help="blocks of an update, or lanes")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16 in training")
    chars = parser.add_argument_group("chars")
    chars.add_argument("--layers", type=int, default=4)
    chars.add_argument("--heads", type=int, default=4)
    chars.add_argument("--width", type=int, default=128)
    chars.add_argument("--block", type=int, default=64)
    chars.add_argument("--dropout", type=float, default=0.0)
    chars.add_argument("--min-lr", type=float, default=1e-4)
    chars.add_argument("--warmup", type=int, default=100)
    chars.add_argument("--report", type=int, default=10, help="updates between two lines")
    chars.add_argument("--compile", action="store_true")
    chars.add_argument("--fused", action="store_true", help="AdamW's fused form")
    of_words = parser.add_argument_group("words")
    of_words.add_argument("--embedding", type=int, default=200)
    of_words.add_argument("--widths", type=int, nargs="+", default=[200, 200])
    of_words.add_argument("--bptt", type=int, default=35)
    of_words.add_argument("--deviation", type=float, default=0.0)
    of_words.add_argument("--weight-drop", type=float, default=0.0)
    of_words.add_argument("--embedding-dropout", type=float, default=0.0)
    of_words.add_argument("--input-dropout", type=float, default=0.2)
    of_words.add_argument("--hidden-dropout", type=float, default=0.2)
    of_words.add_argument("--output-dropout", type=float, default=0.2)
    of_words.add_argument("--locked", action="store_true")
    of_words.add_argument("--activation-reg", type=float, default=0.0)
    of_words.add_argument("--temporal-reg", type=float, default=0.0)
    of_words.add_argument("--weight-decay", type=float, default=0.0)
    of_words.add_argument("--quarter", action="store_true", help="quarter the rate where a validation is no better")
    of_words.add_argument("--every", type=int, default=0, help="updates between validations; 0: at the end alone")
    of_words.add_argument("--keep", type=pathlib.Path, metavar="FILE", help="all state, at each validation and after SIGTERM; another call goes on from it")
    of_words.add_argument("--eval-lanes", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    parameters = {"chars": train_chars, "words": train_words}[options.kind](options)
    print("END", json.dumps({"parameters": parameters, "torch": torch.__version__}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
