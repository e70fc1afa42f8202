#include "families/text/text_rules.h"

#include <gtest/gtest.h>

namespace stretto::experiment {
namespace {

/// Sections of a task on texts whose model is no encoder of them: it has none here.
struct NotesOptions {
  struct Data {
    std::vector<std::string> train, valid, test;
    int64_t max_tokens = 100, max_samples = 0, max_text_tokens = 64, prefetch = 2;
  };
  Data data;
  text::TextTokenizerOptions tokenizer;
  TextEvalOptions eval;
};

class NotesRules final : public TextRules {
 public:
  NotesOptions own;

  TextSections sections(const Experiment& /*experiment*/) const override {
    return sections_of(own);
  }
  std::unique_ptr<text::LineSource> training_text(const Experiment& /*e*/) const override {
    return nullptr;
  }
  Preflight look_at_texts(const Experiment& /*e*/, const std::vector<config::Problem>& /*known*/,
                          const PreflightOptions& /*how*/) const override {
    return {};
  }
  SeenTokens count_tokens(const Experiment& /*e*/, const std::string& /*key*/,
                          const std::vector<std::string>& /*files*/,
                          const text::Tokenizer& /*tokenizer*/,
                          const PreflightTimer& /*time*/) const override {
    return {};
  }
  std::vector<ScoreSpec> scores(const Experiment& /*e*/) const override { return {}; }

  /// Keys of what is wrong.
  std::vector<std::string> problems() const {
    const Experiment e;
    std::vector<config::Problem> found;
    const config::Origins origins;
    RuleCheck check(e, origins, found);
    check_model(check);
    check_data(check);
    check_training(check);
    std::vector<std::string> keys;
    for (const auto& problem : found) keys.push_back(problem.key);
    return keys;
  }
};

using Keys = std::vector<std::string>;

TEST(TextRules, NeedNoEncoder) {
  NotesRules rules;
  EXPECT_EQ(rules.problems(), Keys{"data.train"});
  rules.own.data.train = {"notes.txt"};
  EXPECT_EQ(rules.problems(), Keys{});
  rules.own.data.max_text_tokens = 200;
  rules.own.tokenizer.merges = "merges.txt";
  EXPECT_EQ(rules.problems(), (Keys{"tokenizer.merges", "data.max_tokens"}));
}

TEST(TextRules, SayWhatEveryTaskOnTextsHas) {
  NotesRules rules;
  const Experiment e;
  EXPECT_FALSE(rules.validation_data(e).there);
  rules.own.data.valid = {"others.txt"};
  EXPECT_TRUE(rules.validation_data(e).there);
  EXPECT_EQ(rules.micro_batch(e).key, "data.max_tokens");
  EXPECT_EQ(rules.micro_batch(e).value, 100);
  EXPECT_TRUE(rules.tokenizer_options(e).has_value());
  EXPECT_TRUE(rules.model_width(e).key.empty());
  EXPECT_EQ(rules.lora(e), nullptr);
}

}  // namespace
}  // namespace stretto::experiment
