#!/usr/bin/env python3
"""Sentiment with and without a language model behind it: accuracy on SST-2 and IMDB over seeds.

    python benchmarks/sentiment_transfer.py --data DATA --work WORK [--out PAGE.md] [--tasks sst2 imdb] [--seeds 3] [--imdb-epochs 4]

The language model is that of configs/sentiment/wikitext2_small.toml (an LSTM of 3 × 128). Three ways lead to labels, each over --seeds:
first weights (sst2_lstm.toml); the language model's stack, all weights at once (sst2_transfer.toml); and ULMFiT's three steps, for which
the language model goes on with the texts of the task (sst2_language_model.toml, sst2_ulmfit.toml).

SST-2 has its 6,920 whole sentences for training and 872 for validation, whose labels no training sees; the accuracy is that of the last
update, so that nothing is chosen by it. IMDB has what DATA holds of it: nine tenths of its 10,000 reviews for training and 2,000 of the
test part, in lower case, with spaces around punctuation, their last 256 words; the models of SST-2 with as many epochs as --imdb-epochs
says, and the last update on the test part. Each finished cell is a line of WORK/sentiment.jsonl: a second call goes on. The language
model takes some forty minutes of one core, and a training on SST-2 one or two; one on IMDB takes ten minutes.
"""
import argparse
import re
import statistics
import sys
import tarfile

import language_texts
import records
import understanding

WAYS = {"first weights": "sst2_lstm", "language model": "sst2_transfer", "ULMFiT": "sst2_ulmfit"}
TITLES = {"sst2": "SST-2, 872 sentences", "imdb": "IMDB, 2,000 reviews"}
# By whether ULMFiT reads them: updates of an epoch, and tokens of a batch of reviews.
UPDATES = {"sst2": (346, 109), "imdb": (450, 141)}
REVIEW_TOKENS = (5140, 16448)


def sentences(options):
    """{train, test} of SST-2 as files `sentence TAB label`."""
    files = {}
    for part, name in (("train", "sentences_train.tsv"), ("test", "sentences_dev.tsv")):
        files[part] = options.work / f"sst2/{part}.tsv"
        text = understanding.read_text(language_texts.first_of(options.data / "sst2", name))
        write_rows(files[part], [line.split("\t") for line in text.splitlines()], options.rows)
    return files


def reviews(options):
    """The same of IMDB; every tenth review of the training part is left for choosing, and stays unread."""
    files = {}
    for part, name in (("train", "imdb_train_10000.tar.gz"), ("test", "imdb_test_2000.tar.gz")):
        files[part], rows = options.work / f"imdb/{part}.tsv", []
        if files[part].exists():
            continue
        with tarfile.open(language_texts.first_of(options.data / "imdb", name)) as archive:
            for member in sorted(archive.getmembers(), key=lambda member: member.name):
                label = re.search(r"/(pos|neg)/", member.name)
                if member.isfile() and label:
                    rows.append([plain(archive.extractfile(member).read().decode("utf-8")), str(int(label[1] == "pos"))])
        kept = rows if part == "test" else [row for number, row in enumerate(rows) if number % 10]
        write_rows(files[part], kept, options.rows)
    return files


def plain(review):
    """Lower case, words and marks with spaces between."""
    return " ".join(re.findall(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9]", review.replace("<br />", " ").lower()))


def write_rows(place, rows, most):
    if not place.exists():
        rows = rows[::max(1, len(rows) // most)][:most] if most else rows  # of both labels
        records.write_whole(place, "".join(f"{text}\t{label}\n" for text, label in rows))


def train(options, recipe, run, *keys):
    """A finished run, made if it is not there. What a stopped call has left is gone on with."""
    understanding.call([options.stretto, "train", records.ROOT / f"configs/sentiment/{recipe}.toml", "--run", run, "--quiet",
                        f"run.threads={options.threads}", "run.device=cpu", f"data.cache_dir={options.work}/cache", "report.html=false",
                        "report.tensorboard=false", *keys, *options.key], understanding.environment(options.threads))
    return run


def language_model(options):
    texts = language_texts.words(options.data, options.work, "wikitext2", 400 if options.rows else 0)
    return train(options, "wikitext2_small", options.work / "language_model", *language_texts.text_keys(*texts), *options.steps(544, 10))


def language_model_of(options, task, files):
    """ULMFiT's second step, on the texts without their labels."""
    texts = options.work / f"{task}/texts.txt", options.work / f"{task}/valid_texts.txt"
    for place, part in zip(texts, ("train", "test")):
        if not place.exists():
            lines = [line.split("\t")[0] for line in files[part].read_text(encoding="utf-8").splitlines()]
            records.write_whole(place, "\n".join(lines if part == "train" else lines[:500]) + "\n")
    epochs, updates = (15, 97) if task == "sst2" else (options.imdb_epochs, 1480)
    sampled = [] if task == "sst2" else ["loss.sampled_tokens=2048"]  # of the 16,000 words, as in the first step
    return train(options, "sst2_language_model", options.work / f"{task}/language_model", *language_texts.text_keys(*texts),
                 f"train.init_from={options.work}/language_model", *sampled, *options.steps(updates, epochs))


def labels(options, task, files, way, seed):
    """A training to its end, and its accuracy on what it never read."""
    run = options.work / f"{task}/{WAYS[way]}_{seed}"
    keys = [f"data.train=[{understanding.toml_value(files['train'])}]", f"data.valid=[{understanding.toml_value(files['test'])}]",
            f"run.seed={seed}"]
    is_ulmfit = way == "ULMFiT"
    updates = UPDATES[task][is_ulmfit]
    if task == "imdb":
        keys += ["data.max_text_tokens=257", f"data.max_tokens={REVIEW_TOKENS[is_ulmfit]}"]
    if is_ulmfit:
        layers = ["decoder.layers.2.*", "decoder.layers.1.*", "decoder.layers.0.*", "decoder.embedding.*"]
        step = 1 if options.rows else updates
        keys.append("train.unfreeze=" + understanding.toml_value([f"{name} {step * (i + 1)}" for i, name in enumerate(layers)]))
        language_model_of(options, task, files)
        keys.append(f"train.init_from={options.work}/{task}/language_model")
    elif way == "language model":
        keys.append(f"train.init_from={options.work}/language_model")
    epochs = 10 if task == "sst2" else max(6, options.imdb_epochs) if is_ulmfit else options.imdb_epochs
    train(options, WAYS[way], run, *keys, *options.steps(updates, epochs))
    valid = [event for event in records.json_lines(run / "metrics.jsonl") if event["event"] == "valid"]
    return {"last": valid[-1]["accuracy"], "best": max(event["accuracy"] for event in valid), "epochs": epochs}


def measure(options, cells):
    language_model(options)
    made, well = {"sst2": sentences, "imdb": reviews}, True
    for task in options.tasks:
        files = made[task](options)
        for seed in range(1, options.seeds + 1):
            for way in WAYS:
                key = {"task": task, "way": way, "seed": seed}
                well = cells.measure(key, lambda task=task, files=files, way=way, seed=seed: labels(options, task, files, way, seed)) and well
    return well


def body_of(cells):
    parts = []
    for task, title in TITLES.items():
        rows = []
        for way in WAYS:
            found = cells.all(task=task, way=way)
            if found:
                last = [100 * cell["last"] for cell in found]
                deviation = f" ± {statistics.stdev(last):.1f}" if len(last) > 1 else ""
                rows.append([way, len(found), found[0]["epochs"], f"{statistics.mean(last):.1f}{deviation}",
                             records.spread([100 * cell["best"] for cell in found], decimals=1)])
        if rows:
            parts.append(f"## {title}\n\n" + records.table(["begins with", "seeds", "epochs", "accuracy of the last update, %",
                                                            "of the best epoch, %"], rows))
    return "\n\n".join(parts) or "Nothing is measured yet."


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_texts.add_options(parser, python=False)
    parser.add_argument("--tasks", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--imdb-epochs", type=int, default=4)
    parser.add_argument("--page", action="store_true", help="only make the page of what is there")
    parser.add_argument("--smoke", dest="tiny", action="store_true", help="a few updates on a few texts: tries the script, measures nothing")
    options = language_texts.checked(parser, parser.parse_args())
    options.rows = 80 if options.tiny else 0
    options.seeds = 1 if options.tiny else options.seeds
    # An epoch has `updates`; validations and saves come at its end.
    options.steps = lambda updates, epochs: ([f"train.max_epochs={epochs}", f"eval.every={updates}", f"train.save_every={updates}"] if
                                             not options.tiny else ["train.max_steps=6", "eval.every=3", "data.max_unknown=1"])
    return options


def page_of(options, cells):
    notes = ["An LSTM of 3 layers with 128 units, words of 64 numbers. Mean ± deviation over seeds, and median (least – most)."]
    return records.page("Sentiment with and without a language model", notes, body_of(cells), "hours", cells.head())


def main():
    return understanding.run_cells(parse(), "stretto_sentiment_", "sentiment.jsonl", measure, page_of)


if __name__ == "__main__":
    sys.exit(main())
