#!/usr/bin/env python3
"""BERT of transformers, trained as an expert would without Trainer, on the text of everything.py: a peer for tokens a second.

    bert_peer.py --text FOLDER --task pretrain|finetune --precision mixed_bf16 --device cuda --updates 30 [--compile]

Base size, fused scaled-dot-product attention, fused AdamW, autocast. Pretraining: rows of --length tokens without padding, 15 % masked.
Fine-tuning: --samples texts a batch, texts of like length together, padded to the longest. Prints `UPD n ntok loss` after each update;
ntok counts real tokens, specials included. Weights begin at random, which costs what trained ones cost.
"""
import argparse
import contextlib
import pathlib
import random
import re

import torch
import transformers

CLS, SEP, MASK = 2, 3, 4


def read_ids(folder, name):
    """Ids of each line of plain text, and its label."""
    rows = {piece: i for i, piece in enumerate((folder / "pieces.txt").read_text().splitlines())}
    found = []
    for line in (folder / name).read_text().splitlines()[1:]:
        text, label = line.split("\t")
        found.append(([rows.get(piece, 1) for piece in re.findall(r"\w+|[^\w\s]", text)], int(label) - 1))
    return found, len(rows)


def pretraining_batches(lines, options):
    """Ids [batch, length] without padding."""
    stream = [piece for ids, _ in lines for piece in (*ids, SEP)]
    body = options.length - 1
    rows = torch.tensor([[CLS, *stream[at:at + body]] for at in range(0, len(stream) - body, body)])
    count = options.tokens // options.length
    for at in range(0, options.updates * count, count):
        ids = rows[torch.arange(at, at + count) % len(rows)]
        yield {"input_ids": ids}, ids.numel()


def mask(inputs):
    """15 % of the tokens: 80 % [MASK], 10 % random, 10 % as they are; on the device."""
    ids = inputs["input_ids"]
    chosen = (torch.rand(ids.shape, device=ids.device) < 0.15) & (ids > MASK)
    draw = torch.rand(ids.shape, device=ids.device)
    masked = torch.where(chosen & (draw < 0.8), MASK, ids)
    masked = torch.where(chosen & (draw >= 0.9), torch.randint(5, 30522, ids.shape, device=ids.device), masked)
    return {"input_ids": masked, "labels": torch.where(chosen, ids, -100)}


def finetuning_batches(lines, options):
    samples = sorted((([CLS, *ids[:options.length - 2], SEP], label) for ids, label in lines), key=lambda sample: len(sample[0]))
    batches = [samples[at:at + options.samples] for at in range(0, len(samples), options.samples)]
    random.Random(1).shuffle(batches)
    for update in range(options.updates):
        batch = batches[update % len(batches)]
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids, _ in batch], batch_first=True)
        attention = torch.nn.utils.rnn.pad_sequence([torch.ones(len(ids), dtype=torch.long) for ids, _ in batch], batch_first=True)
        labels = torch.tensor([label for _, label in batch])
        yield {"input_ids": ids, "attention_mask": attention, "labels": labels}, int(attention.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--task", choices=("pretrain", "finetune"), required=True)
    parser.add_argument("--precision", choices=("fp32", "mixed_bf16"), default="fp32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=16384, help="of a batch of pretraining")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--samples", type=int, default=128, help="of a batch of fine-tuning")
    parser.add_argument("--attention-dropout", type=float, default=0.1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans each new shape anew, and nearly every batch has one
    transformers.logging.set_verbosity_error()
    lines, rows = read_ids(options.text, "labelled.tsv")
    size = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512} if options.tiny else {}
    config = transformers.BertConfig(vocab_size=rows, num_labels=6, attention_probs_dropout_prob=options.attention_dropout,
                                     attn_implementation="sdpa", **size)
    pretraining = options.task == "pretrain"
    model = (transformers.BertForMaskedLM if pretraining else transformers.BertForSequenceClassification)(config).to(options.device).train()
    run = torch.compile(model, dynamic=not pretraining) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    half = options.precision == "mixed_bf16"
    batches = (pretraining_batches if pretraining else finetuning_batches)(lines, options)
    for update, (batch, tokens) in enumerate(batches, 1):
        batch = {key: value.pin_memory().to(options.device, non_blocking=True) if options.device == "cuda" else value
                 for key, value in batch.items()}
        if pretraining:
            batch = mask(batch)
        with torch.autocast(options.device, torch.bfloat16) if half else contextlib.nullcontext():
            loss = run(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print("UPD", update, tokens, f"{loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
