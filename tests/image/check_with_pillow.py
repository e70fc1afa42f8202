#!/ usr / bin / env python3
"""Compares decoding, resizing and colours with Pillow on pictures of gradients and noise, and on files that are named.

    check_with_pillow.py IMAGE_TOOL [FILE...] [--seed 1]

PNG, resized and changed pictures must agree to the byte, JPEG to one grey level (the libraries may be of two versions). From
Pillow 13 on, pictures of some shapes are resized from top to bottom first, so that they may differ by one.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import argparse
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

RESIZED = 0 if int(PIL.__version__.split(".")[0]) < 13 else 1
FILTERS = {"area": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
CHANGES = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast, "saturation": ImageEnhance.Color}


def picture(rng, height, width):
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [255 * x / width, 255 * y / height, 127 + 100 * numpy.sin(x * y / 50)]
    noise = rng.normal(0, 20, (height, width, 3))
    return Image.fromarray(numpy.clip(numpy.stack(planes, 2) + noise, 0, 255).astype("uint8"))


def files_in(folder, rng):
    """Pictures of many forms."""
    rgb = picture(rng, 61, 83)
    forms = {
        "rgb.png": (rgb, {}), "grey.png": (rgb.convert("L"), {}), "palette.png": (rgb.convert("P"), {}),
        "alpha.png": (rgb.convert("RGBA"), {}), "bits.png": (rgb.convert("1"), {}),
        "444.jpg": (rgb, {"quality": 90, "subsampling": 0}), "420.jpg": (rgb, {"quality": 90, "subsampling": 2}),
        "422.jpg": (rgb, {"quality": 50, "subsampling": 1}), "grey.jpg": (rgb.convert("L"), {"quality": 90}),
        "progressive.jpg": (rgb, {"quality": 90, "progressive": True}), "cmyk.jpg": (rgb.convert("CMYK"), {"quality": 95}),
    }
    for name, (image, options) in forms.items():
        path = str(pathlib.Path(folder) / name)
        image.save(path, **options)
        yield path
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = str(pathlib.Path(folder) / f"turned_{orientation}.jpg")
        rgb.save(path, exif=exif)
        yield path


def bytes_of(tool, *words):
    return subprocess.run([tool, *words], check=True, capture_output=True).stdout


def compare(what, got, wanted, tolerance):
    wanted = numpy.asarray(wanted.convert("RGB"))
    got = numpy.frombuffer(got, "uint8")
    if got.size != wanted.size:
        sys.exit(f"{what}: {got.size} and {wanted.size} bytes")
    largest = int(numpy.abs(got.reshape(wanted.shape).astype(int) - wanted).max())
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
    with tempfile.TemporaryDirectory() as folder:
        made = [] if arguments.files else list(files_in(folder, rng))
        for path in made + arguments.files:
            image = Image.open(path)
            tolerance = 0 if path.endswith(".png") else 1
            largest = max(largest, compare(path, bytes_of(arguments.tool, path), image, tolerance))
            turned = ImageOps.exif_transpose(image)
            largest = max(largest, compare(f"{path} upright", bytes_of(arguments.tool, path, "upright"), turned, tolerance))
        path = str(pathlib.Path(folder) / "exact.png")
        for shape in ((61, 83), (200, 150), (7, 5)):
            image = picture(rng, *shape)
            image.save(path)
            for height, width in ((61, 83), (32, 32), (224, 224), (61, 20), (13, 83), (1, 1)):
                for name, number in FILTERS.items():
                    compare(f"{shape} to {height} x {width}, {name}",
                            bytes_of(arguments.tool, path, str(height), str(width), name),
                            image.resize((width, height), number), RESIZED)
            for name, make in CHANGES.items():
                for factor in (0, 0.3, 1, 1.7):
                    compare(f"{name} {factor}", bytes_of(arguments.tool, path, name, str(factor)),
                            make(image).enhance(factor), 0)
    print(f"the same; decoded pictures differ by {largest} at most")


if __name__ == "__main__":
    main()
