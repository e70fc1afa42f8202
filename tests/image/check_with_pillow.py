#!/usr/bin/env python3
"""Compares decoding, resizing, colours and policies with Pillow on pictures of gradients and noise, and on files that are named.

    check_with_pillow.py IMAGE_TOOL [FILE...] [--seed 1]

PNG, WebP, resized and changed pictures must agree to the byte, JPEG to one grey level (the libraries may be of two versions). Before
Pillow 13, pictures of some shapes were resized in another order of passes.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import PIL
    from PIL import Image, ImageEnhance, ImageOps
except ImportError:
    print("Pillow or numpy is not installed: skipped")
    sys.exit(77)

# Before version 13, Pillow always began with the horizontal pass: cut bytes between the passes may differ by more.
RESIZED = 0 if int(PIL.__version__.split(".")[0]) >= 13 else 8
FILTERS = {"area": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
CHANGES = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast, "saturation": ImageEnhance.Color,
           "sharpness": ImageEnhance.Sharpness}
# Of RandAugment and TrivialAugment: what torchvision's _apply_op() asks of Pillow, and some amounts.
POLICIES = {
    "posterize": (lambda image, bits: ImageOps.posterize(image, int(bits)), (1, 2, 4, 7, 8)),
    "solarize": (ImageOps.solarize, (0, 63.75, 178.5, 255)),
    "auto_contrast": (lambda image, _: ImageOps.autocontrast(image), (0,)),
    "equalize": (lambda image, _: ImageOps.equalize(image), (0,)),
    "rotate": (lambda image, degrees: image.rotate(degrees), (0, 9, -30, 45.5, 90, 135, 180, -135, 270)),
    "shear_x": (lambda image, slope: affine(image, (1, math.tan(math.atan(slope)), 0, 0, 1, 0)), (0.09, -0.3, 0.99)),
    "shear_y": (lambda image, slope: affine(image, (1, 0, 0, math.tan(math.atan(slope)), 1, 0)), (0.09, -0.3, 0.99)),
    "translate_x": (lambda image, by: affine(image, (1, 0, -int(by), 0, 1, 0)), (3, -20.9, 32, 500)),
    "translate_y": (lambda image, by: affine(image, (1, 0, 0, 0, 1, -int(by))), (3, -20.9, 32, 500)),
}


def affine(image, matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)


def picture(rng, height, width):
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [255 * x / width, 255 * y / height, 127 + 100 * numpy.sin(x * y / 50)]
    noise = rng.normal(0, 20, (height, width, 3))
    return Image.fromarray(numpy.clip(numpy.stack(planes, 2) + noise, 0, 255).astype("uint8"))


def with_alpha(image):
    image = image.convert("RGBA")
    image.putalpha(image.getchannel("R"))
    return image


def files_in(folder, rng):
    """Pictures of many forms."""
    rgb = picture(rng, 61, 83)
    forms = {
        "rgb.png": (rgb, {}), "grey.png": (rgb.convert("L"), {}), "palette.png": (rgb.convert("P"), {}),
        "alpha.png": (rgb.convert("RGBA"), {}), "bits.png": (rgb.convert("1"), {}),
        "444.jpg": (rgb, {"quality": 90, "subsampling": 0}), "420.jpg": (rgb, {"quality": 90, "subsampling": 2}),
        "422.jpg": (rgb, {"quality": 50, "subsampling": 1}), "grey.jpg": (rgb.convert("L"), {"quality": 90}),
        "grey16.png": (Image.fromarray(rng.integers(0, 400, (20, 30)).astype("uint16")), {}),
        "grey_alpha.png": (rgb.convert("LA"), {}), "lossless.webp": (rgb, {"lossless": True}),
        "lossy.webp": (rgb, {"quality": 70}), "alpha.webp": (with_alpha(rgb), {"lossless": True, "exact": True}),
        "lossy_alpha.webp": (with_alpha(rgb), {"quality": 70}),
        "animated.webp": (rgb, {"lossless": True, "save_all": True, "append_images": [rgb.rotate(180)]}),
        "animated.png": (rgb, {"save_all": True, "append_images": [rgb.rotate(180)]}),
        "progressive.jpg": (rgb, {"quality": 90, "progressive": True}), "cmyk.jpg": (rgb.convert("CMYK"), {"quality": 95}),
    }
    for name, (image, options) in forms.items():
        path = str(pathlib.Path(folder) / name)
        image.save(path, **options)
        yield path
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        for ending in ("jpg", "png", "webp"):
            path = str(pathlib.Path(folder) / f"turned_{orientation}.{ending}")
            rgb.save(path, exif=exif)
            yield path


class Tool:
    """image_tool, which answers a line with a picture."""

    def __init__(self, path):
        self.process = subprocess.Popen([path, "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def picture(self, *words):
        """[height, width, 3]"""
        self.process.stdin.write(("\t".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        size = self.process.stdout.readline().split()
        if len(size) != 2:
            sys.exit(f"{words}: image_tool has ended")
        height, width = map(int, size)
        return numpy.frombuffer(self.process.stdout.read(3 * height * width), "uint8").reshape(height, width, 3)


def compare(what, got, wanted, tolerance):
    wanted = numpy.asarray(wanted.convert("RGB"))
    if got.shape != wanted.shape:
        sys.exit(f"{what}: {got.shape} instead of {wanted.shape}")
    largest = int(numpy.abs(got.astype(int) - wanted).max())
    if largest > tolerance:
        sys.exit(f"{what}: differs by {largest}")
    return largest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = numpy.random.default_rng(arguments.seed)
    largest = 0
    tool = Tool(arguments.tool)
    with tempfile.TemporaryDirectory() as folder:
        made = [] if arguments.files else list(files_in(folder, rng))
        for path in made + arguments.files:
            image = Image.open(path)
            tolerance = 1 if image.format == "JPEG" or "lossy" in path else 0
            largest = max(largest, compare(path, tool.picture(path), image, tolerance))
            turned = ImageOps.exif_transpose(image)
            largest = max(largest, compare(f"{path} upright", tool.picture(path, "upright"), turned, tolerance))
        path = str(pathlib.Path(folder) / "exact.png")
        for shape in ((61, 83), (200, 150), (7, 5)):
            image = picture(rng, *shape)
            image.save(path)
            for height, width in ((61, 83), (32, 32), (224, 224), (61, 20), (13, 83), (1, 1)):
                for name, number in FILTERS.items():
                    compare(f"{shape} to {height} x {width}, {name}",
                            tool.picture(path, str(height), str(width), name),
                            image.resize((width, height), number), RESIZED)
            for name, make in CHANGES.items():
                for factor in (0, 0.3, 1, 1.7):
                    compare(f"{name} {factor}", tool.picture(path, name, str(factor)),
                            make(image).enhance(factor), 0)
            for name, (make, amounts) in POLICIES.items():
                for amount in amounts:
                    compare(f"{name} {amount}", tool.picture(path, name, str(amount)), make(image, amount), 0)
    print(f"the same; decoded pictures differ by {largest} at most")


if __name__ == "__main__":
    main()
