#include "cli/family_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/failure.h"

namespace stretto::cli {
namespace {

const std::vector<FamilyOption> kOptions{{"--src", {"translation"}},
                                         {"--data", {"masked_lm", "text_classification"}},
                                         {"--predictions", {"text_classification"}}};

/// A command with these options that was called with `words`.
struct Called {
  explicit Called(std::vector<std::string> words) {
    app.add_option("--src", src);
    app.add_option("--data", data);
    app.add_option("--predictions", predictions);
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }
  CLI::App app;
  std::string src, data, predictions;
};

experiment::Experiment of_task(const std::string& name) {
  experiment::Experiment experiment;
  experiment.task.select(name);
  return experiment;
}

TEST(FamilyOptions, ThoseOfTheFamilyPass) {
  require_own_options(Called({"--src", "a"}).app, kOptions, of_task("translation"));
  require_own_options(Called({"--data", "a", "--predictions", "b"}).app, kOptions,
                      of_task("text_classification"));
  require_own_options(Called({}).app, kOptions, of_task("question_answering"));
}

TEST(FamilyOptions, OthersAreRefusedWithTheFamilyAndItsOwn) {
  const Error error = testing::failure(ExitCode::kUsage, [] {
    require_own_options(Called({"--src", "a"}).app, kOptions, of_task("text_classification"));
  });
  EXPECT_EQ(std::string(error.what()),
            "--src is an option for runs of translation, and this run's task.name is "
            "\"text_classification\"");
  EXPECT_EQ(error.advice(), "its own options are --data, --predictions");
  const Error none = testing::failure(ExitCode::kUsage, [] {
    require_own_options(Called({"--data", "a"}).app, kOptions, of_task("question_answering"));
  });
  EXPECT_EQ(none.advice(), "leave it out");
}

TEST(FamilyOptions, AreThoseThatFamiliesHandInInTheOrderOfTheCommand) {
  CLI::App app;
  std::string text;
  for (const char* name : {"RUN", "--scores", "--json", "--nbest", "--beam"}) {
    app.add_option(name, text);
  }
  const auto found = family_options(app, &experiment::FamilySpec::infer_options);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].option, "--scores");
  EXPECT_EQ(found[0].key, "");
  EXPECT_EQ(found[1].option, "--nbest");
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(found[1].families, (Names{"translation", "masked_lm", "question_answering"}));
  EXPECT_EQ(found[1].key, "decode.nbest");
  EXPECT_EQ(found[1].without_key, (Names{"masked_lm", "question_answering"}));
  EXPECT_EQ(found[2].option, "--beam");
  EXPECT_EQ(found[2].families, Names{"translation"});
}

TEST(FamilyOptions, StateKeysForAllOfTheirFamiliesButThoseThatReadThemOtherwise) {
  const std::vector<FamilyOption> options{
      {"--beam", {"translation", "captions"}, "decode.beam_size"},
      {"--nbest", {"translation", "masked_lm"}, "decode.nbest", {"masked_lm"}},
      {"--sample", {"translation"}, "decode.method=sample"},
      {"--src", {"translation"}}};
  const auto stated = [&](const std::string& family, std::vector<std::string> words) {
    CLI::App app;
    int64_t beam = 0, nbest = 0;
    bool sample = false;
    std::string src;
    app.add_option("--beam", beam);
    app.add_option("--nbest", nbest);
    app.add_flag("--sample", sample);
    app.add_option("--src", src);
    std::reverse(words.begin(), words.end());
    app.parse(words);
    return stated_keys(app, options, family);
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(stated("translation", {"--src", "a", "--sample", "--nbest", "2", "--beam", "8"}),
            (Keys{"decode.beam_size=8", "decode.nbest=2", "decode.method=sample"}));
  EXPECT_EQ(stated("translation", {"--sample=false"}), Keys{});
  EXPECT_EQ(stated("captions", {"--beam", "8"}), Keys{"decode.beam_size=8"})
      << "a family that is named in the table alone";
  EXPECT_EQ(stated("masked_lm", {"--nbest", "2"}), Keys{});
}

}  // namespace
}  // namespace stretto::cli
