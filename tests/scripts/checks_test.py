"""Tests of the tools that check layers, pages, the changelog and planted faults: python3 checks_test.py"""

import contextlib
import io
import re
import subprocess
import sys
import unittest
import unittest.mock

from in_folder import ROOT, InTemporaryFolder, load


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

    def test_two_classes_of_one_name_in_one_namespace_are_refused(self):
        block = "namespace stretto::nn {\nclass Other;\nclass BlockImpl : public Module {\n};\n}\n"
        self.assertEqual(self.offences("src/nn/a.h", block), [])
        self.assertEqual(self.offences("src/optim/b.h", block.replace("nn", "optim")), [])
        self.assertEqual(self.offences("src/nn/c.cpp", block), [])
        found = self.offences("src/nn/d.h", block)
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/nn/d.h:1: defines stretto::nn::BlockImpl, as src/nn/a.h does"), found)

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

    def test_no_room_above_the_families_includes_one(self):
        for path in ("src/tasks/a.h", "src/plan/a.h", "src/engine/a.cpp", "src/cli/commands/a.cpp"):
            found = self.offences(path, '#include "families/translation/translation_options.h"\n')
            self.assertEqual(len(found), 1, found)
            self.assertIn("includes translation, which is a family", found[0])
            self.assertEqual(self.offences(path, '#include "families/registry.h"\n'), [])
            (self.folder / path).unlink()
        self.assertEqual(self.offences("src/tasks/a.h", '#include "families/text/encoder_sections.h"\n'), [])

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

    def test_headers_that_include_each_other_are_named_with_the_way(self):
        self.write("src/nn/a.h", '#include "nn/b.h"\n')
        self.write("src/nn/b.h", '#include "nn/c.h"\n')
        found = self.offences("src/nn/c.h", '#include "nn/a.h"\n')
        self.assertEqual(found, ["src/nn/a.h:1: includes itself by way of nn/b.h, nn/c.h"])
        self.assertEqual(self.offences("src/nn/c.h", ""), [])
        self.write("src/nn/d.cpp", '#include "nn/a.h"\n#include "nn/b.h"\n')
        self.assertEqual(self.offences("src/nn/c.h", '#include "base/a.h"\n'), [])

    def test_sources_that_include_each_others_header_are_named(self):
        self.write("src/nn/a.cpp", '#include "nn/a.h"\n#include "nn/b.h"\n')
        found = self.offences("src/nn/b.cpp", '#include "nn/b.h"\n#include "nn/a.h"\n')
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/nn/a.cpp:1: includes nn/b.h, and nn/b.cpp includes nn/a.h"), found)
        self.write("src/nn/c.cpp", '#include "nn/a.h"\n')  # which a.cpp knows nothing of
        self.assertEqual(self.offences("src/nn/b.cpp", '#include "nn/b.h"\n'), [])

    def test_sources_that_call_each_other_by_way_of_their_headers_are_named(self):
        self.write("src/nn/a.h", '#include "nn/b.h"\n[[noreturn]] void fail(int why);\n')
        self.write("src/nn/a.cpp", '#include "nn/a.h"\nvoid fail(int why) {\n  throw opened(why);\n}\n')
        self.write("src/nn/b.h", "int opened(int why);\nclass B {\n  void method();\n};\n")
        found = self.offences("src/nn/b.cpp", '#include "nn/a.h"\nint opened(int why) {\n  fail(why);\n}\n')
        self.assertEqual(found, ["src/nn/a.cpp:1: calls opened() of nn/b, which calls fail() of nn/a: move what both need"])
        for call in ("// fail(why);", "why.fail();", "B().method();"):
            self.assertEqual(self.offences("src/nn/b.cpp", f'#include "nn/a.h"\nint opened(int why) {{\n  {call}\n}}\n'), [])

    def test_a_source_a_test_or_a_tool_of_more_than_600_lines_is_refused(self):
        for path in ("src/nn/a.h", "tests/nn/a_test.cpp", "tests/runs/a_test.py", "tools/a.py"):
            self.assertEqual(self.offences(path, "\n" * 600), [])
            found = self.offences(path, "\n" * 601)
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"{path}:601: the file has 601 lines", found[0])
            (self.folder / path).unlink()
        self.assertEqual(self.offences("tests/nn/values.txt", "\n" * 601), [])

    def test_a_room_without_a_level_is_refused(self):
        self.assertIn("no level", self.offences("src/cellar/a.h", "")[0])


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


if __name__ == "__main__":
    unittest.main()
