"""What compress_sweep.py trains on: recipes of its masked language models, lengths of texts, and a made-up data folder."""
import gzip
import io
import math
import random
import statistics
import tarfile

import records
import understanding

PIECES_PER_WORD = 1.3  # of the estimate


def model_section(size, max_text_tokens, dropout=0.0, **more):
    """[model] of an encoder. Rotary positions: with learned ones, small models stand for long at how frequent words are."""
    return {"preset": "none", "num_layers": size.layers, "d_model": size.width, "num_heads": size.heads(), "norm": "pre",
            "positions": "rotary", "num_segments": 0, "dropout": dropout, "attention_dropout": dropout, **more}


def pretraining_recipe(options, size, run_folder, **more):
    """The configuration's file."""
    optim = {"lr": options.lr * math.sqrt(256 / size.width)}
    sections = understanding.pretraining(options, options.train, options.valid, options.tokenizer,
                                         model_section(size, options.max_text_tokens), optim=optim, **more)
    return understanding.write_recipe(run_folder, sections)


def tokens_of(path):
    """About how many tokens a text of a prepared file has."""
    return statistics.fmean(2 + PIECES_PER_WORD * sum(len(text.split()) for text in row[:-1]) for row in understanding.rows_of(path))


# A dry run

def write_gzip(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def make_up(folder, seed=1):
    """A data folder as understanding.py and records.py read it, of a few kilobytes: labels follow from the words."""
    if (folder / "sick/SICK_trial.txt").exists():
        return
    draw = random.Random(seed)
    words = ["".join(draw.choices("abdegiklmnorstu", k=draw.randint(2, 6))) for _ in range(150)]
    line = lambda: " ".join(draw.choices(words, k=draw.randint(8, 16)))
    records.made_up_text(folder / "multi30k")
    write_gzip(folder / "wikitext2/valid.txt.gz", "\n\n".join(line() for _ in range(60)))
    book = "\n\n".join(f"{line()} {line()}" for _ in range(400)).encode()
    path = folder / "public_domain_books/books_train.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("books/one.md")
        member.size = len(book)
        archive.addfile(member, io.BytesIO(book))
    texts = [(text := line(), str(int(text.split()[0] < "g"))) for _ in range(160)]
    write_gzip(folder / "sst2/glue_train.tsv.gz", "".join(f"{a}\t{b}\n" for a, b in [("sentence", "label"), *texts[:120]]))
    records.write_whole(folder / "sst2/glue_dev.tsv", "".join(f"{a}\t{b}\n" for a, b in [("content", "label"), *texts[120:]]))
    kinds = ("ENTAILMENT", "NEUTRAL", "CONTRADICTION")
    title = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for name, count in (("SICK_train", 120), ("SICK_trial", 40)):
        rows = [f"{number}\t{line()}\t{line()}\t{1 + number % 5}\t{kinds[number % 3]}\n" for number in range(count)]
        records.write_whole(folder / f"sick/{name}.txt", title + "".join(rows))
