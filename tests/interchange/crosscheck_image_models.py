#!/usr/bin/env python3
"""Compares imported and exported models of pictures with torchvision, timm and transformers.

    crosscheck_image_models.py STRETTO_BINARY LOGITS_TOOL [--case NAME ...]

Random ResNets and vision transformers of each package are saved as it saves them and imported; the logits of the run must be those
of the package, to 1e-4. Each run is exported, and the package must load the folder without a missing or an unexpected tensor and
compute the same again. So must the ResNets for CIFAR of programs on GitHub, from the checkpoint of a training program in PyTorch's
old file form. Where STRETTO_SHARED names the shared data, its trained ResNets are imported, too, and name what is on pictures as
torchvision's pipeline does.
Packages that are not installed are left out. Exits 0 when all agree, 1 with the first difference, 77 (skipped) without PyTorch or
transformers.
"""
import argparse
import io
import json
import os
import pathlib
import sys
import tarfile
import tempfile

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)
try:
    import torchvision
except ImportError:
    torchvision = None
try:
    import timm
except ImportError:
    timm = None

from crosscheck_models import Difference, TOLERANCE, load_whole, run_command

NUM_LABELS = 5
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
RESNETS = {20: 3, 32: 5, 56: 9}  # blocks of a stage
NUM_PICTURES = 500


class CifarBlock(torch.nn.Module):
    """He et al. 2015, section 4.2, with shortcut A, by the names of akamaster/pytorch_resnet_cifar10."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(channels)
        self.conv2 = torch.nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(channels)
        self.stride, self.added = stride, channels - channels_in

    def forward(self, x):
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if self.added or self.stride > 1:
            x = torch.nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added // 2, self.added // 2))
        return torch.relu(out + x)


class CifarResNet(torch.nn.Module):
    def __init__(self, blocks, labels=10, width=16):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(width)
        channels = width
        for stage in range(3):
            layers = []
            for block in range(blocks):
                layers.append(CifarBlock(channels, width << stage, 2 if stage > 0 and block == 0 else 1))
                channels = width << stage
            setattr(self, f"layer{stage + 1}", torch.nn.Sequential(*layers))
        self.linear = torch.nn.Linear(channels, labels)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def shaken(model):
    """Weights and statistics far from those of a start, so that every bias and norm shows."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.2)
                module.running_var.uniform_(0.5, 1.5)
                module.weight.uniform_(0.5, 1.0)
                module.bias.normal_(0, 0.2)
            elif isinstance(module, torch.nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.2)
        for name, parameter in model.named_parameters():
            if parameter.ndim == 3 or name.endswith("bias"):  # tokens, positions, biases
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


@torch.no_grad()
def logits_of(model, pixels):
    out = model(pixels)
    return out.logits if hasattr(out, "logits") else out


def computed(tool, run, pixels, place):
    save_file({"pixels": pixels.contiguous()}, str(place / "in.safetensors"))
    (place / "out.safetensors").unlink(missing_ok=True)
    run_command(tool, run, place / "in.safetensors", place / "out.safetensors")
    return load_file(str(place / "out.safetensors"))["logits"]


def difference(name, got, wanted):
    if got.shape != wanted.shape:
        raise Difference(f"{name}: logits are {list(got.shape)}, not {list(wanted.shape)}")
    worst = (got - wanted).abs().max().item()
    if not worst <= TOLERANCE:
        raise Difference(f"{name}: logits differ by {worst}")
    return worst


def save_form(model, path, form):
    """As people save weights: alone or in a checkpoint, wrapped or not, in either form of torch.save, or safetensors."""
    state = model.state_dict()
    if form == "safetensors":
        save_file({key: tensor.contiguous() for key, tensor in state.items()}, str(path.with_suffix(".safetensors")))
        return path.with_suffix(".safetensors")
    if "wrapped" in form:
        state = {f"module.{key}": tensor for key, tensor in state.items()}
    if "checkpoint" in form:
        moments = {0: {"exp_avg": torch.ones(3, dtype=torch.float16), "step": 7}}
        state = {"epoch": 3, "best_prec1": 91.5, "state_dict": state, "optimizer": {"state": moments, "param_groups": []}}
    torch.save(state, path, _use_new_zipfile_serialization="old" not in form)
    return path


def load_strictly(model, folder):
    model.load_state_dict(load_file(str(folder / "model.safetensors")), strict=True)
    return model.eval()


def check_file(name, make, form, size, options, place):
    """A file of weights, and the same names again."""
    model = shaken(make())
    pixels = torch.randn(3, 3, size, size)
    file = save_form(model, place / f"{name.replace(' ', '_')}.pth", form)
    run, out = (place / (name.replace(" ", "_") + end) for end in ("_run", "_out"))
    run_command(options.stretto, "import", file, "--run", run)
    wanted = logits_of(model, pixels)
    worst = difference(name, computed(options.tool, run, pixels, place), wanted)
    run_command(options.stretto, "export", run, "--format", "torchvision", out)
    worst = max(worst, difference(name + ", exported", logits_of(load_strictly(make(), out), pixels), wanted))
    print(f"{name}: {worst:.1e}")


def check_timm(name, architecture, arguments, size, options, place):
    model = shaken(timm.create_model(architecture, num_classes=NUM_LABELS, **arguments))
    folder, run, out = (place / (name.replace(" ", "_") + end) for end in ("", "_run", "_out"))
    timm.models.save_for_hf(model, folder, model_args=arguments or None, safe_serialization=True)
    pixels = torch.randn(3, 3, size, size)
    run_command(options.stretto, "import", folder, "--run", run)
    wanted = logits_of(model, pixels)
    worst = difference(name, computed(options.tool, run, pixels, place), wanted)
    run_command(options.stretto, "export", run, "--format", "timm", out)
    again = timm.create_model(f"local-dir:{out}", pretrained=True).eval()
    worst = max(worst, difference(name + ", exported", logits_of(again, pixels), wanted))
    for key in ("interpolation", "mean", "std"):
        got, stated = again.pretrained_cfg[key], model.pretrained_cfg[key]
        if got != stated and list(got) != list(stated):
            raise Difference(f"{name}: the exported {key} is {got}, not {stated}")
    # Pictures are resized to whole pixels, so that several shares mean the same.
    got, stated = (size // made.pretrained_cfg["crop_pct"] for made in (again, model))
    if got != stated:
        raise Difference(f"{name}: an exported model resizes to {got:.0f} pixels, not {stated:.0f}")
    print(f"{name}: {worst:.1e}")


def write_processor(folder, kind):
    settings = {"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3, **{f"image_{key}": value for key, value in
                                                                                       IMAGENET.items()}}
    if kind == "vit":
        settings = {"size": {"height": 32, "width": 32}, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    settings["image_processor_type"] = {"resnet": "ConvNextImageProcessor", "vit": "ViTImageProcessor"}[kind]
    (folder / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return settings


def check_transformers(name, kind, config, options, place):
    model_class = {"resnet": transformers.ResNetForImageClassification, "vit": transformers.ViTForImageClassification}[kind]
    model = shaken(model_class(config))
    folder, run, out = (place / (name.replace(" ", "_") + end) for end in ("", "_run", "_out"))
    model.save_pretrained(folder)
    settings = write_processor(folder, kind)
    pixels = torch.randn(3, 3, 32 if kind == "vit" else 64, 32 if kind == "vit" else 64)
    run_command(options.stretto, "import", folder, "--run", run)
    wanted = logits_of(model, pixels)
    worst = difference(name, computed(options.tool, run, pixels, place), wanted)
    run_command(options.stretto, "export", run, "--format", "hf", out)
    again = load_whole(out, model_class)
    worst = max(worst, difference(name + ", exported", logits_of(again, pixels), wanted))
    if again.config.id2label != model.config.id2label:
        raise Difference(f"{name}: the exported labels are {again.config.id2label}")
    written = json.loads((out / "preprocessor_config.json").read_text(encoding="utf-8"))
    for key, value in settings.items():
        if written[key] != value:
            raise Difference(f"{name}: the exported {key} is {written[key]}, not {value}")
    print(f"{name}: {worst:.1e}")


def trained_resnet(depth, file):
    model = CifarResNet(RESNETS[depth])
    state = torch.load(file, map_location="cpu", weights_only=True)["state_dict"]
    model.load_state_dict({key.removeprefix("module."): tensor for key, tensor in state.items()}, strict=True)
    return model.eval()


def test_pictures(data, place):
    with tarfile.open(next((data / "cifar10_jpg").glob("test*.tar.gz"))) as archive:
        members = [member for member in archive.getmembers() if member.isfile() and member.name.endswith(".jpg")]
        for number, member in enumerate(members[:: max(1, len(members) // NUM_PICTURES)]):
            file = place / f"{number:05}.jpg"
            file.write_bytes(archive.extractfile(member).read())
            yield file


@torch.no_grad()
def check_trained(depth, options, place):
    """A trained ResNet: logits, and the classes of real pictures as torchvision's pipeline has them."""
    data = pathlib.Path(os.environ["STRETTO_SHARED"]) / "data"
    file = next((data / "cifar_resnets").glob(f"resnet{depth}-*.th"))
    model, run = trained_resnet(depth, file), place / f"trained_{depth}"
    run_command(options.stretto, "import", file, "--run", run)
    pixels = torch.randn(8, 3, 32, 32)
    worst = difference(f"trained resnet{depth}", computed(options.tool, run, pixels, place), logits_of(model, pixels))
    if torchvision is not None:
        check_pictures(depth, model, run, sorted(test_pictures(data, place)), options)
    print(f"trained resnet{depth}: {worst:.1e}")


def check_pictures(depth, model, run, files, options):
    from PIL import Image
    to_pixels = torchvision.transforms.Compose([torchvision.transforms.ToTensor(), torchvision.transforms.Normalize(**IMAGENET)])
    pixels = torch.stack([to_pixels(Image.open(io.BytesIO(file.read_bytes())).convert("RGB")) for file in files])
    wanted = logits_of(model, pixels).argmax(1).tolist()
    said = run_command(options.stretto, "infer", run, "--json", *files).splitlines()
    got = [int(json.loads(line)["label"]) for line in said]
    differing = [file.name for file, a, b in zip(files, got, wanted, strict=True) if a != b]
    if differing:
        raise Difference(f"trained resnet{depth}: other classes than torchvision's pipeline for {differing[:5]}")
    print(f"trained resnet{depth}: the same class for {len(files)} pictures")


def cases():
    """(name, function of options and a folder)"""
    def file_case(name, make, form, size):
        return name, lambda options, place: check_file(name, make, form, size, options, place)

    def timm_case(name, architecture, size=64, **arguments):
        return name, lambda options, place: check_timm(name, architecture, arguments, size, options, place)

    def transformers_case(name, kind, config):
        return name, lambda options, place: check_transformers(name, kind, config, options, place)

    yield file_case("resnet20 for cifar", lambda: CifarResNet(3), "old wrapped checkpoint", 32)
    yield file_case("resnet32 for cifar", lambda: CifarResNet(5), "wrapped", 32)
    if torchvision is not None:
        models = torchvision.models
        yield file_case("torchvision resnet18", lambda: models.resnet18(num_classes=NUM_LABELS), "zip", 64)
        yield file_case("torchvision resnet50", lambda: models.resnet50(num_classes=NUM_LABELS), "safetensors", 64)
        yield file_case("torchvision resnext50", lambda: models.resnext50_32x4d(num_classes=NUM_LABELS), "old", 64)
        yield file_case("torchvision wide resnet50", lambda: models.wide_resnet50_2(num_classes=NUM_LABELS), "checkpoint", 64)
        yield file_case("torchvision vit", lambda: models.VisionTransformer(32, 8, 2, 3, 192, 80, num_classes=NUM_LABELS), "zip",
                        32)
    if timm is not None:
        yield timm_case("timm resnet18", "resnet18")
        yield timm_case("timm resnext50", "resnext50_32x4d")
        yield timm_case("timm resnet of other depths", "resnet50", layers=(3, 4, 23, 3))
        yield timm_case("timm vit", "vit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=2)
        yield timm_case("timm vit of other widths", "vit_base_patch16_224", 32, img_size=32, patch_size=8, depth=3, embed_dim=40,
                        num_heads=5, mlp_ratio=2.0)
        yield timm_case("timm vit without a token", "vit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=2,
                        class_token=False, global_pool="avg", fc_norm=False)
    sizes = {"embedding_size": 8, "num_labels": NUM_LABELS}
    yield transformers_case("transformers resnet18", "resnet", transformers.ResNetConfig(
        hidden_sizes=[8, 16, 32, 64], depths=[2, 2, 2, 2], layer_type="basic", **sizes))
    for first in (False, True):
        yield transformers_case(f"transformers resnet50, {'v1' if first else 'v1.5'}", "resnet", transformers.ResNetConfig(
            hidden_sizes=[32, 64, 128, 256], depths=[3, 4, 6, 3], downsample_in_bottleneck=first, **sizes))
    yield transformers_case("transformers vit", "vit", transformers.ViTConfig(
        hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=80, image_size=32, patch_size=8,
        num_labels=NUM_LABELS))
    shared = os.environ.get("STRETTO_SHARED")
    if shared and (pathlib.Path(shared) / "data/cifar_resnets").is_dir():
        for depth in RESNETS:
            yield f"trained resnet{depth}", lambda options, place, depth=depth: check_trained(depth, options, place)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stretto", type=pathlib.Path)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--case", action="append", default=[])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.manual_seed(1)
    torch.set_num_threads(1)
    for package, name in ((torchvision, "torchvision"), (timm, "timm")):
        if package is None:
            print(f"{name} is not installed: its models are left out")
    for name, check in cases():
        if options.case and name not in options.case:
            continue
        with tempfile.TemporaryDirectory(prefix="stretto_images_") as directory:
            try:
                check(options, pathlib.Path(directory))
            except Difference as found:
                print(found, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
