"""Tests of the programs in benchmarks/ about speech, without a build: python3 speech_benchmarks_test.py"""

import pathlib
import subprocess
import sys
import types
import unittest
import unittest.mock
import wave

from in_folder import ROOT, InTemporaryFolder

sys.path.insert(0, str(ROOT / "benchmarks"))
import speech_files
import speech_recipes
import speech_start
import speech_table

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def write_wave(path, seconds):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(2 * round(8000 * seconds)))


class SpeechFiles(InTemporaryFolder):
    def test_texts_are_normalised_as_recipes_do(self):
        for text, plain in (("Author of the danger-trail, Philip Steels, etc.", "author of the danger trail philip steels etc"),
                            ("Don't 'quote' it; 50% and/or  so—on", "don't quote it 50 and or so on"), ("\ufb01ne\u2026", "fine")):
            self.assertEqual(speech_files.plain(text), plain)

    def test_a_manifest_is_read_as_it_was_written(self):
        rows = [("/a b/c.wav", "one two"), ("d.flac", "three")]
        path = speech_files.write_manifest(self.folder / "x/list.tsv", rows)
        self.assertEqual(path.read_text().splitlines()[0], "wav_filename\ttranscript")
        self.assertEqual(speech_files.manifest_rows(path), rows)

    def test_waiting_is_a_share_of_the_time_of_updates(self):
        events = [{"data_wait_seconds": 0.5, "frames": 100, "frames_per_second": 50}, {"data_wait_seconds": 0, "frames": 100,
                                                                                       "frames_per_second": 100}]
        self.assertAlmostEqual(speech_files.waiting_share(events), 0.5 / 3)


class SpeechTable(InTemporaryFolder):
    def options(self):
        for number in range(60):
            write_wave(self.folder / f"data/fsdd/valid/{number % 10}_anna_{number}.wav", 0.2 + 0.013 * number)
        return types.SimpleNamespace(work=self.folder)

    def test_utterances_are_of_0_3_to_15_seconds_and_their_texts_are_the_words_in_them(self):
        manifest = speech_table.utterances(self.options())
        lengths = sorted(speech_table.seconds_of(manifest))
        self.assertEqual(len(lengths), 50)
        self.assertLess(abs(lengths[0] - 0.3), 0.1)
        self.assertLess(abs(lengths[-1] - 15), 0.5)
        rows = speech_files.manifest_rows(manifest)
        self.assertNotEqual([pathlib.Path(path).name for path, _ in rows], sorted(pathlib.Path(path).name for path, _ in rows))
        for _, text in rows:
            self.assertTrue(set(text.split()) <= set(DIGITS) and text)

    def test_numbers_that_are_missing_differ_without_bound(self):
        self.assertEqual(speech_table.furthest([[0.0, -1.0]], [[0.0, -1.0]]), (0.0, 0.0))
        self.assertEqual(speech_table.furthest([[-1.0]], [[-1.5]]), (0.5, 0.25))
        self.assertEqual(speech_table.furthest([[0.0]], []), (float("inf"),) * 2)

    def test_batches_have_exactly_so_many_files_and_every_file_is_asked_for(self):
        program = self.write("stretto", f"""#!{sys.executable}
import json, sys
files = [word for word in sys.argv[3:] if word.endswith(".wav")]
open({str(self.folder / "calls")!r}, "a").write(f"{{len(files)}} {{[w for w in sys.argv if 'batch_seconds' in w][0]}}\\n")
for file in files:
    print(json.dumps({{"file": file, "text": "one", "log_probs": [[-0.1, -2.0]]}}))
""")
        program.chmod(0o755)
        options = types.SimpleNamespace(stretto=str(program))
        files = [f"{number}.wav" for number in range(20)]
        for batch, calls in ((1, ["20 eval.batch_seconds=0.001"]), (8, [f"{count} eval.batch_seconds=100000" for count in (8, 8, 4)])):
            (self.folder / "calls").write_text("")
            found = speech_table.heard(options, pathlib.Path("run"), files, batch)
            self.assertEqual((self.folder / "calls").read_text().splitlines(), calls)
            self.assertEqual(found["7.wav"], ("one", [[-0.1, -2.0]]))


class SpeechRecipes(InTemporaryFolder):
    def test_each_speaker_is_left_out_with_each_seed(self):
        work = self.folder / "work"
        for speaker in ("anna", "bela", "carl"):
            for digit in range(2):
                write_wave(work / f"data/sources/fsdd/recordings/{digit}_{speaker}_7.wav", 0.1)
        options = types.SimpleNamespace(parts=("speakers",), seeds=3, smoke=False, sources=self.folder, work=work)
        found = list(speech_recipes.trainings(options, work / "data"))
        self.assertEqual(len(found), 3 * 3 * len(speech_recipes.RECIPES["fsdd"]))
        self.assertEqual(len({run for _, _, _, _, run, _ in found}), len(found))
        self.assertEqual(sorted(path.name for path in (work / "data/speakers/bela/train").iterdir()),
                         ["0_anna_7.wav", "0_carl_7.wav", "1_anna_7.wav", "1_carl_7.wav"])
        self.assertEqual(len(list((work / "data/speakers/bela/valid").iterdir())), 2)

    def test_a_page_has_the_sums_over_speakers(self):
        cells = [{"key": {"part": "speakers", "what": f"net without {speaker}", "seed": 1}, "wer": wer, "cer": 1.0, "errors": 1, "words": 50,
                  "seconds": 3.0, "waiting": 0.01} for speaker, wer in (("anna", 2.0), ("bela", 4.0))]
        options = types.SimpleNamespace(threads=2, seeds=1)
        page = speech_recipes.page_of(options, types.SimpleNamespace(all=lambda: cells, head=lambda: None))
        self.assertIn("| speakers | net, all speakers | 2 | 3.00 (2.00 to 4.00) | 1.00 (1.00 to 1.00) | 2 of 100 |", page)


class SpeechStart(InTemporaryFolder):
    def test_clips_are_repeated_as_files_of_their_own_until_they_are_long_enough(self):
        for part, names in (("train", ("a", "b")), ("valid", ("c",))):
            rows = []
            for name in names:
                write_wave(self.folder / f"data/sources/{name}.wav", 0.1)
                rows.append((self.folder / f"data/sources/{name}.wav", name))
            speech_files.write_manifest(self.folder / f"data/kathleen/{part}.tsv", rows)
        options = types.SimpleNamespace(work=self.folder, hours=4 * speech_start.CLIP_HOURS)
        with unittest.mock.patch.object(speech_start.speech_recipes, "cut_kathleen", lambda *_: None):
            rows = speech_files.manifest_rows(speech_start.long_manifest(options))
        self.assertEqual([text for _, text in rows], list("abc") * 4)
        self.assertEqual(len({path for path, _ in rows}), 12)
        speech_start.forget(self.folder / f"data/kathleen_{options.hours:g}h/list.tsv")


class Help(unittest.TestCase):
    def test_each_program_says_what_it_does(self):
        for name in ("speech_errors_beside_torch", "speech_precision", "speech_recipes", "speech_start", "speech_table", "language_model_opens",
                     "speech_beside_torch", "synthesis_round_trip", "tacotron_beside_torch", "audio_beside", "ctc_beside_torch",
                     "ctc_search_beside"):
            said = subprocess.run([sys.executable, str(ROOT / f"benchmarks/{name}.py"), "--help"], capture_output=True, text=True, check=False)
            self.assertEqual((said.returncode, said.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
