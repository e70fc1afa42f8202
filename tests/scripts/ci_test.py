"""Tests of tools/ci.py, tools/stages.py and tools/changed.py, without a build: python3 ci_test.py"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/runs")]

from in_folder import InTemporaryFolder, has_ended  # noqa: E402

import changed  # noqa: E402
import ci  # noqa: E402
import smoke_test  # noqa: E402
import stages  # noqa: E402


class WithStages(InTemporaryFolder):
    def run_of(self, minutes=None, kept=None):
        self.output = io.StringIO()
        return stages.Run(self.folder, self.folder / "logs", minutes, kept, self.output)


class Includes(InTemporaryFolder):
    def setUp(self):
        super().setUp()
        self.write("src/text/a.h", '#include "base/b.h"\n')
        self.write("src/text/a.cpp", '#include "text/a.h"\n#include "text/inner.h"\n')
        self.write("src/text/inner.h", "")
        self.write("src/text/table.cpp", "// declared in a.h\n")
        self.write("src/text/other.h", "")
        self.write("src/text/other.cpp", '#include "text/other.h"\n')
        self.write("src/base/b.h", "")
        self.write("src/nn/options.h", "")
        self.write("src/nn/options.cpp", "")
        self.write("tests/fuzz/fuzz_a.cpp", '#include "text/a.h"\n#include "nn/options.h"\n#include "near.h"\n')
        self.write("tests/fuzz/near.h", "")

    def reached(self, **options):
        return changed.Includes(self.folder).reached("tests/fuzz/fuzz_a.cpp", **options)

    def test_a_header_leads_to_its_source_and_to_what_that_includes(self):
        for path in ("src/text/a.h", "src/text/a.cpp", "src/text/inner.h", "src/base/b.h", "tests/fuzz/near.h"):
            self.assertIn(path, self.reached())
        self.assertNotIn("src/text/other.cpp", self.reached())

    def test_a_source_without_a_header_belongs_to_all_headers_of_its_folder(self):
        self.assertIn("src/text/table.cpp", self.reached())

    def test_of_rooms_that_are_not_linked_headers_alone_count(self):
        self.assertIn("src/nn/options.cpp", self.reached())
        found = self.reached(unlinked={"nn"})
        self.assertIn("src/nn/options.h", found)
        self.assertNotIn("src/nn/options.cpp", found)

    def test_the_engine_of_a_family_is_a_room_of_its_own(self):
        self.write("src/families/a/engine/a.h", "")
        self.write("src/families/a/engine/a.cpp", "")
        self.write("tests/fuzz/fuzz_a.cpp", '#include "families/a/engine/a.h"\n')
        self.assertIn("src/families/a/engine/a.cpp", self.reached(unlinked={"families"}))
        self.assertNotIn("src/families/a/engine/a.cpp", self.reached(unlinked={"families/engine"}))

    def test_the_fuzzers_of_this_tree_reach_the_readers_that_they_are_for(self):
        includes = changed.Includes(ROOT)
        reached = includes.reached("tests/fuzz/fuzz_pickle.cpp", unlinked=ci.TORCH_ROOMS)
        self.assertIn("src/store/pickle_tensors.cpp", reached)
        self.assertFalse(any(path.startswith("src/text/") for path in reached), reached)


class Change(InTemporaryFolder):
    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                       capture_output=True)

    def commit(self, path, text):
        self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-qm", "x")
        return changed.git(self.folder, "rev-parse", "HEAD")

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        patched = unittest.mock.patch.dict(os.environ, {"STRETTO_CACHE": str(self.folder / "cache"), "STRETTO_CI_BASE": ""})
        patched.start()
        self.addCleanup(patched.stop)
        self.write(".gitignore", "cache\n")
        self.first = self.commit("src/a/a.h", "")
        self.commit("main.cpp", '#include "a/a.h"\n')
        self.second = self.commit("other.cpp", "\n")

    def test_without_a_commit_that_passed_everything_counts_as_changed(self):
        change = changed.Change(self.folder)
        self.assertIsNone(change.base)
        self.assertTrue(change.reaches("other.cpp"))
        self.assertEqual(change.words(), "everything counts as changed: no commit is known to have passed")

    def test_the_last_commit_that_passed_is_the_base(self):
        self.write("cache/ci-green", self.second + "\n")
        self.write("src/a/a.h", "int i;\n")
        change = changed.Change(self.folder)
        self.assertEqual(change.files, ["src/a/a.h"])
        self.assertTrue(change.reaches("main.cpp"))
        self.assertFalse(change.reaches("other.cpp"))
        self.assertIn(f"1 files differ from {self.second[:8]} (the last commit that passed here)", change.words())

    def test_a_commit_of_another_history_is_no_base(self):
        self.write("cache/ci-green", "0123456789012345678901234567890123456789\n")
        self.assertIsNone(changed.Change(self.folder).base)

    def test_a_named_base_goes_first_and_deleted_and_new_files_count(self):
        self.write("cache/ci-green", self.second + "\n")
        (self.folder / "other.cpp").unlink()
        self.write("new.cpp", "")
        with unittest.mock.patch.dict(os.environ, {"STRETTO_CI_BASE": self.first}):
            self.assertEqual(changed.Change(self.folder).files, ["main.cpp", "new.cpp"])
        self.assertEqual(changed.Change(self.folder).files, ["new.cpp", "other.cpp"])

    def test_newest_files_are_those_of_the_last_days_before_the_newest_commit(self):
        with unittest.mock.patch.dict(os.environ, {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}):
            self.git("commit", "--amend", "-qm", "x")
        with unittest.mock.patch.dict(os.environ, {"GIT_COMMITTER_DATE": "2020-01-09T00:00:00Z"}):
            self.commit("newest.cpp", "")
        self.assertEqual(changed.newest_files(self.folder, days=2), ["newest.cpp"])

    def test_a_build_file_reaches_everything(self):
        self.write("cache/ci-green", self.second + "\n")
        self.write("cmake/a.cmake", "")
        change = changed.Change(self.folder)
        self.assertTrue(change.reaches("other.cpp"))
        self.assertIn("since cmake/a.cmake differs", change.words())
        for path in ("tests/CMakeLists.txt", "benchmarks/CMakeLists.txt", "src/kernels/CMakeLists.txt", "CMakeLists.txt"):
            self.assertTrue(changed.BUILD_FILES.fullmatch(path), path)
        self.assertFalse(changed.BUILD_FILES.fullmatch("docs/CMakeLists.txt"))

    def test_seeds_reach_their_fuzzer_and_recipes_that_of_configurations(self):
        fuzzers = ["tests/fuzz/fuzz_a.cpp", "tests/fuzz/fuzz_config.cpp"]
        for fuzzer in fuzzers:
            last = self.commit(fuzzer, "")
        self.write("cache/ci-green", last + "\n")
        for path, reached in (("tests/fuzz/corpus/a_fuzz/csv/new", fuzzers[:1]), ("tests/fuzz/corpus/config_fuzz/new", fuzzers[1:]),
                              ("configs/parts/new.toml", fuzzers[1:]), ("tests/fuzz/corpus/a_fuzz_2/new", [])):
            file = self.write(path, "")
            change = changed.Change(self.folder)
            self.assertEqual([fuzzer for fuzzer in fuzzers if change.reaches(fuzzer)], reached, path)
            file.unlink()


class Stages(WithStages):
    def suite(self, run, output, status, **options):
        path = self.write("ctest.txt", output)
        run.suite("tests", ["sh", "-c", f"cat {path}; exit {status}"], **options)
        return [run.passed, run.failed, run.skipped]

    def test_skipped_tests_are_not_counted_as_passed(self):
        run = self.run_of()
        text = ("90% tests passed, 1 tests failed out of 10\n\nThe following tests did not run:\n"
                "\t  3 - a (Skipped)\n\t 12 - b (Skipped)\n\nThe following tests FAILED:\n\t  4 - c (Failed)\n")
        self.assertEqual(self.suite(run, text, 8), [7, 1, 2])
        self.assertEqual(self.suite(run, "100% tests passed, 0 tests failed out of 5\n", 0), [12, 1, 2])

    def test_a_suite_without_totals_or_with_a_bad_end_is_a_failure(self):
        self.assertEqual(self.suite(self.run_of(), "Segmentation fault\n", 0), [0, 1, 0])
        self.assertEqual(self.suite(self.run_of(), "100% tests passed, 0 tests failed out of 5\n", 1), [5, 1, 0])

    def test_what_failed_is_said_once_more_at_the_end_before_the_totals(self):
        run = self.run_of()
        self.assertFalse(run.check("bad", ["sh", "-c", "echo this is why; exit 3"]))
        self.assertTrue(run.check("good", ["true"]))
        self.suite(run, "    Start 1: a\nold words\n1/2 Test #1: a ....   Passed    1.00 sec\n    Start 2: b\nthe reason\n"
                        "2/2 Test #2: b ....***Failed    2.00 sec\n50% tests passed, 1 tests failed out of 2\n", 8)
        self.assertEqual(run.conclude(), 1)
        end = self.output.getvalue().split("== what failed, once more")[1]
        self.assertIn("== bad: FAILED, left with 3\nthis is why", end)
        self.assertEqual(end.splitlines()[-1], "2 passed, 2 failed")

    def test_what_ctest_printed_of_a_failed_test_is_repeated(self):
        text = ("    Start 1: a\nnoise\n1/2 Test #1: a ....***Failed    1.00 sec\nthe reason\nmore\n"
                "    Start 2: b\n2/2 Test #2: b ....   Passed    2.00 sec\nquiet\n50% tests passed, 1 tests failed out of 2\n")
        self.assertEqual(stages.failed_tests(text), "1/2 Test #1: a ....***Failed    1.00 sec\nthe reason\nmore")

    def test_when_the_time_is_over_a_stage_is_ended_and_the_rest_is_named(self):
        run = self.run_of(minutes=0.02)
        at = time.monotonic()
        self.assertFalse(run.check("long", ["sh", "-c", "sleep 60 & echo $!; wait"]))
        self.assertFalse(run.check("after", ["true"]))
        self.suite(run, "100% tests passed, 0 tests failed out of 5\n", 0)
        self.assertLess(time.monotonic() - at, 20)
        self.assertEqual(run.conclude(), 0)
        self.assertIn("== not run whole, since the time was over: long (cut off); after; tests", self.output.getvalue())
        child = next(line for line in self.output.getvalue().splitlines() if line.isdigit())
        self.assertTrue(has_ended(child))

    def test_a_process_that_ignores_sigterm_is_killed(self):
        run = self.run_of()
        at = time.monotonic()
        with unittest.mock.patch.object(stages, "PATIENCE", 0.3):
            self.assertFalse(run.check("stubborn", ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], minutes=0.005))
        self.assertLess(time.monotonic() - at, 20)
        self.assertIn("stubborn: cut off", self.output.getvalue())

    def test_what_went_before_the_run_counts_among_its_minutes(self):
        run = stages.Run(self.folder, self.folder / "logs", minutes=1, output=io.StringIO(), spent=61)
        self.assertFalse(run.check("late", ["true"]))
        run.conclude()
        self.assertEqual(run.not_run, ["late"])
        self.assertRegex(run.output.getvalue(), r" 61  set-up\n")

    def test_a_check_with_minutes_of_its_own_is_cut_off_and_the_others_go_on(self):
        run = self.run_of()
        self.assertFalse(run.check("long", ["sleep", "60"], minutes=0.01))
        self.assertTrue(run.check("after", ["true"]))
        self.assertEqual(run.conclude(), 0)
        self.assertIn("== not run whole, since the time was over: long (cut off)\n", self.output.getvalue())

    def test_without_the_essential_suite_there_is_no_verdict(self):
        run = self.run_of(minutes=0)
        self.suite(run, "100% tests passed, 0 tests failed out of 5\n", 0, essential=True)
        self.assertEqual(run.conclude(), 1)
        self.assertIn("without it there is no verdict", self.output.getvalue())

    def test_a_suite_that_is_cut_off_counts_what_it_had_done(self):
        run = self.run_of(minutes=0.02)
        path = self.write("ctest.txt", "1/3 Test #1: a ....   Passed    1.00 sec\n2/3 Test #2: b ....***Failed    1.00 sec\n")
        run.suite("tests", ["sh", "-c", f"cat {path}; sleep 60"])
        self.assertEqual([run.passed, run.failed], [1, 1])
        run.conclude()
        self.assertIn("tests (cut off)", self.output.getvalue())

    def test_a_program_that_is_missing_fails_its_check(self):
        run = self.run_of()
        self.assertFalse(run.check("gone", ["/nowhere/program"]))
        self.assertIn("/nowhere/program: No such file or directory", "\n".join(run.failures))

    def test_the_parts_of_a_stage_that_dev_tells_are_in_the_table_of_seconds(self):
        run = self.run_of()
        run.check("build", ["echo", "== build of ci: 491 s (total 520 s)"])
        run.conclude()
        self.assertRegex(self.output.getvalue(), r"491  … of it build of ci\n")

    def test_input_is_passed_on_and_checks_that_run_at_once_print_one_after_the_other(self):
        run = self.run_of()
        self.assertTrue(run.check("cat", ["cat"], input_text="passed on\n", keep_output=True))
        self.assertIn("== cat\npassed on\n== cat: ok", self.output.getvalue())


class Kept(WithStages):
    CTEST = """#!/bin/sh
for argument in "$@"; do
  if [ "$argument" = -N ]; then printf '  Test #1: a\\n  Test  #2: b\\n  Test #10: c\\n'; exit 0; fi
done
echo "$*" >>called.txt
cat results.txt
exit $(cat status.txt)
"""

    def pass_over(self, tree, results, status):
        self.write("ctest", self.CTEST).chmod(0o755)
        self.write("called.txt", "")
        self.write("results.txt", results)
        self.write("status.txt", str(status))
        kept = stages.Kept(self.folder / "state.json", tree)
        run = self.run_of(kept=kept)
        run.check("first", ["sh", "-c", "echo first >>called.txt"])
        run.suite("tests", ["./ctest", "-j", "2"])
        return run, (self.folder / "called.txt").read_text(encoding="utf-8").splitlines()

    def test_what_passed_is_left_out_when_it_goes_on(self):
        _, called = self.pass_over("1", "1/3 Test  #1: a ....   Passed    1.00 sec\n2/3 Test #2: b ....***Failed    1.00 sec\n"
                                        "3/3 Test #10: c ....***Skipped    1.00 sec\n50% tests passed, 1 tests failed out of 3\n", 8)
        self.assertEqual(called, ["first", "-j 2"])
        run, called = self.pass_over("1", "1/1 Test #2: b ....   Passed    1.00 sec\n100% tests passed, 0 tests failed out of 1\n", 0)
        self.assertEqual(called, ["-j 2 -I 0,0,0,2"])
        self.assertEqual([run.passed, run.failed, run.skipped], [3, 0, 1])
        run, called = self.pass_over("1", "", 1)
        self.assertEqual(called, [])
        self.assertEqual([run.passed, run.failed, run.skipped], [3, 0, 1])

    def test_other_files_begin_anew(self):
        self.pass_over("1", "1/1 Test #1: a ....   Passed    1.00 sec\n100% tests passed, 0 tests failed out of 1\n", 0)
        _, called = self.pass_over("2", "1/1 Test #1: a ....   Passed    1.00 sec\n100% tests passed, 0 tests failed out of 1\n", 0)
        self.assertEqual(called, ["first", "-j 2"])

    def test_a_damaged_note_begins_anew(self):
        self.write("state.json", '{"tree": "1"')
        _, called = self.pass_over("1", "1/1 Test #1: a ....   Passed    1.00 sec\n100% tests passed, 0 tests failed out of 1\n", 0)
        self.assertEqual(called, ["first", "-j 2"])


    def test_the_note_is_on_disk_before_it_takes_the_place_of_the_last_one(self):
        calls = []
        with unittest.mock.patch.object(os, "fsync", lambda _: calls.append("fsync")), \
                unittest.mock.patch.object(os, "replace", lambda *_: calls.append("replace")):
            stages.Kept(self.folder / "state.json", "1").write()
        self.assertEqual(calls, ["fsync", "replace"])


class Interrupted(InTemporaryFolder):
    """A process with stages gets a signal while a test hangs."""

    SUITE = """
import pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
import ci, stages
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
folder = pathlib.Path(sys.argv[2])
run = stages.Run(folder, folder / "logs", kept=stages.Kept(folder / "state.json", "1"))
def work():
    run.suite("tests", ["ctest", "--test-dir", "tests"])
    run.check("after", ["true"])
    return run.conclude()
"""
    FUZZERS = SUITE.replace('run.suite("tests", ["ctest", "--test-dir", "tests"])', "ci.fuzz(run, None, True)")
    HANGS = "#!/bin/sh\ncd {folder}\n[ -f go ] && exit 0\nsleep 600 &\necho $! >child.tmp\nmv child.tmp child\nwait\n"

    def start(self, script):
        process = subprocess.Popen([sys.executable, "-c", script + "sys.exit(stages.interruptible(work))", ROOT / "tools", self.folder],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, condition):
        for _ in range(200):
            if condition():
                return
            time.sleep(0.1)
        self.fail("waited in vain")

    def noted(self):
        file = self.folder / "state.json"
        return json.loads(file.read_text(encoding="utf-8"))["stages"]["tests"]["tests"] if file.exists() else {}

    def end_child(self):
        with contextlib.suppress(OSError):
            child = (self.folder / "child").read_text(encoding="utf-8").strip()
            if pathlib.Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"sleep"):
                os.killpg(os.getpgid(int(child)), signal.SIGKILL)

    def interrupted(self, script, number):
        """The exit status of a run that got the signal, and the child of what hung in it."""
        hangs = self.write("hangs", self.HANGS.format(folder=self.folder))
        hangs.chmod(0o755)
        self.write("tests/CTestTestfile.cmake", f"add_test(a true)\nadd_test(b true)\nadd_test(c {hangs})\nadd_test(d true)\n")
        process = self.start(script)
        self.wait_for((self.folder / "child").exists)
        self.addCleanup(self.end_child)
        if script == self.SUITE:
            self.wait_for(lambda: self.noted() == {"a": "Passed", "b": "Passed"})
        process.send_signal(number)
        process.wait(20)
        return process.returncode, (self.folder / "child").read_text(encoding="utf-8").strip()

    def goes_on(self):
        self.write("go", "")
        output, _ = self.start(self.SUITE).communicate(timeout=60)
        self.assertIn("== tests: 2 tests passed before", output)
        self.assertEqual(output.splitlines()[-1], "5 passed, 0 failed")

    @unittest.skipUnless(shutil.which("ctest"), "needs ctest")
    def test_a_suite_that_gets_a_signal_ends_with_its_processes_and_goes_on_behind_what_passed(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number.name):
                code, child = self.interrupted(self.SUITE, number)
                self.assertEqual(code, 128 + number)
                self.assertTrue(has_ended(child))
                self.goes_on()
            for path in ("go", "child", "state.json"):
                (self.folder / path).unlink(missing_ok=True)

    @unittest.skipUnless(shutil.which("ctest"), "needs ctest")
    def test_a_suite_that_is_killed_ends_with_its_processes_and_goes_on_behind_what_passed(self):
        code, child = self.interrupted(self.SUITE, signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertTrue(has_ended(child))
        self.goes_on()

    def test_what_ignores_sigterm_ends_too_when_the_run_is_killed(self):
        self.write("stubborn", f"trap '' TERM\necho $$ >{self.folder}/child.tmp\nmv {self.folder}/child.tmp {self.folder}/child\n"
                               "while :; do sleep 1; done\n")
        script = self.SUITE.replace('run.suite("tests", ["ctest", "--test-dir", "tests"])',
                                    'stages.PATIENCE = 0.3; run.check("stubborn", ["sh", folder / "stubborn"])')
        code, child = self.interrupted(script, signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertTrue(has_ended(child))

    def test_commands_of_other_threads_end_too_and_no_more_begin(self):
        for name in "abcdefghijklmnopqrstuvwxyz"[:os.cpu_count() + 2]:
            self.write(f"tests/fuzz/fuzz_{name}.cpp", "")
            self.write(f"build/asan/{name}_fuzz", f'#!/bin/sh\necho >>{self.folder}/begun\nexec {self.folder}/hangs\n').chmod(0o755)
        code, child = self.interrupted(self.FUZZERS, signal.SIGTERM)
        self.assertEqual(code, 128 + signal.SIGTERM)
        self.assertTrue(has_ended(child))
        self.assertLessEqual(len((self.folder / "begun").read_text(encoding="utf-8").splitlines()), os.cpu_count())


class WholeRuns(InTemporaryFolder):
    """tools/ci.py from its options to the note of a commit that passed."""

    def setUp(self):
        super().setUp()
        self.write(".gitignore", "cache\nbuild\n")
        for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", str(self.folder), *command], check=True)

    def green_after(self, stage, spent=0):
        """(exit status, the commit that is noted) of a run with this stage alone."""
        with unittest.mock.patch.dict(os.environ, {"STRETTO_CACHE": str(self.folder / "cache"), "STRETTO_CI_MINUTES": "75"}), \
                unittest.mock.patch.object(ci, "check_python", lambda _: None), \
                unittest.mock.patch.object(ci, "all_stages", lambda run, *_: stage(run)), \
                contextlib.redirect_stdout(io.StringIO()):
            status = ci.whole_run(self.folder, full=False, spent=spent)
            file = changed.green_file()
        return status, file.read_text(encoding="utf-8").strip() if file.exists() else None

    def test_a_commit_is_noted_if_everything_ran_and_passed(self):
        self.assertEqual(self.green_after(lambda run: run.check("bad", ["false"])), (1, None))
        head = changed.git(self.folder, "rev-parse", "HEAD")
        self.assertEqual(self.green_after(lambda run: run.check("good", ["true"])), (0, head))

    def commit(self):
        subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "y", "--allow-empty"],
                       check=True)
        return True

    def test_a_commit_that_came_during_the_run_is_not_noted(self):
        self.assertEqual(self.green_after(lambda run: run.check("good", ["true"]) and self.commit()), (0, None))

    def test_files_that_are_committed_during_the_run_were_another_commit_at_its_begin(self):
        self.write("new", "")
        add = ["git", "-C", str(self.folder), "add", "new"]
        self.assertEqual(self.green_after(lambda run: run.check("add", add) and self.commit()), (0, None))

    def test_a_run_that_is_cut_off_notes_no_commit(self):
        self.assertEqual(self.green_after(lambda run: run.check("fuzz", ["true"]), spent=75 * 60), (0, None))
        self.assertEqual(self.green_after(lambda run: run.check("clang-tidy", ["sleep", "60"], minutes=0.005)), (0, None))

    def test_changed_files_note_no_commit(self):
        self.write("new", "")
        self.assertEqual(self.green_after(lambda run: run.check("good", ["true"])), (0, None))

    def test_the_minutes_begin_before_the_set_up(self):
        shutil.copytree(ROOT / ".ci", self.folder / ".ci")
        self.write("dev", "#!/bin/sh\nsleep 1.1\n").chmod(0o755)
        self.write("tools/ci.py", "import sys\nprint(*sys.argv[1:])\n")
        answer = subprocess.run([self.folder / ".ci/run", "--full"], capture_output=True, text=True, check=True)
        self.assertRegex(answer.stdout, r"^--spent [1-9]\d* --full\n$")
        with unittest.mock.patch.object(ci, "whole_run", return_value=0) as whole, unittest.mock.patch.object(os, "chdir"), \
                unittest.mock.patch.object(stages, "interruptible", lambda work: work()):
            ci.main(["--spent", "90"])
        whole.assert_called_once_with(ROOT, False, 90)


class ShortRuns(InTemporaryFolder):
    """tests/runs/smoke_test.py with a program that prints what is stored."""

    PROGRAM = """#!{python}
import json, pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--run") + 1])
folder.mkdir()
for name in ("report.html", "config.toml", "log.txt"):
    (folder / name).touch()
events = []
for line in pathlib.Path("{curve}").read_text().splitlines()[:{updates}]:
    step, loss, batch_hash = line.split()
    events.append(dict(event="train", step=int(step), loss=float(loss), batch_hash=batch_hash))
events[4].update({more})
(folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\\n" for event in events))
"""

    def follows(self, more):
        program = self.write("stretto", self.PROGRAM.format(python=sys.executable, updates=smoke_test.IN_CI, more=more,
                                                            curve=smoke_test.CURVES / "translation.txt"))
        program.chmod(0o755)
        with unittest.mock.patch.object(smoke_test, "FULL", False):
            smoke_test.follows_its_stored_curve(str(program), "translation")

    def test_a_warning_of_training_is_seen_in_ci_too(self):
        self.follows({})
        with self.assertRaisesRegex(Exception, "training warned: step 5: loss spike"):
            self.follows({"note": "loss spike"})


class Parts(WithStages):
    """The stages of tools/ci.py, with programs that are made up."""

    def setUp(self):
        super().setUp()
        patched = unittest.mock.patch.dict(os.environ, {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        patched.start()
        self.addCleanup(patched.stop)

    def stub(self, name, script):
        self.write(name, f"#!/bin/sh\n{script}\n").chmod(0o755)

    def change(self, reached=True):
        change = unittest.mock.Mock(spec=changed.Change)
        change.reaches.return_value = reached
        return change

    def cuda(self, nvcc="release 13.0", cache="STRETTO_NCCL_INCLUDE:PATH=/include\nSTRETTO_NCCL_LIBRARY:FILEPATH=/nccl.so\n",
             build=0, **options):
        """What CI says of CUDA, and which targets it asks for, with an nvcc and a cmake that are made up."""
        self.stub("bin/nvcc", f"echo '{nvcc}'")
        self.stub("dev", "")
        self.stub("build/cuda/nccl_tests", "echo nccl_tests >>targets.txt")
        self.stub("bin/cmake", f'[ "$1" = --build ] || exit 0\nshift 3; echo "$*" >>targets.txt; exit {build}')
        self.write("build/cuda/CMakeCache.txt", cache)
        targets = self.write("targets.txt", "")
        run = self.run_of()
        ci.cuda(run, self.change(options.pop("reached", True)), options.pop("full", False))
        run.conclude()
        return self.output.getvalue(), targets.read_text(encoding="utf-8").split()

    def test_what_has_cuda_in_it_is_compiled(self):
        said, targets = self.cuda()
        self.assertEqual(targets, [*ci.CUDA_TARGETS, *ci.NCCL_TARGETS, "nccl_tests"])
        self.assertIn("4 passed, 0 failed", said)
        said, targets = self.cuda(build=1)
        self.assertIn("2 passed, 1 failed", said)

    def test_a_missing_header_of_nccl_and_a_missing_nvcc_are_said(self):
        for missing in ("STRETTO_NCCL_INCLUDE:PATH=STRETTO_NCCL_INCLUDE-NOTFOUND\n",
                        "STRETTO_NCCL_INCLUDE:PATH=/include\nSTRETTO_NCCL_LIBRARY:FILEPATH=STRETTO_NCCL_LIBRARY-NOTFOUND\n"):
            said, targets = self.cuda(cache=missing)
            self.assertEqual(targets, ci.CUDA_TARGETS)
            self.assertIn("nccl.h or libnccl.so.2 is missing", said)
        said, targets = self.cuda(nvcc="release 12.4")
        self.assertEqual(targets, [])
        self.assertIn("there is no nvcc 13", said)

    def test_cuda_is_left_out_with_a_word_where_nothing_of_it_has_changed(self):
        said, targets = self.cuda(reached=False)
        self.assertEqual(targets, [])
        self.assertIn("CUDA build: left out, since nothing that it compiles has changed", said)
        self.assertEqual(self.cuda(reached=False, full=True)[1][:len(ci.CUDA_TARGETS)], ci.CUDA_TARGETS)

    def fuzz(self, reached, full=False, script="", programs=("a", "b")):
        for name in programs:
            self.write(f"tests/fuzz/fuzz_{name}.cpp", "")
            self.stub(f"build/asan/{name}_fuzz", f'echo "{name} $*" >>{self.folder}/called.txt\n{script}')
        self.write("tests/fuzz/corpus/b_fuzz/csv/seed", "")
        self.write("tests/fuzz/corpus/b_fuzz/tsv/seed", "")
        self.write("called.txt", "")
        change = self.change()
        change.reaches.side_effect = lambda source, unlinked: reached == source
        self.fuzz_run = self.run_of()
        ci.fuzz(self.fuzz_run, change, full)
        self.fuzz_run.conclude()
        called = (self.folder / "called.txt").read_text(encoding="utf-8").splitlines()
        return sorted(" ".join(line.split()[:2]) for line in called)

    def test_readers_that_a_change_reaches_get_ten_times_the_inputs(self):
        self.assertEqual(self.fuzz("tests/fuzz/fuzz_a.cpp"), ["a -runs=10000", "b -runs=1000", "b -runs=1000"])
        self.assertIn("fuzzers with 1,000 inputs instead of 10,000, since nothing they read with has changed: b_fuzz, csv; b_fuzz, tsv",
                      self.output.getvalue())
        self.assertEqual(self.fuzz("nothing", full=True), ["a -runs=10000", "b -runs=10000", "b -runs=10000"])

    def test_an_input_that_a_fuzzer_found_is_printed(self):
        script = 'for a in "$@"; do case "$a" in -artifact_prefix=*) printf x >"${a#-artifact_prefix=}crash-1";; esac; done; exit 77'
        self.fuzz("nothing", script=script, programs=("a",))
        self.assertEqual(self.fuzz_run.failed, 1)
        self.assertIn("a_fuzz-crash-1, packed by gzip and base64:", self.output.getvalue())

    def test_clang_tidy_reads_what_needs_no_libtorch(self):
        found = ci.tidy_files(ROOT)
        self.assertIn("src/families/registry.cpp", found)
        self.assertIn("src/families/text/text_rules.cpp", found)
        for file in found:
            self.assertNotIn("/engine/", file.replace("src/cli/engine", ""), file)
            self.assertNotIn("torch/", (ROOT / file).read_text(encoding="utf-8"), file)

    def test_each_fuzzer_of_this_tree_has_a_source(self):
        for name, _ in ci.fuzzers(ROOT):
            self.assertTrue((ROOT / ci.fuzz_source(name)).is_file(), name)

    def test_the_hash_of_a_tree_knows_changed_and_new_files_and_leaves_the_index_alone(self):
        subprocess.run(["git", "init", "-q", str(self.folder)], check=True)
        self.write("a", "1")
        first = stages.tree_hash(self.folder)
        self.write("b", "2")
        self.assertNotEqual(stages.tree_hash(self.folder), first)
        (self.folder / "b").unlink()
        self.assertEqual(stages.tree_hash(self.folder), first)
        self.assertEqual(changed.git(self.folder, "diff", "--cached", "--name-only"), "")


if __name__ == "__main__":
    unittest.main()
