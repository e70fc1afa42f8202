"""Tests of ./dev and of the tools, without network, root or a build: python3 scripts_test.py"""

import contextlib
import hashlib
import http.server
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class InTemporaryFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")
        return self.folder / path


class Layers(InTemporaryFolder):
    def offences(self, path, text):
        self.write(path, text)
        return load("check_layers").offences(self.folder)

    def test_lower_levels_and_the_own_room_are_allowed(self):
        self.assertEqual(self.offences("src/nn/a.h", '#include "base/error.h"\n#include "nn/b.h"\n'), [])

    def test_a_higher_level_is_refused_with_its_place(self):
        found = self.offences("src/nn/a.h", '\n#include "train/trainer.h"\n')
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/nn/a.h:2: nn (level 3) includes train"))

    def test_strangers_on_one_level_are_refused(self):
        self.assertEqual(len(self.offences("src/nn/a.h", '#include "optim/adam.h"\n')), 1)

    def test_libtorch_is_refused_where_no_tensor_is_needed(self):
        self.assertEqual(len(self.offences("src/text/a.h", "#include <ATen/core/Tensor.h>\n")), 1)
        self.assertEqual(len(self.offences("src/nn/b_options.h", "#include <torch/torch.h>\n")), 2)

    def test_a_room_without_a_level_is_refused(self):
        self.assertIn("no level", self.offences("src/cellar/a.h", "")[0])


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


class Docs(InTemporaryFolder):
    def test_finds_untagged_and_unclosed_blocks(self):
        docs = load("check_docs")
        path = self.write("a.md", "```bash run\ntrue\n```\n```bash\nls\n```\n```toml\nx\n```\n"
                                  "```\nls\n```\n  ```sh\n  ls\n  ```\n```bash run\n")
        problems = [bool(docs.problem(language, tag)) for _, language, tag, _ in docs.blocks(path)]
        self.assertEqual(problems, [False, True, False, True, True, True])
        self.assertTrue(docs.problem("bash", "skip:"))
        self.assertFalse(docs.problem("bash", "skip: needs a GPU"))

    def test_finds_links_that_lead_nowhere(self):
        path = self.write("a.md", "[x](b.md) [y](a.md#top) [z](https://example.org)")
        self.assertEqual(load("check_docs").broken_links(path), ["b.md"])

    def test_a_block_that_fails_is_told_with_its_exit_code(self):
        docs = load("check_docs")
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(docs.run_block(self.folder, "echo one; cat; echo two"), "")
            self.assertEqual(docs.run_block(self.folder, "false | true; echo three"), "block left with 1")
        self.assertEqual(shown.getvalue(), "one\ntwo\n")

    def test_a_quickstart_must_do_what_it_promises(self):
        problem = load("check_docs").quickstart_problem
        report = f"report: {self.write('runs/quickstart/report.html', '')}\n"
        self.assertEqual(problem("valid BLEU 12.25\nBLEU 98.7\n" + report), "")
        self.assertIn("BLEU 89.9", problem("BLEU 89.9\n" + report))
        for output in ("BLEU 98.7\nBLEU of the test 98.7\n" + report, "BLEU 98.72\n" + report, report):
            self.assertIn("one decimal", problem(output))
        for end in ("", "report: /nowhere/report.html\n"):
            self.assertIn("report.html", problem("BLEU 98.7\n" + end))

    def test_the_manual_has_no_untagged_block(self):
        docs = load("check_docs")
        self.assertIn(ROOT / "examples/phrasebook/README.md", docs.documents(ROOT))
        for path in docs.documents(ROOT):
            for line, language, tag, _ in docs.blocks(path):
                self.assertEqual(docs.problem(language, tag), "", f"{path}:{line}")


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

    def test_the_sample_data_are_written_once(self):
        self.stub("cmake", 'mkdir -p build/release; : >build/release/build.ninja; cp -n bin/phrasebook build/release/')
        self.stub("phrasebook", 'mkdir -p "$1"; sleep 0.02; : >"$1/train.fr"')
        written = "phrasebook build/phrasebook"
        self.assertIn(written, self.dev("build", "--preset", "release"))
        self.assertNotIn(written, self.dev("build", "--preset", "release"))
        self.assertIn("there already", self.answer.stderr)

    def test_the_test_totals_are_the_last_line_and_count_what_was_skipped(self):
        self.write("build/phrasebook/train.fr", "")
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


class ContinuousIntegration(InTemporaryFolder):
    def counted(self, *outputs):
        """What .ci/run has counted after these outputs of ctest: passed, failed, skipped."""
        text = (ROOT / ".ci" / "run").read_text(encoding="utf-8").split("\n./dev setup --ci")[0]
        text = re.sub(r"^cd .*$", f"cd '{self.folder}' || exit 1", text, flags=re.M)
        for number, (output, status) in enumerate(outputs):
            path = self.write(f"{number}.txt", output)
            text += f"\nsuite 'suite {number}' sh -c 'cat {path}; exit {status}'"
        text += '\necho "$passed $failed $skipped"\n'
        answer = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
        return [int(number) for number in answer.stdout.splitlines()[-1].split()]

    def test_skipped_tests_are_not_counted_as_passed(self):
        some = ("90% tests passed, 1 tests failed out of 10\n\nThe following tests did not run:\n"
                "\t  3 - a (Skipped)\n\t 12 - b (Skipped)\n\nThe following tests FAILED:\n\t  4 - c (Failed)\n", 8)
        self.assertEqual(self.counted(some, ("100% tests passed, 0 tests failed out of 5\n", 0)), [12, 1, 2])

    def test_a_suite_without_totals_or_with_a_bad_end_is_a_failure(self):
        self.assertEqual(self.counted(("Segmentation fault\n", 0)), [0, 1, 0])
        self.assertEqual(self.counted(("100% tests passed, 0 tests failed out of 5\n", 1)), [5, 1, 0])


if __name__ == "__main__":
    unittest.main()
