#!/usr/bin/env python3
"""Compares the vectors of `stretto embed` with those that the package transformers makes as sentence-transformers does.

    crosscheck_embeddings.py STRETTO_BINARY [--model DIR] [--lines FILE] [--tolerance 1e-4]

Without --model, a small BERT with random weights and a vocabulary of its own takes the place of a folder of Hugging Face; and so
do the published models that are installed (interchange/published_models.py). Each is imported, and each line is embedded with both poolings, with and without length 1, as JSON and as .npy, in batches of several
sizes. The lines are of all lengths: empty ones, longer ones than the model takes, odd characters.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is missing.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import transformers
except ImportError as error:
    print(f"{error.name} is not installed: skipped")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "interchange"))
from published_models import published_models

LONGEST = 32
WORDS = "the a red blue house dog cat sees tokens naïve Ünï 東京 😀 U.S. 3.14 , . ! - ( ) supercalifragilistic".split(" ")


def make_model(folder):
    torch.manual_seed(1)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789.,!-()", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"),
              "the", "red", "blue", "house", "dog", "cat", "sees", "token", "##s", "東", "京"]
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in dict.fromkeys(pieces)), encoding="utf-8")
    size = len(dict.fromkeys(pieces))
    config = transformers.BertConfig(vocab_size=size, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
                                     max_position_embeddings=LONGEST, initializer_range=0.2)
    transformers.BertModel(config).eval().save_pretrained(folder)
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=LONGEST).save_pretrained(folder)


def made_up_lines():
    generator = random.Random(1)
    lines = ["", " ", "the", "the " * 100, "\u00a0"]
    for _ in range(300):
        lines.append(" ".join(generator.choice(WORDS) for _ in range(generator.randint(1, 20))))
    return lines


def wanted_vectors(model_folder, lines, pooling, normalize, longest):
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = transformers.AutoModel.from_pretrained(model_folder).eval()
    found = []
    with torch.inference_mode():
        for line in lines:
            inputs = tokenizer(line, truncation=True, max_length=longest, return_tensors="pt")
            rows = model(**inputs).last_hidden_state[0]
            vector = rows.mean(0) if pooling == "mean" else rows[0]
            found.append(torch.nn.functional.normalize(vector, dim=0) if normalize else vector)
    return torch.stack(found).numpy()


def run(command, text=""):
    done = subprocess.run(list(map(str, command)), input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(map(str, command))} left with {done.returncode}:\n{done.stderr.decode()}")
    return done.stdout.decode()


def compare(name, wanted, got, tolerance):
    if wanted.shape != got.shape or got.dtype not in (numpy.float32, numpy.float64):
        sys.exit(f"FAILED: {name}: {got.shape} {got.dtype}, expected {wanted.shape}")
    difference = float(numpy.abs(wanted - got).max())
    if not difference <= tolerance:
        line = int(numpy.abs(wanted - got).max(axis=1).argmax())
        sys.exit(f"FAILED: {name}: line {line + 1} differs by {difference:.2e}")
    print(f"ok      {name}: {difference:.1e}")


def check(options, folder, model, longest):
    lines = options.lines.read_text(encoding="utf-8").splitlines() if options.lines else made_up_lines()
    text = "".join(line + "\n" for line in lines)
    run([options.stretto, "import", model, "--run", folder / "run"])
    for pooling in ("mean", "cls"):
        for more in ([], ["--normalize"]):
            wanted = wanted_vectors(model, lines, pooling, bool(more), longest)
            command = [options.stretto, "embed", folder / "run", "--pooling", pooling, "--max-tokens", longest, *more]
            for batch in (1, 100, 100000):
                output = run([*command, "--batch-tokens", batch], text)
                got = numpy.array([json.loads(line) for line in output.splitlines()])
                compare(f"{pooling} {' '.join(more)} JSON, batches of {batch}", wanted, got, options.tolerance)
            run([*command, "--output", folder / "vectors.npy"], text)
            compare(f"{pooling} {' '.join(more)} npy", wanted, numpy.load(folder / "vectors.npy"), options.tolerance)
    run([options.stretto, "embed", folder / "run", "--output", folder / "nothing.npy"])
    if numpy.load(folder / "nothing.npy").shape != (0, wanted.shape[1]):
        sys.exit("FAILED: no lines give another array than [0, width]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stretto")
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--lines", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    models = {str(options.model): options.model} if options.model else {"a small BERT": None, **published_models()}
    for name, model in models.items():
        print(name)
        with tempfile.TemporaryDirectory(prefix="stretto_embeddings_") as place:
            folder = pathlib.Path(place)
            if model is None:
                (folder / "model").mkdir()
                make_model(folder / "model")
            check(options, folder, model or folder / "model", 256 if model else LONGEST)


if __name__ == "__main__":
    main()
