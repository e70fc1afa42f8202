"""Tests of the programs in benchmarks/, without a build: python3 benchmarks_test.py"""

import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

from in_folder import ROOT, InTemporaryFolder, load


class FollowMetrics(InTemporaryFolder):
    def follow(self, script):
        """Follows a shell script that stands in for `stretto train`."""
        return subprocess.run(
            [sys.executable, str(ROOT / "benchmarks/follow_metrics.py"), str(self.folder), "--", "sh", "-c", script],
            capture_output=True, text=True, check=False, cwd=self.folder, timeout=60)

    def test_updates_and_validations_are_printed_as_they_come(self):
        answer = self.follow("""
            echo '{"event": "train", "step": 1, "target_tokens": 7, "loss": 2.5}' >>metrics.jsonl
            printf '{"event": "valid", "step": 1, ' >>metrics.jsonl; sleep 0.1; echo '"nll": 3}' >>metrics.jsonl
            echo '{"event": "end", "step": 1}' >>metrics.jsonl; echo 'a warning' >&2""")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(answer.stdout, 'UPD 1 7 2.5000\nVALID {"event": "valid", "step": 1, "nll": 3}\n')
        self.assertEqual(answer.stderr, "")

    def test_the_error_of_a_command_that_fails_is_shown_with_its_exit_code(self):
        answer = self.follow("""
            seq 100; echo 'error: my.toml:3:1: unknown key' >&2; echo '  did you mean' >&2; exit 2""")
        self.assertEqual(answer.returncode, 2)
        lines = answer.stderr.splitlines()
        self.assertEqual(lines[0], "follow_metrics.py: sh left with exit code 2:")
        self.assertEqual(lines[-2:], ["error: my.toml:3:1: unknown key", "  did you mean"])
        self.assertEqual(len(lines), 21)

    def test_a_command_that_is_killed_or_cannot_start_is_told_too(self):
        answer = self.follow("kill -9 $$")
        self.assertEqual(answer.returncode, 137)
        self.assertIn("was killed by signal 9", answer.stderr)
        script = str(ROOT / "benchmarks/follow_metrics.py")
        answer = subprocess.run([sys.executable, script, "run", "--", "/no/such/program"], capture_output=True,
                                text=True, check=False)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("cannot start /no/such/program: No such file", answer.stderr)
        answer = subprocess.run([sys.executable, script, "run"], capture_output=True, text=True, check=False)
        self.assertIn("follow_metrics.py RUN -- ", answer.stderr)


class Benchmarks(InTemporaryFolder):
    def load(self, path):
        """A module of benchmarks/, which may import what lies beside it."""
        place = ROOT / "benchmarks" / path
        spec = importlib.util.spec_from_file_location(place.stem, place)
        module = importlib.util.module_from_spec(spec)
        with unittest.mock.patch.object(sys, "path", [str(place.parent), *sys.path]):
            spec.loader.exec_module(module)
        return module

    def test_overlap_is_measured_with_the_noise_scale_that_users_have(self):
        options = argparse.Namespace(updates=10, skip=5, override=[])
        bench = self.load("overlap.py").Bench(options, self.folder)
        self.assertIn("train.update_freq=2", bench.overrides(2))
        self.assertNotIn("noise_scale", " ".join(bench.overrides(2)))
        self.assertNotIn("noise_scale", self.load("gpu/trainings.py").CONFIG)

    def test_a_page_has_its_date_commit_processor_and_a_command_without_folders(self):
        records = self.load("records.py")
        with unittest.mock.patch.object(sys, "argv", [f"{ROOT}/benchmarks/a.py", "--data=/far/away/text", f"{ROOT}/build/release/stretto", "x y"]):
            page = records.page("Speed", ["One note.", ""], records.table(["a", "b"], [[1, "c"]]), "a minute")
        self.assertRegex(page, r"\A# Speed: \d{4}-\d\d-\d\d\n\nCommit \w+.*\. Processor: .+ cores\.\n\nOne note\.\n\n```bash skip: a minute\n")
        self.assertIn("\nbenchmarks/a.py --data=…/text build/release/stretto 'x y'\n```\n", page)
        self.assertTrue(page.endswith("\n\n| a | b |\n|---|---|\n| 1 | c |\n"), page)

    def test_a_spread_is_the_median_with_the_least_and_the_most(self):
        spread = self.load("records.py").spread
        self.assertEqual(spread([3000, 1000, 2500], decimals=0), "2,500 (1,000 – 3,000)")
        self.assertEqual(spread([0.5], unit=0.1, decimals=1), "5.0")

    def test_a_line_that_was_cut_off_is_no_result_and_the_next_one_does_not_join_it(self):
        records, path = self.load("records.py"), self.folder / "new/results.jsonl"
        self.assertEqual(records.json_lines(path), [])
        records.append_json(path, {"a": 1})
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"a": 2')
        records.append_json(path, {"a": 3})
        self.assertEqual(records.json_lines(path), [{"a": 1}, {"a": 3}])

    def test_sums_of_a_build_are_those_of_rooms_and_count_a_command_once(self):
        build_time = self.load("build_time.py")
        log = self.write(".ninja_log", "# ninja log v5\n"
                         "0\t2000\t1\tsrc/CMakeFiles/room_nn.dir/Unity/unity_0_cxx.cxx.o\ta\n"
                         "500\t1500\t1\tsrc/kernels/CMakeFiles/stretto_kernels_cpu.dir/cpu/level_avx2.cpp.o\tb\n"
                         "2000\t2500\t1\tcore_tests\tc\n2000\t2500\t1\ttests/core_tests_tests.cmake\tc\n")
        seconds, wall = build_time.read_log(log)
        rooms = {build_time.room_of(output): taken for output, taken in seconds.items()}
        self.assertEqual(rooms, {"nn": 2.0, "kernels": 1.0, "linking and the rest": 0.5})
        self.assertIsNone(wall, "the second line ends before the first: they may be of two builds")
        for output, room in (("src/CMakeFiles/stretto.dir/cli/commands/plan.cpp.o", "cli"), ("tests/CMakeFiles/core_tests.dir/a.cpp.o", "tests"),
                             ("src/CMakeFiles/stretto_pch.dir/cmake_pch.hxx.gch", "precompiled header"),
                             ("src/CMakeFiles/stretto_mpi.dir/distributed/mpi/a.cpp.o", "distributed")):
            self.assertEqual(build_time.room_of(output), room)

    def test_clang_gets_the_flags_of_a_file_without_its_precompiled_header(self):
        build_time = self.load("build_time.py")
        self.write("compile_commands.json", "[]")
        clang = build_time.Clang("clang++", self.folder, self.folder)
        flags, header = clang.flags("c++ -Ia -O3 -Werror -Winvalid-pch -include b/cmake_pch.hxx -std=c++20 -o a.o -c a.cpp".split())
        self.assertEqual((flags, header), (["-Ia", "-O3", "-std=c++20", "-w"], "b/cmake_pch.hxx"))

    def test_headers_within_headers_count_once_and_sources_of_a_unity_file_do_not(self):
        build_time = self.load("build_time.py")
        event = lambda name, start, end: {"name": "Source", "ts": start * 1e6, "dur": (end - start) * 1e6, "args": {"detail": name}}
        events = [event("a.cpp", 0, 9), event("b.h", 1, 3), event("c.h", 1.5, 2), event("b.cpp", 9, 12), event("d.h", 10, 11), {"name": "Other"}]
        self.assertAlmostEqual(build_time.seconds_of_headers(events), 3)
        self.assertEqual(build_time.longest(events, {"Source"}, 2), [("b.h", 2.0), ("d.h", 1.0)])

    def test_lengths_of_a_batch_have_the_mean_that_was_asked_for(self):
        peers = self.load("training_beside_torch.py")
        for mean in (5, 20, 80):
            lengths = peers.lengths_around(mean, 1000, 1)
            self.assertEqual(sum(lengths), 1000 * mean)
            self.assertGreater(len(set(lengths)), 5)
            self.assertLess(max(lengths), 200)
        peers.write_batch(self.folder, [3, 5], ["a", "b"], 1)
        for side in ("en", "de"):
            lines = (self.folder / f"batch.{side}").read_text(encoding="utf-8").splitlines()
            self.assertEqual([len(line.split()) for line in lines], [2, 4])


class ModelsOnMulti30k(InTemporaryFolder):
    """benchmarks/models_multi30k.py with a made-up stretto; its `train` fails for the recipe that FAIL names."""

    STRETTO = """#!/bin/sh
        case $1 in
        train) echo "$*" >>"$4.started"; case $2 in *_"$FAIL".toml) echo 'error: no text' >&2; exit 2;; esac; mkdir -p "$4"
            for step in 1 2 3 4 5 6 7 8; do
                echo '{"event": "train", "step": '$step', "target_tokens": 100, "tokens_per_second": '$((step > 5 ? 50 : 5))',
                       "peak_memory_bytes": 104857600, "seconds": 120}' | tr -d '\\n'; echo; done >"$4/metrics.jsonl"
            echo '{"machine": [["threads", "2"]], "facts": [["parameters", "7,000"]]}' >"$4/report.json";;
        eval) echo '{"bleu": 30.5, "nll": 2.5}';;
        infer) echo '20 lines in 1 batch, 98 target tokens, 0.50 s' >&2;;
        esac\n"""

    def measure(self, *arguments, fail="none"):
        stretto = self.write("stretto", self.STRETTO)
        stretto.chmod(0o755)
        for name in ("train", "val", "test_2016_flickr"):
            for side in ("en", "de"):
                self.write(f"text/{name}.{side}", "a\n")
        command = [sys.executable, str(ROOT / "benchmarks/models_multi30k.py"), "--stretto", str(stretto), "--data", str(self.folder / "text"),
                   "--work", str(self.folder / "work"), "--decodings", "1", "--seeds", "2", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, timeout=300,
                                env={**os.environ, "FAIL": fail})
        return answer.returncode, answer.stdout, answer.stderr

    def trainings(self):
        return sum(len(path.read_text().splitlines()) for path in (self.folder / "work").glob("*.started"))

    def test_finished_runs_are_not_repeated_and_make_a_page_of_what_there_is(self):
        code, printed, said = self.measure("--only", "gnmt", "--out", "page.md")
        self.assertEqual(code, 0, said)
        # Speed: the updates after the fifth. Memory: 100 MiB. Decoding: 20 lines in half a second.
        self.assertIn("| GNMT, small | 7,000 | 2 | 30.5 (30.5 – 30.5) | 2.500 | 8 | 50 (50 – 50) | 100 | 40 (40 – 40) | 2.0 (2.0 – 2.0) |", printed)
        self.assertIn("10 runs are missing.", printed)
        self.assertEqual((self.folder / "page.md").read_text(encoding="utf-8"), printed)
        self.assertEqual(self.trainings(), 2)
        self.assertEqual(self.measure("--only", "gnmt")[0], 0)
        self.assertEqual(self.trainings(), 2)
        self.assertEqual(self.measure("--page")[1].splitlines()[-3:], printed.splitlines()[-3:])

    def test_another_budget_is_another_run(self):
        for budget in (["--updates", "9"], ["--minutes", "2"], ["--minutes", "2", "optim.lr=1e-4"]):
            code, printed, said = self.measure("--only", "convs2s", "--seed", "1", *budget)
            self.assertEqual(code, 0, said)
            self.assertEqual(printed.count("| ConvS2S | 7,000 | 1 |"), 1)
        self.assertEqual(self.trainings(), 3)

    def keys(self):
        return [set(line.split()) for path in (self.folder / "work").glob("*.started") for line in path.read_text().splitlines()]

    def test_a_width_is_that_of_every_block_of_a_model_and_a_budget_of_its_own(self):
        for name, blocks in (("gnmt", set()), ("transformer_lstm", {"model.encoder.ffn_dim=512"})):
            code, printed, said = self.measure("--only", name, "--seed", "1", "--width", "128")
            self.assertEqual(code, 0, said)
            keys = self.keys()[-1]
            self.assertLessEqual({"model.d_model=128", *blocks}, keys)
            self.assertEqual({key for key in keys if "ffn_dim" in key}, blocks)
            self.assertIn("width 128", printed)
            for path in (self.folder / "work").glob("*.started"):
                path.unlink()

    def test_untimed_runs_give_scores_and_leave_times_to_the_others(self):
        self.assertEqual(self.measure("--only", "gnmt", "--seed", "2", "--untimed")[0], 0)
        self.assertIn("run.threads=1", self.keys()[0])
        printed = self.measure("--page")[1]
        self.assertIn("| GNMT, small | 7,000 | 1 | 30.5 | 2.500 | 8 | – | 100 | – | – |", printed)
        code, printed, said = self.measure("--only", "gnmt", "--seed", "1")
        self.assertEqual(code, 0, said)
        self.assertIn("| GNMT, small | 7,000 | 2 | 30.5 (30.5 – 30.5) | 2.500 | 8 | 50 | 100 | 40 | 2.0 |", printed)
        self.assertIn("Times are those of seed 1,", printed)

    def test_a_model_that_fails_is_told_and_the_others_are_trained(self):
        code, printed, said = self.measure("--only", "gnmt", "--only", "lightconv", "--seed", "1", fail="gnmt")
        self.assertEqual(code, 1)
        self.assertIn("error: no text", said)
        self.assertIn("failed: gnmt 1", said)
        self.assertIn("| LightConv |", printed)
        self.assertNotIn("| GNMT", printed)


class Reversal(InTemporaryFolder):
    """benchmarks/reversal.py with a made-up stretto: `train CONFIG --run RUN --quiet`, `eval RUN --json`."""

    SCRIPT = str(ROOT / "benchmarks/reversal.py")
    TRAIN = """mkdir -p "$4"; echo "$2" >"$4/config"; echo "cache $STRETTO_CACHE" >&2
               echo '{"event": "train", "step": 900}' >"$4/metrics.jsonl"; echo '{"event": "end", "step": 1000}' >>"$4/metrics.jsonl"
               echo '{"machine": [["processor", "Abacus"], ["threads", "2"], ["device", "cpu"]], "facts": [["parameters", "1,234"]]}' \\
                   >"$4/report.json"
               [ ! -e "$STRETTO_CACHE" ] || exit 9; mkdir "$STRETTO_CACHE" """

    def stretto(self, train=TRAIN, bleu="97.5"):
        path = self.write("stretto", f"""#!/bin/sh
            if [ "$1" = train ]; then {train}
            else echo '{{"set": "test", "bleu": {bleu}}}'
            fi\n""")
        path.chmod(0o755)

    def start(self, *arguments):
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        return subprocess.Popen([sys.executable, self.SCRIPT, "--stretto", str(self.folder / "stretto"), *arguments], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                                env={**os.environ, "TMPDIR": str(temporary)})

    def measure(self, *arguments):
        """Exit code, what was printed, what was said on stderr."""
        process = self.start(*arguments)
        printed, said = process.communicate(timeout=300)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [], "runs were left behind")
        return process.returncode, printed, said

    @staticmethod
    def rows(text):
        return [re.sub(r"\| \d+ \|", "| S |", line) for line in text.splitlines() if line.startswith("| ")][1:]

    def test_all_nine_are_trained_and_make_a_dated_table(self):
        self.stretto()
        code, printed, said = self.measure("--out", "results/table.md")
        self.assertEqual(code, 0, said)
        parts = ("transformer", "lstm", "conv")
        self.assertEqual(self.rows(printed), [f"| {a}, {b} | 97.5 | 1,000 | S | 1,234 |" for a in parts for b in parts])
        self.assertRegex(printed, r"\A# The reversal task: \d{4}-\d\d-\d\d\n\nCommit \w+")
        self.assertIn("Processor: Abacus, 2 threads, device cpu.", printed)
        self.assertEqual((self.folder / "results/table.md").read_text(), printed)
        self.assertEqual(os.listdir(self.folder / "results"), ["table.md"])

    def test_each_recipe_has_a_fresh_folder_which_may_be_kept(self):
        self.stretto()
        code, printed, said = self.measure("--runs", "kept", "conv_lstm", "lstm_lstm")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.rows(printed)), 2)
        self.assertEqual((self.folder / "kept/conv_lstm/run/config").read_text(),
                         f"{ROOT}/configs/smoke/reversal_conv_lstm.toml\n")
        code, _, said = self.measure("--runs", "kept", "conv_lstm")
        self.assertEqual(code, 2)
        self.assertIn("kept is not empty", said)

    def test_a_recipe_below_90_or_one_that_fails_makes_it_fail_and_the_others_are_trained(self):
        self.stretto(bleu="89.94")
        code, printed, said = self.measure("conv_conv")
        self.assertEqual(code, 1)
        self.assertEqual(self.rows(printed), ["| conv, conv | 89.9 (below 90) | 1,000 | S | 1,234 |"])
        self.assertIn("below 90, or failed: conv_conv", said)
        self.stretto(train=f"""case "$2" in *lstm_conv.toml) echo 'error: no text' >&2; exit 2;; esac; {self.TRAIN}""")
        code, printed, said = self.measure("lstm_conv", "conv_conv")
        self.assertEqual(code, 1)
        self.assertEqual(self.rows(printed), ["| lstm, conv | failed |  |  |  |", "| conv, conv | 97.5 | 1,000 | S | 1,234 |"])
        self.assertIn("left with 2:\nerror: no text", said)

    def test_what_is_interrupted_ends_its_training_and_keeps_the_rows_before(self):
        self.stretto(train=f"""case "$2" in *lstm_conv.toml) trap 'echo ended >{self.folder}/ended; exit 75' TERM
                               echo $$ >{self.folder}/pid; while :; do sleep 0.05; done;; esac; {self.TRAIN}""")
        for number in (signal.SIGINT, signal.SIGTERM):
            for name in ("ended", "pid"):
                (self.folder / name).unlink(missing_ok=True)
            process = self.start("--out", "table.md", "conv_conv", "lstm_conv", "conv_lstm")
            while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text():
                self.assertIsNone(process.poll(), "it ended by itself")
                time.sleep(0.02)
            process.send_signal(number)
            printed, said = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertTrue((self.folder / "ended").exists(), "its training goes on")
            self.assertEqual(self.rows(printed), ["| conv, conv | 97.5 | 1,000 | S | 1,234 |"])
            self.assertEqual((self.folder / "table.md").read_text(), printed)
            self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_wrong_arguments_are_told(self):
        self.stretto()
        for arguments, words in ((["gru_lstm"], "there is no recipe gru_lstm; there are transformer_transformer, "),
                                 (["conv_conv", "conv_conv"], "a recipe is named twice"),
                                 (["--stretto", "/no/program"], "/no/program is no program")):
            code, printed, said = self.measure(*arguments)
            self.assertEqual((code, printed), (2, ""))
            self.assertIn(words, said)


class OldAndNew(InTemporaryFolder):
    """benchmarks/old_new.py with two made-up programs."""

    STRETTO = """#!/bin/sh
        command=$1
        for word; do
            case $word in train.max_steps=*) steps=${word#*=};; esac
            [ "$before" != --run ] || run=$word
            before=$word
        done
        case $command in
        train) mkdir -p "$run"
            for step in $(seq "$steps"); do echo '{"event":"train","step":'$step',"target_tokens":10,"loss":LOSS}'; sleep 0.01; done >"$run/metrics.jsonl"
            echo '{"event":"end"}' >>"$run/metrics.jsonl";;
        infer) [ -f "$2/metrics.jsonl" ] && wc -l <"$3"; echo '20 lines in 1 batch, 98 target tokens, SECONDS s' >&2;;
        esac\n"""

    def compare(self, *arguments, loss="2.5", seconds="0.50"):
        """Exit code and cells of the rows."""
        for name, made in (("old", ("2.5", "0.50")), ("new", (loss, seconds))):
            self.write(name, self.STRETTO.replace("LOSS", made[0]).replace("SECONDS", made[1])).chmod(0o755)
        for side in ("en", "de"):
            for name in ("train", "val", "test_2016_flickr"):
                self.write(f"text/{name}.{side}", "a\nb\nc\n")
        command = [sys.executable, str(ROOT / "benchmarks/old_new.py"), str(self.folder / "old"), str(self.folder / "new"), "--data",
                   str(self.folder / "text"), "--workloads", "W1", "--rounds", "2", "--warm", "2", "--updates", "3", "--sentences", "2",
                   "--model-updates", "1", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, timeout=300)
        rows = [line.strip("| ").split(" | ") for line in answer.stdout.splitlines() if line.startswith("| W1")]
        return answer.returncode, rows, answer.stderr

    def test_it_tells_rates_ratios_and_whether_results_are_the_same(self):
        code, rows, said = self.compare("--least", "0")
        self.assertEqual(code, 0, said)
        self.assertEqual([row[0] for row in rows], ["W1, training, target tokens/s", "W1, decoding, sentences/s"])
        self.assertEqual(rows[0][4], "same losses")
        self.assertEqual(rows[1][1:5], ["40.0 (40.0 – 40.0)", "40.0 (40.0 – 40.0)", "1.00 (1.00 – 1.00)", "same output"])
        self.assertEqual(self.compare("--least", "0", "--only", "training", loss="2.6")[1][0][4], "other losses")

    def test_a_new_build_that_is_slower_makes_it_fail(self):
        code, rows, said = self.compare("--only", "decoding", seconds="0.80")
        self.assertEqual(code, 1)
        self.assertEqual(rows[0][3], "0.62 (0.62 – 0.62)")
        self.assertIn("below 0.98: W1, decoding: 0.625", said)


class BesideTorch(InTemporaryFolder):
    """benchmarks/training_beside_torch.py with a made-up stretto, and a made-up Python whose torch cannot do one form."""

    STRETTO = """#!/bin/sh
        command=$1
        for word; do
            case $word in train.max_steps=*) steps=${word#*=};; data.train_src=*) text=${word#*=};; esac
            case $before in --run) run=$word;; --output) : >"$word";; esac
            before=$word
        done
        case $command/$2 in
        train/*) mkdir -p "$run"
            case $text in *mixed*) rate=100;; *) rate=125;; esac
            for step in $(seq "$steps"); do
                echo '{"event":"train","step":'$step',"target_tokens":10,"loss":2,"tokens_per_second":'$rate'}'; sleep 0.01
            done >"$run/metrics.jsonl";;
        plan/*) echo '{"inputs":{"parameters":77}}';;
        tokenizer/encode) sed -E 's/[^ ]+/7/g';;
        esac
        echo "$*" >>"$0.calls"\n"""
    PYTHON = """#!/bin/sh
        case "$*" in *"import torch"*) exit 0;; *"--form bucketed"*) echo 'no bucket'; exit 1;; esac
        for step in 1 2 3 4 5; do echo "UPD $step 10 2.5"; sleep 0.02; done
        echo "$*" >>"$0.calls"\n"""

    def measure(self, *arguments):
        """What was printed."""
        for name, script in (("stretto", self.STRETTO), ("python", self.PYTHON)):
            self.write(name, script).chmod(0o755)
        for side in ("en", "de"):
            for name in ("train", "val", "test_2016_flickr"):
                self.write(f"text/{name}.{side}", "a b\nc\n")
        command = [sys.executable, str(ROOT / "benchmarks/training_beside_torch.py"), "--stretto", str(self.folder / "stretto"), "--python",
                   str(self.folder / "python"), "--data", str(self.folder / "text"), "--warm", "2", "--updates", "3", "--lengths", "10",
                   "--out", "page.md", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, timeout=300)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual((self.folder / "page.md").read_text(encoding="utf-8"), answer.stdout)
        return answer.stdout

    def test_a_form_that_fails_is_named_and_the_others_are_measured(self):
        printed = self.measure("--models", "lstm", "--rounds", "2")
        self.assertIn("| PyTorch, packed | ", printed)
        self.assertNotIn("| PyTorch, bucketed", printed)
        self.assertIn("Not measured: bucketed (exit 256, last line: no bucket).", printed)
        self.assertIn("| 10 | 3 – 24 | 10 | 10 | 8,000.0 (8,000.0 – 8,000.0) | 10,000.0 (10,000.0 – 10,000.0) | 1.25 (1.25 – 1.25) |", printed)
        self.assertIn("GNMT takes at most 1.25 times a dense batch's time for each real token.", printed)

    def test_dynamicconv_is_the_recipe_of_lightconv_with_other_parts_and_peers_get_the_number_of_parameters(self):
        printed = self.measure("--models", "lightconv", "dynamicconv", "--rounds", "1")
        for title, forms in (("LightConv", ("convolution", "band", "band, compiled", "band, rows")),
                             ("DynamicConv", ("unfold", "band", "band, compiled"))):
            section = printed.split(f"| {title} | ")[1].split("Beside the fastest form")[0]
            self.assertEqual(re.findall(r"^\| PyTorch, ([^|]+) \|", section, flags=re.M), list(forms))
            self.assertIn(f"{title} takes at most 1.25 times a dense batch's time for each real token.", printed)
        dynamic = "model.encoder.name=dynamic_conv model.decoder.name=dynamic_conv"
        # Beside PyTorch, then on a dense batch and a mixed one.
        for command, expected in (("plan", [False, True]), ("train", [False, True, False, False, True, True])):
            calls = [line for line in (self.folder / "stretto.calls").read_text().splitlines() if line.startswith(command)]
            self.assertEqual([dynamic in line for line in calls], expected)
            self.assertTrue(all("multi30k_lightconv.toml" in line for line in calls))
        calls = (self.folder / "python.calls").read_text().splitlines()
        self.assertEqual([re.search(r"--model (\w+)", line)[1] for line in calls], ["lightconv"] * 4 + ["dynamicconv"] * 3)
        self.assertTrue(all("--vocab 8000" in line and "--parameters 77" in line for line in calls))
        printed = self.measure("--models", "lightconv", "--rounds", "1", "--only", "torch", "--forms", "band", "unfold")
        self.assertEqual(re.findall(r"^\| PyTorch, ([^|]+) \|", printed, flags=re.M), ["band"])


class SameWeights(InTemporaryFolder):
    """benchmarks/same_weights.py with programs that are played: a recipe's text says what each of them does."""
    PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys
name, (_, recipe, _, run, *keys) = sys.argv[0].rsplit("/", 1)[1], sys.argv[1:]
keys = dict(key.split("=", 1) for key in keys if "=" in key)
does = json.loads(pathlib.Path(recipe).read_text()).get(name, {})
if does.get("code"):
    print("warning: w\\nerror: " + does["error"] + "\\n  a remedy", file=sys.stderr)
    sys.exit(does["code"])
pathlib.Path(run).mkdir()
limit, length = int(keys["train.max_steps"]), int(keys.get("schedule.total_steps", 0))
pathlib.Path(run, "config.toml").write_text(f"[train]\\nmax_steps = {limit}\\n[schedule]\\ntotal_steps = {length}\\n")
if limit == does.get("fails_at"):
    sys.exit(2)
losses = does.get("losses", [3.0, 2.5])
if "skipped" in does:  # so many steps more than updates; a schedule that goes by its length
    losses = [(length or limit) / (step + 1) for step in range(limit + does["skipped"])]
events = [{"event": "train", "step": i + 1, "loss": loss, "seconds": hash(name)} for i, loss in enumerate(losses)]
events.append({"event": "end", "step": len(losses), "weights_hash": does.get("hash", "c0ffee")})
if does.get("hash") == "none":
    del events[-1]["weights_hash"]
pathlib.Path(run, "metrics.jsonl").write_text("".join(json.dumps(event) + "\\n" for event in events))
"""

    def setUp(self):
        super().setUp()
        for name in ("old", "new"):
            self.write(f"bin/{name}", self.PROGRAM).chmod(0o755)

    def judge(self, recipes, *arguments):
        """Exit code, and the last cell of each recipe's row."""
        shutil.rmtree(self.folder / "configs", ignore_errors=True)
        for name, text in recipes.items():
            self.write(f"configs/{name}.toml", text)
        done = subprocess.run([sys.executable, str(ROOT / "benchmarks/same_weights.py"), str(self.folder / "bin/old"),
                               str(self.folder / "bin/new"), "--configs", str(self.folder / "configs"), *arguments],
                              capture_output=True, text=True, timeout=120, check=False)
        cells = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
        return done.returncode, {row[0]: row[-1] for row in cells[1:]}, done

    def test_runs_that_agree_are_equal_whatever_the_clock_says(self):
        code, rows, done = self.judge({"a": "{}", "b": "{}"})
        self.assertEqual((code, rows), (0, {"a": "equal", "b": "equal"}), done.stderr)
        self.assertIn("| a | 2 | 2.5 | 2.5 | c0ffee | c0ffee | equal |", done.stdout)
        self.assertIn("2 equal, 0 different, 0 not compared", done.stdout)

    def test_the_first_event_that_differs_is_named(self):
        code, rows, _ = self.judge({"a": "{}", "loss": '{"new": {"losses": [3.0, 2.4999999]}}', "hash": '{"new": {"hash": "f00"}}'})
        self.assertEqual(code, 1)
        self.assertEqual(rows["a"], "equal")
        self.assertEqual(rows["loss"], "**different**: loss first in the train event of step 2")
        self.assertEqual(rows["hash"], "**different**: weights_hash first in the end event of step 2")

    def test_a_shorter_run_is_trained_once_more_to_the_last_step_of_the_other(self):
        for shorter, longer in (("old", "new"), ("new", "old")):
            code, rows, done = self.judge({"a": f'{{"{shorter}": {{"skipped": 0}}, "{longer}": {{"skipped": 13}}}}'})
            again = f"; the {shorter} program ended at step 60 and trained once more to reach 73"
            self.assertEqual((code, rows["a"]), (0, "equal" + again), done.stderr)
            self.assertIn(f"| a | 73 | {60 / 73} | {60 / 73} | c0ffee | c0ffee | equal; ", done.stdout)

    def test_runs_of_different_lengths_that_differ_are_told_with_the_step(self):
        code, rows, _ = self.judge({"hash": '{"old": {"skipped": 0}, "new": {"skipped": 13, "hash": "f00"}}',
                                    "loss": '{"new": {"losses": [2.9]}}', "short": '{"new": {"losses": [3.0]}}',
                                    "broken": '{"old": {"losses": [3.0], "fails_at": 61}}'})
        again = "; the new program ended at step 1 and trained once more to reach 2"
        self.assertEqual(code, 1)
        self.assertEqual(rows["hash"], "**different**: weights_hash first in the end event of step 73; the old program ended at step 60 "
                                       "and trained once more to reach 73")
        self.assertEqual(rows["loss"], "**different**: loss first in the train event of step 1" + again)
        self.assertEqual(rows["short"], "**different**: only the new program has the end event of step 1" + again)
        self.assertEqual(rows["broken"], "**the old program left with 2**: without an error message" + again.replace("new", "old"))

    def test_a_hash_that_one_side_lacks_is_a_difference(self):
        for hashes in ('{"old": {"hash": "none"}}', '{"new": {"hash": "none"}}', '{"old": {"hash": "none"}, "new": {"hash": "none"}}'):
            code, rows, _ = self.judge({"a": hashes})
            self.assertEqual((code, rows["a"]), (1, "**different**: no step has a hash of the weights from both programs"))

    def test_a_recipe_that_the_old_program_does_not_know_is_said_to_be_left_out(self):
        unknown = '{"old": {"code": 2, "error": "error in `model.heads`"}}'
        code, rows, _ = self.judge({"a": "{}", "b": unknown})
        self.assertEqual(code, 0)
        self.assertEqual(rows["b"], "not compared: the old program says: error: error in `model.heads`")
        self.assertEqual(self.judge({"b": unknown})[0], 1, "nothing was compared")

    def test_a_program_that_fails_is_a_difference(self):
        for name, code in (("new", 2), ("new", 73), ("old", 73)):
            found, rows, _ = self.judge({"a": "{}", "b": f'{{"{name}": {{"code": {code}, "error": "it broke"}}}}'})
            self.assertEqual((found, rows["b"]), (1, f"**the {name} program left with {code}**: error: it broke"))

    def test_recipes_can_be_chosen(self):
        code, rows, _ = self.judge({"a": "{}", "b": "{}"}, "--recipe", "b", "optim.lr=0.1")
        self.assertEqual((code, list(rows)), (0, ["b"]))
        code, _, done = self.judge({"a": "{}"}, "--recipe", "c")
        self.assertEqual(code, 2)
        self.assertIn("no recipe c in ", done.stderr)

    def test_the_old_program_reads_recipes_of_its_own(self):
        self.write("other/configs/smoke/a.toml", '{"old": {"losses": [8.0, 7.0]}, "new": {"losses": [9.0, 6.0]}}')
        code, rows, done = self.judge({"a": "{}", "b": "{}"}, "--old-configs", str(self.folder / "other/configs/smoke"))
        self.assertEqual((code, rows["b"]), (1, "not compared: the old program has no such recipe"), done.stderr)
        self.assertIn("| a | 2 | 7.0 | 2.5 |", done.stdout)


class SearchBesideRandom(InTemporaryFolder):
    """benchmarks/search_beside_random.py with a made-up stretto: `search FILE --dir DIR --quiet`, `train … --run RUN --until N`."""

    STRETTO = """#!/usr/bin/env python3
import json, pathlib, re, sys
words = sys.argv[1:]
if words[0] == "train":
    run, until = pathlib.Path(words[words.index("--run") + 1]), int(words[words.index("--until") + 1])
    run.mkdir(parents=True, exist_ok=True)
    open(run / "metrics.jsonl", "a").write(json.dumps({"event": "valid", "step": until, "nll": 4.5}) + "\\n")
    sys.exit(0)
text, folder = open(words[1]).read(), pathlib.Path(words[3])
folder.mkdir(exist_ok=True)
asha = 'name = "asha"' in text
with open(folder / "trials.jsonl", "w") as file:
    for i in range(int(re.search("max_trials = (\\d+)", text)[1])):
        updates = 9 if i == 0 or not asha else 3
        value = 4 if asha else 5
        file.write(json.dumps({"trial": i, "updates": updates, "value": value + ODD, "seconds": id(file)}) + "\\n")
"""

    def measure(self, odd, *arguments):
        path = self.write("stretto", self.STRETTO.replace("ODD", odd))
        path.chmod(0o755)
        result = subprocess.run([sys.executable, str(ROOT / "benchmarks/search_beside_random.py"), "--stretto", str(path), "--tiny",
                                 "--work", str(self.folder / "work"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.folder, timeout=300)
        return result.returncode, result.stdout, result.stderr

    def test_random_search_gets_the_updates_of_asha_rounded_up(self):
        code, printed, said = self.measure("0", "--out", "results/table.md")
        self.assertEqual(code, 0, said)
        for seed in (1, 2):
            self.assertIn(f"| {seed} | 6 | 24 | 4.0000 | 3 | 27 | 5.0000 |", printed)
        self.assertIn("random: best nll 5.0000 ± 0.0000; ASHA is better for 2 of 2 seeds.", printed)
        self.assertIn("the search of seed 1 ended with the same table", printed)
        self.assertEqual((self.folder / "results/table.md").read_text(), printed)

    def test_another_table_after_kills_makes_it_fail(self):
        code, printed, _ = self.measure("(folder.name == 'killed_1')")
        self.assertEqual(code, 1)
        self.assertIn("ANOTHER TABLE", printed)


if __name__ == "__main__":
    unittest.main()
