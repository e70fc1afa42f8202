#!/usr/bin/env python3
"""Checks who includes whom in src/: a file may include its own room or rooms of a lower level.

Rooms on one level are strangers. In families, every folder is a family: it may include itself, folders
of what several families share, and lower rooms, but no other family. What it has in engine/ is a room
of its own, families/engine. No file outside src/families includes one of a family. Rooms in TORCH_FREE,
and every *_options.h, include no libtorch header, so that the command line starts fast and sanitizers and fuzzers build without it.
Rooms in ANY_FAMILY do not speak of translation, nor, but for data, of other families of tasks: the
names of these are those of their folders. They neither name nor include what is of one kind of models.
Of all sources outside src/families, those in NAMING alone have the name of such a family, in any spelling.
A name that means something else too, since it is one word or that of a model, is a family's in quotes
and in front of a part of a family alone: "images", ImagesOptions, LanguageModelTask.
No source, test or tool is longer than LONGEST. No headers include each other, not even by way of others. No two
sources include each the header of the other, nor do they call functions of each other by way of their own headers.
No two headers define a class of one name in one namespace: the linker would take them for one.
Prints each offence as FILE:LINE and leaves with 1 if there is any.
"""

import pathlib
import re
import sys

LEVELS = {
    "base": 0,
    "config": 1,
    "distributed": 2, "kernels": 2,
    "launcher": 3, "text": 3, "audio": 3, "image": 3, "nn": 3, "optim": 3, "metrics": 3, "decoding": 3,
    "store": 3, "report": 3,
    "data": 4, "losses": 4, "ctc": 4, "compress": 4,
    "models": 5,
    "parallel": 6, "runs": 6,
    "train": 7,
    "experiment": 8,
    "interchange": 9, "lint": 9,
    "families": 10,
    "tasks": 11, "plan": 11, "search": 11, "seeds": 11, "sweep": 11, "distill": 11,
    "families/engine": 12,
    "engine": 13,
    "cli": 14,
}
TORCH_FREE = {"base", "config", "distributed", "launcher", "text", "audio", "image", "metrics", "store", "report", "data", "ctc",
              "experiment", "families", "interchange", "lint", "plan", "search", "seeds", "sweep", "distill", "cli"}
TORCH_FREE_HEADERS = ("_options.h", "requests.h")  # in any room
TORCH = re.compile(r'^\s*#\s*include\s*[<"]((?:torch|ATen|c10)/[^>"]*|engine_pch\.h)[>"]')
ANY_FAMILY = {"train", "parallel", "runs", "report", "engine", "lint", "distributed", "data", "interchange"}  # but data/pairs
TRANSLATION = re.compile(r"translat(?:ion|or)\w*|bleu|bilingual|hypothes[ei]s|(?<![a-z])tgt(?![a-z])|"
                         r"(?-i:\b(?:source|target)s? (?:text|side|language|line|token|word|vocabulary))", re.IGNORECASE)
# Other data has them too, and its readers are folders of src/data: a column "sentence" of transcripts, an image's translate_x.
# CTranslate2 is a package.
BORROWED = re.compile(r"translat(?!e2)\w*|sentence(?!piece)s?|(?<![a-z])src(?![a-z])|\"(?:source|target)\"", re.IGNORECASE)
OTHERS = (r"(?<![a-z])question\w*|squad\w*|(?:label|answer)s\.json\b|"
          r"masked[ _]?(?:lm|language|token)\w*")  # beside the names of families; data has a folder for each
KINDS = re.compile(r"seq2seq\w*|(?<!con)text_?(?:model|section)\w*|sinusoid\w*|marian\w*|pegasus\w*", re.IGNORECASE)
PARTS = re.compile(r"(?<![a-z])(?:en|de)coders?\.", re.IGNORECASE)  # of engine alone: others have such names as examples
ELSEWHERE = [  # what means something else, or is stored: file, and what its line has
    ("src/report/heat_map.cpp", 'transform=\\"translate('),             # SVG
    ("src/report/page.cpp", "default-src 'none'"), ("src/report/page.cpp", "media-src data:"),
    ("src/report/page.cpp", "style-src 'unsafe-inline'"), ("src/report/page.h", "`default-src 'none'`"),
    ("src/report/media.cpp", 'src=\\"data:'),                           # HTML
    ("src/report/report_data.cpp", '"source"'), ("src/report/report_data.cpp", "hypothesis"),  # keys of report.json
    ("src/report/report_data.cpp", '"question"'),
    ("src/lint/lint.cpp", "OpenSeq2Seq, whose LARC"),                    # a toolkit
    ("src/interchange/embed_recipe.h", "`sentence-transformers`"),       # a package
]
NAMING = {  # sources outside src/families that name a family: none may join them, and who stops leaves the list
    "src/data/documents/masked_text_options.h",   # a key of another toolkit
    "src/experiment/foreign_options.cpp",         # an answer to keys of other toolkits
    "src/models/bert_options.h",                  # help of a key
}
OWN = re.compile(r'^\s*#\s*include\s*"(?:src/)?([a-z_0-9]+/[^"]+)"')
NAMESPACE = re.compile(r"namespace ([\w:]+) \{")
CLASS = re.compile(r"(?:class|struct|enum class) (\w+)(?= |\{|$)")
AT_NAMESPACE = re.compile(r"^[A-Za-z\[].*?\b(\w+)\(", re.MULTILINE)  # what begins a line is in no class and no function
CALL = re.compile(r"(?<![\w.>])(\w+)\(")
SHARED_FOLDERS = {"text", "audio"}  # of families: what those of text, or of sound, have in common
FAMILY_PARTS = "rules|spec|display|family|task|folders|facts|plan|preflight|requests"  # files and types of a family
ENGINE_FILES = "engine_"  # begins the name of a file beside the families that needs libtorch
CODE = {".h", ".cpp", ".cu", ".cuh", ".inc", ".py"}
LONGEST = 600  # lines of a source, of a test or of a tool


def families(root: pathlib.Path) -> list[str]:
    """The names of all families, which are those of their folders."""
    return sorted(path.name for path in (root / "src/families").glob("*/") if path.name not in SHARED_FOLDERS)


def models(root: pathlib.Path) -> set[str]:
    """The names of models and their parts, which are those of their files."""
    return {path.stem for path in (root / "src/models").rglob("*.h")}


def names_of_families(root: pathlib.Path) -> re.Pattern:
    """The names of families but for translation, in any spelling: "MaskedLmOptions", "ForQuestionAnswering"; never
    matches without families. Those that mean something else too count as far as nothing else is meant."""
    known, own = models(root), []
    for name in families(root):
        if name == "translation":
            continue
        spelt = name.replace("_", "_?")
        if name in known:
            own.append(f'"{name}"|families/{name}/|{spelt}_?(?:{FAMILY_PARTS})(?![a-z])')
        elif "_" not in name:
            own.append(f'"{name}"|families/{name}/|(?<![a-z]){spelt}_?(?:options|{FAMILY_PARTS})(?![a-z])')
        else:
            own.append(spelt)
    return re.compile("|".join(own) or "(?!)", re.IGNORECASE)


def words_of_families(root: pathlib.Path) -> re.Pattern:
    """What only speaks of a family that is none of translation: its name, and words of its data."""
    return re.compile(rf"{OTHERS}|(?:{names_of_families(root).pattern})\w*", re.IGNORECASE)


def room_of(path: str) -> str:
    """The room of a file by its path below src/: "families/engine" of "families/NAME/engine/a.h"."""
    parts = path.split("/")
    if parts[0] != "families":
        return parts[0]
    with_tensors = parts[2:3] == ["engine"] if len(parts) > 2 else parts[1].startswith(ENGINE_FILES)
    return "families/engine" if with_tensors else "families"


def family_of(path: str) -> str:
    """The family, or the shared folder, that a file below src/ belongs to; empty of files of no family."""
    parts = path.split("/")
    return parts[1] if parts[0] == "families" and len(parts) > 2 else ""


def word_of_a_family(name: str, room: str, line: str, others: re.Pattern) -> str:
    """What a line of a room that serves any family says of one, or of a kind of models, as "WORD is a word of FAMILY";
    empty when nothing."""
    if room not in ANY_FAMILY or name.startswith("src/data/pairs/"):
        return ""
    if any(name == file and text in line for file, text in ELSEWHERE):
        return ""
    if match := KINDS.search(line) or (PARTS.search(line) if room == "engine" else None):
        return f"{match[0]!r} is a word of one kind of models"
    if re.match(r'\s*#\s*include', line):
        return ""
    reads_others = name.startswith("src/data/") and name.count("/") > 2
    if match := TRANSLATION.search(line) or (None if reads_others else BORROWED.search(line)):
        return f"{match[0]!r} is a word of translation"
    match = others.search(line) if room != "data" else None
    return f"{match[0]!r} is a word of one family of tasks" if match else ""


def circle(includes: dict[str, list[str]]) -> list[str]:
    """Files that include each other in a circle, the first one again at its end; empty when there is none."""
    done, path = set(), []

    def follow(name: str) -> list[str]:
        if name in path:
            return path[path.index(name):] + [name]
        if name in done or name not in includes:
            return []
        path.append(name)
        for other in includes[name]:
            if found := follow(other):
                return found
        done.add(path.pop())
        return []

    return next((found for name in sorted(includes) if (found := follow(name))), [])


def mutual_sources(includes: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Pairs of sources, each of which includes the header of the other: "a.cpp" "b.h", and "b.cpp" "a.h"."""
    named = {path.removesuffix(".cpp"): {other.removesuffix(".h") for other in others if other.endswith(".h")}
             for path, others in includes.items() if path.endswith(".cpp")}
    return [(one, other) for one in sorted(named) for other in sorted(named[one])
            if one < other and one in named.get(other, ())]


def functions(texts: dict[str, str], stem: str) -> set[str]:
    """Functions of a namespace, which the header of a source declares and the source defines. Methods are none."""
    header, source = (set(AT_NAMESPACE.findall(texts.get(stem + ending, ""))) for ending in (".h", ".cpp"))
    return header & source


def calls(texts: dict[str, str], stem: str, names: set[str]) -> list[str]:
    """Those of the names that a source or its header calls, but not as a method."""
    called = set(CALL.findall(re.sub(r"//.*", "", texts.get(stem + ".h", "") + texts.get(stem + ".cpp", ""))))
    return sorted(called & names)


def mutual_calls(includes: dict[str, list[str]], texts: dict[str, str]) -> list[tuple[str, str, str, str]]:
    """Pairs of sources that know each other, perhaps by way of their own headers, and call functions of each other, as
    "a" "function_of_b" "b" "function_of_a". A name that both define tells nothing."""
    known: dict[str, set[str]] = {}
    for path, others in includes.items():
        stem = path.rpartition(".")[0]
        known.setdefault(stem, set()).update(other.removesuffix(".h") for other in others if other != stem + ".h")
    found = []
    for one, other in ((one, other) for one in sorted(known) for other in sorted(known[one])):
        if one > other or one not in known.get(other, ()):
            continue
        of_one, of_other = functions(texts, one), functions(texts, other)
        there, back = calls(texts, one, of_other - of_one), calls(texts, other, of_one - of_other)
        if there and back:
            found.append((one, there[0], other, back[0]))
    return found


def doubled_classes(texts: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Classes that several headers define, as "stretto::models::Block" and those headers."""
    places: dict[str, list[str]] = {}
    for path in sorted(path for path in texts if path.endswith(".h")):
        space = ""
        for line in texts[path].splitlines():
            if match := NAMESPACE.match(line):
                space = match[1]
            elif (match := CLASS.match(line)) and ("{" in line or not line.endswith(";")):
                places.setdefault(f"{space}::{match[1]}", []).append(path)
    return [(name, paths) for name, paths in places.items() if len(paths) > 1]


def long_files(root: pathlib.Path) -> list[str]:
    """What is said of each file of code, in src, tests and tools, that is longer than LONGEST."""
    found = []
    for path in sorted(path for folder in ("src", "tests", "tools") for path in (root / folder).rglob("*")):
        if path.suffix in CODE and (length := path.read_text(encoding="utf-8").count("\n")) > LONGEST:
            found.append(f"{path.relative_to(root).as_posix()}:{LONGEST + 1}: the file has {length} lines, where {LONGEST} "
                         "are allowed: divide it")
    return found


def offences(root: pathlib.Path) -> list[str]:
    found, includes, texts = long_files(root), {}, {}
    others = words_of_families(root)
    naming = names_of_families(root)
    files = [p for p in sorted((root / "src").rglob("*")) if p.suffix in {".h", ".cpp", ".cu", ".cuh", ".inc"}]
    for path in files:
        parts = path.relative_to(root / "src").parts
        if len(parts) == 1:
            continue  # the precompiled header
        own = "/".join(parts)
        room = room_of(own)
        if room not in LEVELS:
            found.append(f"{path.relative_to(root)}:1: room {room} has no level in tools/check_layers.py")
            continue
        text = path.read_text(encoding="utf-8")
        source = path.relative_to(root).as_posix()
        texts[own] = text
        includes[own] = [match[1] for line in text.splitlines() if (match := OWN.match(line))]
        if source in NAMING and not naming.search(text):
            found.append(f"{source}:1: names no family any more: take it from NAMING in tools/check_layers.py")
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{path.relative_to(root)}:{number}"
            torch_free = room in TORCH_FREE or path.name.endswith(TORCH_FREE_HEADERS)
            if torch_free and (match := TORCH.match(line)):
                found.append(f"{place}: {room} does not need libtorch, but includes {match[1]}")
            if word := word_of_a_family(source, room, line, others):
                found.append(f"{place}: {word}, and {room} serves any family of tasks")
            elif parts[0] != "families" and source not in NAMING and (match := naming.search(line)):
                found.append(f"{place}: {match[0]!r} names a family, which stays in src/families (NAMING has the exceptions)")
            if not (match := OWN.match(line)):
                continue
            other = room_of(match[1])
            if other not in LEVELS:
                if other not in {"torch", "c10"}:
                    found.append(f"{place}: includes unknown room {other}")
            elif other != room and LEVELS[other] >= LEVELS[room]:
                found.append(f"{place}: {room} (level {LEVELS[room]}) includes {other} "
                             f"(level {LEVELS[other]}); only lower levels are allowed")
            elif family_of(match[1]) not in {"", family_of(own)} | SHARED_FOLDERS:
                if family_of(own):
                    found.append(f"{place}: {family_of(own)} includes {family_of(match[1])}, which is another family")
                elif parts[0] != "families":
                    found.append(f"{place}: includes {family_of(match[1])}, which is a family: its changes rebuild its folder alone")
    if round_trip := circle(includes):
        found.append(f"src/{round_trip[0]}:1: includes itself by way of {', '.join(round_trip[1:-1]) or 'no other'}")
    for one, other in mutual_sources(includes):
        found.append(f"src/{one}.cpp:1: includes {other}.h, and {other}.cpp includes {one}.h: move what one of them needs")
    for name, paths in doubled_classes(texts):
        found.append(f"src/{paths[1]}:1: defines {name}, as src/{paths[0]} does, and the linker takes both for one: rename one of them")
    for one, there, other, back in mutual_calls(includes, texts):
        found.append(f"src/{one}.cpp:1: calls {there}() of {other}, which calls {back}() of {one}: move what both need")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if root.is_dir() else root.parent.parent
    found = offences(root)
    print("\n".join(found) if found else "layers: every include points down in no circle, and no room speaks of another's family")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
