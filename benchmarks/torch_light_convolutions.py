"""Lightweight and dynamic convolutions (Wu et al. 2019, arXiv:1901.10430) in plain PyTorch, for torch_translation.py.

Sizes are those of configs/translation/multi30k_lightconv.toml: norms in front of each part, gated projections, four heads. A filter is
normalised by a softmax over its taps, shared by the channels of a head, and loses taps by DropConnect. Rows are [B, T, D], padded.

    convolution    light: F.conv1d with as many groups as channels
    unfold         dynamic: the windows of all rows, and a product for each row and head
    band           either: filters as a band of [T, T] for each head, one product a head, as fairseq does below 512 tokens

DropConnect of light filters has one mask for the whole batch here, since F.conv1d knows no other. With --rows each row of the band has its
own, as in fairseq's own bands and in Stretto.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

HEADS, FFN, DROPOUT = 4, 1024, 0.1
ENCODER, DECODER = (3, 7, 15, 31), (3, 7, 15)


def sinusoids(count, d):
    """fairseq's table."""
    rates = torch.exp(torch.arange(d // 2) * -(math.log(10000) / (d // 2 - 1)))
    angles = torch.arange(count).unsqueeze(1) * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def band(filters, left, rows):
    """[…, T or 1, K] -> […, T, T]: what row t takes of row s, by filters of each row or of all."""
    taps, places = filters.shape[-1], torch.arange(rows)
    tap = places.unsqueeze(0) - places.unsqueeze(1) + left
    shape = (*filters.shape[:-2], rows, rows)
    return filters.expand(*shape[:-1], taps).gather(-1, tap.clamp(0, taps - 1).expand(shape)) * ((tap >= 0) & (tap < taps))


def by_heads(x):
    return x.unflatten(2, (HEADS, -1))


class Convolution(nn.Module):
    def __init__(self, d, taps, causal, options):
        super().__init__()
        self.taps, self.left, self.form, self.rows = taps, taps - 1 if causal else (taps - 1) // 2, options.form, options.rows
        self.dynamic = options.model == "dynamicconv"
        self.into, self.out = nn.Linear(d, 2 * d), nn.Linear(d, d)
        if self.dynamic:
            self.filters = nn.Linear(d, HEADS * taps, bias=False)
        else:
            self.filters = nn.Parameter(nn.init.xavier_uniform_(torch.empty(HEADS, 1, taps)).squeeze(1).clone())
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x, hidden):
        x = F.glu(self.into(self.drop(x)), 2)
        filters = by_heads(self.filters(x)) if self.dynamic else self.filters
        if hidden is not None:
            x = x.masked_fill(hidden, 0)  # in front of a centred window
        weigh = self.dynamic_rows if self.dynamic else self.light_rows
        return self.out(weigh(x, filters.softmax(-1)))

    def light_rows(self, x, filters):
        t, d = x.shape[1:]
        if self.form == "convolution":
            filters = self.drop(filters).repeat_interleave(d // HEADS, 0).unsqueeze(1)
            padded = F.pad(x.transpose(1, 2), (self.left, self.taps - 1 - self.left))
            return F.conv1d(padded, filters, groups=d).transpose(1, 2)
        filters, heads = filters.unsqueeze(1), by_heads(x)
        if self.rows:
            weights = self.drop(band(filters, self.left, t).expand(len(x), HEADS, t, t))
            return torch.einsum("bhts,bshr->bthr", weights, heads).flatten(2)
        return torch.einsum("hts,bshr->bthr", band(self.drop(filters), self.left, t), heads).flatten(2)

    def dynamic_rows(self, x, filters):
        filters = self.drop(filters)
        if self.form == "unfold":
            windows = F.pad(x, (0, 0, self.left, self.taps - 1 - self.left)).unfold(1, self.taps, 1)
            return torch.einsum("bthrk,bthk->bthr", windows.unflatten(2, (HEADS, -1)), filters).flatten(2)
        return torch.einsum("bhts,bshr->bthr", band(filters.transpose(1, 2), self.left, x.shape[1]), by_heads(x)).flatten(2)


class Attention(nn.Module):
    """Over the encoder's rows."""

    def __init__(self, d):
        super().__init__()
        self.query, self.both, self.out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)

    def forward(self, x, memory, seen):
        heads = lambda rows: by_heads(rows).transpose(1, 2)
        keys, values = self.both(memory).chunk(2, 2)
        rows = F.scaled_dot_product_attention(heads(self.query(x)), heads(keys), heads(values), attn_mask=seen,
                                              dropout_p=DROPOUT if self.training else 0.0)
        return self.out(rows.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d, taps, decoder, options):
        super().__init__()
        self.convolution, self.attention = Convolution(d, taps, decoder, options), Attention(d) if decoder else None
        self.inner, self.outer, self.drop = nn.Linear(d, FFN), nn.Linear(FFN, d), nn.Dropout(DROPOUT)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if decoder else 2))

    def forward(self, x, hidden, memory, seen):
        x = x + self.drop(self.convolution(self.norms[0](x), hidden))
        if self.attention is not None:
            x = x + self.drop(self.attention(self.norms[1](x), memory, seen))
        return x + self.drop(self.outer(F.relu(self.inner(self.norms[-1](x)))))


class Stack(nn.Module):
    def __init__(self, kernels, decoder, options):
        super().__init__()
        self.layers = nn.ModuleList(Layer(options.d_model, taps, decoder, options) for taps in kernels)
        self.norm, self.drop = nn.LayerNorm(options.d_model), nn.Dropout(DROPOUT)

    def forward(self, x, hidden=None, memory=None, seen=None):
        x = self.drop(x)
        for layer in self.layers:
            x = layer(x, hidden, memory, seen)
        return self.norm(x)


class LightConvolutions(nn.Module):
    def __init__(self, options):
        super().__init__()
        d = options.d_model
        self.embedding, self.scale = nn.Embedding(options.vocab, d), math.sqrt(d)
        self.encoder, self.decoder = Stack(ENCODER, False, options), Stack(DECODER, True, options)
        self.register_buffer("positions", sinusoids(256, d))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, 0, d**-0.5)

    def embed(self, tokens):
        return self.embedding(tokens) * self.scale + self.positions[:tokens.shape[1]]

    def forward(self, source, source_lengths, target, target_lengths):
        seen = torch.arange(source.shape[1]).unsqueeze(0) < source_lengths.unsqueeze(1)
        memory = self.encoder(self.embed(source), hidden=~seen.unsqueeze(2))
        return self.decoder(self.embed(target), memory=memory, seen=seen[:, None, None])
