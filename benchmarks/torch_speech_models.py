"""Models of speech as plain PyTorch writes them, on padded batches: blocks of convolutions in time (Wave2Letter+, Jasper, QuartzNet and the
encoder of Listen, Attend and Spell), DeepSpeech 2, the Conformer, and an attention decoder beside CTC.

Modules are named as Stretto's, so that load() takes its tensors. A batch is frames [B, T, F] and lengths [B]; what lies beyond an
utterance's end is set to zero in front of each convolution in time, so that an utterance in a batch has the scores that it has alone.
"""
import math

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def inside(lengths, longest):
    """bool [B, T]: which rows are an utterance's own."""
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)


def behind(lengths, stride):
    return (lengths + stride - 1) // stride


def masked(x, lengths):
    """[B, C, T] with zeroes beyond the ends."""
    return x * inside(lengths, x.shape[2]).unsqueeze(1)


# Blocks of convolutions in time

def same_conv(channels_in, channels, kernel, stride=1, dilation=1, groups=1):
    return nn.Conv1d(channels_in, channels, kernel, stride, (kernel - 1) * dilation // 2, dilation, groups, bias=False)


class ConvBlock(nn.Module):
    """A block's keys are those of [[model.blocks]]."""

    def __init__(self, block, channels_in, inputs, clips, epsilon):
        super().__init__()
        self.repeat, self.stride, self.clips = block.get("repeat", 1), block.get("stride", 1), clips
        self.separable, self.dropout, channels = block.get("separable", False), block.get("dropout", 0.0), block["channels"]
        for r in range(self.repeat):
            stride, dilation = self.stride if r == 0 else 1, block.get("dilation", 1)
            if self.separable:
                setattr(self, f"depthwise{r}", same_conv(channels_in, channels_in, block["kernel"], stride, dilation, channels_in))
                setattr(self, f"conv{r}", same_conv(channels_in, channels, 1))
            else:
                setattr(self, f"conv{r}", same_conv(channels_in, channels, block["kernel"], stride, dilation))
            setattr(self, f"norm{r}", nn.BatchNorm1d(channels, eps=epsilon))
            channels_in = channels
        for i, width in enumerate(inputs):
            setattr(self, f"residual{i}", same_conv(width, channels, 1))
            setattr(self, f"residual_norm{i}", nn.BatchNorm1d(channels, eps=epsilon))

    def forward(self, x, lengths, inputs):
        for r in range(self.repeat):
            x = masked(x, lengths)
            if self.separable:
                x = getattr(self, f"depthwise{r}")(x)
            x = getattr(self, f"norm{r}")(getattr(self, f"conv{r}")(x))
            if r == 0 and self.stride > 1:
                lengths = behind(lengths, self.stride)
            if r == self.repeat - 1:
                for i, residual in enumerate(inputs):
                    x = x + getattr(self, f"residual_norm{i}")(getattr(self, f"residual{i}")(residual))
            x = functional.hardtanh(x, 0, 20) if self.clips else functional.relu(x)
            x = functional.dropout(x, self.dropout, self.training)
        return x, lengths


class TimeDelay(nn.Module):
    def __init__(self, features, blocks, clips=False, epsilon=1e-3):
        super().__init__()
        self.forms, made, dense = [block.get("residual", "none") for block in blocks], [], []
        for block, form in zip(blocks, self.forms):
            if form == "dense":
                dense.append(features)
            inputs = {"none": [], "block": [features], "dense": list(dense)}[form]
            made.append(ConvBlock(block, features, inputs, clips, epsilon))
            features = block["channels"]
        self.blocks, self.width = nn.ModuleList(made), features

    def forward(self, frames, lengths):
        x, dense = frames.transpose(1, 2), []
        for block, form in zip(self.blocks, self.forms):
            if form == "dense":
                dense.append(x)
            x, lengths = block(x, lengths, {"none": [], "block": [x], "dense": dense}[form])
        return x.transpose(1, 2), lengths


# DeepSpeech 2

class PlaneConv(nn.Module):
    def __init__(self, channels_in, channels, kernel, stride, epsilon):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, kernel, stride, tuple((k - 1) // 2 for k in kernel), bias=False)
        self.norm = nn.BatchNorm2d(channels, eps=epsilon)


class DeepSpeech2(nn.Module):
    """`convolutions`: (channels, (time, frequency) of the kernel, the same of the stride) each."""

    def __init__(self, features, convolutions, cell="gru", num_layers=2, hidden_dim=512, both=True, row_convolution=1, output_dim=1024,
                 dropout=0.5, clips=False, epsilon=1e-3):
        super().__init__()
        made, channels_in = [], 1
        for channels, kernel, stride in convolutions:
            made.append(PlaneConv(channels_in, channels, kernel, stride, epsilon))
            channels_in, features = channels, -(-features // stride[1])
        self.convolutions, self.dropout, self.clips = nn.ModuleList(made), dropout, clips
        width, layer, self.width = hidden_dim * (2 if both else 1), nn.GRU if cell == "gru" else nn.LSTM, output_dim
        self.recurrent = nn.ModuleList(layer(features * channels_in if i == 0 else width, hidden_dim, batch_first=True, bidirectional=both)
                                       for i in range(num_layers))
        self.ahead = row_convolution - 1
        if self.ahead:
            self.row_conv = nn.Conv1d(width, width, row_convolution, groups=width, bias=False)
            self.row_norm = nn.BatchNorm1d(width, eps=epsilon)
        self.output = nn.Linear(width, output_dim)

    def bent(self, x):
        return functional.hardtanh(x, 0, 20) if self.clips else functional.relu(x)

    def forward(self, frames, lengths):
        x = frames.unsqueeze(1)
        for layer in self.convolutions:
            x = x * inside(lengths, x.shape[2]).view(x.shape[0], 1, -1, 1)
            x = self.bent(layer.norm(layer.conv(x)))
            lengths = behind(lengths, layer.conv.stride[0])
        x = x.permute(0, 2, 3, 1).flatten(2)
        for i, layer in enumerate(self.recurrent):
            x = functional.dropout(x, self.dropout if i else 0.0, self.training)
            packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
            x = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        if self.ahead:
            x = masked(x.transpose(1, 2), lengths)
            x = self.bent(self.row_norm(self.row_conv(functional.pad(x, (0, self.ahead))))).transpose(1, 2)
        return functional.dropout(self.bent(self.output(x)), self.dropout, self.training), lengths


# The Conformer

class Subsampling(nn.Module):
    def __init__(self, features, width, planes, count):
        super().__init__()
        self.planes, made = planes, []
        for i in range(count):
            if planes:
                made.append(nn.Conv2d(1 if i == 0 else width, width, 3, 2, 1))
            else:
                made.append(nn.Conv1d(features if i == 0 else width, width, 3, 2, 1))
        self.convolutions = nn.ModuleList(made)
        for _ in range(count if planes else 0):
            features = (features + 1) // 2
        self.output = nn.Linear(features * width if planes and count else width if count else features, width)

    def forward(self, frames, lengths):
        x = frames.unsqueeze(1) if self.planes else frames.transpose(1, 2)
        for layer in self.convolutions:
            rows = inside(lengths, x.shape[2])
            x = functional.relu(layer(x * (rows.view(len(rows), 1, -1, 1) if self.planes else rows.unsqueeze(1))))
            lengths = behind(lengths, 2)
        x = x.permute(0, 2, 3, 1).flatten(2) if self.planes else x.transpose(1, 2)
        return self.output(x), lengths


class Relative(nn.Module):
    """What distances add to scores, as Transformer-XL has it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.content_bias, self.position_bias = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))
        self.projection = nn.Linear(width, width, bias=False)

    def forward(self, q):
        """q [B, H, T, W] without bias -> [B, H, T, T]"""
        batch, heads, time, width = q.shape
        distance = torch.arange(time - 1, -time, -1, dtype=torch.float64, device=q.device)
        power = torch.arange(heads * width // 2, dtype=torch.float64, device=q.device) * (2 / (heads * width))
        angle = distance.unsqueeze(1) * torch.pow(torch.tensor(10000.0, dtype=torch.float64), -power)
        vectors = self.projection(torch.cat([angle.sin(), angle.cos()], 1).to(q.dtype)).view(-1, heads, width).transpose(0, 1)
        products = (q + self.position_bias.view(1, heads, 1, width)) @ vectors.transpose(1, 2)  # [B, H, T, 2 T - 1]
        # Row i begins at column T - 1 - i: the relative shift.
        shifted = functional.pad(products, (1, 0)).view(batch, heads, -1, time)[:, :, 1:].reshape(batch, heads, time, -1)
        return shifted[..., :time]


def turned(x):
    """Rotary positions; x [B, H, T, W]."""
    half = x.shape[3] // 2
    power = torch.arange(half, dtype=torch.float64, device=x.device) / half
    angle = torch.arange(x.shape[2], dtype=torch.float64, device=x.device).unsqueeze(1) * 10000.0 ** -power
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], 3)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)


class FeedForward(nn.Module):
    def __init__(self, width, inner, dropout):
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(width, inner), nn.Linear(inner, width), dropout

    def forward(self, x):
        return self.down(functional.dropout(functional.silu(self.up(x)), self.dropout, self.training))


class Convolution(nn.Module):
    def __init__(self, width, kernel, batch_norm, epsilon):
        super().__init__()
        self.pointwise_in, self.pointwise_out = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width, bias=False)
        self.batch_norm = batch_norm
        self.norm = nn.BatchNorm1d(width, eps=epsilon) if batch_norm else nn.LayerNorm(width)

    def forward(self, x, lengths):
        x = self.depthwise(masked(functional.glu(self.pointwise_in(x), 2).transpose(1, 2), lengths))
        x = self.norm(x).transpose(1, 2) if self.batch_norm else self.norm(x.transpose(1, 2))
        return self.pointwise_out(functional.silu(x))


class ConformerLayer(nn.Module):
    def __init__(self, width, heads, inner, kernel, relative, batch_norm, dropout, epsilon):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ffn1_norm, self.ffn1 = nn.LayerNorm(width), FeedForward(width, inner, dropout)
        self.attention_norm, self.attention = nn.LayerNorm(width), Attention(width)
        self.positions = Relative(width, heads) if relative else None
        self.convolution_norm, self.convolution = nn.LayerNorm(width), Convolution(width, kernel, batch_norm, epsilon)
        self.ffn2_norm, self.ffn2 = nn.LayerNorm(width), FeedForward(width, inner, dropout)
        self.final_norm = nn.LayerNorm(width)

    def attended(self, x, lengths):
        batch, time, width = x.shape
        q, k, v = self.attention.qkv(x).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        keys = inside(lengths, time).view(batch, 1, 1, time)
        if self.positions is None:
            q, k, mask = turned(q), turned(k), keys
        else:
            mask = (self.positions(q) / math.sqrt(q.shape[3])).masked_fill(~keys, -math.inf)
            q = q + self.positions.content_bias.view(1, self.heads, 1, -1)
        x = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0)
        return self.attention.out(x.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x, lengths):
        def dropped(part):
            return functional.dropout(part, self.dropout, self.training)

        x = x + 0.5 * dropped(self.ffn1(self.ffn1_norm(x)))
        x = x + dropped(self.attended(self.attention_norm(x), lengths))
        x = x + dropped(self.convolution(self.convolution_norm(x), lengths))
        return self.final_norm(x + 0.5 * dropped(self.ffn2(self.ffn2_norm(x))))


class Conformer(nn.Module):
    def __init__(self, features, num_layers, width, heads, inner, kernel=31, relative=True, planes=True, subsamplings=2, batch_norm=True,
                 dropout=0.1, epsilon=1e-5):
        super().__init__()
        self.subsampling, self.width, self.dropout = Subsampling(features, width, planes, subsamplings), width, dropout
        self.layers = nn.ModuleList(ConformerLayer(width, heads, inner, kernel, relative, batch_norm, dropout, epsilon)
                                    for _ in range(num_layers))

    def forward(self, frames, lengths):
        x, lengths = self.subsampling(frames, lengths)
        x = functional.dropout(x, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, lengths)
        return x, lengths


# The attention decoder

class LocationAttention(nn.Module):
    def __init__(self, state, memory, width, filters, kernel):
        super().__init__()
        self.query, self.key = nn.Linear(state, width, bias=False), nn.Linear(memory, width)
        self.location, self.score = nn.Linear(filters, width, bias=False), nn.Linear(width, 1, bias=False)
        self.filters = nn.Parameter(torch.empty(filters, 1, kernel).uniform_(-kernel ** -0.5, kernel ** -0.5))

    def forward(self, h, keys, memory, rows, seen):
        location = self.location(functional.conv1d(seen.unsqueeze(1), self.filters, padding=self.filters.shape[2] // 2).transpose(1, 2))
        scores = self.score(torch.tanh(keys + self.query(h).unsqueeze(1) + location)).squeeze(2)
        weights = scores.masked_fill(~rows, -math.inf).softmax(1)
        return (weights.unsqueeze(1) @ memory).squeeze(1), weights


class DecoderLayer(nn.Module):
    def __init__(self, width_in, units, memory=0):
        super().__init__()
        self.input, self.hidden = nn.Linear(width_in, 4 * units), nn.Linear(units, 4 * units, bias=False)
        self.context = nn.Linear(memory, 4 * units, bias=False) if memory else None


def lstm_step(gates, c):
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


class AttentionDecoder(nn.Module):
    def __init__(self, labels, memory, num_layers=1, units=512, embedding=256, width=256, filters=32, kernel=31, coverage=True):
        super().__init__()
        self.boundary, self.coverage, self.units = labels, coverage, units
        self.embedding = nn.Embedding(labels + 1, embedding)
        self.layers = nn.ModuleList(DecoderLayer(units + memory if i else embedding, units, 0 if i else memory) for i in range(num_layers))
        self.attention = LocationAttention(units, memory, width, filters, kernel)
        self.hidden, self.output = nn.Linear(units + memory, units), nn.Linear(units, labels + 1)

    def forward(self, memory, lengths, labels):
        """-log p of the labels and their end, [B]; `labels` is a list of B tensors, and no utterance is empty."""
        batch, rows = len(memory), inside(lengths, memory.shape[1])
        steps = torch.tensor([len(one) + 1 for one in labels])
        targets = torch.full((batch, int(steps.max())), self.boundary)
        for row, one in zip(targets, labels):
            row[:len(one)] = one
        inputs = functional.pad(targets[:, :-1], (1, 0), value=self.boundary)
        gates, keys = self.layers[0].input(self.embedding(inputs)), self.attention.key(memory)
        states = [[memory.new_zeros(batch, self.units)] * 2 for _ in self.layers]
        context, seen, found = memory.new_zeros(batch, memory.shape[2]), memory.new_zeros(rows.shape), []
        for t in range(targets.shape[1]):
            for i, layer in enumerate(self.layers):
                given = gates[:, t] + layer.context(context) if i == 0 else layer.input(torch.cat([states[i - 1][0], context], 1))
                states[i] = lstm_step(given + layer.hidden(states[i][0]), states[i][1])
                if i == 0:
                    context, weights = self.attention(states[0][0], keys, memory, rows, seen)
                    seen = seen + weights if self.coverage else weights
            found.append(torch.tanh(self.hidden(torch.cat([states[-1][0], context], 1))))
        scores = self.output(torch.stack(found, 1))
        losses = functional.cross_entropy(scores.transpose(1, 2), targets, reduction="none")
        return (losses * inside(steps, targets.shape[1])).sum(1)


# Whole models

class SpeechModel(nn.Module):
    """An encoder, CTC, and with `decoder` (keyword arguments) an attention decoder of this weight."""

    def __init__(self, encoder, labels, decoder=None, weight=0.75):
        super().__init__()
        self.encoder, self.labels, self.weight = encoder, labels, weight if decoder is not None else 0.0
        self.ctc = nn.ModuleDict({"output": nn.Linear(encoder.width, labels + 1)})
        self.decoder = AttentionDecoder(labels, encoder.width, **decoder) if decoder is not None else None

    def scores(self, frames, lengths):
        rows, lengths = self.encoder(frames, lengths)
        return self.ctc["output"](rows), rows, lengths

    def losses(self, frames, lengths, labels):
        """CTC's and the decoder's loss of each utterance, [B]; the second one is None without a decoder."""
        scores, rows, lengths = self.scores(frames, lengths)
        flat = torch.cat(labels) if any(map(len, labels)) else torch.zeros(0, dtype=torch.long)
        ctc = functional.ctc_loss(scores.log_softmax(2).transpose(0, 1), flat, lengths, torch.tensor([len(one) for one in labels]),
                                  blank=self.labels, reduction="none", zero_infinity=True)
        return ctc, None if self.decoder is None else self.decoder(rows, lengths, labels)

    def loss(self, frames, lengths, labels):
        ctc, attention = self.losses(frames, lengths, labels)
        return ctc if attention is None else (1 - self.weight) * ctc + self.weight * attention


def of_recurrent_layer(name, both):
    """Stretto's name of a parameter of nn.GRU or nn.LSTM, such as `recurrent.0.weight_ih_l0_reverse`."""
    place, _, leaf = name.rpartition(".")
    kind, matrix = leaf.split("_")[:2]
    direction = "" if not both else "backward." if leaf.endswith("_reverse") else "forward."
    return f"{place}.{direction}{'input' if matrix == 'ih' else 'hidden'}.{kind}"


def matrices(model):
    """(name in Stretto, parameter or buffer) of all that is stored."""
    both = {name: module.bidirectional for name, module in model.named_modules() if isinstance(module, nn.RNNBase)}
    for name, tensor in model.state_dict(keep_vars=True).items():
        place = name.rpartition(".")[0]
        if not name.endswith("num_batches_tracked"):
            yield of_recurrent_layer(name, both[place]) if place in both else name, tensor


def shaped(own, like):
    """A tensor of Stretto's shape as PyTorch has it: filters are tap-major there, those of single channels matrices."""
    if own.dim() == 2 and like.dim() == 3:
        if like.shape[1] == 1 and own.shape[1] == like.shape[2]:
            return own.unsqueeze(1)
        return own.view(like.shape[0], like.shape[2], like.shape[1]).transpose(1, 2)
    return own


def load(model, tensors):
    """Puts Stretto's tensors, by name, into the model. An LSTM's second bias is zero: Stretto has one."""
    with torch.no_grad():
        for name, tensor in matrices(model):
            if name in tensors:
                tensor.copy_(shaped(tensors[name], tensor))
            elif name.endswith(".hidden.bias"):
                tensor.zero_()
            else:
                raise KeyError(f"Stretto's model has no {name}")
