#!/usr/bin/env python3
"""torch.nn.Transformer, trained as a user of PyTorch would, on the text of everything.py: a peer for tokens a second.

    torch_peer.py --text FOLDER --model base --precision mixed_bf16 --device cuda --updates 30

Post-norm, tied embeddings, sinusoidal positions, label smoothing, fused Adam. Batches hold max_tokens real tokens of either side,
sentences of like length together, padded to the longest. Prints `UPD n ntok loss` after each update; ntok counts real target tokens,
end-of-sentence included.
"""
import argparse
import contextlib
import math
import pathlib
import random

import torch
from torch import nn

SIZES = {"base": (512, 8, 6, 2048, 0.1), "big": (1024, 16, 6, 4096, 0.3), "tiny": (64, 4, 1, 128, 0.1)}
PAD, UNK, BOS, EOS = 0, 1, 2, 3


class Model(nn.Module):
    def __init__(self, rows, d_model, heads, layers, ffn, dropout):
        super().__init__()
        self.scale, self.dropout = math.sqrt(d_model), nn.Dropout(dropout)
        self.table = nn.Embedding(rows, d_model, padding_idx=PAD)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.body = nn.Transformer(d_model, heads, layers, layers, ffn, dropout, batch_first=True)
        rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        angles = torch.arange(1024)[:, None] * rates
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1), persistent=False)

    def embed(self, ids):
        return self.dropout(self.table(ids) * self.scale + self.positions[:ids.shape[1]])

    def forward(self, src, tgt):
        hidden = self.body(self.embed(src), self.embed(tgt), src_key_padding_mask=src == PAD, memory_key_padding_mask=src == PAD,
                           tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt.shape[1], device=tgt.device), tgt_is_causal=True)
        return hidden @ self.table.weight.t()


def batches(folder, max_tokens):
    vocabulary = {token: i + 4 for i, token in enumerate((folder / "vocabulary.txt").read_text().split())}
    sides = [[[vocabulary.get(w, UNK) for w in line.split()] + [EOS] for line in (folder / f"train.{side}").read_text().splitlines()]
             for side in ("en", "fr")]
    pairs = sorted(zip(*sides), key=lambda pair: (len(pair[1]), len(pair[0])))
    made, batch, sums = [], [], [0, 0]
    for pair in pairs:
        grown = [s + len(side) for s, side in zip(sums, pair)]
        if batch and max(grown) > max_tokens:
            made.append(batch)
            batch, grown = [], [len(side) for side in pair]
        batch.append(pair)
        sums = grown
    made.append(batch)
    random.Random(1).shuffle(made)
    return made, len(vocabulary) + 4


def padded(rows, device):
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD).to(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=("base", "big"), default="base")
    parser.add_argument("--precision", choices=("fp32", "tf32", "mixed_bf16", "mixed_fp16"), default="fp32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--max-tokens", type=int, default=8192)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans each new shape anew, and nearly every batch has one
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    data, rows = batches(options.text, 512 if options.tiny else options.max_tokens)
    model = Model(rows, *SIZES["tiny" if options.tiny else options.model]).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), fused=True)
    scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "mixed_fp16")
    half = {"mixed_bf16": torch.bfloat16, "mixed_fp16": torch.float16}.get(options.precision)
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    for update in range(1, options.updates + 1):
        optimizer.param_groups[0]["lr"] = 5e-4 * min(update / 20, (20 / update) ** 0.5)
        batch = data[update % len(data)]
        src, tgt = (padded([pair[i] for pair in batch], options.device) for i in (0, 1))
        shifted = torch.cat([torch.full_like(tgt[:, :1], BOS), tgt[:, :-1]], 1)
        with torch.autocast(options.device, half) if half else contextlib.nullcontext():
            loss = loss_of(model(src, shifted).flatten(0, 1), tgt.flatten())
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        tokens = sum(len(target) for _, target in batch)
        print("UPD", update, tokens, f"{loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
