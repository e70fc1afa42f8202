"""Tests of benchmarks/compress_sweep.py with a made-up stretto, without a build: python3 compress_sweep_test.py"""

import json
import subprocess
import sys
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

from in_folder import ROOT, InTemporaryFolder

sys.path.insert(0, str(ROOT / "benchmarks"))
import compress_sweep
import compress_sweep_page
from compress_sweep_page import ONE_SHOT, Budget, Point

# `train CONFIG --run RUN …`, `tokenizer train --output FILE`, `compress RUN --bits 4 --run OUT`, `compress RUN… --grid FILE --dir DIR --json`.
# Larger models score better, and every bit and zero that is taken costs a little. A file named `broken` makes a point fail.
STRETTO = f"""#!{sys.executable}
import json, pathlib, re, sys, tomllib
words, here = sys.argv[1:], pathlib.Path(__file__).parent
after = lambda name: pathlib.Path(words[words.index(name) + 1])
with open(here / "calls", "a") as calls:
    calls.write(" ".join(words) + "\\n")
if words[0] == "tokenizer":
    after("--output").write_text("{{}}")
elif words[0] == "train":
    run, text = after("--run"), open(words[1]).read() + " ".join(words)
    folder = run / "checkpoints/step_9"
    folder.mkdir(parents=True)
    width = int(re.findall(r"model.d_model=(\\d+)|d_model = (\\d+)", text)[-1][0] or re.findall(r"d_model = (\\d+)", text)[-1])
    header = json.dumps({{"a": {{"dtype": "F32", "shape": [width, 100], "data_offsets": [0, 400 * width]}}, "b": {{"dtype": "F32", "shape": [8]}}}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with open(run / "metrics.jsonl", "w") as file:
        for step in range(1, 7):
            file.write(json.dumps({{"event": "train", "step": step, "seconds": step * 0.1, "tokens": 100, "target_tokens": 100}}) + "\\n")
        file.write(json.dumps({{"event": "valid", "step": 6, "nll": 3.5, "accuracy": 0.5}}) + "\\n")
elif "--grid" not in words:
    after("--run").mkdir()
else:
    grid, points = tomllib.loads(after("--grid").read_text())["grid"], []
    for run in map(pathlib.Path, words[1:words.index("--grid")]):
        width = int(re.search(r"x(\\d+)", run.name)[1])
        for bits in grid["bits"]:
            for share in grid["sparsity"]:
                if (here / "broken").exists() and bits == 4 and share:
                    continue
                points.append({{"run": run.name, "bits": bits, "sparsity": share, "zeros": share, "bytes": 100 * width * bits // 8 + 32, "weights": 100 * width + 8,
                               "score": 0.5 + width / 1000 - share / 10 - 0.1 / bits, "rate": None, "unit": ""}})
    print(json.dumps({{"metric": grid["metric"], "points": points}}, indent=2))
    if (here / "broken").exists():
        sys.exit("error: nothing would be left of head.weight")
"""


class Program(InTemporaryFolder):
    def sweep(self, *arguments):
        """Exit code, what was printed, what was said; `self.calls` has the words of the processes."""
        program = self.write("stretto", STRETTO)
        program.chmod(0o755)
        self.write("calls", "")
        done = subprocess.run([sys.executable, str(ROOT / "benchmarks/compress_sweep.py"), "--stretto", str(program), "--smoke", "--work",
                               str(self.folder / "work"), "--threads", "2", *arguments], capture_output=True, text=True, check=False,
                              cwd=self.folder, timeout=300)
        self.calls = (self.folder / "calls").read_text().splitlines()
        return done.returncode, done.stdout, done.stderr

    def trainings(self, folder):
        return [call for call in self.calls if call.startswith("train ") and f"/{folder}/" in call.split(" --run ")[1]]

    def test_every_size_is_trained_once_and_compressed_with_every_seed(self):
        code, printed, said = self.sweep("--out", "page.md")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"Estimate[^$]*\d\.\d\d h  pretraining: 2 models of 0.05 minutes\n[^$]*translation: 4 models")
        # Two sizes; two tasks of text and one of translation with two seeds.
        self.assertEqual((len(self.trainings("pretrained")), len(self.trainings("trained"))), (2, 2 * 3 * 2))
        self.assertEqual((self.folder / "page.md").read_text(), printed)
        for title, name in (("SST-2", "sst2"), ("SICK, entailment", "sick_entailment"), ("Multi30k, English to German", "multi30k")):
            self.assertIn(f"## {title}\n\n12 points of 2 sizes, seeds: 2.", printed)
            self.assertIn(f"](page_{name}.svg)", printed)
            xml.etree.ElementTree.parse(self.folder / f"page_{name}.svg")
        self.assertIn("| 2x64 | 6,408 | 56.1 ± 0.0 | -0.9 ± 0.0 | -2.2 ± 0.0 |", printed)
        self.assertEqual(list((self.folder / "work/grids").glob("*/points")), [])
        self.assertEqual(self.sweep("--out", "page.md")[0], 0)
        self.assertEqual([call for call in self.calls if not call.startswith("compress ") or "--grid" not in call], [])

    def test_a_point_that_fails_is_tried_again_and_the_others_make_the_page(self):
        self.write("broken", "")
        arguments = ("--parts", "text", "--tasks", "sst2")
        code, printed, said = self.sweep(*arguments)
        self.assertEqual(code, 1)
        self.assertIn("nothing would be left of head.weight", said)
        self.assertIn("10 points of 2 sizes", printed)
        (self.folder / "broken").unlink()
        code, printed, said = self.sweep(*arguments)
        self.assertEqual(code, 0, said)
        self.assertIn("12 points of 2 sizes", printed)
        self.assertEqual(self.trainings("trained"), [])

    def test_iterative_pruning_begins_each_share_with_the_one_before(self):
        code, printed, said = self.sweep("--parts", "text", "--tasks", "sst2", "--retrain", "3", "--arms", "iterative", "once")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.trainings("retrained")), 2 * 2 * 2)
        recipes = {path.parent.name.split("_")[2]: path.read_text() for path in (self.folder / "work/retrained").glob("sst2_1_*/2x64-0.5.toml")}
        for arm in ("iterative", "once"):
            self.assertIn('[compress.prune]\nsparsity = 0.5\nscope = "layer"\nschedule = "once"\nbegin = 0\n', recipes[arm])
            self.assertRegex(recipes[arm], r'init_from = ".*/trained/sst2_1_\w+/2x64"')
            self.assertIn(f"| 2x64 | {arm} | ", printed)

    def test_hours_that_are_too_few_are_refused_and_enough_choose_the_minutes(self):
        options = types.SimpleNamespace(hours=1, least_minutes=0.5)
        with self.assertRaisesRegex(SystemExit, "1 hours are too few: without training, it takes 2.0 hours"):
            compress_sweep.choose_minutes(options, {"points": 7200}, 3)
        options.hours = 3
        compress_sweep.choose_minutes(options, {"points": 7200}, 3)
        self.assertEqual((options.minutes, options.translation_minutes), (20, 20))

    def test_a_run_that_was_removed_is_told(self):
        self.assertEqual(self.sweep("--parts", "translation", "--seeds", "2")[0], 0)
        cells = self.folder / "work/compress_sweep.jsonl"
        kept = [line for line in cells.read_text().splitlines() if json.loads(line)["key"]["part"] != "grid"]
        self.write("work/compress_sweep.jsonl", "\n".join(kept) + "\n")
        for folder in (self.folder / "work/trained").glob("*/1x32/checkpoints"):
            folder.rename(folder.with_name("away"))
        code, _, said = self.sweep("--parts", "translation")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"/1x32 is gone, but .*compress_sweep.jsonl has its line: bring the folder back")

    def test_wrong_sizes_and_grids_without_the_models_as_they_are_are_refused(self):
        for words, message in ((["--sizes", "4x100"], "'4x100' is no size"), (["--budgets", "x"], "invalid float value")):
            code, _, said = self.sweep(*words)
            self.assertEqual(code, 2)
            self.assertIn(message, said)
        options = types.SimpleNamespace(smoke=False, page=True, work=self.folder, data=None, sparsity=[0.5], bits=[8])
        parser = unittest.mock.Mock(error=unittest.mock.Mock(side_effect=SystemExit))
        with self.assertRaises(SystemExit):
            compress_sweep.checked(parser, options)
        self.assertIn("--bits needs 32 and --sparsity 0", parser.error.call_args[0][0])


def point(size, megabytes, scores, bits=32, sparsity=0.0, arm=ONE_SHOT):
    costs = {name: megabytes * 1e6 for name in compress_sweep_page.MEMORIES}
    return Point(size, int(size.split("x")[1]), arm, bits, sparsity, costs, list(scores))


class Reading(unittest.TestCase):
    def test_zeros_that_are_left_out_cost_a_bit_for_every_weight(self):
        self.assertEqual(compress_sweep.bytes_without_zeros(4000, 32, 0.5, 1000), 4000 - 2000 + 125)
        self.assertEqual(compress_sweep.bytes_without_zeros(500, 4, 0.15, 1000), 500, "the bits would take more than they spare")

    def test_the_larger_size_wins_where_it_fits_compressed_and_scores_better(self):
        points = [point("1x64", 1, (70, 72)), point("1x128", 4, (80, 80)), point("1x128", 1, (75, 77), bits=8), point("1x64", 0.25, (60, 60), bits=8)]
        half, one, four = (Budget(points, megabytes, compress_sweep_page.STORED) for megabytes in (0.5, 1, 4))
        self.assertIsNone(half.next)
        self.assertEqual((one.winner.size, one.next.size), ("1x128", "1x64"))
        self.assertEqual(one.row()[1:4], ["1x64, as it is: 71.0 ± 1.4", "1x128, 8 bits: 76.0 ± 1.4", "+5.0"])
        self.assertEqual(four.row()[2:4], ["none fits", ""])
        words = compress_sweep_page.reading([half, one, four])
        self.assertIn("at 2 budgets. The largest that fits is the best at 2 of them, the smallest at 0", words)
        self.assertIn("ahead at 1, beyond 2 standard errors at 1; the others at 0", words)

    def test_differences_within_the_errors_of_both_means_are_called_so(self):
        self.assertEqual(compress_sweep_page.difference(point("1x64", 1, (70, 74)), point("2x64", 1, (71, 75))), "-1.0, within noise")
        self.assertEqual(compress_sweep_page.difference(point("1x64", 1, (70,)), point("2x64", 1, (60,))), "+10.0, one seed")

    def test_losses_are_those_of_each_seed_against_itself(self):
        points = [point("1x64", 1, (60, 80)), point("1x64", 1, (58, 78), bits=4), point("1x128", 2, (70, 90)), point("1x128", 2, (70, 89), bits=4),
                  point("1x256", 4, (71, 71)), point("1x256", 4, (71, 71), bits=4)]
        said = compress_sweep_page.losses(points)
        self.assertIn("| 1x64 | 64 | 70.0 ± 14.1 | -2.0 ± 0.0 |", said)
        self.assertIn("4 bits -1.00.", said)

    def test_width_and_depth_are_compared_along_their_lines_alone(self):
        sizes = [compress_sweep.read_size(word) for word in ("2x64", "2x128", "4x64", "8x64")]
        points = [point("2x64", 1, (50, 50)), point("2x128", 2, (60, 62)), point("4x64", 2, (55, 57)), point("8x64", 4, (70, 70))]
        said = compress_sweep_page.width_against_depth(types.SimpleNamespace(sizes=sizes), points, [1, 2, 4], compress_sweep_page.STORED)
        self.assertIn("best of width 64, any depth", said)
        self.assertIn("| 2 | 2x128, as it is: 61.0 ± 1.4 | 4x64, as it is: 56.0 ± 1.4 | +5.0 |", said)
        self.assertIn("width is ahead at 1 and depth at 1 of 2 budgets", said)


if __name__ == "__main__":
    unittest.main()
