"""Tests of ./dev, its downloads and suites, and of tools for data, without network, root or a build: python3 dev_test.py"""

import contextlib
import hashlib
import http.server
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import unittest
import unittest.mock

from in_folder import ROOT, InTemporaryFolder, load


class Downloads(unittest.TestCase):
    def test_reads_html_and_json_pages_and_relative_links(self):
        find = load("find_download").find
        base = "http://index.example/simple/pkg/"
        page = '<a href="../../files/a-1%2Bcpu.whl#sha256=0">a</a>'
        self.assertEqual(find(base, "a-1+cpu.whl", page), "http://index.example/files/a-1%2Bcpu.whl")
        page = '{"files": [{"url": "http://files.example/b.whl"}]}'
        self.assertEqual(find(base, "b.whl", page), "http://files.example/b.whl")

    def test_a_file_that_is_not_listed_is_an_error_with_advice(self):
        with self.assertRaisesRegex(SystemExit, "does not list c.whl"):
            load("find_download").find("http://index.example/", "c.whl", "<a href='d.whl'>d</a>")


class RangeHandler(http.server.BaseHTTPRequestHandler):
    """A package index of one file that can be read from the middle."""

    content = bytes(range(256)) * 64
    asked = []
    broken = False

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Range")))
        if self.broken and not self.path.endswith("/"):
            body, status = b"", 403
        elif self.path.endswith("/"):
            body, status = b'<a href="/files/thing.whl">thing</a>', 200
        else:
            start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
            body, status = self.content[start:], 206 if start else 200
        self.send_response(status)
        if status == 206:
            size = len(self.content)
            self.send_header("Content-Range", f"bytes {size - len(body)}-{size - 1}/{size}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Dev(InTemporaryFolder):
    def dev(self, *arguments, **environment):
        return subprocess.run([str(ROOT / "dev"), *arguments], capture_output=True, text=True,
                              check=False, env={**os.environ, **environment})

    def download(self, sha):
        """Calls the function `download` of ./dev, with the test's own index."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RangeHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        RangeHandler.asked.clear()
        script = (ROOT / "dev").read_text(encoding="utf-8").split("\ncommand=${1:---help}")[0]
        script = script.replace('cd "$(dirname "${BASH_SOURCE[0]}")"', f"cd '{ROOT}'")
        environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        environment.update(STRETTO_CACHE=str(self.folder), NO_PROXY="127.0.0.1",
                           PIP_INDEX_URL=f"http://127.0.0.1:{server.server_port}/simple")
        return subprocess.run(["bash", "-c", f"{script}\ndownload thing thing.whl {sha}\n"],
                              capture_output=True, text=True, check=False, env=environment)

    def test_help_is_shown_and_an_unknown_command_refused(self):
        self.assertIn("quickstart", self.dev("--help").stdout)
        self.assertIn("quickstart", self.dev("test", "--help").stdout)
        self.assertEqual(self.dev("tset").returncode, 2)

    def test_a_download_that_broke_off_goes_on_and_a_finished_one_is_kept(self):
        sha = hashlib.sha256(RangeHandler.content).hexdigest()
        part = self.folder / "downloads" / "thing.whl.part"
        part.parent.mkdir()
        part.write_bytes(RangeHandler.content[:5000])
        first = self.download(sha)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn(("/files/thing.whl", "bytes=5000-"), RangeHandler.asked)
        self.assertEqual((part.parent / "thing.whl").read_bytes(), RangeHandler.content)
        self.assertEqual(self.download(sha).returncode, 0)
        self.assertEqual(RangeHandler.asked, [])

    def test_a_part_that_is_already_whole_is_not_asked_for_again(self):
        part = self.folder / "downloads" / "thing.whl.part"
        part.parent.mkdir()
        part.write_bytes(RangeHandler.content)
        self.assertEqual(self.download(hashlib.sha256(RangeHandler.content).hexdigest()).returncode, 0)
        self.assertNotIn("/files/thing.whl", [path for path, _ in RangeHandler.asked])

    def test_a_server_in_trouble_does_not_cost_the_part(self):
        part = self.folder / "downloads" / "thing.whl.part"
        part.parent.mkdir()
        part.write_bytes(b"x" * 10)
        with unittest.mock.patch.object(RangeHandler, "broken", True):
            answer = self.download(hashlib.sha256(RangeHandler.content).hexdigest())
        self.assertEqual(answer.returncode, 74, answer.stderr)
        self.assertEqual(part.read_bytes(), b"x" * 10)

    def test_a_file_with_another_hash_is_refused_and_deleted(self):
        answer = self.download("0" * 64)
        self.assertEqual(answer.returncode, 65, answer.stderr)
        self.assertFalse((self.folder / "downloads" / "thing.whl.part").exists())
        self.assertFalse((self.folder / "downloads" / "thing.whl").exists())


class Machine(InTemporaryFolder):
    """./dev in a folder of its own on a machine made up: programs that only note how they are called."""

    def setUp(self):
        super().setUp()
        for path in ("dev", "tools/find_download.py"):
            (self.folder / path).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)
        text = (self.folder / "dev").read_text(encoding="utf-8")
        for name in ("torch_sha", "spm_sha"):  # both are unpacked already
            sha = re.search(rf"^{name}=(\w+)$", text, re.M)[1]
            self.write(f".deps/.stamps/{'torch' if name == 'torch_sha' else 'sentencepiece'}-{sha}", "")
        self.calls = self.folder / "calls.txt"
        self.stub("dpkg-query", 'for last in "$@"; do :; done; '
                                '[ "$last" = "$MISSING" ] && exit 1; printf installed')
        self.stub("python3", "exit 0")
        self.stub("curl", "exit 7")
        self.stub("cmake", 'while [ $# -gt 0 ]; do [ "$1" = -B ] && mkdir -p "$2" && : >"$2/build.ninja"; shift; done')
        self.stub("id", "echo 1000")
        self.stub("apt-get", "exit 0")
        self.stub("sudo", "exit 1")
        self.stub("nvcc", "exit 1")

    def stub(self, name, script):
        path = self.write(f"bin/{name}", f'#!/bin/sh\necho "{name} $*" >>"{self.calls}"\n{script}\n')
        path.chmod(0o755)

    def dev(self, *arguments, **environment):
        """Runs ./dev; the calls of the made-up programs that it led to."""
        self.calls.write_text("")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("STRETTO_")}
        self.answer = subprocess.run(
            [str(self.folder / "dev"), *arguments], capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
            env={**inherited, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "MISSING": "",
                 "STRETTO_CACHE": str(self.folder / "cache"), **environment})
        return self.calls.read_text().splitlines()

    def configured_with(self, *arguments, **environment):
        """STRETTO_LIBTORCH of each configuration that `./dev build` made."""
        calls = self.dev("build", "--preset", "release", "stretto", *arguments, **environment)
        self.assertEqual(self.answer.returncode, 0, self.answer.stderr)
        self.assertEqual([call for call in calls if call.startswith("curl")], [])
        self.assertIn("cmake --build build/release --target stretto", calls)
        return [re.search("-DSTRETTO_LIBTORCH=(.*)", call)[1] for call in calls if "--preset" in call]

    def test_an_existing_libtorch_is_configured_and_a_change_of_it_too(self):
        for name in ("one", "other"):
            self.write(f"{name}/lib/libtorch_cpu.so", "")
        one, other = (str(self.folder / name) for name in ("one", "other"))
        self.assertEqual(self.configured_with(STRETTO_LIBTORCH=one), [one])
        self.assertEqual(self.configured_with(STRETTO_LIBTORCH=one), [], "nothing twice")
        self.assertEqual(self.configured_with(STRETTO_LIBTORCH=other), [other])
        self.assertEqual(self.configured_with(STRETTO_LIBTORCH="one"), [one], "a relative path")
        self.assertEqual(self.configured_with(), [""])
        self.assertEqual(self.configured_with(), [], "nothing twice")

    def test_a_build_configured_by_hand_is_configured_once_more(self):
        self.write("build/release/build.ninja", "")
        self.assertEqual(self.configured_with(), [""])

    def test_without_root_and_sudo_the_exact_line_to_run_is_printed(self):
        calls = self.dev("setup", MISSING="mold")
        self.assertEqual(self.answer.returncode, 2, self.answer.stderr)
        self.assertIn("\n  run as root: apt-get update && apt-get install -y --no-install-recommends mold\n",
                      self.answer.stderr)
        self.assertEqual([call for call in calls if call.startswith("apt-get")], [])

    def test_sudo_that_asks_for_nothing_is_used(self):
        self.stub("sudo", '[ "$1" = -n ] && exit 0; exec "$@"')
        calls = self.dev("setup", MISSING="mold")
        self.assertEqual(self.answer.returncode, 0, self.answer.stderr)
        self.assertIn("system packages to install: mold", self.answer.stderr)
        self.assertIn("sudo apt-get update -q", calls)
        self.assertIn("apt-get install -y -q --no-install-recommends mold", calls)

    def test_where_nothing_is_missing_no_one_is_asked_for_rights(self):
        calls = self.dev("setup")
        self.assertEqual(self.answer.returncode, 0, self.answer.stderr)
        self.assertEqual([call for call in calls if call.startswith(("sudo", "apt-get"))], [])

    SAMPLE_DATA = {"phrasebook": [f"{part}.{side}" for part in ("train", "valid", "test") for side in ("en", "fr")],
                   "reversal": ["vocab.txt", *(f"{part}.{side}" for part in ("train", "valid", "test")
                                               for side in ("src", "src1", "src2", "tgt"))],
                   "portraits": ["train.json", "valid.json", "test.json"],
                   "reviews": ["train.tsv", "valid.tsv", "test.tsv"],
                   "shapes": ["train.tar", "valid.tar"],
                   "vowels": ["train.jsonl", "valid.jsonl", "test.jsonl"]}

    def test_sample_data_are_written_when_some_are_missing_or_older_than_their_program(self):
        self.stub("cmake", 'mkdir -p build/release; : >build/release/build.ninja\n'
                           f'cd bin; cp -n {" ".join(self.SAMPLE_DATA)} ../build/release/')
        for name, files in self.SAMPLE_DATA.items():
            self.stub(name, f'mkdir -p "$1"; cd "$1"; sleep 0.02; touch {" ".join(files)}')
        commands = [f"{name} build/{name}" for name in self.SAMPLE_DATA]

        def written():
            calls = self.dev("build", "--preset", "release")
            self.assertEqual(self.answer.returncode, 0, self.answer.stderr)
            return [call for call in calls if call in commands]

        self.assertEqual(written(), commands)
        self.assertEqual(written(), [])
        self.assertIn("build/reversal is there already", self.answer.stderr)
        for name, files in self.SAMPLE_DATA.items():
            for file in files:
                (self.folder / "build" / name / file).unlink()
                self.assertEqual(written(), [f"{name} build/{name}"], f"without {file}")
        os.utime(self.folder / "build/reversal/test.src", (1, 1))
        self.assertEqual(written(), ["reversal build/reversal"])

    def test_the_test_totals_are_the_last_line_and_count_what_was_skipped(self):
        for name, files in self.SAMPLE_DATA.items():
            for file in files:
                self.write(f"build/{name}/{file}", "")
        self.stub("cmake", 'mkdir -p build/release; : >build/release/build.ninja')
        summary = ("80% tests passed, 2 tests failed out of 10\n\nThe following tests did not run:\n"
                   "\t  3 - runs.full_disk (Skipped)\n\nThe following tests FAILED:\n"
                   "\t  4 - a (Failed)\n\t  5 - b (Timeout)\n")
        self.write("summary", summary)
        self.stub("ctest", 'while [ "$1" != --output-log ]; do shift; done; tee "$2" <summary; exit 8')
        self.dev("test")
        self.assertEqual(self.answer.returncode, 8, self.answer.stderr)
        self.assertEqual(self.answer.stdout.splitlines()[-1], "7 passed, 2 failed, 1 skipped")

    def test_an_existing_libtorch_that_is_none_is_named(self):
        self.dev("build", "--preset", "release", "stretto", STRETTO_LIBTORCH="/nowhere")
        self.assertEqual(self.answer.returncode, 2)
        self.assertIn("no lib/libtorch_cpu.so in /nowhere\n  give the folder", self.answer.stderr)


class Slurm(InTemporaryFolder):
    """examples/slurm/train.sbatch on a cluster made up: srun, scontrol and sbatch only note how they are called."""

    SCRIPT = ROOT / "examples/slurm/train.sbatch"

    def setUp(self):
        super().setUp()
        self.calls = self.folder / "calls.txt"
        self.stub("srun", "exit $SRUN_CODE")
        self.stub("scontrol", "exit $SCONTROL_CODE")
        self.stub("sbatch", 'echo "returns $STRETTO_RETURNS" >>"$CALLS"')

    def stub(self, name, script):
        path = self.write(f"bin/{name}", f'#!/bin/sh\necho "{name} $*" >>"$CALLS"\n{script}\n')
        path.chmod(0o755)

    def job(self, *arguments, srun=0, scontrol=0, **environment):
        """Runs the batch script; what it called."""
        self.calls.write_text("")
        self.answer = subprocess.run(
            [str(self.SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=60,
            env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "CALLS": str(self.calls),
                 "SLURM_JOB_ID": "4711", "SRUN_CODE": str(srun), "SCONTROL_CODE": str(scontrol), **environment})
        return self.calls.read_text().splitlines()

    TRAINING = "srun --mpi=pmix --cpus-per-task=4 stretto train my.toml --run runs/a b train.max_steps=5"

    def train(self, **options):
        return self.job("my.toml", "runs/a b", "train.max_steps=5", SLURM_CPUS_PER_TASK="4", **options)

    def test_its_head_asks_for_the_signal_and_for_the_queue_again(self):
        head = [line for line in self.SCRIPT.read_text(encoding="utf-8").splitlines() if line.startswith("#SBATCH")]
        self.assertTrue(any(re.fullmatch(r"#SBATCH --signal=USR1@\d+", line) for line in head), "not to the shell: B:")
        for option in ("--requeue", "--open-mode=append"):
            self.assertIn(f"#SBATCH {option}", head)
        commands = self.SCRIPT.read_text(encoding="utf-8").split("#SBATCH --output")[1]
        self.assertNotIn("#SBATCH", commands, "Slurm reads no option behind the first command")

    def test_what_ends_by_itself_is_over(self):
        for code in (0, 2, 70):
            self.assertEqual(self.train(srun=code), [self.TRAINING])
            self.assertEqual(self.answer.returncode, code)

    def test_a_run_that_was_saved_before_the_limit_goes_back_into_the_queue(self):
        self.assertEqual(self.train(srun=75), [self.TRAINING, "scontrol requeue 4711"])
        self.assertEqual(self.answer.returncode, 0)
        self.assertIn("runs/a b is saved, job 4711 is queued again", self.answer.stderr)

    def test_where_that_is_forbidden_another_job_takes_over(self):
        calls = self.train(srun=75, scontrol=1, SLURM_RESTART_COUNT="2", STRETTO_RETURNS="3")
        self.assertEqual(calls[2:], [f"sbatch --dependency=afterany:4711 {self.SCRIPT} my.toml runs/a b train.max_steps=5",
                                     "returns 6"])
        self.assertEqual(self.answer.returncode, 0)
        self.stub("sbatch", "exit 1")
        self.train(srun=75, scontrol=1)
        self.assertEqual(self.answer.returncode, 75)

    def test_it_does_not_return_for_ever(self):
        self.assertEqual(self.train(srun=75, SLURM_RESTART_COUNT="100"), [self.TRAINING])
        self.assertEqual(self.answer.returncode, 75)
        self.assertIn("100 times", self.answer.stderr)
        self.assertEqual(len(self.train(srun=75, SLURM_RESTART_COUNT="99")), 2)

    def test_a_job_that_was_cancelled_or_preempted_is_not_queued_by_it(self):
        # scancel sends SIGTERM to the batch shell as well as to the processes.
        self.stub("srun", "kill -TERM $PPID; exit 75")
        self.assertEqual(self.train(), [self.TRAINING])
        self.assertEqual(self.answer.returncode, 75)
        self.assertIn("cancelled or preempted", self.answer.stderr)

    def test_without_its_arguments_it_says_what_it_wants(self):
        self.assertEqual(self.job("my.toml"), [])
        self.assertEqual(self.answer.returncode, 2)
        self.assertIn("usage: sbatch", self.answer.stderr)


class Wmt16(InTemporaryFolder):
    """tools/wmt16_en_de.py on a small archive that looks like the real one."""

    SETS = {"train.tok.clean.bpe.32000": ("train", 3), "newstest2013.tok.bpe.32000": ("newstest2013", 1),
            "newstest2014.tok.bpe.32000": ("newstest2014", 1)}
    TEXT = {"./train.tok.clean.bpe.32000.en": "b a\u00a0a \r\n<unk> th@@ e\na b\n", "vocab.bpe.32000": "a\n",
            "./train.tok.clean.bpe.32000.de": "c a\nth@@ is\n\n", "newstest2013.tok.bpe.32000.en": "rare\n",
            "newstest2013.tok.bpe.32000.de": "e\n", "newstest2014.tok.bpe.32000.en": "a\n",
            "newstest2014.tok.bpe.32000.de": "b\n", "newstest2015.tok.bpe.32000.en": "z\n"}

    def prepare(self, rows=9, md5=None, **changed):
        archive = self.folder / "wmt16_en_de.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for name, text in {**self.TEXT, **changed}.items():
                data = text.encode() if isinstance(text, str) else text
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        tool = load("wmt16_en_de")
        with contextlib.redirect_stdout(io.StringIO()):
            tool.prepare(archive, self.folder / "out", self.SETS, md5 or tool.md5_of(archive), rows)

    def written(self):
        return sorted(path.name for path in (self.folder / "out").iterdir()) if (self.folder / "out").exists() else []

    def test_writes_texts_with_single_spaces_and_the_dictionary_of_both_sides(self):
        self.prepare()
        self.assertEqual(self.written(), ["dict.txt", "newstest2013.de", "newstest2013.en", "newstest2014.de",
                                          "newstest2014.en", "train.de", "train.en"])
        self.assertEqual((self.folder / "out/train.en").read_bytes(), b"b a a\n<unk> th@@ e\na b\n")
        self.assertEqual((self.folder / "out/train.de").read_bytes(), b"c a\nth@@ is\n\n")
        # Nine rows are four specials and the five most frequent pieces; of equals the first in order.
        self.assertEqual((self.folder / "out/dict.txt").read_text(), "a 4\nb 2\nth@@ 2\nc 1\ne 1\n")

    def test_the_dictionary_of_the_paper_has_32768_rows(self):
        tool = load("wmt16_en_de")
        counts = {f"piece{number}": 50_000 - number for number in range(40_000)}
        entries = tool.dictionary(counts, tool.ROWS)
        self.assertEqual(len(entries) + len(tool.SPECIALS), 32_768)

    def test_another_archive_is_refused_and_nothing_is_left(self):
        for words, changed in (("MD5 .*, expected 874a", {"md5": load("wmt16_en_de").MD5}),
                               ("has 4 sentences, expected 3", {"./train.tok.clean.bpe.32000.de": "a\n" * 4}),
                               ("utf-8", {"./train.tok.clean.bpe.32000.de": b"\xff\n"})):
            with self.subTest(words), self.assertRaisesRegex(SystemExit, words):
                self.prepare(**changed)
            self.assertEqual(self.written(), [])
        with self.assertRaisesRegex(SystemExit, "has no newstest2014"), unittest.mock.patch.dict(self.TEXT):
            del self.TEXT["newstest2014.tok.bpe.32000.de"]
            self.prepare()

    def test_a_missing_archive_says_where_to_look(self):
        with self.assertRaisesRegex(SystemExit, "docs/wmt16.md"):
            load("wmt16_en_de").prepare(self.folder / "none.tar.gz", self.folder / "out")


@unittest.skipUnless(shutil.which("ctest"), "there is no ctest")
class Toolchain(InTemporaryFolder):
    """cmake/StrettoToolchain.cmake, in a project of one file."""

    @unittest.skipUnless(all(map(shutil.which, ("cmake", "ninja", "clang++", "gcc"))), "needs cmake, ninja, clang++ and gcc")
    def test_the_sum_of_a_precompiled_header_stands_beside_it_whatever_compiles_c(self):
        self.write("a.cpp", "int main() { return 0; }\n")
        self.write("CMakeLists.txt", f"""cmake_minimum_required(VERSION 3.25)
project(one LANGUAGES CXX C)
include([=[{ROOT}/cmake/StrettoToolchain.cmake]=])
add_executable(one a.cpp)
target_precompile_headers(one PRIVATE <vector>)
stretto_pch_sum(one ${{CMAKE_SOURCE_DIR}}/a.cpp)
""")
        for c in ("gcc", "clang"):
            with self.subTest(c=c):
                if not shutil.which(c):
                    self.skipTest(f"no {c}")
                build = self.folder / c
                made = subprocess.run(["cmake", "-G", "Ninja", "-S", self.folder, "-B", build, f"-DCMAKE_C_COMPILER={c}",
                                       "-DCMAKE_CXX_COMPILER=clang++"], capture_output=True, text=True)
                self.assertEqual(made.returncode, 0, made.stderr)
                sums = [path.relative_to(build).as_posix() for path in build.rglob("*.sum")]
                headers = re.findall(r"^build (\S+/cmake_pch\.hxx\.[a-z]+):", (build / "build.ninja").read_text(), re.MULTILINE)
                self.assertEqual(sums, [header + ".sum" for header in headers])


class Suites(InTemporaryFolder):
    """tests/suites.cmake: what ctest makes of a program's suites and of what they print."""

    PROGRAM = """#!/bin/sh
case "$1" in
  --gtest_list_tests) printf 'Running main() from gtest_main.cc\\nGood.\\n  A\\nBad.\\n  A\\nOut.\\n  A\\nMixed.\\n  A\\n  B\\nLong/0.  # TypeParam = int\\n  A\\n  B/1  # GetParam() = 3\\n' ;;
  *Good*) echo '[  PASSED  ] 1 test.' ;;
  *Bad*) printf '[  PASSED  ] 0 tests.\\n[  FAILED  ] 1 test, listed below:\\n[  FAILED  ] Bad.A\\n\\n 1 FAILED TEST\\n'; exit 1 ;;
  *Out*) printf '[  PASSED  ] 0 tests.\\n[  SKIPPED ] 1 test, listed below:\\n[  SKIPPED ] Out.A\\n' ;;
  *Mixed*) printf '[  PASSED  ] 0 tests.\\n[  SKIPPED ] 1 test, listed below:\\n[  SKIPPED ] Mixed.A\\n[  FAILED  ] 1 test, listed below:\\n[  FAILED  ] Mixed.B\\n'; exit 1 ;;
  *) echo '[  PASSED  ] 1 test.' ;;
esac
"""

    def ctest(self, apart, *arguments):
        settings = self.write("settings.cmake", f"""set(PROGRAM [=[{self.folder}/program]=])
set(LIST [=[{self.folder}/list.cmake]=])
set(LABELS unit)
set(APART {apart})
set(SETTINGS [=[{self.folder}/settings.cmake]=])
include([=[{ROOT}/tests/suites.cmake]=])
""")
        self.write("CTestTestfile.cmake", f"include([=[{settings}]=])\n")
        return subprocess.run(["ctest", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)

    def setUp(self):
        super().setUp()
        self.write("program", self.PROGRAM).chmod(0o755)

    def test_a_suite_of_which_nothing_passed_fails_unless_all_left_themselves_out(self):
        result = self.ctest("Other")
        self.assertNotEqual(result.returncode, 0)
        for name, end in (("Good", "Passed"), ("Bad", "Failed"), ("Out", "Skipped"), ("Mixed", "Failed"), ("Long/0", "Passed")):
            self.assertRegex(result.stdout, rf": {name} \.*.*{end}")
        self.assertIn("2 tests failed out of 5", result.stdout)

    def test_each_test_of_a_long_suite_is_one_and_new_settings_count(self):
        self.assertIn("Total Tests: 5", self.ctest("Other", "-N").stdout)
        time.sleep(0.02)
        listed = self.ctest("Other Long/0", "-N").stdout
        self.assertIn("Long/0.A", listed)
        self.assertIn("Long/0.B/1", listed)
        self.assertIn("Total Tests: 6", listed)

    def test_a_program_without_tests_is_an_error(self):
        self.write("program", "#!/bin/sh\n").chmod(0o755)
        self.assertIn("lists no tests", self.ctest("Other", "-N").stdout)


class RunTestFiles(InTemporaryFolder):
    """tests/runs/harness.py"""

    def run_file(self, listed):
        self.write("some_test.py", "from harness import main\n\n\ndef listed(stretto):\n    pass\n\n\ndef forgotten(stretto):\n"
                   f"    pass\n\n\ndef helper(stretto, word):\n    pass\n\n\nmain({{test.__name__: test for test in ({listed})}})\n")
        return subprocess.run([sys.executable, self.folder / "some_test.py", "/bin/true"], text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "tests/runs")}, capture_output=True)

    def test_a_test_that_is_not_listed_is_named(self):
        result = self.run_file("listed,")
        self.assertEqual(result.returncode, 1)
        self.assertIn("has tests that would never run: forgotten", result.stderr)
        self.assertEqual(self.run_file("listed, forgotten").returncode, 0)


if __name__ == "__main__":
    unittest.main()
