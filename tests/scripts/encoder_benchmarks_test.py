"""Tests of benchmarks/encoders_packed_beside.py, without a build: python3 encoder_benchmarks_test.py"""

import json
import os
import subprocess
import sys
import unittest

from in_folder import ROOT, InTemporaryFolder

SCRIPT = ROOT / "benchmarks/encoders_packed_beside.py"


class EncodersPackedBeside(InTemporaryFolder):
    """With a made-up stretto, and a made-up Python in the place of the other programs."""

    # Weights of 1000, 260 and 140 bytes. Labels are 0 and 1 in turn; FLIP names bits whose first label is the other one.
    STRETTO = """#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
open(os.environ["CALLS"], "a").write(" ".join(words) + "\\n")
after = lambda name: pathlib.Path(words[words.index(name) + 1])
if words[0] in ("train", "compress"):
    step = after("--run") / "checkpoints/step_3"
    step.mkdir(parents=True, exist_ok=True)
    size = {"8": 260, "4": 140}[str(after("--bits"))] if words[0] == "compress" else 1000
    (step / "model.safetensors").write_bytes(bytes(size))
    (after("--run") / "metrics.jsonl").write_text(json.dumps({"event": "end", "step": 3}) + "\\n")
elif words[0] == "export":
    pathlib.Path(words[-1]).mkdir(parents=True)
    (pathlib.Path(words[-1]) / "config.json").write_text("{}")
elif words[0] == "infer" and words[-1].endswith(".txt"):
    for number, _ in enumerate(open(words[-1])):
        label = (number + (number == 0 and os.environ.get("FLIP", "none") in words[1])) % 2
        print(f"{label}\\t0={0.9 - 0.8 * label}\\t1={0.1 + 0.8 * label}")
"""
    PYTHON = """#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
open(os.environ["CALLS"], "a").write(" ".join(words) + "\\n")
after = lambda name: words[words.index(name) + 1]
if words[1] == "versions":
    print(json.dumps({"torch": "2.0", "transformers": "5.0", "onnxruntime": "1.0", "onnx": "1.1", "onnx-ir": "1.2", "torchao": os.environ.get("TORCHAO")}))
elif after("--engine") == os.environ.get("FAIL"):
    sys.exit("RuntimeError: no such operator")
elif words[1] == "infer":
    rows = len(open(after("--texts")).readlines()) - 1
    with open(after("--predictions"), "w") as file:
        for number in range(rows):
            file.write(f"{number % 2}\\t{0.9 - 0.8 * (number % 2)}\\t{0.1 + 0.8 * (number % 2)}\\n")
    seconds = {"onnx": 50, "torch": 60, "onnx_int8": 40}.get(after("--engine"), 70) + (after("--threads") == "1")
    print(json.dumps({"seconds": seconds, "batch": 16, "model_bytes": 1000, "versions": {"torch": "2.0"}}))
"""

    def measure(self, *arguments, **environment):
        """Exit code, page, stderr."""
        for name, text in (("stretto", self.STRETTO), ("python", self.PYTHON)):
            self.write(name, text).chmod(0o755)
        command = [sys.executable, str(SCRIPT), "--smoke", "--stretto", str(self.folder / "stretto"), "--python", str(self.folder / "python"),
                   "--work", str(self.folder / "work"), "--tasks", "sst2", "--threads", "2", "--batches", "1", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, timeout=300,
                              env={**os.environ, "CALLS": str(self.folder / "calls"), **environment})
        return done.returncode, done.stdout, done.stderr

    def calls(self, word):
        return [line for line in (self.folder / "calls").read_text().splitlines() if word in line.split()]

    def test_programs_of_equal_bits_stand_beside_each_other_and_the_fastest_counts(self):
        code, printed, said = self.measure("--out", "page.md", "--batches", "1", "32", "best")
        self.assertEqual(code, 0, said)
        self.assertEqual((self.folder / "page.md").read_text(encoding="utf-8"), printed)
        self.assertIn("## tiny, random: SST-2, 20 texts", printed)
        for batch in ("1", "32", "best"):
            self.assertRegex(printed, rf"\| fp32 beside the fastest fp32, ONNX Runtime \| {batch} \| [\d,.]+ \| 1.3 \| yes \|")
            self.assertRegex(printed, rf"\| int8 beside the fastest int8, ONNX Runtime, dynamic \| {batch} \| [\d,.]+ \| 1.3 \| yes \|")
        self.assertRegex(printed, r"\| int4 beside int8 of Stretto \| 1 \| [\d.,]+ \| 1.5 \| (yes|no) \|")
        self.assertRegex(printed, r"\| int4 beside int8 of Stretto \| 32 \| [\d.,]+ \|  \|  \|")
        self.assertIn("| size of int8, of fp32 |  | 0.260 | at most 0.26 | yes |", printed)
        self.assertIn("| size of int4, of fp32 |  | 0.140 | at most 0.14 | yes |", printed)
        self.assertRegex(printed, r"\| best \(16\) \| ONNX Runtime, fp32 \| 0\.4 \| [\d,.]+ \| \d+ \| 2 \| 0\.0 \(1\.000\) \| 100\.0%")
        self.assertIn("\nLeft out: torchao, dynamic, int8; torchao, dynamic, compiled, int8; torchao, weights, int4; ", printed)
        self.assertIn("Versions: torch 2.0.", printed)

    def test_batches_are_as_many_texts_for_every_program(self):
        code, _, said = self.measure("--batches", "1", "32", "best")
        self.assertEqual(code, 0, said)
        inferred = self.calls("infer")
        own = [line for line in inferred if line.startswith("infer") and line.endswith(".txt")]
        for batch, tokens in (("1", 128), ("32", 4096)):
            # fp32, int8 and int4 once each.
            self.assertEqual(sum(f"eval.max_samples={batch} eval.max_tokens={tokens}" in line for line in own), 3)
            # ONNX Runtime with one thread and with both: three forms; transformers, compiled too, and PyTorch's int8.
            self.assertEqual(sum(f"--batches {batch} " in line for line in inferred), 3 * 2 + 3)
        self.assertEqual(sum("eval.max_samples" not in line for line in own), 3)
        self.assertEqual(sum("--batches 8,16,32,64 " in line for line in inferred), 9)

    def test_a_second_call_measures_only_what_is_missing(self):
        self.assertEqual(self.measure("--no-compile")[0], 0)
        (self.folder / "calls").unlink()
        code, printed, said = self.measure()
        self.assertEqual(code, 0, said)
        self.assertEqual((self.calls("train"), self.calls("export")), ([], []))
        self.assertEqual({line.split("--engine ")[1].split()[0] for line in self.calls("infer")}, {"compiled"})
        self.assertIn("| transformers, compiled, fp32 |", printed)
        (self.folder / "calls").unlink()
        self.assertEqual(self.measure("--page")[1].splitlines()[-3:], printed.splitlines()[-3:])
        self.assertFalse((self.folder / "calls").exists())

    def test_a_program_that_not_every_processor_has_is_left_out_and_said(self):
        code, printed, said = self.measure(FAIL="dynamic_int8")
        self.assertEqual(code, 0, said)
        self.assertIn("Left out: PyTorch, dynamic, int8. RuntimeError: no such operator.\n", printed)
        self.assertEqual(sum("--engine dynamic_int8" in line for line in self.calls("infer")), 1)
        self.assertNotIn("| PyTorch, dynamic, int8 |", printed)

    def test_a_package_that_was_installed_since_is_measured(self):
        self.assertIn("PYTHON has no torchao.\n", self.measure("--no-compile")[1])
        code, printed, said = self.measure("--no-compile", TORCHAO="0.18")
        self.assertEqual(code, 0, said)
        self.assertIn("| torchao, dynamic, int8 |", printed)
        self.assertNotIn("| torchao, dynamic, compiled, int8 |", printed)

    def test_another_program_that_fails_makes_it_fail_and_the_rest_is_measured(self):
        code, printed, said = self.measure(FAIL="torch")
        self.assertEqual(code, 1)
        self.assertIn("no such operator", said)
        self.assertIn("| ONNX Runtime, fp32 |", printed)

    def given(self):
        self.write("mine/config.toml", "")
        step = self.folder / "mine/checkpoints/step_00000001/model.safetensors"
        step.parent.mkdir(parents=True)
        step.write_bytes(bytes(1000))
        return ["--run", str(self.folder / "mine"), "--task", "sst2", "--tasks"]

    def test_answers_of_given_runs_are_judged_by_their_bits(self):
        # One of 20 answers differs: within what int8 may change, but not fp32.
        for flip, code in (("mine_int8", 0), ("mine_int4", 0)):
            found, printed, said = self.measure(*self.given(), "--work", flip, FLIP=flip)
            self.assertEqual(found, code, said)
            self.assertIn("| 95.0%, 8e-01 |", printed)
            (self.folder / "mine/checkpoints/step_00000001/model.safetensors").unlink()
            (self.folder / "mine/checkpoints/step_00000001").rmdir()
        found, printed, said = self.measure(*self.given(), "--work", "differs", FLIP="/mine")
        self.assertEqual(found, 1)
        self.assertIn("95.0%, 8e-01, **differs**", printed)

    def test_runs_of_the_user_are_not_trained(self):
        code, printed, said = self.measure(*self.given())
        self.assertEqual(code, 0, said)
        self.assertEqual(self.calls("train"), [])
        self.assertIn("## mine: SST-2, 20 texts", printed)

    def test_options_of_compress_are_passed_on(self):
        self.assertEqual(self.measure("--int8=--group 64", "--int4=--rounding calibrated --group 32")[0], 0)
        self.assertEqual([line.split("--bits ")[1].split(" --run")[0] for line in self.calls("compress")],
                         ["8 --group 64", "4 --rounding calibrated --group 32"])

    def test_wrong_arguments_are_told(self):
        for arguments, words in ((["--batches", "0"], "0 is neither a number of texts nor best"), (["--run", "x"], "each --run needs its --task"),
                                 (["--run", "x", "--task", "sst2"], "x is no run folder"), (["--model", "/no/model"], "there is no /no/model")):
            code, printed, said = self.measure(*arguments)
            self.assertEqual((code, printed), (2, ""))
            self.assertIn(words, said)


class Peer(unittest.TestCase):
    def test_versions_of_missing_packages_are_null(self):
        done = subprocess.run([sys.executable, str(ROOT / "benchmarks/encoders_packed_peer.py"), "versions"], capture_output=True, text=True,
                              check=True)
        self.assertEqual(set(json.loads(done.stdout)), {"torch", "transformers", "onnxruntime", "onnx", "onnx-ir", "torchao"})


if __name__ == "__main__":
    unittest.main()
