#!/usr/bin/env python3
"""CIFAR-10 in eight epochs, as airbench94_muon.py trains it (KellerJordan/cifar10-airbench@f1c599c), on a CPU and from JPEG files.

    torch_airbench.py --train ARCHIVE… --test ARCHIVE… [--compile] [--bf16] [--epochs 8 --updates 0 --batch 2000] [--seed 1]

The recipe is that of the source, number by number; what differs is where it runs: fp32, or with --bf16 autocast, instead of fp16; the
fused form of SGD is used where there is one for CPUs. The optimizer's iteration runs in bf16 on a GPU, here in the precision of the
network. Prints `UPD n pictures loss`, `VALID {…}` with and without the views of test time, and `END {…}`. With --updates training stops
early, at rates of the whole, and nothing is tested.
"""
import argparse
import json
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

import torch_images

WIDTHS = (64, 256, 256)
BIAS_LR, HEAD_LR, FILTER_LR, DECAY = 0.053, 0.67, 0.24, 2e-6  # for losses that are sums over a batch
WHITEN_EPOCHS, WHITEN_PICTURES, WHITEN_EPSILON = 3, 5000, 5e-4
TEST_BATCH = 500


# Muon

def zero_power(matrix, half, steps=3, epsilon=1e-7):
    x = matrix.bfloat16() if half else matrix
    x = x / (x.norm() + epsilon)
    is_tall = x.size(0) > x.size(1)
    x = x.T if is_tall else x
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if is_tall else x).to(matrix.dtype)


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum, half):
        super().__init__(params, {"lr": lr, "momentum": momentum})
        self.half = half

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                buffer = self.state[weight].setdefault("momentum_buffer", torch.zeros_like(weight.grad))
                buffer.mul_(group["momentum"]).add_(weight.grad)
                ahead = weight.grad.add(buffer, alpha=group["momentum"])
                weight.mul_(len(weight) ** 0.5 / weight.norm())
                weight.add_(zero_power(ahead.reshape(len(ahead), -1), self.half).view(ahead.shape), alpha=-group["lr"])


# The network

class Norm(nn.BatchNorm2d):
    def __init__(self, channels):
        super().__init__(channels, eps=1e-12, momentum=0.4)
        self.weight.requires_grad = False


class Conv(nn.Conv2d):
    def __init__(self, channels_in, channels_out):
        super().__init__(channels_in, channels_out, kernel_size=3, padding="same", bias=False)
        nn.init.dirac_(self.weight.data[:channels_in])


def group(channels_in, channels_out):
    return nn.Sequential(Conv(channels_in, channels_out), nn.MaxPool2d(2), Norm(channels_out), nn.GELU(), Conv(channels_out, channels_out),
                         Norm(channels_out), nn.GELU())


class CifarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2, bias=True)
        self.whiten.weight.requires_grad = False
        self.layers = nn.Sequential(nn.GELU(), *(group(a, b) for a, b in zip((24, *WIDTHS), WIDTHS)), nn.MaxPool2d(3))
        self.head = nn.Linear(WIDTHS[-1], 10, bias=False)
        self.head.weight.data.mul_(1 / self.head.weight.data.std())

    @torch.no_grad()
    def init_whiten(self, pictures):
        patches = pictures.unfold(2, 2, 1).unfold(3, 2, 1).transpose(1, 3).reshape(-1, 12)
        values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches), UPLO="U")
        scaled = vectors.T.reshape(-1, 3, 2, 2) / torch.sqrt(values.view(-1, 1, 1, 1) + WHITEN_EPSILON)
        self.whiten.weight.data[:] = torch.cat((scaled, -scaled))

    def forward(self, x, learns_whiten_bias=True):
        bias = self.whiten.bias
        x = functional.conv2d(x, self.whiten.weight, bias if learns_whiten_bias else bias.detach())
        x = self.layers(x)
        return self.head(x.reshape(len(x), -1)) / WIDTHS[-1]


# Pictures

def cropped(pictures, side):
    """Windows of padded pictures, each at a place of its own."""
    most = pictures.shape[-1] - side
    places = torch.randint(most + 1, (len(pictures), 2))
    windows = torch.empty(len(pictures), 3, side, side).contiguous(memory_format=torch.channels_last)
    for y in range(most + 1):
        for x in range(most + 1):
            mine = (places[:, 0] == y) & (places[:, 1] == x)
            windows[mine] = pictures[mine, :, y:y + side, x:x + side]
    return windows


def epochs(pictures, labels, batch):
    """The batches of each epoch; pictures that were mirrored by chance at first are all turned in every second one."""
    mirrored = torch.where((torch.rand(len(pictures)) < 0.5).view(-1, 1, 1, 1), pictures.flip(-1), pictures)
    padded, epoch = functional.pad(mirrored, (2,) * 4, "reflect"), 0
    while True:
        shown = cropped(padded, pictures.shape[-1])
        shown = shown.flip(-1) if epoch % 2 else shown
        rows = torch.randperm(len(labels))[:len(labels) // batch * batch]
        yield ((shown[some].contiguous(memory_format=torch.channels_last), labels[some]) for some in rows.split(batch))
        epoch += 1


def mirrored_logits(model, pictures):
    return 0.5 * model(pictures) + 0.5 * model(pictures.flip(-1))


def viewed_logits(model, pictures):
    padded, side = functional.pad(pictures, (1,) * 4, "reflect"), pictures.shape[-1]
    moved = [mirrored_logits(model, padded[:, :, place:place + side, place:place + side]) for place in (0, 2)]
    return 0.5 * mirrored_logits(model, pictures) + 0.25 * moved[0] + 0.25 * moved[1]


def share_right(model, pictures, labels, logits):
    model.eval()
    with torch.no_grad():
        right = sum(float((logits(model, rows).argmax(1) == wanted).sum())
                    for rows, wanted in zip(pictures.split(TEST_BATCH), labels.split(TEST_BATCH)))
    return right / len(labels)


# Training

def optimizers_of(model, options):
    filters = [weight for weight in model.parameters() if weight.dim() == 4 and weight.requires_grad]
    biases = [module.bias for module in model.modules() if isinstance(module, Norm)]
    decay = DECAY * options.batch
    sgd = torch.optim.SGD([{"params": [model.whiten.bias], "lr": BIAS_LR, "weight_decay": decay / BIAS_LR},
                           {"params": biases, "lr": BIAS_LR, "weight_decay": decay / BIAS_LR},
                           {"params": [model.head.weight], "lr": HEAD_LR, "weight_decay": decay / HEAD_LR}],
                          momentum=0.85, nesterov=True, fused=True)
    muon = Muon(filters, lr=FILTER_LR, momentum=0.6, half=options.bf16)
    for optimizer in (sgd, muon):
        for each in optimizer.param_groups:
            each["initial_lr"] = each["lr"]
    return sgd, muon


def set_rates(sgd, muon, update, total, of_whiten):
    sgd.param_groups[0]["lr"] = sgd.param_groups[0]["initial_lr"] * (1 - update / of_whiten)
    for each in sgd.param_groups[1:] + muon.param_groups:
        each["lr"] = each["initial_lr"] * (1 - update / total)


def train(options):
    pictures, labels = torch_images.load(options.train)
    pictures = torch_images.normalised(pictures)
    model = CifarNet().to(memory_format=torch.channels_last)
    order = torch.randperm(len(pictures))[:WHITEN_PICTURES]  # files come class by class, the source's pictures mixed
    model.init_whiten(pictures[order])
    sgd, muon = optimizers_of(model, options)
    run = torch.compile(model) if options.compile else model
    per_epoch = len(labels) // options.batch
    total, of_whiten, update = math.ceil(options.epochs * per_epoch), math.ceil(WHITEN_EPOCHS * per_epoch), 0
    last = min(total, options.updates or total)
    for batches in epochs(pictures, labels, options.batch):
        model.train()
        for inputs, wanted in batches:
            if update == last:
                break
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
                outputs = run(inputs, update < of_whiten)
            loss = functional.cross_entropy(outputs.float(), wanted, label_smoothing=0.2, reduction="sum")
            loss.backward()
            set_rates(sgd, muon, update, total, of_whiten)
            sgd.step()
            muon.step()
            model.zero_grad(set_to_none=True)
            update += 1
            print("UPD", update, len(wanted), f"{loss.item() / len(wanted):.4f}", flush=True)
        if update == last:
            break
    if last == total:
        test, wanted = torch_images.load(options.test)
        test = torch_images.normalised(test)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            scores = {"plain": share_right(model, test, wanted, lambda model, rows: model(rows)),
                      "accuracy": share_right(model, test, wanted, viewed_logits)}
        print("VALID", json.dumps({"step": update, **scores, "pictures": len(wanted)}), flush=True)
    return sum(weight.numel() for weight in model.parameters())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--test", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--epochs", type=float, default=8)
    parser.add_argument("--updates", type=int, default=0, help="stop here; 0: at the end of all epochs")
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    print("END", json.dumps({"parameters": train(options), "torch": torch.__version__}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
