#!/usr/bin/env python3
"""GNMT, ConvS2S, LightConv and DynamicConv in plain PyTorch, as someone who knows it would write them, and a training loop that prints
`UPD n tokens loss`.

    python benchmarks/torch_translation.py --model lstm --form packed --source src.ids --target tgt.ids --updates 25

Sizes are those of configs/translation/multi30k_gnmt.toml, multi30k_convs2s.toml and, of the two models in torch_light_convolutions.py,
multi30k_lightconv.toml. The files hold sub-word ids, a sentence a line.
Batches are cut by Stretto's rule: sorted by length, at most --max-tokens real tokens on either side. The loss is computed for real
positions only, Adam is the fused one. benchmarks/training_beside_torch.py runs this.

    packed         nn.LSTM on PackedSequence
    bucketed       nn.LSTM on padded batches of one length, nearly; the backward direction reads sequences turned around
    padded         nn.Conv1d on padded batches
    convolution, unfold, band      as torch_light_convolutions.py says, on padded batches

With --feed the first decoder layer reads what was attended to one step before, as GNMT's does. That takes a loop over steps of
nn.LSTMCell. Without it the layer is a whole nn.LSTM and attention follows it, a cheaper model that suits PyTorch better.
"""
import argparse
import math
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torch_light_convolutions import LightConvolutions

BOS, EOS = 2, 3


def inside(lengths, longest):
    return torch.arange(longest).unsqueeze(0) < lengths.unsqueeze(1)


def additive(query, keys, vector, gain):
    """[B, T, K], [B, S, K] -> [B, T, S]: normed scores of Bahdanau."""
    return torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ (gain * vector / vector.norm())


class Recurrent(nn.Module):
    """nn.LSTM over rows [B, T, D] of the given lengths, packed or padded."""

    def __init__(self, inputs, units, packed, turned=False):
        super().__init__()
        self.packed, self.turned = packed, turned
        self.lstm = nn.LSTM(inputs, units, batch_first=True)

    def forward(self, x, lengths, turn):
        if self.turned:
            x = x.gather(1, turn.unsqueeze(2).expand_as(x))
        if self.packed:
            rows = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out = pad_packed_sequence(self.lstm(rows)[0], batch_first=True, total_length=x.shape[1])[0]
        else:
            out = self.lstm(x)[0]
        return out.gather(1, turn.unsqueeze(2).expand_as(out)) if self.turned else out


class Bidirectional(nn.Module):
    """Both directions at once where rows are packed, since nn.LSTM knows the ends then."""

    def __init__(self, inputs, units):
        super().__init__()
        self.lstm = nn.LSTM(inputs, units, batch_first=True, bidirectional=True)

    def forward(self, x, lengths, turn):
        rows = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(rows)[0], batch_first=True, total_length=x.shape[1])[0]


class Gnmt(nn.Module):
    def __init__(self, options):
        super().__init__()
        d, self.packed, self.feed = options.d_model, options.form == "packed", options.feed
        self.embedding, self.drop = nn.Embedding(options.vocab, d), nn.Dropout(0.2)
        if self.packed:
            self.both = Bidirectional(d, d)
        else:
            self.forth, self.back = Recurrent(d, d, False), Recurrent(d, d, False, turned=True)
        self.encoder = nn.ModuleList(Recurrent(2 * d if i == 0 else d, d, self.packed) for i in range(3))
        self.first = nn.LSTMCell(2 * d, d) if self.feed else Recurrent(d, d, self.packed)
        self.upper = nn.ModuleList(Recurrent(2 * d, d, self.packed) for _ in range(2))
        self.key, self.query = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        self.vector, self.gain = nn.Parameter(torch.empty(d).uniform_(-0.1, 0.1)), nn.Parameter(torch.tensor(d**-0.5))
        self.score = torch.compile(additive, dynamic=True) if options.compile else additive
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def encode(self, source, lengths):
        x = self.drop(self.embedding(source))
        places = torch.arange(source.shape[1]).unsqueeze(0)
        ends = lengths.unsqueeze(1)
        turn = torch.where(places < ends, ends - 1 - places, places)  # each sequence turned around, padding where it is
        x = self.both(x, lengths, turn) if self.packed else torch.cat([self.forth(x, lengths, turn), self.back(x, lengths, turn)], 2)
        for i, layer in enumerate(self.encoder):
            out = layer(self.drop(x), lengths, turn)
            x = out + x if i >= 1 else out
        return x

    def attend(self, h, keys, memory, mask):
        scores = self.score(self.query(h), keys, self.vector, self.gain)
        return scores.masked_fill(~mask.unsqueeze(1), -math.inf).softmax(2) @ memory

    def forward(self, source, source_lengths, target, target_lengths):
        memory = self.encode(source, source_lengths)
        mask, keys, x = inside(source_lengths, source.shape[1]), self.key(memory), self.drop(self.embedding(target))
        if self.feed:
            context = memory.new_zeros(len(x), memory.shape[2])
            state, states, contexts = None, [], []
            for t in range(x.shape[1]):
                state = self.first(torch.cat([x[:, t], context], 1), state)
                context = self.attend(state[0].unsqueeze(1), keys, memory, mask).squeeze(1)
                states.append(state[0])
                contexts.append(context)
            x, context = torch.stack(states, 1), torch.stack(contexts, 1)
        else:
            x = self.first(x, target_lengths, None)
            context = self.attend(x, keys, memory, mask)
        for i, layer in enumerate(self.upper):
            out = layer(self.drop(torch.cat([x, context], 2)), target_lengths, None)
            x = out + x if i >= 1 else out
        return x


class Stack(nn.Module):
    """Convolutions with gates over [B, C, T]; the decoder's windows end at their own row, and each of its layers attends."""

    def __init__(self, d, layers, decoder):
        super().__init__()
        self.decoder, self.half = decoder, math.sqrt(0.5)
        self.positions, self.drop = nn.Embedding(256, d), nn.Dropout(0.2)
        linear = lambda: weight_norm(nn.Linear(d, d))
        self.into, self.out = linear(), linear()
        self.convolutions = nn.ModuleList(weight_norm(nn.Conv1d(d, 2 * d, 3, padding=2 if decoder else 1)) for _ in range(layers))
        if decoder:
            self.query, self.back = nn.ModuleList(linear() for _ in range(layers)), nn.ModuleList(linear() for _ in range(layers))

    def forward(self, tokens, mask, memory=None):
        embedded = self.drop(tokens + self.positions.weight[:tokens.shape[1]])
        x = self.into(embedded)
        hidden = ~mask.unsqueeze(2)
        for i, convolution in enumerate(self.convolutions):
            # Padding must be zero in front of a centred window.
            rows = self.drop(x) if self.decoder else self.drop(x).masked_fill(hidden, 0)
            h = F.glu(convolution(rows.transpose(1, 2))[:, :, :x.shape[1]], 1).transpose(1, 2)
            if self.decoder:
                keys, values, seen, scale = memory
                q = (self.query[i](h) + embedded) * self.half
                attended = (q @ keys.transpose(1, 2)).masked_fill(~seen.unsqueeze(1), -math.inf).softmax(2) @ values * scale
                h = (self.back[i](attended) + h) * self.half
            x = (h + x) * self.half
        return self.out(x), embedded


class ConvS2S(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.embedding = nn.Embedding(options.vocab, options.d_model)
        nn.init.normal_(self.embedding.weight, 0, 0.1)
        self.encoder, self.decoder = Stack(options.d_model, 6, False), Stack(options.d_model, 5, True)
        self.drop = nn.Dropout(0.2)

    def forward(self, source, source_lengths, target, target_lengths):
        mask = inside(source_lengths, source.shape[1])
        keys, embedded = self.encoder(self.embedding(source), mask)
        share = 0.1  # of the gradient: one over twice the number of layers that attend
        keys = share * keys + (1 - share) * keys.detach()
        scale = source_lengths.sqrt().view(-1, 1, 1)
        memory = (keys, (keys + embedded) * math.sqrt(0.5), mask, scale)
        return self.drop(self.decoder(self.embedding(target), inside(target_lengths, target.shape[1]), memory)[0])


def batches_of(pairs, max_tokens, seed):
    """Lists of pairs, in the order of an epoch."""
    made, sums = [[]], [0, 0]
    for pair in sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]))):
        sums = [total + len(side) for total, side in zip(sums, pair)]
        if made[-1] and max(sums) > max_tokens:
            made.append([])
            sums = [len(side) for side in pair]
        made[-1].append(pair)
    random.Random(seed).shuffle(made)
    return made


def padded(rows):
    lengths = torch.tensor([len(row) for row in rows])
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True), lengths


def read_pairs(options):
    sides = [[[*map(int, line.split()), EOS] for line in open(path, encoding="utf-8")] for path in (options.source, options.target)]
    return [pair for pair in zip(*sides) if max(map(len, pair)) <= 200]


MODELS = {"lstm": Gnmt, "conv": ConvS2S, "lightconv": LightConvolutions, "dynamicconv": LightConvolutions}
FORMS = {"lstm": ("packed", "bucketed"), "conv": ("padded",), "lightconv": ("convolution", "band"), "dynamicconv": ("unfold", "band")}


def more_than_stretto(options):
    """Parameters: each of eight layers of nn.LSTM has a second bias, and without --feed the first layer of the decoder is narrower."""
    d = options.d_model
    return 0 if options.model != "lstm" else 8 * 4 * d - (0 if options.feed else 4 * d * d)


def train(options):
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    model = MODELS[options.model](options)
    parameters = sum(p.numel() for p in model.parameters())
    print("parameters", parameters, "torch", torch.__version__, flush=True)
    if options.parameters and parameters != options.parameters + more_than_stretto(options):
        raise SystemExit(f"error: {parameters} parameters, expected {options.parameters + more_than_stretto(options)}")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9, fused=True)
    run = torch.compile(model, dynamic=True) if options.compile and options.model != "lstm" else model
    pairs, number, epoch = read_pairs(options), 0, 0
    while number < options.updates:
        epoch += 1
        for batch in batches_of(pairs, options.max_tokens, epoch)[:options.updates - number]:
            source, source_lengths = padded([pair[0] for pair in batch])
            target, lengths = padded([pair[1] for pair in batch])
            given = torch.cat([torch.full((len(batch), 1), BOS), target[:, :-1]], 1)
            rows = run(source, source_lengths, given, lengths)[inside(lengths, target.shape[1])]
            wanted = target[inside(lengths, target.shape[1])]
            loss = F.cross_entropy(F.linear(rows, model.embedding.weight), wanted, label_smoothing=0.1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            number += 1
            print(f"UPD {number} {len(wanted)} {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--form", required=True, help="; ".join(f"of {model}: {', '.join(forms)}" for model, forms in FORMS.items()))
    parser.add_argument("--feed", action="store_true", help="GNMT's own first layer, in a loop over steps")
    parser.add_argument("--compile", action="store_true", help="torch.compile: of the whole model, of lstm the scores of attention")
    parser.add_argument("--rows", action="store_true", help="of lightconv's band: each row drops taps of its own")
    parser.add_argument("--parameters", type=int, default=0, help="of the same model in Stretto: leave if this one does not match")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.form not in FORMS[options.model]:
        parser.error(f"--form: {options.model} has {' and '.join(FORMS[options.model])}")
    train(options)


if __name__ == "__main__":
    main()
