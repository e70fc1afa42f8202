"""Tests of the programs in benchmarks/ about compressed models, without a build: python3 compressed_benchmarks_test.py"""

import argparse
import json
import pathlib
import subprocess
import sys
import types
import unittest
import unittest.mock

from in_folder import ROOT, InTemporaryFolder

sys.path.insert(0, str(ROOT / "benchmarks"))
import decoding_beside
import generation_beside
import student
import understanding

# `train`, `distill`, `compress`, `export`, `tokenizer encode`, `infer` and `score`, which write their words to calls beside them.
STRETTO = f"""#!{sys.executable}
import json, pathlib, sys
words = sys.argv[1:]
with open(pathlib.Path(sys.argv[0]).with_name("calls"), "a") as calls:
    calls.write(" ".join(words) + "\\n")

def model(folder, size):
    (folder / "checkpoints/step_1").mkdir(parents=True, exist_ok=True)
    (folder / "checkpoints/step_1/model.safetensors").write_bytes(bytes(size))

run = pathlib.Path(words[words.index("--run") + 1]) if "--run" in words else None
if words[0] in ("train", "distill"):
    model(run, 4_000_000)
    (run / "metrics.jsonl").write_text(json.dumps({{"event": "end", "step": 24, "seconds": 90}}) + "\\n")
if words[0] == "distill":
    (run / "labels").mkdir()
    (run / "labels/text_0.labels").write_text("a\\nb\\n")
    (run / "labels/pairs.tsv").write_text("a b 1\\n")
    model(run / "int8", 1_000_000)
elif words[0] == "compress":
    model(run, 1_000_000)
    (run / "compress.json").write_text("{{}}")
elif words[0] == "export":
    place = pathlib.Path(words[-1])
    if place.suffix == ".gguf":
        place.write_bytes(bytes(5))
    else:
        place.mkdir()
        (place / "model.bin").write_bytes(bytes(7))
elif words[0] == "tokenizer":
    print(sys.stdin.read(), end="")
elif words[0] == "infer":
    print(pathlib.Path(words[2]).read_text(), end="")
    print("20 lines in 1 batch, 98 target tokens, " + ("0.25" if words[1].endswith("int8") else "0.50") + " s", file=sys.stderr)
elif words[0] == "score":
    print(json.dumps({{"score": 12.5}}))
"""


class WithStretto(InTemporaryFolder):
    def setUp(self):
        super().setUp()
        for name, script in (("stretto", STRETTO), ("python", "#!/bin/sh\nexit 1\n")):
            self.write(name, script).chmod(0o755)

    def calls(self, command):
        return [line.split() for line in (self.folder / "calls").read_text().splitlines() if line.split()[0] == command]


class Student(WithStretto):
    def measure(self, *arguments):
        command = [sys.executable, str(ROOT / "benchmarks/student.py"), "--stretto", str(self.folder / "stretto"), "--python",
                   str(self.folder / "python"), "--work", str(self.folder / "work"), "--smoke", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def test_a_recipe_has_the_settings_that_it_includes_and_its_own_behind_them(self):
        self.write("parts/a.toml", '[model]\nd_model = 512\nnorm = "post"\nencoder = { num_layers = 6, num_heads = 8 }\n[data]\nx = 1\n')
        recipe = self.write("b.toml", 'include = "parts/a.toml"\n[model]\nd_model = 256\nencoder = { num_layers = 2 }\n[train]\ny = 1\n')
        self.assertEqual(student.words_of(student.settings(recipe, ("model",))),
                         ["model.d_model=256", "model.norm=post", "model.encoder.num_layers=2", "model.encoder.num_heads=8"])

    def test_all_models_are_measured_on_one_thread_and_a_second_call_measures_nothing_anew(self):
        code, printed, said = self.measure("--out", "page.md")
        self.assertEqual(code, 0, said)
        self.assertIn("| student, int8, shortlist | 1 | 12.50 | 80.0 | 250 | 1.0 | 17 |", printed)
        self.assertIn("| teacher | 5 | 12.50 | 40.0 |  | 4.0 |", printed)
        self.assertIn("The student: 24 updates, 1.5 minutes of training, 2 sentences labelled", printed)
        self.assertIn("CTranslate2 was not there and is left out.", printed)
        self.assertIn("has no ctranslate2", said)
        self.assertEqual((self.folder / "page.md").read_text(encoding="utf-8"), printed)
        for words in self.calls("infer"):
            self.assertIn("run.threads=1", words)
            lists = [word for word in words if word.startswith("decode.shortlist=")]
            self.assertEqual(len(lists), 1, "a run that was distilled names its list itself")
        before = (self.folder / "calls").read_text().splitlines()
        code, again, _ = self.measure()
        self.assertEqual((code, again.splitlines()[8:]), (0, printed.splitlines()[8:]))
        new = (self.folder / "calls").read_text().splitlines()[len(before):]
        self.assertEqual({line.split()[0] for line in new} - {"tokenizer"}, set())

    def test_the_student_without_a_teacher_has_the_same_model_and_the_dropout_of_the_recipe(self):
        self.assertEqual(self.measure("--student-key", "model.d_model=48")[0], 0)
        (distilled,), (_, alone) = self.calls("distill"), self.calls("train")
        sizes = [[word for word in words if word.startswith(("model.", "optim."))] for words in (distilled, alone)]
        self.assertEqual(sizes[0] + ["model.dropout=0.3"], sizes[1])
        self.assertEqual(sizes[0][-1], "model.d_model=48")

    def test_a_teacher_that_is_there_is_not_trained(self):
        (self.folder / "big/checkpoints/step_1").mkdir(parents=True)
        (self.folder / "big/checkpoints/step_1/model.safetensors").write_bytes(bytes(9_000_000))
        code, printed, said = self.measure("--teacher", str(self.folder / "big"))
        self.assertEqual(code, 0, said)
        self.assertIn("| teacher | 5 | 12.50 | 40.0 |  | 9.0 |", printed)
        self.assertEqual(len(self.calls("train")), 1)


class DecodingBeside(WithStretto):
    def options(self, **more):
        return argparse.Namespace(**{"threads": 2, "preload": "", "shortlist": None, "int8": None, "beams": [5], **more})

    def test_each_threading_of_ctranslate2_is_measured_once(self):
        self.assertEqual([particular for _, _, particular in decoding_beside.peers(self.options(), "fp32").values()],
                         [(2, 1, False), (1, 2, False)])
        self.assertEqual(list(decoding_beside.peers(self.options(threads=1), "int8")), ["CTranslate2, int8"])
        self.assertEqual(list(decoding_beside.peers(self.options(threads=1, preload="mkl.so"), "fp32")), ["CTranslate2", "CTranslate2, MKL"])

    def test_int8_without_a_run_is_made_and_ctranslate2_has_its_own_file(self):
        options = self.options(stretto=str(self.folder / "stretto"), run=self.folder / "run", work=self.folder)
        self.assertEqual(decoding_beside.packed(options), self.folder / "int8")
        decoding_beside.packed(options)
        self.assertEqual(len(self.calls("compress")), 1)
        decoding_beside.make(options, {"fp32", "int8"})
        self.assertEqual({words[words.index("--weights") + 1]: pathlib.Path(words[-1]).name for words in self.calls("export")},
                         {"float32": "ct2", "int8": "ct2_int8"})

    def test_rates_and_memory_stand_beside_the_faster_threading(self):
        cell = lambda program, seconds, peak, bleu: {"key": {"program": program, "beam": 5, "round": 1, "sentences": 100}, "seconds": seconds,
                                                     "peak_mib": peak, "bleu": bleu, "equal": 1.0, "bytes": 2_000_000, "version": "4.8.5"}
        cells = [cell("Stretto", 1.0, 60, 30.0), cell("CTranslate2, a batch a thread", 2.0, 80, 30.1),
                 cell("CTranslate2, all threads a batch", 4.0, 40, 30.1)]
        found = types.SimpleNamespace(all=lambda **key: [one for one in cells if all(one["key"][name] == value for name, value in key.items())])
        table = decoding_beside.sections(self.options(), found)
        self.assertIn("CTranslate2 4.8.5.", table)
        self.assertIn("| 5 | Stretto | 100.0 | 2.00 | 1.1 | 60 (0.75) | 2.0 | 30.00 | 100.0% |", table)
        self.assertIn("| 5 | CTranslate2, all threads a batch | 25.0 |  |  | 40 | 2.0 | 30.10 (+0.10) | 100.0% |", table)


class GenerationWithFewBits(WithStretto):
    def setUp(self):
        super().setUp()
        (self.folder / "run/checkpoints/step_0").mkdir(parents=True)
        (self.folder / "run/checkpoints/step_0/model.safetensors").write_bytes(bytes(11))
        self.options = types.SimpleNamespace(stretto=str(self.folder / "stretto"), python=str(self.folder / "python"), threads=1)

    def test_four_bits_have_the_groups_of_q4_0_and_a_file_is_made_once(self):
        run = self.folder / "run"
        for bits, name, size in ((32, "run", 11), (8, "run_int8", 1_000_000), (4, "run_int4", 1_000_000), (4, "run_int4", 1_000_000)):
            found, file = generation_beside.compressed(self.options, run, bits)
            self.assertEqual((found.name, file.stat().st_size), (name, size))
        self.assertEqual([words[2:-2] for words in self.calls("compress")], [["--bits", "8"], ["--bits", "4", "--group", "32"]])

    def test_other_programs_read_the_same_weights(self):
        run = self.folder / "run"
        for program, bits, size in (("CTranslate2", 32, 7), ("CTranslate2", 8, 7), ("llama.cpp", 32, 5), ("llama.cpp", 8, 5), ("llama.cpp", 8, 5)):
            self.assertEqual(generation_beside.converted(self.options, run, program, bits)[1].stat().st_size, size)
        self.assertEqual([(words[3], words[5]) for words in self.calls("export")],
                         [("ctranslate2", "float32"), ("ctranslate2", "int8"), ("gguf", "float32"), ("gguf", "int8")])

    def test_a_program_that_is_missing_is_left_out(self):
        with unittest.mock.patch.object(sys, "stderr"):
            self.assertFalse(generation_beside.is_there(self.options, "llama.cpp"))
        self.options.python = sys.executable
        with unittest.mock.patch.dict(generation_beside.MODULES, {"llama.cpp": ("no_such_module", "json")}):
            self.assertTrue(generation_beside.is_there(self.options, "llama.cpp"))

    def test_ratios_are_those_of_equal_bits_and_bits_a_weight_those_of_the_file(self):
        cells = understanding.Cells(self.folder / "bits.jsonl")
        both = lambda value: {"equal": value, "unequal": value}
        for program, bits, seconds, size in (("Stretto", 8, 1.0, 110), ("Stretto", 4, 0.5, 60), ("llama.cpp", 8, 1.5, 120), ("llama.cpp", 4, 0.25, 70)):
            key = {"program": program, "form": "llama", "bits": bits, "round": 1, "new": 128}
            # 127 tokens come behind the first one.
            cells.measure(key, lambda seconds=seconds, size=size: {"first": both(0.25), "seconds": both(0.25 + 1.27 * seconds), "peak_mib": 9,
                                                                   "bytes": size, "weights": 100})
        text = generation_beside.sections_bits(cells)
        self.assertIn("CTranslate2 was not there and is left out.", text)
        self.assertIn("| Llama | 8 | equal | Stretto | 100.0 |  |  | 0.25 | 0.0 | 8.80 | 9 |", text)
        self.assertIn("| Llama | 8 | equal | llama.cpp Q8_0 | 66.7 | 1.50 | 1.0 | 0.25 | 0.0 | 9.60 | 9 |", text)
        self.assertIn("| Llama | 4 | unequal | llama.cpp Q4_0 | 400.0 | 0.50 | 1.0 | 0.25 | 0.0 | 5.60 | 9 |", text)


class Help(unittest.TestCase):
    def test_each_program_says_what_it_does(self):
        for name in ("decoding_beside", "decoding_peer", "generation_beside", "generation_peer", "student"):
            said = subprocess.run([sys.executable, str(ROOT / f"benchmarks/{name}.py"), "--help"], capture_output=True, text=True, check=False)
            self.assertEqual((said.returncode, said.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
