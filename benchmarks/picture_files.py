"""What the programs about pictures share: sets of pictures as files that both sides read, and Stretto's keys for them.

The data folder has cifar10_jpg/ (archives of CLASS/NNNN.jpg), mnist_t10k_8000/ and fashion_mnist_sprite/ (idx files), photographs/ (a tar
archive), as their projects publish them. The MNIST and Fashion-MNIST files there are small parts, which are split here by class.
"""
import gzip
import pathlib
import random
import struct
import sys
import tarfile

import records
from understanding import toml_value

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR-10
PARTS = {"cifar10": {"train": ["train_20000.tar.gz", "train_more_30000.tar.gz"], "test": ["test_2000.tar.gz", "test_more_3000.tar.gz"]},
         "mnist": ("mnist_t10k_8000", ["images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"], 8),
         "fashion_mnist": ("fashion_mnist_sprite", ["derived-images-idx3-ubyte.gz", "derived-labels-idx1-ubyte.gz"], 5)}


def found(path):
    return path.resolve() if path.is_file() else sys.exit(f"error: there is no {path}\n  name the folder of the data sets: --data DIR")


def cifar10(data, pictures=50_000):
    """Archives of training and test pictures; `pictures` is 20,000 or 50,000, or 2,000 for the test part as training (a dry run)."""
    train, test = ([found(data / "cifar10_jpg" / name) for name in PARTS["cifar10"][part]] for part in ("train", "test"))
    return {50_000: train, 20_000: train[:1], 2_000: test[:1]}[pictures], test[:1] if pictures == 2_000 else test


def unpacked(archives, folder):
    """Paths of the pictures of archives of CLASS/NAME.jpg, in their order, and their labels by the sorted names of classes."""
    paths = []
    for archive in archives:
        with tarfile.open(archive) as members:
            for member in members:
                if not member.isfile():
                    continue
                place = folder / pathlib.PurePath(member.name).parent.name / pathlib.PurePath(member.name).name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(members.extractfile(member).read())
                paths.append(place)
    number = {name: i for i, name in enumerate(sorted({path.parent.name for path in paths}))}
    return paths, [number[path.parent.name] for path in paths]


def read_idx(path):
    """(shape, bytes) of an idx file of bytes, .gz or not."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        whole = file.read()
    dimensions = whole[3]
    shape = struct.unpack(f">{dimensions}I", whole[4:4 + 4 * dimensions])
    return shape, whole[4 + 4 * dimensions:]


def write_idx(path, shape, content):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name("." + path.name)
        beside.write_bytes(bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content)
        beside.replace(path)
    return path


def idx_parts(data, work, name):
    """[pictures, labels] of training and of test: of each class the last pictures, one of so many, are for test."""
    folder, files, one_of = PARTS[name]
    (count, height, width), pixels = read_idx(found(data / folder / files[0]))
    _, labels = read_idx(found(data / folder / files[1]))
    size, parts = height * width, {"train": [], "test": []}
    for label in sorted(set(labels)):
        mine = [i for i in range(count) if labels[i] == label]
        cut = len(mine) - len(mine) // one_of
        parts["train"] += mine[:cut]
        parts["test"] += mine[cut:]
    written = []
    for part, chosen in parts.items():
        place = work / name / part
        written.append([write_idx(place / "images-idx3-ubyte", (len(chosen), height, width),
                                  b"".join(pixels[i * size:(i + 1) * size] for i in chosen)),
                        write_idx(place / "labels-idx1-ubyte", (len(chosen),), bytes(labels[i] for i in chosen))])
    return written


def made_up(work, side, count):
    """[pictures, labels]: idx files of noise in ten classes. They stay in memory as they are in both programs: nothing is decoded."""
    draw, place = random.Random(side), work / f"noise_{side}_{count}"
    return [write_idx(place / "images-idx3-ubyte", (count, side, side), draw.randbytes(count * side * side)),
            write_idx(place / "labels-idx1-ubyte", (count,), bytes(i % 10 for i in range(count)))]


def photographs(data, work):
    """A folder with a folder of each photograph's class, unpacked once."""
    place = work / "photographs"
    if not place.exists():
        beside = place.with_name(".photographs")
        with tarfile.open(found(data / "photographs/photographs.tar")) as archive:
            for member in archive.getmembers():
                name = pathlib.PurePath(member.name)
                if member.isfile():
                    (beside / name.stem).mkdir(parents=True, exist_ok=True)
                    (beside / name.stem / name.name).write_bytes(archive.extractfile(member).read())
        beside.replace(place)
    return place


def data_keys(train, valid=()):
    """key=value for the pictures of a recipe."""
    return [f"data.train={toml_value(list(train))}", f"data.valid={toml_value(list(valid))}", "data.test=[]"]


def quiet_keys(options):
    """key=value: nothing is written, validated or drawn in between."""
    return [f"run.threads={options.threads}", "run.device=cpu", f"data.cache_dir={options.work}/cache", "train.save_every=1000000",
            "eval.every=1000000", "report.html=false", "report.tensorboard=false"]


def training(options, recipe, run, *keys):
    """The command of a training that prints a line for each of its updates."""
    return [sys.executable, records.ROOT / "benchmarks/follow_metrics.py", run, "--", options.stretto, "train", recipe, "--run", run,
            *quiet_keys(options), "report.every=1", *keys, *options.key]
