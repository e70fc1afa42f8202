"""The text of the matrix: pairs of sentences, paragraphs with questions and labels, all tiny and the same each time."""
import json
import random

from harness import WORDS_SRC, WORDS_TGT

NAMES = ["Anna", "Åsa", "José", "Peter", "Nora", "Zoë"]
TOWNS = ["Oslo", "Turku", "Kraków", "Malmö", "Riga", "Lyon"]
# Which label a text has is decided by its last town.
KINDS = {"Oslo": "north", "Malmö": "north", "Turku": "north", "Kraków": "middle", "Riga": "middle", "Lyon": "south"}


def squad(generator, name, paragraphs, impossible):
    """Three towns in each paragraph, and a question on one of them, or on nobody."""
    articles = []
    for number in range(paragraphs):
        names = generator.sample(NAMES, 3)
        towns = generator.sample(TOWNS, 3)
        context, questions = "", []
        for i, (who, town) in enumerate(zip(names, towns)):
            context += f"{who} lives in "
            question = {"id": f"{name}{number}.{i}", "question": f"Where does {who} live?",
                        "answers": [{"text": town, "answer_start": len(context)}], "is_impossible": False}
            context += f"{town}. "
            questions.append(question)
        if impossible:
            absent = next(one for one in NAMES if one not in names)
            questions[0] |= {"question": f"Where does {absent} live?", "answers": [], "is_impossible": True}
        articles.append({"title": name, "paragraphs": [{"context": context, "qas": questions}]})
    return {"version": "v2.0", "data": articles}


def table(path, head, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in (head, *rows)))


def write_labelled(folder, name, texts):
    """One label of each text, the set of all towns' labels, and a number for each pair of texts that follow each other."""
    towns = [[word.rstrip(".") for word in text.split() if word.rstrip(".") in KINDS] for text in texts]
    table(folder / f"{name}.tsv", ("text", "label"), [(text, KINDS[where[-1]]) for text, where in zip(texts, towns)])
    table(folder / f"{name}.tags.tsv", ("text", "labels"),
          [(text, ",".join(sorted({KINDS[town] for town in where}))) for text, where in zip(texts, towns)])
    table(folder / f"{name}.pairs.tsv", ("first", "second", "score"),
          [(texts[i], texts[i - 1], f"{len({*towns[i]} & {*towns[i - 1]})}.5") for i in range(len(texts))])


def write_text(folder):
    """Beside train.src, train.tgt, valid.src and valid.tgt, which are there."""
    (folder / "words.txt").write_text("\n".join(sorted({*WORDS_SRC, *WORDS_TGT})) + "\n")
    generator = random.Random(5)
    for name, paragraphs in (("train", 60), ("valid", 8)):
        lines = (folder / f"{name}.src").read_text().splitlines()
        (folder / f"{name}.src2").write_text("".join(" ".join(reversed(line.split())) + "\n" for line in lines))
        data = squad(generator, name, paragraphs, impossible=True)
        (folder / f"{name}.json").write_text(json.dumps(data))
        texts = [paragraph["context"].strip() for article in data["data"] for paragraph in article["paragraphs"]]
        (folder / f"{name}.txt").write_text("".join(text + "\n" for text in texts))
        write_labelled(folder, name, texts)
