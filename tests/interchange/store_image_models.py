#!/usr/bin/env python3
"""Stores small models of pictures as other packages save them, with what they compute, so that tests compare without Python.

    store_image_models.py [--folder tests/assets/image_models]

resnet and vit are folders of transformers, timm_vit one of timm, cifar.th the checkpoint of a training program in PyTorch's old file
form. stored.json has the versions that made them, and of each the logits of two pictures, whose number i is
((7919 i) mod 1009) / 504.5 - 1.
tests/engine/stored_image_models_test.cpp imports them and must find the same, to 1e-4; and again of what Stretto writes of its runs.
Exits 0, or 77 (skipped) when PyTorch, timm or transformers is not installed.
"""
import argparse
import json
import pathlib
import shutil
import sys

try:
    import timm
    import torch
    import transformers
except ImportError as missing:
    print(f"{missing.name} is not installed: skipped")
    sys.exit(77)

from crosscheck_image_models import CifarResNet, logits_of, save_form, shaken, write_processor

NUM_LABELS = 3
RESNET, PATCHES = 64, 32  # sizes of pictures


def pixels(size):
    numbers = torch.arange(2 * 3 * size * size, dtype=torch.int64)
    return ((numbers * 7919 % 1009).float() / 504.5 - 1).view(2, 3, size, size)


def small_cifar():
    """Eight layers that begin with four channels."""
    return CifarResNet(1, NUM_LABELS, width=4)


def of_transformers(model, folder, kind):
    model.save_pretrained(folder)
    write_processor(folder, kind)


def models(folder):
    """(name of the file or folder, class, size of pictures, model, how it is saved)"""
    resnet = transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=2, hidden_sizes=[2, 4, 8, 16], depths=[2, 2, 2, 2], layer_type="basic", num_labels=NUM_LABELS))
    yield "resnet", "ResNetForImageClassification", RESNET, resnet, lambda m, at: of_transformers(m, at, "resnet")
    vit = transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=PATCHES, patch_size=8,
        num_labels=NUM_LABELS))
    yield "vit", "ViTForImageClassification", PATCHES, vit, lambda m, at: of_transformers(m, at, "vit")
    arguments = {"img_size": PATCHES, "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 4, "mlp_ratio": 1.5}
    timm_vit = timm.create_model("vit_tiny_patch16_224", num_classes=NUM_LABELS, **arguments)
    yield ("timm_vit", "vit_tiny_patch16_224", PATCHES, timm_vit,
           lambda m, at: timm.models.save_for_hf(m, at, model_args=arguments, safe_serialization=True))
    yield "cifar.th", "ResNet", 32, small_cifar(), lambda m, at: save_form(m, at, "old wrapped checkpoint")


def main():
    assets = pathlib.Path(__file__).resolve().parent.parent / "assets"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=assets / "image_models")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    stored = {"made_with": {"torch": torch.__version__, "timm": timm.__version__,
                            "transformers": transformers.__version__}, "models": []}
    for name, model_class, size, model, save in models(options.folder):
        save(shaken(model), options.folder / name)
        logits = [[round(value, 6) for value in row] for row in logits_of(model, pixels(size)).tolist()]
        stored["models"].append({"name": name, "class": model_class, "size": size, "logits": logits})
    (options.folder / "stored.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
