#!/usr/bin/env python3
"""Sounds and manifests that are not as they should be: counted and named, or refused in words.

    tests/runs/bad_sounds_test.py build/release/stretto [TEST...]
"""
import array
import json
import math
import struct

from harness import Lab, check, main
from matrix.bench import EXPERIMENT
from matrix.speech_rows import CONVOLUTIONS, END, RATE, TEXTS, sound, write_sounds

SHORT = ("train.max_steps=4", "eval.every=2", "train.update_freq=1")


def wave_bytes(samples, *, format_tag=1, bits=16, channels=1, rate=RATE, said=None):
    """A WAV file of packed samples; `said` is the size that its header claims."""
    width = bits // 8 * channels
    size = len(samples) if said is None else said
    return (b"RIFF" + struct.pack("<I", (36 + size) & 0xFFFFFFFF) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, format_tag, channels, rate, (rate * width) & 0xFFFFFFFF, width, bits) +
            b"data" + struct.pack("<I", size & 0xFFFFFFFF) + samples)


def floats(values):
    return array.array("f", values).tobytes()


def good_sounds(text):
    """Forms of one sound that all readers should take."""
    whole = sound(text, 1)
    quiet = [value / 32768 for value in whole]
    return {
        "plain.wav": wave_bytes(whole.tobytes()),
        "8bit.wav": wave_bytes(bytes(128 + (value >> 8) for value in whole), bits=8),
        "24bit.wav": wave_bytes(b"".join(struct.pack("<i", value << 8)[:3] for value in whole), bits=24),
        "float.wav": wave_bytes(floats(quiet), format_tag=3, bits=32),
        "8channels.wav": wave_bytes(b"".join(struct.pack("<h", value) * 8 for value in whole), channels=8),
        "192k.wav": wave_bytes(b"".join(struct.pack("<h", value) * 24 for value in whole), rate=192_000),
        "clipped.wav": wave_bytes(array.array("h", (max(-32768, min(32767, 12 * value)) for value in whole)).tobytes()),
    }


def bad_sounds(text):
    """What each file is, and a word of what is said of it."""
    whole = sound(text, 1)
    return {
        "empty.wav": b"",
        "text.wav": b"no sound at all",
        "picture.wav": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "silent.wav": wave_bytes(bytes(2 * len(whole))),
        "cut.wav": wave_bytes(whole.tobytes())[:len(whole)],
        "lies.wav": wave_bytes(whole.tobytes(), said=10 * len(whole)),
        "nan.wav": wave_bytes(floats([math.nan] * len(whole)), format_tag=3, bits=32),
        "no_samples.wav": wave_bytes(b""),
    }


class Sounds(Lab):
    """A lab with sounds, and a manifest of whatever is put into it."""

    def __init__(self, stretto):
        super().__init__(stretto)
        write_sounds(self.root)
        self.config.write_text(EXPERIMENT + TEXTS + CONVOLUTIONS + END)

    def put(self, files):
        for name, data in files.items():
            (self.root / "sounds" / name).write_bytes(data)

    def manifest(self, rows, name="list.csv"):
        lines = ["wav_filename,transcript", *(f"{file},{text}" for file, text in rows)]
        (self.root / "sounds" / name).write_text("\n".join(lines) + "\n")
        return f'data.train=["{self.root}/sounds/{name}"]'

    def trained(self, rows, *words, code=0):
        """What training said of a manifest with these rows beside good ones."""
        good = [(f"train_{number}.wav", "ab ca") for number in range(4)]
        result = self.train("run", self.manifest([*good, *rows]), *SHORT, *words)
        check(result.returncode == code, f"exit code {result.returncode}: {result.stderr[-3000:]}")
        return result.stderr


def each_form_of_a_sound_is_read(stretto):
    with Sounds(stretto) as lab:
        files = good_sounds("ab")
        lab.put(files)
        said = lab.trained([(name, "ab") for name in files])
        check("training speech: 11 utterances" in said and "left out" not in said, said)


def bad_sounds_are_counted_and_named(stretto):
    with Sounds(stretto) as lab:
        files = bad_sounds("ab")
        lab.put(files)
        said = lab.trained([(name, "ab") for name in files] + [("nowhere.wav", "ab")])
        for name in [*files, "nowhere.wav"]:
            check(name in said, f"nothing was said of {name}: {said}")


def the_first_bad_sound_stops_a_run_that_asks_for_it(stretto):
    with Sounds(stretto) as lab:
        lab.put(bad_sounds("ab"))
        said = lab.trained([("text.wav", "ab")], 'data.bad_samples="stop"', code=65)
        check("text.wav" in said, said)


def too_many_bad_sounds_are_an_error(stretto):
    with Sounds(stretto) as lab:
        lab.put(bad_sounds("ab"))
        lab.trained([("text.wav", "ab"), ("empty.wav", "ab")], "data.max_bad_samples=1", code=65)


def texts_that_are_odd_are_counted_and_shown(stretto):
    with Sounds(stretto) as lab:
        rows = [("train_4.wav", ""), ("train_5.wav", "a" * 400), ("train_6.wav", "ab ç ca"), ("train_0.wav", "ca")]
        said = lab.trained(rows, 'tokenizer.alphabet=" abc"')
        check("ç" in said, f"the character outside the alphabet: {said}")
        check("fewer frames than CTC needs" in said, f"the text that is too long: {said}")


def parts_that_are_not_within_their_files_are_counted(stretto):
    with Sounds(stretto) as lab:
        rows = [{"audio_filepath": f"train_{number}.wav", "duration": 0.3, "text": "ab"} for number in range(4)]
        rows += [{"audio_filepath": "train_4.wav", "offset": 50.0, "duration": 1.0, "text": "ab"},
                 {"audio_filepath": "train_5.wav", "offset": -1.0, "duration": 1.0, "text": "ab"}]
        (lab.root / "sounds/parts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = lab.train("run", f'data.train=["{lab.root}/sounds/parts.jsonl"]', *SHORT)
        check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr[-3000:]}")
        check("train_4.wav" in result.stderr or "parts.jsonl:5" in result.stderr, result.stderr)


def a_language_model_that_is_none_is_refused(stretto):
    with Sounds(stretto) as lab:
        result = lab.train("run", *SHORT)
        check(result.returncode == 0, result.stderr)
        for name, text in (("words.arpa", "no language model"), ("cut.arpa", "\\data\\\nngram 1=3\n\n\\1-grams:\n-1 <s>\n")):
            (lab.root / name).write_text(text)
            result = lab.run([lab.stretto, "eval", str(lab.root / "run"), "--checkpoint", "last", "decode.method=beam",
                              f"decode.lm={lab.root / name}"])
            check(result.returncode == 65 and name in result.stderr, f"{name}: {result.returncode}: {result.stderr}")


def a_stream_needs_a_model_that_sees_no_future(stretto):
    with Sounds(stretto) as lab:
        result = lab.train("run", *SHORT)
        check(result.returncode == 0, result.stderr)
        result = lab.run([lab.stretto, "infer", str(lab.root / "run"), "--checkpoint", "last", "--stream"], input="")
        check(result.returncode == 2 and "--stream" in result.stderr, f"{result.returncode}: {result.stderr}")


if __name__ == "__main__":
    main({test.__name__: test for test in (
        each_form_of_a_sound_is_read,
        bad_sounds_are_counted_and_named,
        the_first_bad_sound_stops_a_run_that_asks_for_it,
        too_many_bad_sounds_are_an_error,
        texts_that_are_odd_are_counted_and_shown,
        parts_that_are_not_within_their_files_are_counted,
        a_language_model_that_is_none_is_refused,
        a_stream_needs_a_model_that_sees_no_future,
    )})
