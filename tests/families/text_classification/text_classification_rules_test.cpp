#include "families/text_classification/text_classification_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "data/labelled/labelled_samples.h"
#include "data/labelled/labelled_texts.h"
#include "experiment/load_experiment.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/task_facts.h"
#include "experiment/task_rules.h"
#include "families/text/encoder_rules.h"
#include "families/text/prepared_text.h"
#include "families/text/text_sections.h"
#include "families/text_classification/text_classification_options.h"
#include "models/bert_options.h"
#include "models/label_model_options.h"
#include "tests/base/temp_dir.h"
#include "tests/text/byte_tokenizer.h"

namespace stretto::experiment {
namespace {

using Keys = std::vector<std::string>;

class TextClassificationRulesTest : public ::testing::Test {
 protected:
  TextClassificationRulesTest() {
    e_.task = TextClassificationOptions{};
    e_.train.max_steps = 5000;
    e_.eval.best_metric = "accuracy";
    encoder().preset = "tiny";
    own().data.train = {folder_.write("train.tsv", "text\tlabel\na b\tyes\nc d\tno\n")};
    own().data.valid = {folder_.write("valid.tsv", "text\tlabel\na\tyes\n")};
  }
  TextClassificationOptions& own() { return e_.task.as<TextClassificationOptions>(); }
  models::BertOptions& encoder() { return own().model.as<models::BertOptions>(); }

  Keys problems(Purpose purpose = Purpose::kTraining) const {
    std::vector<config::Problem> found;
    check_rules(e_, {}, found, purpose);
    Keys keys;
    for (const auto& problem : found) keys.push_back(problem.key);
    return keys;
  }

  std::vector<Stop> stops(const PreflightOptions& how = {}) const {
    return preflight(e_, {}, how).stops;
  }

  testing::TempDir folder_;
  Experiment e_;
};

TEST_F(TextClassificationRulesTest, ASoundExperimentHasNoProblem) {
  EXPECT_EQ(problems(), Keys{});
  EXPECT_EQ(stops().size(), 0U);
}

TEST_F(TextClassificationRulesTest, WhatTrainingOpensIsPrepared) {
  own().data.cache_dir = (folder_ / "cache").string();
  own().tokenizer.vocab_size = 40;
  prepare_data(e_);
  const auto texts = data::open_training_texts(own().data);
  EXPECT_TRUE(texts->from_cache());
  const auto lines = data::lines_of([&] { return texts; });
  const auto tokenizer = prepared_tokenizer(e_, *lines);
  std::string line;
  EXPECT_TRUE(lines->next(line)) << "the tokenizer is trained again";
  EXPECT_EQ(line, "a b");
  const auto labels = data::Labels::sorted({"yes", "no"});
  for (const auto& files : {own().data.train, own().data.valid}) {
    EXPECT_TRUE(data::open_labelled_samples(files, own().data, *tokenizer, &labels)->from_cache());
  }
}

TEST_F(TextClassificationRulesTest, NothingIsPreparedBesideAnotherRunNorOfABrokenFile) {
  own().data.cache_dir = (folder_ / "cache").string();
  e_.train.init_from = "other";
  prepare_data(e_);
  EXPECT_FALSE(std::filesystem::exists(own().data.cache_dir));
  e_.train.init_from.clear();
  own().data.train = {folder_.write("broken.tsv", "text\tlabel\na\n")};
  EXPECT_NO_THROW(prepare_data(e_));
}

TEST_F(TextClassificationRulesTest, TrainingNeedsTextAndAHeadAndUseDoesNot) {
  own().data.train.clear();
  encoder().head = "none";
  EXPECT_EQ(problems(), (Keys{"data.train", "model.head"}));
  EXPECT_EQ(problems(Purpose::kUse), Keys{});
}

TEST_F(TextClassificationRulesTest, TextsMustFitIntoBatchesAndPositions) {
  own().data.max_text_tokens = 600;
  EXPECT_EQ(problems(), Keys{"data.max_text_tokens"});
  own().data.max_tokens = 500;
  EXPECT_EQ(problems(), (Keys{"data.max_tokens", "data.max_text_tokens"}));
  encoder().positions = "rotary";
  EXPECT_EQ(problems(), Keys{"data.max_tokens"});
}

TEST_F(TextClassificationRulesTest, AnLstmAloneEndsInACellState) {
  own().model = models::LabelLstmOptions{};
  auto& lstm = own().model.as<models::LabelLstmOptions>();
  lstm.pooling = "state";
  EXPECT_EQ(problems(), Keys{});
  lstm.adapter.dim = 8;
  EXPECT_EQ(problems(), Keys{"model.pooling"}) << "no adapter of the last layer would learn";
  lstm.adapter.dim = 0;
  lstm.cell = "gru";
  EXPECT_EQ(problems(), Keys{"model.pooling"});
  own().model = models::LabelTransformerOptions{};
  EXPECT_EQ(problems(), Keys{});
  own().model.as<models::LabelTransformerOptions>().pooling = "state";
  EXPECT_EQ(problems(), Keys{"model.pooling"});
}

TEST_F(TextClassificationRulesTest, ABatchNormOfTheHeadTakesTextsTogether) {
  own().model = models::LabelLstmOptions{};
  EXPECT_FALSE(encoder_rules_of(e_).has_batch_norm(e_));
  EXPECT_EQ(encoder_rules_of(e_).samples_of_micro_batch(e_).usual_size, 0) << "nothing to tell of";
  own().model.as<models::LabelLstmOptions>().head_norm = "batch_norm";
  EXPECT_EQ(problems(), Keys{});
  EXPECT_TRUE(encoder_rules_of(e_).has_batch_norm(e_));
  EXPECT_FALSE(may_cut_micro_batches(e_));
  own().data.max_samples = 24;
  own().data.max_text_tokens = 50;
  const MicroBatchSamples samples = encoder_rules_of(e_).samples_of_micro_batch(e_);
  EXPECT_EQ(samples.most, 24);
  EXPECT_EQ(samples.usual_size, 50);
}

TEST_F(TextClassificationRulesTest, ABatchNormOfTheHeadWantsSeveralTexts) {
  own().model = models::LabelLstmOptions{};
  own().model.as<models::LabelLstmOptions>().head_norm = "batch_norm";
  own().data.max_samples = 1;
  EXPECT_EQ(problems(), Keys{"model.head_norm"});
  e_.dist.batch_norm = "all";
  EXPECT_EQ(problems(), Keys{}) << "the texts of several processes";
  e_.dist.batch_norm = "worker";
  own().data.max_samples = 2;
  EXPECT_EQ(problems(), Keys{});
}

TEST_F(TextClassificationRulesTest, WeightsOfClassesFitTheLabels) {
  own().loss.class_weights = "list";
  EXPECT_EQ(problems(), Keys{"loss.class_weights"});
  own().loss.class_weight_list = {1, 2, 3};
  EXPECT_EQ(problems(), Keys{});
  own().data.labels = {"no", "yes"};
  EXPECT_EQ(problems(), Keys{"loss.class_weight_list"});
  own().loss.class_weights = "balanced";
  EXPECT_EQ(problems(), Keys{"loss.class_weight_list"});
}

TEST_F(TextClassificationRulesTest, WeightsOfClassesFitTheLabelsThatTheFilesHave) {
  own().loss.class_weights = "list";
  own().loss.class_weight_list = {1, 2, 3};
  const auto found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "loss.class_weight_list");
  EXPECT_EQ(found[0].code, ExitCode::kUsage);
  EXPECT_EQ(found[0].what, "loss.class_weight_list: 3 weights for 2 labels");
  EXPECT_EQ(found[0].hint, "give one for each, in this order: no, yes");
  own().loss.class_weight_list = {1, 2};
  EXPECT_EQ(stops().size(), 0U);
  // As long as some rows are not read, nobody knows how many labels there are.
  own().loss.class_weight_list = {1, 2, 3};
  EXPECT_EQ(stops({.limit = std::chrono::milliseconds(0)}).size(), 0U);
}

TEST_F(TextClassificationRulesTest, AHeaderThatLooksLikeASampleIsDoubted) {
  own().data.text = "1";
  own().data.label = "2";
  const auto doubts = [&] { return preflight(e_, {}, {}).doubts; };
  EXPECT_EQ(doubts().size(), 0U);
  const std::string file = folder_.write("bare.tsv", "a b\tyes\nc d\tno\ne f\tyes\n");
  own().data.train = {file};
  own().data.valid.push_back(file);
  const auto found = doubts();
  ASSERT_EQ(found.size(), 1U) << "a file that is read twice";
  EXPECT_EQ(found[0].key, "data.train");
  EXPECT_EQ(found[0].what, file + ":1 looks like a sample, not like a header, and is not read");
  EXPECT_TRUE(found[0].hint.starts_with("data.header = false reads it")) << found[0].hint;
  EXPECT_EQ(stops().size(), 0U);
  own().data.header = false;
  own().data.valid.clear();
  EXPECT_EQ(doubts().size(), 0U);
}

TEST_F(TextClassificationRulesTest, ANumberHasNoKeysOfClasses) {
  own().data.label_kind = "number";
  e_.eval.best_metric = "pearson";
  EXPECT_EQ(problems(), Keys{});
  own().data.label_separator = ",";
  own().data.labels = {"a"};
  own().loss.class_weights = "balanced";
  EXPECT_EQ(problems(), (Keys{"data.label_separator", "data.labels", "loss.class_weights"}));
}

TEST_F(TextClassificationRulesTest, ScoresAreThoseOfTheKindOfLabels) {
  const auto names = [&] {
    Keys found;
    for (const auto& score : ranking_scores(find_task_rules(e_)->scores(e_))) {
      found.push_back(score.name());
    }
    return found;
  };
  EXPECT_EQ(names(), (Keys{"accuracy", "f1", "macro_f1", "matthews", "loss"}));
  own().data.label_separator = ",";
  EXPECT_EQ(names(), (Keys{"accuracy", "f1", "macro_f1", "loss"}));
  own().data.label_separator.clear();
  own().data.label_kind = "number";
  EXPECT_EQ(names(), (Keys{"pearson", "spearman", "mse", "loss"}));
  EXPECT_EQ(problems(), Keys{"eval.best_metric"});
}

TEST_F(TextClassificationRulesTest, SectionsAreAViewOfWhatTextsHaveInCommon) {
  const auto text = encoder_sections(e_);
  EXPECT_EQ(text.model, &encoder());
  EXPECT_EQ(*text.valid, own().data.valid);
  EXPECT_EQ(text.max_text_tokens, own().data.max_text_tokens);
  EXPECT_FALSE(text.cuts_start);
  own().data.truncation = "start";
  EXPECT_TRUE(text_sections(e_).cuts_start);
  for (const char* other : {"masked_lm", "question_answering"}) {
    Experiment e;
    e.task.select(other);
    EXPECT_TRUE(find_text_sections(e)) << other;
    EXPECT_FALSE(text_sections(e).cuts_start) << other;
  }
  EXPECT_FALSE(find_text_sections(Experiment{}));
}

TEST_F(TextClassificationRulesTest, SectionsTellOfACausalStackWhatTheyTellOfAnEncoder) {
  EXPECT_TRUE(own().model.select("lstm"));
  auto& stack = own().model.as<models::LabelLstmOptions>();
  stack.d_model = 24;
  const auto text = encoder_sections(e_);
  EXPECT_EQ(text.model, nullptr);
  EXPECT_EQ(text.causal, &own().model);
  EXPECT_TRUE(text.has_head);
  EXPECT_EQ(text.num_segments, 0);
  EXPECT_EQ(text.d_model, 24);
  EXPECT_GT(text.max_length, 1'000'000);
  EXPECT_EQ(text.init, &stack.init);
  EXPECT_EQ(text.lora, &stack.lora);
  EXPECT_EQ(text.adapter, &stack.adapter);
}

TEST_F(TextClassificationRulesTest, TheFamilySaysWhetherItsTextsArePairs) {
  EXPECT_FALSE(encoder_rules_of(e_).reads_pairs(e_));
  own().data.text2 = "reply";
  EXPECT_TRUE(encoder_rules_of(e_).reads_pairs(e_));
  for (const auto& [other, pairs] : {std::pair("masked_lm", false), {"question_answering", true}}) {
    Experiment e;
    e.task.select(other);
    EXPECT_EQ(encoder_rules_of(e).reads_pairs(e), pairs) << other;
  }
}

TEST_F(TextClassificationRulesTest, TokensAreCountedAsTheModelReadsThem) {
  const auto tokenizer = std::make_shared<text::test::ByteTokenizer>(/*eos=*/2);
  const auto count = [&] {
    const auto& rules = encoder_rules_of(e_);
    const PreflightOptions unbounded{.full = true};
    return rules
        .count_tokens(e_, "data.train", own().data.train, *rules.tokenizer_of_model(e_, tokenizer),
                      PreflightTimer(unbounded))
        .counts.tokens;
  };
  own().data.max_text_tokens = 5;
  EXPECT_EQ(count(), 2 * (3 + 1)) << "its own template has a token in front";
  own().data.text2 = "reply";
  own().data.train = {folder_.write("pairs.tsv", "text\treply\tlabel\na\tb\tyes\n")};
  EXPECT_TRUE(own().model.select("transformer"));
  EXPECT_EQ(count(), 4) << "a separator in front of each text";
}

TEST_F(TextClassificationRulesTest, CheckFindsAMissingColumnAnUnknownLabelAndABadRow) {
  own().data.label = "lable";
  auto found = stops();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].key, "data.train");
  EXPECT_NE(found[0].what.find("no column `lable`"), std::string::npos) << found[0].what;

  own().data.label = "label";
  own().data.valid = {folder_.write("bad.tsv", "text\tlabel\na\tyes\nb\tmaybe\n")};
  found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "data.valid");
  EXPECT_NE(found[0].what.find("bad.tsv:3: unknown label `maybe`"), std::string::npos)
      << found[0].what;

  own().data.valid = {folder_.write("short.tsv", "text\tlabel\na\n")};
  found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].stage, Stage::kValidation);
}

TEST_F(TextClassificationRulesTest, CheckNamesAllBadRowsAndLeavesThemOutWhereTold) {
  own().data.valid = {folder_.write("bad.tsv", "text\tlabel\na\nb\tmaybe\nc\tyes\n")};
  auto found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].what.find("bad.tsv:2: 1 field, where the header has 2; 1 more: 3: "
                               "unknown label `maybe`"),
            std::string::npos)
      << found[0].what;
  own().data.bad_samples = "skip";
  EXPECT_EQ(stops().size(), 0U);
  own().data.max_bad_samples = 1;
  found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].what.find("data.max_bad_samples = 1"), std::string::npos) << found[0].what;
}

TEST_F(TextClassificationRulesTest, CheckDoubtsLabelsThatMayBeMeantAsOne) {
  own().data.train = {folder_.write("alike.tsv", "text\tlabel\na\t1\nb\t1.0\nc\tyes\n")};
  const auto found = preflight(e_, {}, {});
  ASSERT_EQ(found.doubts.size(), 1U);
  EXPECT_EQ(found.doubts[0].key, "data.train");
  EXPECT_EQ(found.doubts[0].what, "labels `1` and `1.0` are one number");
}

TEST_F(TextClassificationRulesTest, ASeparatorIsOneCharacterOfAFormatThatHasFields) {
  own().data.separator = ";";
  EXPECT_EQ(problems(), Keys{});
  for (const char* wrong : {"; ", "\"", "\n", "é"}) {
    own().data.separator = wrong;
    EXPECT_EQ(problems(), Keys{"data.separator"}) << wrong;
  }
  own().data.separator = ";";
  own().data.format = "jsonl";
  EXPECT_EQ(problems(), Keys{"data.separator"});
}

TEST_F(TextClassificationRulesTest, LabelsThatAreListedHaveOneLine) {
  own().data.labels = {"no", "ye\ts"};
  EXPECT_EQ(problems(), Keys{"data.labels"});
}

TEST_F(TextClassificationRulesTest, CheckReadsNoFilesByAKeyThatIsWrong) {
  own().data.label = "lable";
  const auto stops_beside = [&](const std::string& wrong) {
    std::vector<config::Problem> known(1);
    known.front().key = wrong;
    return preflight(e_, known, {}).stops.size();
  };
  for (const char* key :
       {"data.format", "data.separator", "data.bad_samples", "data.header", "data.encoding",
        "data.text", "data.text2", "data.label", "data.label_kind", "data.label_until",
        "data.label_separator", "data.skipped_label", "data.labels"}) {
    EXPECT_EQ(stops_beside(key), 0U) << key;
  }
  for (const char* key : {"data.max_tokens", "data.max_text_tokens", "data.truncation",
                          "data.max_unknown", "data.prefetch", "optim.lr"}) {
    EXPECT_EQ(stops_beside(key), 2U) << key;
  }
}

TEST_F(TextClassificationRulesTest, WithoutTimeCheckSaysWhatItHasNotRead) {
  const auto found = preflight(e_, {}, {.limit = std::chrono::milliseconds(0)});
  EXPECT_EQ(found.stops.size(), 0U);
  ASSERT_FALSE(found.unread.empty());
  EXPECT_EQ(found.unread.front().key, "data.train");
}

TEST_F(TextClassificationRulesTest, AFileOfKeysBecomesAnExperiment) {
  const std::string path = folder_.write("my.toml",
                                         "[task]\nname = \"text_classification\"\n"
                                         "[data]\ntrain = [\"train.tsv\"]\n"
                                         "valid = [\"valid.tsv\"]\n"
                                         "[model]\npreset = \"mini\"\n"
                                         "[train]\nmax_steps = 5000\n");
  const auto loaded = load_experiment(path, {"data.max_tokens=512"});
  const auto& own = loaded.options.task.as<TextClassificationOptions>();
  EXPECT_EQ(own.model.as<models::BertOptions>().preset, "mini");
  EXPECT_EQ(own.data.max_tokens, 512);
  EXPECT_EQ(loaded.options.eval.best_metric, "accuracy");
  const auto stored = load_stored_experiment(loaded.resolved_toml, "config.toml", {});
  EXPECT_EQ(stored.config_hash, loaded.config_hash);
}

}  // namespace
}  // namespace stretto::experiment
