#!/usr/bin/env python3
"""Classes of pictures as plain PyTorch learns them: ResNet-20 for small pictures, torchvision's ResNet-18 and -50; and what stands
before a network, decoding and augmentation.

    torch_images.py train NET PICTURES [LABELS] [--test PICTURES [LABELS]] [--batch 128 --updates 1000 --lr 0.1] [--compile] …
    torch_images.py infer NET PICTURES [LABELS] [--compile --freeze]
    torch_images.py classify resnet20|resnet32|resnet56 PICTURES --weights FILE.th
    torch_images.py decode FOLDER --pipeline pillow|tensors|pillow_decode|simplejpeg

PICTURES are idx files or archives of CLASS/NAME.jpg. Each prints `UPD n pictures loss` and `END {…}`, training with --test
`VALID {…}` in between.

Pictures stand in memory as bytes, and become a batch in one go: windows of padded pictures, mirror images, normalisation. Networks are
channels-last. SGD with momentum does not decay norms and biases; its rate is a line down to zero over --updates, or stays with
--constant. ResNet-20 is that of He et al. 2015 (arXiv:1512.03385) with shortcuts without weights.
"""
import argparse
import io
import json
import pathlib
import sys
import tarfile

import torch
from torch import nn
from torch.nn import functional

import picture_files

CIFAR_NETS = ("resnet20", "resnet32", "resnet56")

# Pictures

def from_archives(paths):
    """Bytes [N, 3, H, W] and labels by the sorted names of classes; all pictures have one size."""
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor
    pictures, names = [], []
    for path in paths:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    picture = Image.open(io.BytesIO(archive.extractfile(member).read())).convert("RGB")
                    pictures.append(pil_to_tensor(picture))
                    names.append(pathlib.PurePath(member.name).parent.name)
    number = {name: i for i, name in enumerate(sorted(set(names)))}
    return torch.stack(pictures), torch.tensor([number[name] for name in names])


def load(paths):
    """Bytes [N, 3, H, W], or [N, 1, H, W] for grey, and labels [N]."""
    if "idx3" not in paths[0].name:
        return from_archives(paths)
    (pictures, height, width), pixels = picture_files.read_idx(paths[0])
    _, labels = picture_files.read_idx(paths[1])
    return (torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(pictures, 1, height, width),
            torch.frombuffer(bytearray(labels), dtype=torch.uint8).long())


class Batches:
    """Shuffled batches of a training set, epoch after epoch; the last one of an epoch may be smaller."""

    def __init__(self, pictures, labels, options):
        self.options, self.labels, self.side = options, labels, pictures.shape[-1]
        self.pictures = functional.pad(pictures, (options.padding,) * 4) if options.padding else pictures

    def __iter__(self):
        while True:
            for rows in torch.randperm(len(self.labels)).split(self.options.batch):
                yield normalised(self.augmented(rows)), self.labels[rows]

    def augmented(self, rows):
        chosen, side = self.pictures[rows], self.side
        if self.options.padding:
            places = torch.randint(2 * self.options.padding + 1, (len(rows), 2)).tolist()
            chosen = torch.stack([picture[:, y:y + side, x:x + side] for picture, (y, x) in zip(chosen, places)])
        if self.options.flip:
            chosen = torch.where((torch.rand(len(rows)) < 0.5).view(-1, 1, 1, 1), chosen.flip(-1), chosen)
        return chosen


MEAN, SCALE = (torch.tensor(numbers).view(1, 3, 1, 1) for numbers in
               ([255 * mean for mean in picture_files.MEAN], [1 / (255 * deviation) for deviation in picture_files.DEVIATION]))


def normalised(pictures):
    """Bytes [N, 1 or 3, H, W] -> [N, 3, H, W], channels-last."""
    return ((pictures - MEAN) * SCALE).contiguous(memory_format=torch.channels_last)


# Networks

class SmallBlock(nn.Module):
    def __init__(self, channels_in, channels):
        super().__init__()
        self.stride = 1 if channels_in == channels else 2
        self.margin = (channels - channels_in) // 2
        self.conv1 = nn.Conv2d(channels_in, channels, 3, self.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.stride == 2:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.margin, self.margin))
        return functional.relu(h.add_(x), inplace=True)


class SmallResNet(nn.Module):
    """6 n + 2 layers in three stages."""

    def __init__(self, depth, classes):
        super().__init__()
        widths = [16] + [width for width in (16, 32, 64) for _ in range((depth - 2) // 6)]
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(*(SmallBlock(a, b) for a, b in zip(widths, widths[1:])))
        self.fc = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.blocks(functional.relu(self.bn1(self.conv1(x)), inplace=True))
        return self.fc(x.mean((2, 3)))


def network(name, classes):
    if name == "resnet20":
        made = SmallResNet(20, classes)
    else:
        import torchvision
        made = getattr(torchvision.models, name)(weights=None, num_classes=classes)
    return made.to(memory_format=torch.channels_last)


# What is measured

def train(options):
    pictures, labels = load(options.pictures)
    model = network(options.net, int(labels.max()) + 1)
    decayed, spared = ([weight for weight in model.parameters() if (weight.dim() > 1) == matrix] for matrix in (True, False))
    groups = [{"params": decayed, "weight_decay": options.weight_decay}, {"params": spared}]
    optimizer = torch.optim.SGD(groups, lr=options.lr, momentum=0.9)
    run = torch.compile(model) if options.compile else model
    model.train()
    for update, (inputs, wanted) in enumerate(Batches(pictures, labels, options)):
        if update == options.updates:
            break
        for group in optimizer.param_groups:
            group["lr"] = options.lr * (1 if options.constant else 1 - update / options.updates)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            loss = functional.cross_entropy(run(inputs), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print("UPD", update + 1, len(wanted), f"{loss.item():.4f}", flush=True)
    if options.test:
        print("VALID", json.dumps({"step": options.updates, **evaluate(model, *load(options.test))}), flush=True)
    return {"parameters": sum(weight.numel() for weight in model.parameters())}


def evaluate(model, pictures, labels):
    model.eval()
    right = total = 0.0
    with torch.inference_mode():
        for rows, wanted in zip(pictures.split(500), labels.split(500)):
            logits = model(normalised(rows))
            right += float((logits.argmax(1) == wanted).sum())
            total += float(functional.cross_entropy(logits, wanted, reduction="sum"))
    return {"accuracy": right / len(labels), "loss": total / len(labels), "pictures": len(labels)}


def infer(options):
    pictures, labels = load(options.pictures)
    model = network(options.net, int(labels.max()) + 1).eval()
    if options.freeze:  # weights become constants, batch norms part of convolutions
        from torch._inductor import config
        config.freezing = True
    run = torch.compile(model) if options.compile else model
    batches = [rows for rows in pictures.split(options.batch) if len(rows) == options.batch]
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        for number in range(options.updates):
            classes = run(normalised(batches[number % len(batches)])).argmax(1)
            print("UPD", number + 1, len(classes), 0.0, flush=True)
    return {}


def classify(options):
    """Probabilities of each picture by a trained network of akamaster/pytorch_resnet_cifar10, normalised as ImageNet."""
    from torchvision.transforms.functional import normalize
    pictures, labels = load(options.pictures)
    depth = int(options.net.removeprefix("resnet"))
    model, blocks = SmallResNet(depth, int(labels.max()) + 1).eval(), (depth - 2) // 6
    state = {}
    for key, tensor in torch.load(options.weights, map_location="cpu", weights_only=True)["state_dict"].items():
        first, _, rest = key.removeprefix("module.").partition(".")
        if first.startswith("layer"):
            block, _, rest = rest.partition(".")
            first = f"blocks.{(int(first[5:]) - 1) * blocks + int(block)}"
        state[f"{'fc' if first == 'linear' else first}.{rest}"] = tensor
    model.load_state_dict(state)
    with torch.inference_mode():
        rows = [model(normalize(some / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))).double().softmax(1)
                for some in pictures.split(500)]
    return {"probabilities": torch.cat(rows).tolist()}


def pipeline(name):
    """A function from the bytes of a JPEG to a picture."""
    if name == "simplejpeg":
        import simplejpeg
        return lambda content: simplejpeg.decode_jpeg(content, "RGB")
    import torchvision
    from torchvision.transforms import v2
    statistics = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    if name == "tensors":
        change = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
                             v2.Normalize(*statistics)])
        mode = torchvision.io.ImageReadMode.RGB
        return lambda content: change(torchvision.io.decode_jpeg(torch.frombuffer(bytearray(content), dtype=torch.uint8), mode))
    from PIL import Image
    if name == "pillow_decode":
        return lambda content: Image.open(io.BytesIO(content)).convert("RGB")
    from torchvision import transforms
    change = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                 transforms.Normalize(*statistics)])
    return lambda content: change(Image.open(io.BytesIO(content)).convert("RGB"))


def decode(options):
    """Passes over all pictures of a folder, which are in memory as files, on one core."""
    files = [path.read_bytes() for path in sorted(options.pictures[0].rglob("*")) if path.is_file()]
    work = pipeline(options.pipeline)
    for number in range(options.updates):
        for content in files:
            work(content)
        print("UPD", number + 1, len(files), 0.0, flush=True)
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("train", "infer", "classify", "decode"):
        one = kinds.add_parser(kind)
        if kind != "decode":
            one.add_argument("net", choices=CIFAR_NETS if kind == "classify" else ("resnet20", "resnet18", "resnet50"))
        one.add_argument("pictures", type=pathlib.Path, nargs="+", help="archives; or idx files of pictures and of labels; or a folder")
        one.add_argument("--threads", type=int, default=2)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--updates", type=int, default=100, help="batches, or passes of decode")
        if kind == "decode":
            one.add_argument("--pipeline", choices=("pillow", "tensors", "pillow_decode", "simplejpeg"), default="pillow")
            continue
        if kind == "classify":
            one.add_argument("--weights", type=pathlib.Path, required=True)
            continue
        one.add_argument("--batch", type=int, default=128)
        one.add_argument("--compile", action="store_true")
        one.add_argument("--bf16", action="store_true", help="autocast to bf16")
        if kind == "infer":
            one.add_argument("--freeze", action="store_true", help="with --compile: weights are constants")
            continue
        one.add_argument("--test", type=pathlib.Path, nargs="+")
        one.add_argument("--lr", type=float, default=0.1)
        one.add_argument("--constant", action="store_true", help="the rate stays")
        one.add_argument("--weight-decay", type=float, default=1e-4)
        one.add_argument("--padding", type=int, default=0)
        one.add_argument("--flip", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    ended = {"train": train, "infer": infer, "classify": classify, "decode": decode}[options.kind](options)
    print("END", json.dumps({**ended, "torch": torch.__version__}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
