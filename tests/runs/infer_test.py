#!/usr/bin/env python3
"""What a trained run is for: translating streams and files, and scoring. Which checkpoint: infer_checkpoints_test.py.

    tests/runs/infer_test.py build/release/stretto [TEST...]
"""
import atexit
import functools
import gzip
import json
import math
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import termios
import zipfile

from harness import Lab, check, main
from trained_run import OVERRIDES, PHRASEBOOK, ROOT, call, evaluate, fail, infer, objects, source, succeed, trained

ANSWER_SECONDS = 60  # far above what an answer takes: only a reader who waits for more comes to it


def stats(result):
    found = re.search(r"([\d,]+) lines in ([\d,]+) batches", result.stderr)
    check(found, f"no figures: {result.stderr}")
    return tuple(int(number.replace(",", "")) for number in found.groups())


# --- streams and files

def a_stream_is_answered_line_by_line_while_it_stays_open(stretto):
    lines = source(4).splitlines(keepends=True)
    process = subprocess.Popen([stretto, "infer", str(trained(stretto))], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        answers = b""
        # The third comes with half of the fourth, which must not keep its answer waiting.
        for sent in (lines[0], lines[1], lines[2] + lines[3][:3]):
            process.stdin.write(sent)
            process.stdin.flush()
            check(select.select([process.stdout], [], [], ANSWER_SECONDS)[0], f"no answer to {sent!r}")
            answers += process.stdout.readline()
        rest, _ = process.communicate(lines[3][3:], timeout=ANSWER_SECONDS)
        check(process.returncode == 0, f"exit code {process.returncode}")
    finally:
        process.kill()
    check((answers + rest).decode() == infer(stretto, data=source(4)), "other translations than of the whole text")


def a_file_through_stdin_is_decoded_in_batches_as_a_file_is(stretto):
    text = source(300)
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        named = call(stretto, "infer", trained(stretto), file.name, "--stats")
        with open(file.name, "rb") as stdin:
            redirected = call(stretto, "infer", trained(stretto), "--stats", stdin=stdin)
    piped = call(stretto, "infer", trained(stretto), "--stats", data=text)
    for result in (named, redirected, piped):
        succeed(result)
        check(result.stdout == named.stdout, "stdin and file differ")
    lines, batches = stats(named)
    check(lines == 300 and batches < 60, f"{lines} lines in {batches} batches")
    check(stats(redirected) == (lines, batches), f"from stdin: {stats(redirected)}, from the file: {(lines, batches)}")
    # What had not arrived when the first lines were there makes a batch or two more.
    check(stats(piped)[1] < 100, f"through a pipe: {stats(piped)}")


def compressed_files_archives_and_pipes_are_read(stretto):
    text = source(3)
    expected = infer(stretto, data=text)
    check(expected.count("\n") == 3, f"{expected}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "text.gz").write_bytes(gzip.compress(text))
        # A frame with one block that is stored as it is: magic, 1-byte size, block header, bytes.
        check(len(text) < 256, "the test's text does not fit its frame")
        (folder / "text.zst").write_bytes(b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) +
                                          (len(text) << 3 | 1).to_bytes(3, "little") + text)
        with zipfile.ZipFile(folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/text.en", text)
        os.mkfifo(folder / "pipe")
        writer = subprocess.Popen(["sh", "-c", 'gunzip -c "$1" > "$2"', "sh", folder / "text.gz", folder / "pipe"])
        inputs = ("text.gz", "text.zst", "archive.zip:folder/text.en", "pipe")
        for name in inputs:
            check(infer(stretto, folder / name) == expected, f"{name} is translated otherwise")
        writer.wait()
        check(infer(stretto, folder / "text.gz", "-", folder / "text.zst", data=text) == 3 * expected,
              "several inputs, stdin among them")
        fail(call(stretto, "infer", trained(stretto), folder / "archive.zip:text.fr"), 2, "text.fr", "folder/text.en")
        (folder / "text.gz").write_bytes(gzip.compress(text)[:-9])
        fail(call(stretto, "infer", trained(stretto), folder / "text.gz"), 65, "text.gz", "too early")


def a_damaged_end_is_told_of_behind_the_answers_to_the_lines_before(stretto):
    packed = gzip.compress(source(40))
    expected = infer(stretto, data=source(40))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "text.gz"
        file.write_bytes(packed[:len(packed) * 2 // 3])
        for words in ((), ("--stats",)):
            result = call(stretto, "infer", trained(stretto), file, *words)
            fail(result, 65, "text.gz", "too early")
            check(result.stdout.count("\n") > 3 and expected.startswith(result.stdout), f"{words}: {result.stdout!r}")


def the_end_of_a_prefix_pipe_is_asked_for_behind_the_last_answer(stretto):
    with tempfile.TemporaryDirectory() as folder:
        pipe = pathlib.Path(folder) / "pipe"
        os.mkfifo(pipe)
        process = subprocess.Popen([stretto, "infer", trained(stretto), "--prefix", pipe], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        process.stdin.write(source(1))
        process.stdin.close()
        with open(pipe, "wb", buffering=0) as prefixes:
            prefixes.write(b"\n")
            check(select.select([process.stdout], [], [], 60)[0], "it waits for the pipe's end, and the pipe for its answer")
            check(process.stdout.readline() == infer(stretto, data=source(1)).encode(), "another answer")
        check(process.wait(60) == 0, f"exit code {process.returncode}")


def a_bad_line_is_named_and_its_translation_is_an_empty_line(stretto):
    good = source(2).splitlines()
    lines = [good[0], b"a \xff b", b"a\0b", b"x" * 1_200_000, good[1], b""]
    result = call(stretto, "infer", trained(stretto), data=b"\n".join(lines) + b"\n")
    out = succeed(result).split("\n")
    check(len(out) == 7 and out[1:4] == ["", "", ""] and out[0] and out[4], f"{out}")
    for words in ("stdin:2: not UTF-8", "stdin:3: a NUL byte", "stdin:4: 1,200,000 bytes"):
        check(words in result.stderr, f"`{words}` is not in: {result.stderr}")
    check("stdin:6" not in result.stderr, f"an empty line is nothing to warn of: {result.stderr}")
    told = objects(infer(stretto, "--json", data=b"\n".join(lines[:3]) + b"\n"))
    check([line.get("problem") for line in told] == [None, "not UTF-8", "a NUL byte"], f"{told}")
    check(told[1]["hypotheses"] == [], f"{told[1]}")


def a_line_that_is_too_long_is_cut_and_it_is_said_how_much(stretto):
    good = source(1).strip()
    words = good.split()[:1] * 1500
    data = good + b"\n" + b" ".join(words) + b"\n"
    result = call(stretto, "infer", trained(stretto), "--json", data=data)
    told = objects(succeed(result))
    check("cut_tokens" not in told[0] and told[1]["cut_tokens"] >= 1500 - 511, f"{told[1].get('cut_tokens')}")
    for said in ("stdin:2: ", "cut to 511 (data.max_src_tokens)", "1 line was cut to data.max_src_tokens: "):
        check(said in result.stderr, f"`{said}` is not in: {result.stderr}")
    share = float(re.search(r"([\d.]+) % of all source tokens were not translated", result.stderr)[1])
    check(50 < share < 100, f"{share} % of the tokens")


def many_bad_lines_are_counted_rather_than_listed(stretto):
    result = call(stretto, "infer", trained(stretto), data=b"\xff\n" * 1200)
    check(succeed(result) == "\n" * 1200, "not line for line")
    check(result.stderr.count("not UTF-8") == 10 and "1,200 lines" in result.stderr, result.stderr)


# --- options

def nbest_gives_so_many_lines_for_each_line_the_best_first(stretto):
    text = source(3) + b"\n"
    best = infer(stretto, "--beam", "4", data=text).splitlines()
    lines = infer(stretto, "--beam", "4", "--nbest", "3", "--scores", data=text).splitlines()
    check(len(lines) == 12, f"{len(lines)} lines")
    check(lines[9:] == ["", "", ""], "an empty line has empty hypotheses")
    for i in range(3):
        scores, texts = zip(*(line.split("\t") for line in lines[3 * i:3 * i + 3]))
        check(sorted(map(float, scores), reverse=True) == list(map(float, scores)), f"scores {scores}")
        check(texts[0] == best[i] and len(set(texts)) == 3, f"{texts} for {best[i]}")


def sampling_is_a_function_of_the_seed_and_the_line(stretto):
    text = source(40)
    drawn = infer(stretto, "--sample", data=text)
    check(infer(stretto, "--sample", data=text) == drawn, "the same command gave other samples")
    check(infer(stretto, "--sample", "decode.max_tokens=1", data=text) == drawn, "the batches show in the samples")
    check(infer(stretto, "--sample", "decode.seed=2", data=text) != drawn, "another seed gave the same samples")
    check(infer(stretto, data=text) != drawn, "these are no samples")


def a_prefix_is_what_each_output_starts_with_line_for_line(stretto):
    text, free = source(3), infer(stretto, data=source(3)).splitlines()
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"demain nous\n\nne\xff\n")
        file.flush()
        result = call(stretto, "infer", trained(stretto), "--prefix", file.name, data=text)
        out = succeed(result).splitlines()
    check(not free[0].startswith("demain nous"), "the test's prefix is what comes by itself")
    check(out[0].startswith("demain nous"), f"{out[0]}")
    check(out[1] == free[1], "an empty prefix changes nothing")
    check(out[2] == "" and "stdin:3: its prefix" in result.stderr, f"{out[2]} {result.stderr}")


def a_prefix_file_of_another_number_of_lines_is_refused_with_both(stretto):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "input").write_bytes(source(4))
        for count in (1, 3, 5):
            (folder / "prefixes").write_text("\n" * count)
            words = ("infer", trained(stretto), "--prefix", folder / "prefixes")
            lines = f"{count} line" + ("s" if count > 1 else "")
            before = call(stretto, *words, folder / "input")
            fail(before, 65, "prefixes has " + lines, "the input 4")
            check(before.stdout == "", f"some were translated: {before.stdout}")
            with open(folder / "input", "rb") as stdin:
                fail(call(stretto, *words, stdin=stdin), 65, "prefixes has " + lines, "the input ", "4")


def json_and_alignments_say_the_same_as_the_text(stretto):
    text = source(3)
    plain = infer(stretto, "--alignments", data=text).splitlines()
    for line, told in zip(plain, objects(infer(stretto, "--alignments", "--json", data=text))):
        best = told["hypotheses"][0]
        words, pairs = line.split("\t")
        check(best["text"] == words, f"{best['text']} and {words}")
        check(" ".join(f"{a}-{b}" for a, b in best["alignment"]) == pairs, f"{best['alignment']} and {pairs}")
        check(len(best["token_log_probs"]) == len(best["pieces"]) + 1, "one for each piece and the end")
        check(abs(sum(best["token_log_probs"]) - best["log_prob"]) < 1e-3, "log_prob is their sum")


# --- scores

def eval_json_is_one_object_that_score_agrees_with(stretto):
    with tempfile.TemporaryDirectory() as folder:
        hypotheses = pathlib.Path(folder) / "hypotheses"
        told = evaluate(stretto, "eval.bleu=true", "--hypotheses", hypotheses)
        scored = json.loads(succeed(call(stretto, "score", "--metric", "bleu", "--reference", PHRASEBOOK / "test.fr",
                                         "--json", data=hypotheses.read_bytes())))
    for key in ("set", "checkpoint", "loss", "nll", "ppl", "target_tokens", "bleu", "signature"):
        check(key in told, f"no {key} in {told}")
    check(told["checkpoint"] == "step_00000150", f"the best is not taken: {told}")
    check(abs(told["ppl"] - math.exp(told["nll"])) < 1e-6 * told["ppl"], f"ppl is not exp(nll): {told}")
    check(abs(told["bleu"] - scored["bleu"]) < 1e-9, f"{told['bleu']} and {scored['bleu']}")
    check(told["signature"] == scored["signature"], f"{told['signature']} and {scored['signature']}")


def eval_decodes_for_hypotheses_whatever_the_run_says(stretto):
    check("eval.bleu=false" in OVERRIDES, "the test's run translates by itself")
    with tempfile.TemporaryDirectory() as folder:
        hypotheses, asked = pathlib.Path(folder) / "hypotheses", pathlib.Path(folder) / "asked"
        told = evaluate(stretto, "--hypotheses", hypotheses)
        evaluate(stretto, "eval.bleu=true", "--hypotheses", asked)
        text = hypotheses.read_text()
        check(text == asked.read_text(), "other translations than with eval.bleu=true")
    check(text.count("\n") == len(source(10 ** 6).splitlines()) and text.strip(), f"{len(text)} bytes were written")
    check("bleu" in told, f"{told}")
    check("bleu" not in evaluate(stretto), "eval.bleu = false is for nothing")


def per_line(text):
    """Sum, mean and tokens of each line."""
    return [(float(total), float(mean), int(tokens)) for total, mean, tokens in
            (line.split("\t") for line in text.splitlines())]


def agree(told, lines):
    """Whether a file of --per-line is what eval --json says of the whole."""
    tokens = sum(count for _, _, count in lines)
    total = sum(log_prob for log_prob, _, count in lines if count)
    check(tokens == told["target_tokens"], f"{tokens} tokens, {told['target_tokens']} expected")
    check(abs(-total / tokens - told["nll"]) < 2e-6 * told["nll"], f"{-total / tokens} and {told['nll']}")
    for log_prob, mean, count in lines:
        check(count == 0 or abs(log_prob / count - mean) < 1e-5, f"{log_prob} of {count} tokens, mean {mean}")


def per_line_scores_each_pair_in_the_order_of_the_text(stretto):
    sources = source(6).decode().splitlines()
    targets = (PHRASEBOOK / "test.fr").read_text().splitlines()[:6]
    sources[2], targets[4] = "", "x"  # one pair that is left out, and a bad translation
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "src").write_text("\n".join(sources) + "\n")
        (folder / "tgt").write_text("\n".join(targets) + "\n")
        words = ("--src", folder / "src", "--tgt", folder / "tgt", "--per-line", folder / "scores")
        for checkpoint in ("150", "50,150"):
            told = evaluate(stretto, *words, "--checkpoint", checkpoint, "--hypotheses", folder / "hypotheses")
            lines = per_line((folder / "scores").read_text())
            check(len(lines) == 6, f"{len(lines)} lines")
            agree(told, lines)
            check(math.isnan(lines[2][0]) and math.isnan(lines[2][1]) and lines[2][2] == 0, f"{lines[2]}")
            check(min(lines, key=lambda line: 0 if math.isnan(line[1]) else line[1]) == lines[4], f"{lines}")
            hypotheses = (folder / "hypotheses").read_text().split("\n")
            check(len(hypotheses) == 7 and hypotheses[2] == "" and all(hypotheses[i] for i in (0, 1, 3, 5)),
                  f"translations out of step: {hypotheses}")
        fail(call(stretto, "eval", trained(stretto), "--per-line", folder / "gone/scores"), 74, "--per-line")
        told = evaluate(stretto, "--per-line", folder / "whole")
        agree(told, per_line((folder / "whole").read_text()))


def per_line_is_right_for_a_run_in_half_precision(stretto):
    with Lab(stretto) as lab:
        succeed(lab.train("run", "train.precision=mixed_bf16", "train.max_steps=8", "schedule.warmup_steps=4"))
        told = json.loads(succeed(call(stretto, "eval", lab.root / "run", "--json", "--per-line", lab.root / "scores")))
        lines = per_line((lab.root / "scores").read_text())
        check(len(lines) == 20, f"{len(lines)} lines")
        agree(told, lines)


def half_precision_changes_scores_a_little(stretto):
    exact = evaluate(stretto)
    rounded = evaluate(stretto, "eval.precision=mixed_bf16")
    check(exact["nll"] != rounded["nll"] and abs(exact["nll"] - rounded["nll"]) < 0.02 * exact["nll"], f"{exact} and {rounded}")
    plain, near = (objects(infer(stretto, "--json", *words, data=source(8))) for words in ((), ("eval.precision=mixed_bf16",)))
    best = [[told["hypotheses"][0] for told in lines] for lines in (plain, near)]
    check(best[0] != best[1], "nothing was rounded")
    same = [(a["log_prob"], b["log_prob"]) for a, b in zip(*best, strict=True) if a["text"] == b["text"]]
    check(len(same) >= 2, f"of 8 translations {len(same)} are the same")  # the model has hardly learned: many are close
    check(all(abs(a - b) < 0.05 * abs(a) for a, b in same), f"log-probabilities of the same text: {same}")


# --- text that was split beforehand

def split_beforehand(line, kind):
    pieces = []
    for word in line.split():
        head, tail = word[:2], word[2:]
        if kind == "sentencepiece":
            pieces += ["▁" + head] + ([tail] if tail else [])
        elif not tail:
            pieces.append(head)
        else:
            pieces += [head + "@@", tail] if kind == "bpe" else [head, "##" + tail]
    return " ".join(pieces)


def what_was_split_beforehand_comes_out_and_is_scored_as_words(stretto):
    for kind in ("bpe", "sentencepiece", "wordpiece"):
        with Lab(stretto) as lab:
            plain = (lab.root / "valid.tgt").read_text()
            vocabulary = set()
            for name in ("train.src", "train.tgt", "valid.src", "valid.tgt"):
                lines = [split_beforehand(line, kind) for line in (lab.root / name).read_text().splitlines()]
                (lab.root / name).write_text("\n".join(lines) + "\n")
                vocabulary.update(piece for line in lines for piece in line.split())
            (lab.root / "words").write_text("\n".join(sorted(vocabulary)) + "\n")
            (lab.root / "reference").write_text(plain)
            result = lab.train("run", "tokenizer.type=vocab", f"tokenizer.src_vocab={lab.root}/words")
            check(result.returncode == 0, result.stderr)
            check(f"sub-words ({kind})" in result.stderr, f"training does not say so: {result.stderr}")
            told = json.loads(succeed(call(stretto, "eval", lab.root / "run", "--json", "--hypotheses",
                                           lab.root / "hypotheses")))
            text = (lab.root / "hypotheses").read_text()
            check(text.strip() and not any(mark in text for mark in ("@@", "▁", "##")), f"{kind}: {text}")
            scored = json.loads(succeed(call(stretto, "score", "--reference", lab.root / "reference", "--json",
                                             data=text.encode())))
            check(abs(scored["bleu"] - told["bleu"]) < 1e-9 and told["signature"] == scored["signature"],
                  f"{kind}: {told} and {scored}")
            inferred = succeed(call(stretto, "infer", lab.root / "run", lab.root / "valid.src"))
            check(inferred == text, f"{kind}: infer prints\n{inferred}eval\n{text}")
            pieces = succeed(call(stretto, "infer", lab.root / "run", lab.root / "valid.src",
                                  "tokenizer.subwords=none"))
            check(pieces.count("\n") == 20 and any(mark in pieces for mark in ("@@", "▁", "##")), f"{kind}: {pieces}")


# --- at a terminal

class terminal:
    """A program whose stderr (and stdin, where nothing else is given) is a terminal."""

    def __init__(self, command, stdin=None):
        self.ours, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self.process = subprocess.Popen(list(map(str, command)), stdin=theirs if stdin is None else stdin,
                                        stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        self.said = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        os.close(self.ours)

    def read(self):
        """More of what came to the screen; False at the end."""
        check(select.select([self.ours], [], [], ANSWER_SECONDS)[0], f"nothing after {self.said!r}")
        try:
            more = os.read(self.ours, 4096)
        except OSError:  # the other side is closed
            return False
        self.said += more
        return bool(more)

    def wait_for(self, words, count=1):
        while self.said.count(words) < count:
            check(self.read(), f"ended without {words!r}: {self.said!r}")

    def rest(self):
        while self.read():
            pass
        return self.process.wait(timeout=ANSWER_SECONDS)


def a_person_at_a_terminal_is_prompted(stretto):
    expected = infer(stretto, data=source(2)).splitlines(keepends=True)
    with terminal([stretto, "infer", trained(stretto)]) as screen:
        for number, line in enumerate(source(2).splitlines(keepends=True)):
            screen.wait_for(b"> ", number + 1)
            os.write(screen.ours, line)
            check(select.select([screen.process.stdout], [], [], ANSWER_SECONDS)[0], "no answer")
            check(screen.process.stdout.readline().decode() == expected[number], "another translation")
        screen.wait_for(b"> ", 3)
        os.write(screen.ours, b"\x04")
        check(screen.rest() == 0, f"{screen.said!r}")
        check(screen.said.count(b"> ") == 3 and screen.said.count(b"Ctrl-D") == 1, f"{screen.said!r}")
        check(screen.said.endswith(b"> \r\n"), f"the shell's prompt comes behind ours: {screen.said!r}")
    with terminal([stretto, "infer", trained(stretto)], stdin=subprocess.PIPE) as screen:
        screen.process.stdin.close()
        check(screen.rest() == 0 and screen.said == b"", f"a prompt for a pipe: {screen.said!r}")


def progress_of_a_file_shows_on_a_terminal_and_nowhere_else(stretto):
    with tempfile.NamedTemporaryFile() as file:
        file.write(source(300))
        file.flush()
        with terminal([stretto, "infer", trained(stretto), file.name], stdin=subprocess.DEVNULL) as screen:
            out = screen.process.stdout.read().decode()
            check(screen.rest() == 0, f"{screen.said!r}")
        text = re.sub(rb"\x1b\[[0-9]*[mK]", b"", screen.said).decode()
        check(re.search(r"\d+ of 300 lines \d+%", text), text)
        check(re.search(r"300 of 300 lines 100% · [\d.]+ lines/s\r\n$", text), text)
        quiet = call(stretto, "infer", trained(stretto), file.name)
        check(quiet.stderr == "" and quiet.stdout == out, f"elsewhere: {quiet.stderr}")


# --- two sources

@functools.cache
def trained_on_two_sources(stretto):
    """The folder of a run of two encoders, after twenty updates."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stretto_two_sources_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    result = call(stretto, "train", ROOT / "configs/smoke/two_sources.toml", "--run", folder / "run", "train.max_steps=20",
                  "schedule.warmup_steps=10", "eval.bleu=false", "eval.every=20", env={"STRETTO_CACHE": str(folder / "cache")})
    check(result.returncode == 0, f"the recipe left with {result.returncode}: {result.stderr}")
    return folder / "run"


def two_sources_come_behind_a_tab_or_from_a_file(stretto):
    run = trained_on_two_sources(stretto)
    first, second = ["a b c", "d e", "", "f g"], ["h i j", "a", "", "b c d"]
    joined = "".join(f"{a}\t{b}\n" for a, b in zip(first, second))
    file = run.parent / "second.txt"
    file.write_text("\n".join(second) + "\n")
    one = call(stretto, "infer", run, "--json", data=joined.encode())
    two = call(stretto, "infer", run, "--json", "--src2", file, data=("\n".join(first) + "\n").encode())
    succeed(one), succeed(two)
    check(one.stdout == two.stdout, "a file of second sources gives other translations than tabs")
    lines = objects(one.stdout)
    check([line["source"] for line in lines] == ["a b c\th i j", "d e\ta", "", "f g\tb c d"], f"other sources: {one.stdout}")
    check([len(line["hypotheses"]) for line in lines] == [1, 1, 0, 1], f"other translations: {one.stdout}")
    other = objects(succeed(call(stretto, "infer", run, "--json", data=joined.replace("\th i j", "\tj j j").encode())))

    def log_prob(lines, i):
        return lines[i]["hypotheses"][0]["log_prob"]

    check(log_prob(other, 0) != log_prob(lines, 0), "the second source changes nothing")
    check(abs(log_prob(other, 1) - log_prob(lines, 1)) < 1e-3, "another line's second source changes a line")


def lines_without_both_sources_are_bad_lines(stretto):
    run = trained_on_two_sources(stretto)
    result = call(stretto, "infer", run, "--json", data=b"a b c\na\tb\n\tb\n\n")
    succeed(result)
    lines = objects(result.stdout)
    check([bool(line.get("problem")) for line in lines] == [True, False, True, False], f"other problems: {result.stdout}")
    check("FIRST<TAB>SECOND" in lines[0]["problem"], f"the form is not named: {lines[0]}")
    check(lines[1]["source"] == "a\tb", f"the source is not the joined text: {lines[1]}")
    check("stdin:1: it has no tab" in result.stderr, f"no warning: {result.stderr}")


def second_sources_of_another_number_or_of_one_source_are_refused(stretto):
    run = trained_on_two_sources(stretto)
    file = run.parent / "short.txt"
    file.write_text("a\n")
    result = call(stretto, "infer", run, "--src2", file, data=b"a\nb\n")
    fail(result, 65, f"--src2 {file} has 1 line")
    source, target = run.parent / "source.txt", run.parent / "target.txt"
    source.write_text("a b\nc d\n")
    target.write_text("b a\nd c\n")
    result = call(stretto, "eval", run, "--src", source, "--tgt", target)
    fail(result, 2, "--src2 FILE")
    result = call(stretto, "eval", run, "--src", source, "--src2", file, "--tgt", target)
    fail(result, 65, "short.txt has 1")
    result = call(stretto, "eval", run, "--src", source, "--src2", source, "--tgt", target, "--json")
    check(json.loads(succeed(result))["target_tokens"] == 6, result.stdout)
    result = call(stretto, "eval", run, "--json")
    check(json.loads(succeed(result))["set"] == "test", result.stdout)
    one = trained(stretto)
    result = call(stretto, "infer", one, "--src2", file, data=b"a\n")
    fail(result, 2, "reads one")
    result = call(stretto, "eval", one, "--src", source, "--src2", source, "--tgt", target)
    fail(result, 2, "reads one")


if __name__ == "__main__":
    helpers = {"stats", "trained_on_two_sources", "per_line", "agree", "split_beforehand", "terminal"}
    main({name: value for name, value in list(globals().items())
          if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in helpers})
