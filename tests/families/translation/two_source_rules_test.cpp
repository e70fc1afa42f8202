#include "families/translation/two_source_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "experiment/rules.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "models/option_conflicts.h"
#include "tests/base/temp_dir.h"
#include "tests/text/special_ids.h"

namespace stretto::experiment {
namespace {

using Change = std::function<void(Experiment&)>;

/// An experiment with two encoders and two sources.
Experiment sound_pair() {
  Experiment e;
  translation_of(e).data.train_src = {"/a.src"};
  translation_of(e).data.train_src2 = {"/a.src2"};
  translation_of(e).data.train_tgt = {"/a.tgt"};
  translation_of(e).data.valid_src = {"/v.src"};
  translation_of(e).data.valid_src2 = {"/v.src2"};
  translation_of(e).data.valid_tgt = {"/v.tgt"};
  translation_of(e).model.encoders = {models::StackOptions{}, models::StackOptions{}};
  return e;
}

/// The keys that are blamed, each followed by ";".
std::string blamed(const Change& change) {
  Experiment e = sound_pair();
  change(e);
  std::string keys;
  for (const auto& problem : two_source_problems(e)) {
    EXPECT_FALSE(problem.what.empty());
    EXPECT_FALSE(problem.hint.empty()) << problem.what;
    keys += problem.keys.front() + ";";
  }
  return keys;
}

TEST(TwoSourceRules, TwoEncodersWithTwoSourcesBreakNone) {
  EXPECT_EQ(blamed([](Experiment&) {}), "");
  EXPECT_TRUE(two_source_problems(Experiment{}).empty());
  EXPECT_TRUE(models::option_conflicts(translation_of(sound_pair()).model).empty());
}

TEST(TwoSourceRules, OneEncoderReadsNoSecondSource) {
  EXPECT_EQ(blamed([](Experiment& e) { translation_of(e).model.encoders.clear(); }),
            "data.train_src2;data.valid_src2;");
  EXPECT_EQ(blamed([](Experiment& e) {
              translation_of(e).model.encoders.clear();
              translation_of(e).data = {};
              translation_of(e).data.src2_column = 3;
            }),
            "data.src2_column;");
}

TEST(TwoSourceRules, TwoEncodersNeedASecondSourceEverywhere) {
  EXPECT_EQ(blamed([](Experiment& e) {
              translation_of(e).data.train_src2.clear();
              translation_of(e).data.valid_src2.clear();
              translation_of(e).data.test_src = {"/t.src"};
              translation_of(e).data.train_tsv = {"/a.tsv"};
            }),
            "data.train_src2;data.valid_src2;data.test_src2;data.src2_column;");
}

TEST(TwoSourceRules, TheColumnsDiffer) {
  for (const int64_t column : {1, 2}) {
    EXPECT_EQ(blamed([&](Experiment& e) {
                translation_of(e).data.train_tsv = {"/a.tsv"};
                translation_of(e).data.src2_column = column;
              }),
              "data.src2_column;");
  }
}

TEST(TwoSourceRules, TheBoundHoldsTwoSources) {
  EXPECT_EQ(blamed([](Experiment& e) { translation_of(e).data.max_src_tokens = 3; }),
            "data.max_src_tokens;");
  EXPECT_EQ(blamed([](Experiment& e) { translation_of(e).data.max_src_tokens = 4; }), "");
}

TEST(TwoSourceRules, TheEncoderOfOneSourceIsLeftAlone) {
  EXPECT_EQ(blamed([](Experiment& e) {
              translation_of(e).model.encoder.as<models::StackOptions>().num_layers = 2;
            }),
            "model.encoder.num_layers;");
  EXPECT_EQ(
      blamed([](Experiment& e) { translation_of(e).model.encoder = models::LstmEncoderOptions{}; }),
      "model.encoder.name;");
}

/// The keys that conflicts name.
std::string conflict(const Change& change) {
  Experiment e = sound_pair();
  change(e);
  std::string keys;
  for (const auto& problem : models::option_conflicts(translation_of(e).model))
    keys += problem.keys.front() + ";";
  return keys;
}

TEST(TwoSourceRules, ThereAreTwoEncoders) {
  EXPECT_EQ(conflict([](Experiment& e) { translation_of(e).model.encoders.pop_back(); }),
            "model.encoders;");
  EXPECT_EQ(conflict([](Experiment& e) {
              translation_of(e).model.encoders.push_back(models::StackOptions{});
            }),
            "model.encoders;");
}

TEST(TwoSourceRules, EachEncoderIsCheckedAtItsPlace) {
  EXPECT_EQ(conflict([](Experiment& e) {
              translation_of(e).model.encoders[0].as<models::StackOptions>().num_heads = 7;
              translation_of(e).model.encoders[1].as<models::StackOptions>().num_heads = 3;
            }),
            "model.encoders.0.num_heads;model.encoders.1.num_heads;");
}

TEST(TwoSourceRules, BothGiveRowsOfOneWidth) {
  const auto wide = [](Experiment& e) {
    translation_of(e).model.encoders[1] =
        models::LstmEncoderOptions{.num_layers = 1, .hidden_dim = 100, .bidirectional = false};
  };
  EXPECT_EQ(conflict(wide), "model.encoders.1.hidden_dim;") << "a transformer reads d_model";
  EXPECT_EQ(conflict([&](Experiment& e) {
              wide(e);
              translation_of(e).model.decoder = models::LstmDecoderOptions{};
            }),
            "model.encoders.1.hidden_dim;");
  EXPECT_EQ(conflict([&](Experiment& e) {
              wide(e);
              translation_of(e).model.encoders[0] = translation_of(e).model.encoders[1];
              translation_of(e).model.decoder = models::LstmDecoderOptions{};
            }),
            "");
}

TEST(TwoSourceRules, AreToldWithAllOthers) {
  Experiment e = sound_pair();
  e.train.max_steps = 20000;
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  EXPECT_TRUE(problems.empty());
  translation_of(e).data.train_src2.clear();
  translation_of(e).model.encoders[1].as<models::StackOptions>().num_heads = 7;
  check_rules(e, {}, problems);
  std::vector<std::string> keys;
  for (const auto& problem : problems) keys.push_back(problem.key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"data.train_src2", "model.encoders.1.num_heads"}));
}

TEST(TwoSourceRules, AFileNamesTheEncodersInTheirOrder) {
  Experiment e, fallback;
  std::vector<config::Problem> problems;
  config::load_text(
      "[[model.encoders]]\nname = \"lstm\"\nnum_layers = 1\n"
      "[[model.encoders]]\nnum_layers = 3\n",
      "my.toml", "/nowhere", {}, experiment_schema(e), experiment_schema(fallback), problems);
  for (const auto& problem : problems) ADD_FAILURE() << problem.what;
  ASSERT_TRUE(models::has_two_encoders(translation_of(e).model));
  EXPECT_EQ(translation_of(e).model.encoders[0].as<models::LstmEncoderOptions>().num_layers, 1);
  EXPECT_EQ(translation_of(e).model.encoders[1].as<models::StackOptions>().num_layers, 3);
  // A model of one encoder has no such keys.
  Experiment one;
  for (const auto& key : experiment_schema(one).keys) {
    EXPECT_FALSE(key.path.starts_with("model.encoders")) << key.path;
  }
}

TEST(TwoSourceRules, TokenizersLearnFromBothSources) {
  const testing::TempDir folder;
  const auto lines = [](const std::string& line) {
    std::string text;
    for (int i = 0; i < 50; ++i) text += line + "\n";
    return text;
  };
  Experiment e = sound_pair();
  translation_of(e).data.train_src = {folder.write("a.src", lines("aaa bbb"))};
  translation_of(e).data.train_src2 = {folder.write("a.src2", lines("zzz yyy"))};
  translation_of(e).data.train_tgt = {folder.write("a.tgt", lines("ccc"))};
  translation_of(e).tokenizer.vocab_size = 14;
  const auto tokenizers = make_experiment_tokenizers(e);
  std::vector<int64_t> ids;
  tokenizers.src->encode("zzz yyy aaa", ids);
  EXPECT_FALSE(ids.empty());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), stretto::testing::kSpecials.unk), 0);
}

}  // namespace
}  // namespace stretto::experiment
