"""Tests of ./dev and of the tools, without network, root or a build: python3 scripts_test.py"""

import argparse
import contextlib
import hashlib
import http.server
import importlib.util
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
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

    def test_words_of_translation_stay_out_of_rooms_that_serve_any_family(self):
        for line in ("// BLEU of the best", "std::string src_text;", "  /// the target side's", "// each sentence",
                     'json["source"] = 1;', "int64_t tgt = 0;", "TranslationTask task;"):
            found = self.offences("src/train/a.h", f"\n{line}\n")
            self.assertEqual(len(found), 1, line)
            self.assertTrue(found[0].startswith("src/train/a.h:2: "), found)
        self.assertEqual(self.offences("src/train/a.h", "at::Tensor source, target;  // sentencepiece, desrc\n"), [])
        for path in ("src/data/pairs/a.h", "src/tasks/a.h", "src/text/a.h"):
            self.assertEqual(self.offences(path, "// source side: BLEU of a sentence\n"), [])

    def test_readers_of_other_data_may_have_words_that_translation_has_too(self):
        for line in ('auto text = row["sentence"];', "pixels.translate_x(src);", 'row["source"] = 1;'):
            self.assertEqual(self.offences("src/data/audio/a.h", line + "\n"), [], line)
            self.assertEqual(len(self.offences("src/data/a.h", line + "\n")), 1, line)
            (self.folder / "src/data/a.h").unlink()
        for line in ("// BLEU", "int64_t tgt = 0;", "// of a translation", "// the target side"):
            self.assertEqual(len(self.offences("src/data/audio/a.h", line + "\n")), 1, line)

    def test_words_of_other_families_stay_out_too_but_for_their_data(self):
        self.write("src/families/text_classification/a.h", "")
        self.write("src/families/image_captions/a.h", "")
        lines = ("std::string question;", 'assets.find("labels.json");', "// answers.json of the run", "QuestionAnsweringTask t;",
                 "// a masked LM", "MaskedLmOptions o;", "e.task.is<TextClassificationOptions>();", "// as SQuAD has it",
                 "ImageCaptionsTask task;")
        for line in lines:
            for room in ("train", "runs", "engine", "lint", "report", "parallel", "distributed"):
                self.assertEqual(len(self.offences(f"src/{room}/a.h", line + "\n")), 1, line)
                (self.folder / f"src/{room}/a.h").unlink()
        for line in ("std::string question;", "// answers.json of the run", "// as SQuAD has it"):
            self.assertEqual(self.offences("src/data/squad/a.h", line + "\n"), [])
        self.assertEqual(self.offences("src/train/a.h", "// one label; masks answers.jsonl\n"), [])
        self.assertEqual(self.offences("src/lint/a.h", "// the text has no captions\n"), [])

    def test_a_family_is_named_in_its_folder_and_in_listed_sources_alone(self):
        self.write("src/families/question_answering/a.h", "QuestionAnsweringOptions o;\n")
        for path in ("src/data/squad/a.h", "src/tasks/a.h", "src/cli/a.h", "src/models/a.h", "src/experiment/a.h"):
            for line in ("QuestionAnsweringOptions o;", '#include "families/question_answering/a.h"', "// as question_answering has it"):
                found = [one for one in self.offences(path, line + "\n") if "names a family" in one]
                self.assertEqual(len(found), 1, path + line)
                self.assertTrue(found[0].startswith(path + ":1: "), found)
            (self.folder / path).unlink()
        self.assertEqual(self.offences("src/experiment/foreign_options.cpp", 'add("ForQuestionAnswering");\n'), [])
        found = self.offences("src/experiment/foreign_options.cpp", "int a;\n")
        self.assertIn("names no family any more", found[0])

    def test_a_name_that_means_something_else_too_is_a_familys_in_front_of_its_parts_alone(self):
        self.write("src/families/images/a.h", "")
        self.write("src/families/language_model/a.h", "")
        self.write("src/models/language_model.h", "class LanguageModel;\n")
        for line in ("models::LanguageModel model;  // of images", "LanguageModelOptions o;", "void show_images();",
                     '#include "models/language_model.h"', "read_images_of(folder);"):
            for path in ("src/runs/a.h", "src/parallel/a.h", "src/cli/a.h"):
                self.assertEqual(self.offences(path, line + "\n"), [], line)
                (self.folder / path).unlink()
        for line in ('if (name == "images")', "ImagesOptions o;", "images_rules();", "LanguageModelTask task;",
                     'select("language_model");', '#include "families/images/a.h"'):
            for path in ("src/cli/a.h", "src/train/a.h"):
                self.assertGreaterEqual(len(self.offences(path, line + "\n")), 1, line)
                (self.folder / path).unlink()

    def test_a_family_includes_itself_and_what_those_of_text_share_but_no_other(self):
        for line in ('#include "families/a/b.h"\n', '#include "families/text/b.h"\n', '#include "experiment/rules.h"\n'):
            self.assertEqual(self.offences("src/families/a/a.h", line), [])
            self.assertEqual(self.offences("src/families/a/engine/a.h", line + '#include "tasks/family.h"\n'), [])
        for line in ('#include "families/audio/b.h"\n', '#include "families/text/b.h"\n'):
            self.assertEqual(self.offences("src/families/a/a.h", line), [])
        for path in ("src/families/a/a.h", "src/families/a/engine/a.h", "src/families/text/a.h"):
            found = self.offences(path, '#include "families/b/b.h"\n')
            self.assertEqual(len(found), 1, found)
            self.assertIn("includes b, which is another family", found[0])
            (self.folder / path).unlink()
        self.assertEqual(self.offences("src/families/registry.cpp", '#include "families/a/a.h"\n'), [])

    def test_tensors_of_a_family_stand_in_its_folder_engine_alone(self):
        torch = "#include <torch/torch.h>\n"
        self.assertEqual(self.offences("src/families/a/engine/a.h", torch), [])
        self.assertEqual(self.offences("src/families/engine_registry.cpp", '#include "families/a/engine/a.h"\n'), [])
        self.assertEqual(len(self.offences("src/families/a/a.h", torch)), 1)
        (self.folder / "src/families/a/a.h").unlink()
        found = self.offences("src/families/a/a.h", '#include "families/a/engine/a.h"\n')
        self.assertIn("families (level 10) includes families/engine", found[0])
        (self.folder / "src/families/a/a.h").unlink()
        found = self.offences("src/experiment/a.h", '#include "families/a/a.h"\n')
        self.assertIn("experiment (level 8) includes families", "".join(found))

    def test_words_of_a_kind_of_models_stay_out_too_and_so_do_its_headers(self):
        lines = ("import_seq2seq(folder);", "models::Seq2SeqOptions o;", "experiment::text_sections(e);", "void import_text_model();",
                 "std::shared_ptr<TextModel> model;", "nn::Sinusoids table;", "// as Marian has it",
                 '#include "families/translation/folders/export_seq2seq.h"', '#include "families/text/text_sections.h"')
        for line in lines:
            for path in ("src/engine/a.h", "src/train/a.h", "src/runs/a.h", "src/data/a.h", "src/interchange/a.h"):
                words = [found for found in self.offences(path, line + "\n") if "word of one kind of models" in found]
                self.assertEqual(len(words), 1, line)
                (self.folder / path).unlink()
            for path in ("src/tasks/a.h", "src/data/pairs/a.h"):
                self.assertNotIn("kind of models", "".join(self.offences(path, line + "\n")))
                (self.folder / path).unlink()
        self.assertEqual(self.offences("src/engine/a.h", "Context model;  // contextModel, text of a model\n"), [])

    def test_names_of_tensors_stay_out_of_the_engine_alone(self):
        line = 'add("encoder.positions.weight");\n'
        self.assertEqual(len(self.offences("src/engine/a.h", line)), 1)
        (self.folder / "src/engine/a.h").unlink()
        self.assertEqual(self.offences("src/train/a.h", line), [])
        self.assertEqual(self.offences("src/engine/a.h", '#include "families/text/engine/embed.h"\n'), [])

    def test_a_word_may_mean_something_else_in_lines_that_are_listed(self):
        line = 'out += "<text transform=\\"translate(" + x;\n'
        self.assertEqual(self.offences("src/report/heat_map.cpp", line), [])
        self.assertEqual(len(self.offences("src/report/chart.cpp", line)), 1)

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

    def test_a_block_that_quotes_a_file_has_its_text(self):
        docs = load("check_docs")
        self.write("src/a.h", "#pragma once\n\nint one();\nint two();\n")
        wrong = lambda tag, text: docs.misquoted(self.folder, tag, text)
        self.assertEqual(wrong("file: src/a.h", "#pragma once\n\nint one();\nint two();"), "")
        self.assertIn("--quote", wrong("file: src/a.h", "#pragma once\n\nint one();"))
        self.assertEqual(wrong("lines of: src/a.h", "int one();\nint two();"), "")
        self.assertIn("does not have", wrong("lines of: src/a.h", "int two();\nint one();"))
        self.assertIn("does not have", wrong("lines of: src/a.h", ""))
        self.assertIn("does not exist", wrong("file: src/b.h", ""))
        self.assertEqual(wrong("run", "true"), "")
        self.assertIn("needs a tag", docs.problem("cpp", ""))
        self.assertEqual(docs.problem("cpp", "lines of: src/a.h"), "")

    def test_blocks_that_quote_whole_files_are_written_anew(self):
        docs = load("check_docs")
        self.write("a.h", "int one();\nint two();\n")
        page = self.write("page.md", "# Page\n\n```cpp file: a.h\nint zero();\n```\n\n```cpp lines of: a.h\n"
                                     "int two();\n```\n\n```cpp file: a.h\n```\nend\n")
        docs.quote_anew(self.folder, page)
        whole = "```cpp file: a.h\nint one();\nint two();\n```\n"
        self.assertEqual(page.read_text(), f"# Page\n\n{whole}\n```cpp lines of: a.h\nint two();\n```\n\n{whole}end\n")

    def test_finds_links_that_lead_nowhere(self):
        path = self.write("a.md", "[x](b.md) [y](a.md#top) [z](https://example.org)")
        self.assertEqual(load("check_docs").broken_links(path), ["b.md"])

    def test_finds_keys_that_the_reference_does_not_know(self):
        docs = load("check_docs")
        known = docs.known_keys("## `[train]`\n\n| key | type |\n|---|---|\n| `max_steps` | integer |\n"
                                "## `[train.loss_scale]`\n\n| `init` | number |\n## `[model]`\n\n| `norm` | string |\n"
                                "## `[[model.encoders]]`\n\n| `name` | string |\n"
                                "### `[data]`\n\n| `text` | string |\n#### `[data]` with `name = \"a\"`\n\n| `label` | string |\n")
        self.assertEqual(known, {"train.max_steps", "train.loss_scale.init", "model.norm", "model.encoders.name", "data.text",
                                 "data.label"})
        path = self.write("a.md", "`train.max_steps` `train.max_steps=5` `train.loss_scale` `train.loss_scale.init = 1`\n"
                                  "`model.safetensors` `other.key` `stretto train` `Trainer.train` `train.py`\n"
                                  "`train.steps` and `model.norms = 1`, `train.loss_scale.start`\n"
                                  "```text\nunknown key `train.step`\n```\n")
        self.assertEqual(docs.unknown_keys(path, known),
                         [(3, "train.steps"), (3, "model.norms"), (3, "train.loss_scale.start")])

    def test_finds_sentences_of_more_than_25_words(self):
        docs = load("check_docs")
        words = lambda count: " ".join(["word"] * count)
        path = self.write("a.md", f"# {words(26)}\n\n{words(25)}. Is\nthis {words(24)}? An `x. y\nz` {words(24)}\n"
                                  f"- {words(20)}\n1. {words(20)};\n   {words(6)} et al. {words(1)}!\n\n"
                                  f"| {words(26)} |\n<img alt=x>\n```text\n{words(26)}\n```\n"
                                  f"[{words(20)}](a.md) · {words(5)}.)\n**{words(25)}.** Two. (See [{words(26)}](a.md).)\n")
        self.assertEqual(docs.long_sentences(path), [(3, 26), (4, 26), (7, 29), (16, 27)])

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
        counted = docs.with_short_sentences(ROOT)
        self.assertIn(ROOT / "CHANGELOG.md", counted)
        self.assertNotIn(ROOT / "docs/config.md", counted)
        for path in docs.documents(ROOT):
            for line, language, tag, text in docs.blocks(path):
                self.assertEqual(docs.problem(language, tag), "", f"{path}:{line}")
                self.assertEqual(docs.misquoted(ROOT, tag, text), "", f"{path}:{line}")


class Changelog(unittest.TestCase):
    """CHANGELOG.md has the structure of Keep a Changelog."""

    def test_every_entry_of_a_version_stands_below_a_kind_of_change_that_occurs_once(self):
        text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        for version in re.split(r"^## ", text, flags=re.M)[1:]:
            before, *kinds = re.findall(r"^(?:### (.+)|- .*)$", version, re.M)
            named = [before, *filter(None, kinds)]
            self.assertEqual(len(named), len(set(named)), named)
            self.assertLessEqual(set(named), {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})

    def test_groups_of_entries_have_headings_between_empty_lines(self):
        lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
        for before, line, after in zip(lines, lines[1:], lines[2:]):
            self.assertNotRegex(line, r"^\*\*.*\*\*$")
            if line.startswith("#"):
                self.assertEqual([before, after], ["", ""], line)


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
                   "reviews": ["train.tsv", "valid.tsv", "test.tsv"]}

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


class PlantedFaults(InTemporaryFolder):
    """tools/mutate.py on a tree of two shell scripts, whose build joins them to a program."""

    LIST = """
        configure = "mkdir -p out; echo configure >>out/calls"
        [[program]]
        folders = ["tests/add"]
        build = "echo build >>out/calls; sh -n src/add/add.sh && cat src/add/add.sh src/add/sub.sh >out/program"
        run = "echo {file} >>out/calls; sh {file}"
    """
    FAULTS = {
        "swapped": ("src/add/add.sh", "$1 + $2", "$1 - $2"),
        "unseen": ("src/add/sub.sh", "$1 - $2", "$2 - $1"),
        "hangs": ("src/add/add.sh", "echo", "sleep 1000; echo"),
    }

    def setUp(self):
        super().setUp()
        self.tree, self.work = self.folder / "tree", self.folder / "work"
        self.write("tree/src/add/add.sh", "add() { echo $(($1 + $2)); }\n")
        self.write("tree/src/add/sub.sh", "sub() { echo $(($1 - $2)); }\n")
        self.write("tree/tests/add/add_test.sh", ". ./out/program\n[ $(add 2 3) = 5 ] && [ $(sub 3 3) = 0 ]\n")
        subprocess.run(["git", "init", "-q", str(self.tree)], check=True)
        self.write_list(self.FAULTS)

    def write_list(self, faults, tests="tests/add/*_test.sh"):
        entries = "".join(f'[[mutation]]\nname = "{name}"\nfile = "{file}"\nold = "{old}"\nnew = "{new}"\n'
                          f'why = "of {name}"\ntests = ["{tests}"]\n' for name, (file, old, new) in faults.items())
        self.list = self.write("list.toml", self.LIST + entries)

    def mutate(self, *arguments, limit="5"):
        """Runs the tool; LEAST_LIMIT is that of real tests, two minutes."""
        script = (ROOT / "tools/mutate.py").read_text(encoding="utf-8")
        tool = self.write("mutate.py", script.replace("LEAST_LIMIT = 120", f"LEAST_LIMIT = {limit}"))
        self.write("fault_switch.py", (ROOT / "tools/fault_switch.py").read_text(encoding="utf-8"))
        self.answer = subprocess.run(
            [sys.executable, str(tool), "--list", str(self.list), "--tree", str(self.tree), "--work", str(self.work),
             *arguments], capture_output=True, text=True, check=False, timeout=120)
        return self.answer

    def calls(self):
        """What the copy was asked to do since the last look."""
        path = self.work / "tree/out/calls"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


class Mutants(PlantedFaults):
    """Which faults are judged, and when."""

    def test_what_no_test_notices_is_listed_and_the_tree_stays_as_it_is(self):
        before = {path: path.read_bytes() for path in self.tree.rglob("*.sh")}
        answer = self.mutate()
        self.assertEqual(answer.returncode, 1, answer.stderr)
        self.assertIn("detected: swapped", answer.stdout)
        self.assertRegex(answer.stdout, r"detected: hangs \(\d+ s\): it hung")
        self.assertIn("survived: unseen (src/add/sub.sh:1): of unseen\n  - $1 - $2\n  + $2 - $1\n", answer.stdout)
        self.assertIn("2 of 3 planted faults were detected (66.7 %), 1 survived", answer.stdout)
        self.assertEqual({path: path.read_bytes() for path in self.tree.rglob("*.sh")}, before)
        self.assertEqual((self.work / "tree/src/add/sub.sh").read_bytes(), before[self.tree / "src/add/sub.sh"])
        self.assertEqual(self.mutate("--aim", "0.6").returncode, 0)

    def test_what_is_known_is_not_tried_again_until_code_or_tests_change(self):
        self.mutate("swapped")
        self.assertEqual(self.calls().count("build"), 2, "once without a fault, once with it")
        self.mutate("unseen", "swapped")
        self.assertEqual(self.calls().count("build"), 1)
        self.write("tree/README.md", "words")
        answer = self.mutate("unseen", "swapped")
        self.assertEqual(self.calls(), [])
        self.assertIn("detected: swapped (known)", answer.stdout)
        self.write("tree/tests/add/more_test.sh", ". ./out/program\n[ $(sub 3 2) = 1 ]\n")
        answer = self.mutate("unseen", "swapped")
        self.assertIn("2 of 2 planted faults were detected", answer.stdout)
        self.assertEqual(answer.returncode, 0)

    def test_a_list_that_no_longer_fits_is_an_error_before_anything_is_done(self):
        self.write("tree/src/add/sub.sh", "sub() { echo $(($1 + -$2)); }\n")
        for arguments in ([], ["--check"], ["swapped"]):
            answer = self.mutate(*arguments)
            self.assertEqual(answer.returncode, 2)
            self.assertIn("unseen: src/add/sub.sh no longer has this text: '$1 - $2'", answer.stderr)
        self.assertFalse(self.work.exists())
        wrong = {"twice": ("src/add/add.sh", "d", "u"), "gone": ("src/add/no.sh", "a", "b"),
                 "nothing": ("src/add/add.sh", "echo", "echo")}
        self.write_list(wrong, tests="tests/add/no_*")
        answer = self.mutate("--check")
        for words in ("twice: src/add/add.sh has this text twice", "gone: src/add/no.sh is not there",
                      "nothing: `new` is `old`", "nothing: there is no test file tests/add/no_*"):
            self.assertIn(words, answer.stderr)
        self.list.write_text("[[mutation]]\nname = 3", encoding="utf-8")
        self.assertEqual(self.mutate().returncode, 2)

    def test_a_fault_that_a_killed_run_left_in_the_copy_is_undone(self):
        self.mutate("swapped")
        self.write("work/tree/src/add/sub.sh", "sub() { echo 7; }\n")
        self.assertIn("0 of 1", self.mutate("unseen").stdout)

    def test_tests_that_fail_anyway_judge_nothing(self):
        self.write("tree/tests/add/bad_test.sh", "echo broken; exit 3\n")
        answer = self.mutate()
        self.assertEqual(answer.returncode, 65)
        self.assertIn("fails without a fault: echo tests/add/bad_test.sh", answer.stderr)
        self.assertIn("broken", answer.stderr)

    def test_a_fault_that_does_not_compile_is_none_and_a_test_that_cannot_run_judges_none(self):
        self.write_list({"syntax": ("src/add/add.sh", "}", ")"), **self.FAULTS})
        answer = self.mutate("syntax", "swapped")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("does not compile: syntax", answer.stdout)
        self.write("tree/tests/add/add_test.sh", "exit 77\n")
        answer = self.mutate("swapped")
        self.assertIn("skipped: swapped", answer.stdout)
        self.assertIn("0 of 0 planted", answer.stdout)

    def test_the_suites_of_a_test_file_make_its_filter(self):
        with unittest.mock.patch.object(sys, "path", [str(ROOT / "tools"), *sys.path]):
            mutate = load("mutate")
        self.write("copy/tests/a/x_test.cpp", "TEST(Plain, A) {\nTEST_F(Fixture, B) {\n  // TEST(No, C)\n"
                                              "TEST_P(Param, D) {\nTYPED_TEST(Typed, E) {\nTEST(Plain, F) {\n")
        bench = mutate.Bench.__new__(mutate.Bench)
        bench.copy = self.folder / "copy"
        bench.programs = [mutate.Program(("tests/a",), "make", "program --gtest_filter={suites}")]
        [(_, command)] = bench.commands(("tests/a/*_test.cpp",))
        for suite in ("Plain", "Fixture", "Param", "Typed"):
            self.assertIn(f"{suite}.*:*/{suite}.*:{suite}/*", command)
        self.assertNotIn("No.*", command)


class SwitchedFaults(PlantedFaults):
    """tools/mutate.py on a C++ program, into which all faults are compiled but those that no switch can choose."""

    LIST = """
        [[program]]
        folders = ["tests/add"]
        build = "mkdir -p out; echo build >>out/calls; g++ -std=c++20 -Wall -Werror -Isrc src/add/add.cpp -o out/program"
        run = "echo run >>out/calls; sh {file}"
    """
    FAULTS = {
        "declaration": ("src/add/add.cpp", "const int sign = 1;", "const int sign = -1;"),
        "part": ("src/add/add.cpp", "a + ", "a - "),
        "constant": ("src/add/add.cpp", "kOffset = 0", "kOffset = 1"),
        "unseen": ("src/add/add.cpp", "return argc > 9", "return argc > 8"),
    }
    SIZE = {"size": ("src/add/add.cpp", "kSize = 4", "kSize = 5")}
    SOURCE = r"""#include <cstdio>
namespace {
// An apostrophe's comment {
constexpr int kOffset = 0;
constexpr int kSize = 4;
const char* const kBrace = "{\"";
int table[kSize];
int add(int a, int b) {
  if (*kBrace != '{') return 0;
  const int sign = 1;
  return sign * (a + b) + kOffset;
}
}  // namespace
int main(int argc, char**) {
  std::printf("%d %d\n", add(1'000, 5), static_cast<int>(sizeof(table) / sizeof(int)));
  return argc > 9;
}
"""

    def setUp(self):
        super().setUp()
        for path in self.tree.rglob("*.sh"):
            path.unlink()
        self.write("tree/src/add/add.cpp", self.SOURCE)
        self.write("tree/tests/add/add_test.sh", "[ \"$(./out/program)\" = '1005 4' ]\n")

    def test_one_build_judges_all_of_them(self):
        answer = self.mutate()
        self.assertEqual(answer.returncode, 1, answer.stderr)
        for name in ("declaration", "part", "constant"):
            self.assertIn(f"detected: {name} ", answer.stdout)
        self.assertIn("survived: unseen", answer.stdout)
        calls = self.calls()
        self.assertEqual((calls.count("build"), calls.count("run")), (1, 5), answer.stdout)
        self.assertNotIn("stretto_fault", (self.tree / "src/add/add.cpp").read_text(encoding="utf-8"))

    def test_a_fault_that_cannot_be_chosen_at_run_time_is_built_alone(self):
        self.write_list({**self.SIZE, **self.FAULTS})
        answer = self.mutate()
        self.assertIn("built alone: constant, size", answer.stdout)  # which of the two it was is not known
        self.assertIn("4 of 5 planted faults were detected (80.0 %), 1 survived", answer.stdout)
        self.calls()
        self.assertEqual(self.mutate("size", "part").returncode, 0)
        self.assertEqual(self.calls(), [])

    def test_a_new_entry_leaves_the_sources_of_others(self):
        self.write("tree/src/add/more.cpp", "int more() {\n  return 1;\n}\n")
        self.mutate("part")
        there = self.work / "tree/src/add/add.cpp"
        changed = there.stat().st_mtime_ns
        self.write_list({"another": ("src/add/more.cpp", "return 1", "return 2"), **self.FAULTS})
        self.assertIn("detected: part (known)", self.mutate("part").stdout)
        self.assertEqual(there.stat().st_mtime_ns, changed)

    def test_the_check_counts_those_of_one_program(self):
        self.write_list({"initialiser": ("src/add/add.cpp", "table[kSize]", "table[kSize + 1]"), **self.FAULTS})
        self.assertIn("5 planted faults fit the sources; 4 of them are compiled into one program",
                      self.mutate("--check").stdout)


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
