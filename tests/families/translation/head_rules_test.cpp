#include "families/translation/head_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/load_experiment.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/task_rules.h"
#include "families/text/text_size.h"
#include "families/translation/heads.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "lint/lint.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
namespace {

using testing::failure, testing::TempDir;

/// Heads `de` and `fr`, which break no rule; their text is named in another order.
Experiment two_heads() {
  Experiment e;
  translation_of(e).model.heads = {{.name = "de"}, {.name = "fr", .weight = 0.5}};
  translation_of(e).data.heads = {
      {.head = "fr", .train_tsv = {"/fr.tsv"}, .valid_tsv = {"/v.tsv"}, .repeat = 0.25},
      {.head = "de", .train_src = {"/a.src"}, .train_tgt = {"/a.tgt"}}};
  translation_of(e).data.max_tokens = 1000;
  e.train.max_steps = 20000;
  return e;
}

std::string head_problem_of(const std::function<void(Experiment&)>& change) {
  Experiment e = two_heads();
  change(e);
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  if (problems.size() != 1) {
    std::string all = std::to_string(problems.size()) + " problems";
    for (const auto& problem : problems) all += "\n" + problem.place + ": " + problem.what;
    return all;
  }
  EXPECT_FALSE(problems[0].hint.empty()) << problems[0].what;
  return problems[0].key + ": " + problems[0].what + " | " + problems[0].hint;
}

TEST(HeadRules, SoundHeadsBreakNone) {
  EXPECT_EQ(head_problem_of([](Experiment&) {}), "0 problems");
}

TEST(HeadRules, NamesAreSoundAndDiffer) {
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).model.heads[0].name = translation_of(e).data.heads[1].head = "d.e";
            }),
            "model.heads.0.name: `d.e` is no name of a head | use letters, digits, `_` and `-` "
            "alone");
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).model.heads[0].name = "fr";
              translation_of(e).data.heads.pop_back();
            }),
            "model.heads.1.name: there are two heads `fr` | rename one of them");
}

TEST(HeadRules, OfTwoEncodersEachHeadNamesASecondSource) {
  const auto two_sources = [](Experiment& e) {
    translation_of(e).model.encoders.resize(2);
    translation_of(e).data.heads[0].src2_column = 3;
    translation_of(e).data.heads[1].train_src2 = {"/a.src2"};
  };
  EXPECT_EQ(head_problem_of(two_sources), "0 problems");
  EXPECT_EQ(head_problem_of([&](Experiment& e) {
              two_sources(e);
              translation_of(e).data.heads[1].train_src2.clear();
            }),
            "data.heads.1.train_src2: a model of two encoders needs a second source for each file "
            "of data.heads.1.train_src: there are 0 files for 1 file | name the second sources in "
            "the order of data.heads.1.train_src, line for line");
  EXPECT_EQ(head_problem_of([&](Experiment& e) {
              two_sources(e);
              translation_of(e).data.heads[0].src2_column = 0;
            }),
            "data.heads.0.src2_column: a model of two encoders needs the column of the second "
            "source in TSV files | set it to that column, from 1");
  EXPECT_EQ(head_problem_of([&](Experiment& e) {
              two_sources(e);
              translation_of(e).data.train_src2 = {"/b.src2"};
            }),
            "data.train_src2: each of model.heads has its text in data.heads | move it to the "
            "[[data.heads]] that it is for");
}

TEST(HeadRules, OfOneEncoderNoHeadNamesASecondSource) {
  EXPECT_EQ(head_problem_of(
                [](Experiment& e) { translation_of(e).data.heads[1].train_src2 = {"/a.src2"}; }),
            "data.heads.1.train_src2: names a second source, and the model has one encoder | write "
            "[[model.encoders]] twice, once for each source, or leave it out");
}

// Processes would add up rows of different decoders.
TEST(HeadRules, BatchNormsOfAllProcessesNeedOneDecoder) {
  const auto normed = [](const char* over) {
    return head_problem_of([over](Experiment& e) {
      translation_of(e).model.norm_layer = "batch_norm";
      e.dist.batch_norm = over;
    });
  };
  EXPECT_EQ(normed("all").substr(0, 15), "dist.batch_norm");
  EXPECT_EQ(normed("worker"), "0 problems");
}

// The name of another part is told, not all of its keys.
TEST(HeadRules, AnotherDecoderThatIsLeftIsOneProblem) {
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).model.decoder = models::LstmDecoderOptions();
            }),
            "model.decoder.name: model.heads takes the place of model.decoder | move it to "
            "[model.heads.decoder] below the [[model.heads]] that it is for");
}

TEST(HeadRules, ValidationTextIsAskedOfTheHeads) {
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).data.heads[0].valid_tsv.clear();
              e.eval.at_start = true;
            }),
            "eval.at_start: needs validation text | give valid_src and valid_tgt, or valid_tsv, to "
            "one of [[data.heads]]");
}

TEST(HeadRules, EveryHeadHasData) {
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).data.heads.pop_back(); }),
            "model.heads.0.name: head `de` has no data | add [[data.heads]] with head = \"de\", "
            "train_src and train_tgt");
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).data.heads[1].train_src.clear();
              translation_of(e).data.heads[1].train_tgt.clear();
            }),
            "data.heads.1.train_src: there is no training text | set data.heads.1.train_src and "
            "data.heads.1.train_tgt, or data.heads.1.train_tsv");
}

TEST(HeadRules, EveryEntryOfDataHasItsHead) {
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).data.heads.push_back(translation_of(e).data.heads[0]);
              translation_of(e).data.heads[2].head = "fra";
            }),
            "data.heads.2.head: there is no head `fra` | did you mean fr? the heads are de, fr");
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).data.heads.push_back(translation_of(e).data.heads[0]);
            }),
            "data.heads.2.head: there are two entries for head `fr` | its lists take several "
            "files: join the two");
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).model.heads.clear();
              translation_of(e).data.heads.pop_back();
            }),
            "data.heads.0.head: is text for one of several decoders, and the model has one | give "
            "model.heads, or name the text in [data]");
}

TEST(HeadRules, WhatEachHeadHasForItselfIsNotGivenForAll) {
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).model.decoder.as<models::StackOptions>().num_layers = 3;
            }),
            "model.decoder.num_layers: model.heads takes the place of model.decoder | move it to "
            "[model.heads.decoder] below the [[model.heads]] that it is for");
  EXPECT_EQ(
      head_problem_of([](Experiment& e) { translation_of(e).data.train_tsv = {"/more.tsv"}; }),
      "data.train_tsv: each of model.heads has its text in data.heads | move it to the "
      "[[data.heads]] that it is for");
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).data.tgt_column = 3; }),
            "data.tgt_column: each of model.heads has its text in data.heads | move it to the "
            "[[data.heads]] that it is for");
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).data.max_src_tokens = 30; }),
            "0 problems");
}

TEST(HeadRules, FilesOfAHeadGoTogether) {
  Experiment e = two_heads();
  translation_of(e).data.heads[1].valid_src = {"/v.src"};
  translation_of(e).data.heads[0].src_column = 2;
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].key, "data.heads.0.tgt_column");
  EXPECT_EQ(problems[1].key, "data.heads.1.valid_tgt");
}

TEST(HeadRules, AllThatIsWrongIsToldAtOnce) {
  Experiment e = two_heads();
  translation_of(e).model.heads[1].name = "f r";
  translation_of(e).model.heads[0].decoder.as<models::StackOptions>().num_heads = 7;
  translation_of(e).data.heads[1].head = "deu";
  translation_of(e).data.valid_tsv = {"/v.tsv"};
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  std::vector<std::string> keys;
  for (const auto& problem : problems) keys.push_back(problem.key);
  // `fr` and `de` have no data, since these two are misspelt.
  EXPECT_EQ(keys, (std::vector<std::string>{"model.heads.0.decoder.num_heads", "model.heads.1.name",
                                            "data.valid_tsv", "data.heads.1.head"}));
}

TEST(HeadRules, OneMistakeIsOneProblem) {
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).data.heads[0].head = "fra"; }),
            "data.heads.0.head: there is no head `fra` | did you mean fr? the heads are de, fr");
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).data.heads[0].head = "other"; }),
            "data.heads.0.head: there is no head `other` | the heads are de, fr");
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).data.heads[0].head = "de"; }),
            "data.heads.1.head: there are two entries for head `de` | its lists take several "
            "files: join the two");
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).model.heads[1].name = ""; }),
            "model.heads.1.name: a head has no name | commands, scores and data.heads need one");
  EXPECT_EQ(head_problem_of([](Experiment& e) { translation_of(e).model.heads[1].name = "de"; }),
            "model.heads.1.name: there are two heads `de` | rename one of them");
}

TEST(HeadRules, ValidationTextOfAnyHeadCounts) {
  const auto patient = [](Experiment& e) { e.train.patience = 3; };
  EXPECT_EQ(head_problem_of(patient), "0 problems");
  EXPECT_NE(head_problem_of([&](Experiment& e) {
              patient(e);
              translation_of(e).data.heads[0].valid_tsv.clear();
            }).find("train.patience: needs validation text"),
            std::string::npos);
}

TEST(HeadRules, AlignmentsAreOfALayerThatEachHeadHas) {
  EXPECT_EQ(head_problem_of([](Experiment& e) {
              translation_of(e).decode.alignment_layer = 1;
              translation_of(e).model.heads[1].decoder = models::LstmDecoderOptions{};
            }),
            "decode.alignment_layer: only layer 0 of an `lstm` decoder attends | layers count from "
            "0; -1 is the last that attends");
}

TEST(Heads, AreInTheOrderOfTheModelWithTheirText) {
  const auto heads = heads_of(two_heads());
  ASSERT_EQ(heads.size(), 2U);
  EXPECT_EQ(heads[0].name, "de");
  EXPECT_EQ(heads[0].section, "data.heads.1");
  EXPECT_EQ(heads[0].data.train_src, std::vector<std::string>{"/a.src"});
  EXPECT_FALSE(heads[0].has_validation());
  EXPECT_EQ(heads[1].section, "data.heads.0");
  EXPECT_EQ(heads[1].weight, 0.5);
  EXPECT_EQ(heads[1].repeat, 0.25);
  EXPECT_EQ(heads[1].data.max_tokens, 1000);
  EXPECT_TRUE(heads[1].has_validation());
  EXPECT_EQ(heads[1].called("training text"), "training text of `fr`");

  Experiment plain;
  translation_of(plain).data.train_src = {"/a"};
  const auto only = heads_of(plain);
  ASSERT_EQ(only.size(), 1U);
  EXPECT_EQ(only[0].section, "data");
  EXPECT_EQ(only[0].called("training text"), "training text");
  EXPECT_EQ(only[0].data.train_src, translation_of(plain).data.train_src);
}

TEST(Heads, AreFoundByTheirNames) {
  const auto message = [](const Experiment& e, const std::string& wanted) {
    const Error error = failure(ExitCode::kUsage, [&] { head_named(e, wanted, "--head"); });
    return std::string(error.what()) + " | " + error.advice();
  };
  const Experiment several = two_heads(), one;
  EXPECT_EQ(head_named(several, "fr", "--head"), 1U);
  EXPECT_EQ(head_named(one, "", "--head"), 0U);
  EXPECT_EQ(message(several, ""),
            "the run has several decoders, and --head names none | its heads are de, fr: add "
            "--head de");
  EXPECT_EQ(message(several, "ed"),
            "--head ed: there is no such head | did you mean de? its heads are de, fr");
  EXPECT_EQ(message(one, "de"), "--head de: the run has one decoder | leave --head out");
}

/// A file with two heads, and their text.
class HeadFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (const char* word : {"the", "a", "red", "blue", "big"}) {
      for (const char* other : {"house", "dog", "cat"}) {
        lines += std::string(word) + " " + other + "\n";
      }
    }
    folder_.write("a", lines);
    folder_.write("short", "the house\n");
    folder_.write("words", "the\na\nred\nblue\nbig\nhouse\ndog\ncat\n");
  }

  std::string config(const std::string& of_second) {
    return folder_.write("my.toml",
                         "[[model.heads]]\nname = \"de\"\n[model.heads.decoder]\nnum_layers = 2\n"
                         "[[model.heads]]\nname = \"fr\"\nweight = 2.0\n"
                         "[model.heads.decoder]\nname = \"lstm\"\nnum_layers = 1\n"
                         "[[data.heads]]\nhead = \"de\"\ntrain_src = [\"a\"]\ntrain_tgt = [\"a\"]\n"
                         "[[data.heads]]\nhead = \"fr\"\n" +
                             of_second +
                             "[tokenizer]\ntype = \"vocab\"\nsrc_vocab = \"words\"\n"
                             "[train]\nmax_steps = 9000\n");
  }

  TempDir folder_;
};

TEST_F(HeadFiles, AreReadAndWrittenBack) {
  const auto loaded =
      load_experiment(config("train_src = [\"a\"]\ntrain_tgt = [\"a\"]\nrepeat = 0.5\n"), {});
  const auto& model = translation_of(loaded.options).model;
  ASSERT_EQ(model.heads.size(), 2U);
  EXPECT_EQ(model.heads[0].decoder.as<models::StackOptions>().num_layers, 2);
  EXPECT_EQ(model.heads[1].decoder.as<models::LstmDecoderOptions>().num_layers, 1);
  EXPECT_EQ(translation_of(loaded.options).data.heads[1].repeat, 0.5);
  const auto again = load_stored_experiment(loaded.resolved_toml, "/run/config.toml", {});
  EXPECT_EQ(again.config_hash, loaded.config_hash);
  EXPECT_EQ(translation_of(again.options).model.heads[1].decoder.name(), "lstm");
}

TEST_F(HeadFiles, OfEachHeadAreLookedAtBeforeTraining) {
  const auto inspection =
      lint::inspect(config("train_src = [\"a\"]\ntrain_tgt = [\"short\"]\n"), {});
  for (const auto& problem : inspection.problems) ADD_FAILURE() << problem.what;
  const auto found = preflight(inspection.options, inspection.missing, {.full = true});
  const auto problems = problems_of(found.stops, inspection.origins);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].key, "data.heads.1.train_tgt");
  EXPECT_NE(problems[0].what.find("do not have the same number of lines"), std::string::npos);
}

TEST_F(HeadFiles, OfAllHeadsCountAsTrainingText) {
  const auto inspection = lint::inspect(config("train_src = [\"a\"]\ntrain_tgt = [\"a\"]\n"), {});
  EXPECT_EQ(find_task_rules(inspection.options)->file_sizes(inspection.options).epoch,
            tokens_in(2 * static_cast<int64_t>(std::filesystem::file_size(folder_ / "a"))));
}

TEST_F(HeadFiles, OfAllHeadsMakeTheTokenizer) {
  std::string first, second;
  for (int i = 0; i < 300; ++i) {
    first += std::string("abc bcd cda dab") + (i % 2 == 0 ? " ab\n" : " cd\n");
    second += std::string("wxy xyz yzw zwx") + (i % 2 == 0 ? " wx\n" : " yz\n");
  }
  Experiment e = two_heads();
  translation_of(e).data.heads[0].train_tsv.clear();
  translation_of(e).data.heads[0].train_src =
      translation_of(e).data.heads[0].train_tgt = {folder_.write("second", second)};
  translation_of(e).data.heads[1].train_src =
      translation_of(e).data.heads[1].train_tgt = {folder_.write("first", first)};
  translation_of(e).tokenizer.vocab_size = 24;
  const auto tokenizers = make_experiment_tokenizers(e);
  for (const char* word : {"abc", "xyz"}) {
    std::vector<int64_t> ids;
    tokenizers.src->encode(word, ids);
    EXPECT_FALSE(ids.empty());
    EXPECT_EQ(std::count(ids.begin(), ids.end(), stretto::testing::kSpecials.unk), 0) << word;
  }
}

}  // namespace
}  // namespace stretto::experiment
