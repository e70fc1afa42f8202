#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/program.h"

namespace stretto {
namespace {

using BudgetJson = nlohmann::json;
using stretto::testing::has;
using stretto::testing::Program;
using stretto::testing::ProgramResult;

/// A folder with a small model that turns lines of digits around.
class BudgetLab : public Program {
 public:
  BudgetLab() {
    std::string source, target, digits;
    for (char digit = '0'; digit <= '9'; ++digit) digits += std::string(1, digit) + "\n";
    for (int i = 0; i < 400; ++i) {
      std::string line;
      for (const char digit : std::to_string(1'000'003 + 7919 * i)) line += std::string{digit, ' '};
      line.pop_back();
      source += line + "\n";
      target += std::string(line.rbegin(), line.rend()) + "\n";
    }
    folder.write("digits.txt", digits);
    folder.write("a.src", source);
    folder.write("a.tgt", target);
    const std::string part = "num_layers = 2\nnum_heads = 2\nffn_dim = 64\n";
    folder.write("small.toml",
                 "[data]\ntrain_src = [\"a.src\"]\ntrain_tgt = [\"a.tgt\"]\n"
                 "valid_src = [\"a.src\"]\nvalid_tgt = [\"a.tgt\"]\nmax_tokens = 400\n"
                 "max_src_tokens = 20\nmax_tgt_tokens = 20\n"
                 "[tokenizer]\ntype = \"vocab\"\nsrc_vocab = \"digits.txt\"\n"
                 "[model]\nd_model = 32\n[model.encoder]\n" +
                     part + "[model.decoder]\n" + part +
                     "[optim]\nlr = 1e-3\n[schedule]\nname = \"constant\"\nwarmup_steps = 5\n"
                     "[train]\nmax_steps = 100000\nupdate_freq = 2\n[run]\nthreads = 1\n");
  }
};

TEST(PlanOfABudget, SaysWhatIsMissing) {
  const BudgetLab lab;
  for (const auto& [words, what] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"plan", "--hours", "1"}, "CONFIG is missing"},
           {{"plan", "--hours", "0", "small.toml"}, "no time at all"},
           {{"plan", "--hours", "1", "none.toml"}, "none.toml"},
           {{"plan", "--hours", "1", "--deploy-mb", "0", "small.toml"},
            "--deploy-mb of 0 leaves room for nothing"},
           {{"plan", "--hours", "1", "--memory-gb", "0", "small.toml"}, "--memory-gb of 0"},
           {{"plan", "--hours", "1", "--measure-seconds", "0", "small.toml"},
            "nothing is measured"},
           {{"plan", "--hours", "1", "--scaling", "small.toml"}, "are two plans"},
           {{"plan", "--hours", "1", "small.toml", "--size", "model.d_model=16"},
            "one --size tells nothing"}}) {
    const auto outcome = lab.run(words);
    EXPECT_EQ(outcome.code, 2) << what;
    EXPECT_TRUE(has(outcome.err, what)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

class PlanOfAMeasuredBudget : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Program::has_engine()) GTEST_SKIP() << "this build has no libtorch";
  }

  ProgramResult plan_with(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"plan",  "--hours",           "0.1", "small.toml", "--dir",
                                   "sizes", "--measure-seconds", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return lab_.run(words);
  }

  BudgetLab lab_;
};

TEST_F(PlanOfAMeasuredBudget, ChoosesASizeThatFitsAndMeasuresOnce) {
  const auto outcome = plan_with({"--deploy-mb", "0.05", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = BudgetJson::parse(outcome.out);
  EXPECT_EQ(json["measured"].size(), 4u);
  const auto& choice = json["choice"];
  ASSERT_FALSE(choice["forms"].empty());
  EXPECT_LE(choice["forms"][0]["bytes"].get<double>(), 5e4);
  EXPECT_GT(choice["updates"]["value"].get<double>(), 100);
  EXPECT_GT(choice["update_seconds"]["error"].get<double>(), 0);
  EXPECT_GT(choice["loss"]["value"].get<double>(), 0);
  EXPECT_GT(choice["peak_bytes"]["value"].get<double>(), 1e7);
  EXPECT_FALSE(json["assumed"].empty());

  const auto again = plan_with({"--deploy-mb", "0.05", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(BudgetJson::parse(again.out), json) << "the folders are read again";

  const auto text = plan_with({"--deploy-mb", "0.05"});
  EXPECT_TRUE(has(text.out, "train.max_steps=")) << text.out;
  EXPECT_TRUE(has(text.out, "assumed: ")) << text.out;

  const auto impossible = plan_with({"--deploy-mb", "0.0001"});
  EXPECT_EQ(impossible.code, 2);
  const auto slow = plan_with({"--deploy-ms", "0.0001"});
  EXPECT_TRUE(has(slow.err, "cannot answer in 0.0001 ms: ")) << slow.err;
  EXPECT_TRUE(has(impossible.err, "to 0.0001 MB: the smallest takes 0.00")) << impossible.err;
}

TEST_F(PlanOfAMeasuredBudget, MeasuresAnewWhereAnIncludedFileChanged) {
  const auto measured_runs = [&](const std::string& rate) {
    lab_.folder.write("part.toml", "[optim]\nclip_norm = " + rate + "\n");
    lab_.folder.write("whole.toml", "include = [\"small.toml\", \"part.toml\"]\n");
    const auto outcome =
        lab_.run({"plan", "--hours", "0.1", "whole.toml", "--dir", "sizes", "--measure-seconds",
                  "2", "--size", "model.d_model=16", "--size", "model.d_model=32", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> runs;
    const auto json = BudgetJson::parse(outcome.out);
    for (const auto& one : json["measured"]) runs.push_back(one["run"]);
    return runs;
  };
  const auto first = measured_runs("1.0");
  EXPECT_EQ(measured_runs("1.0"), first);
  EXPECT_NE(measured_runs("2.0"), first);
}

TEST_F(PlanOfAMeasuredBudget, TakesSizesThatAreGiven) {
  const auto outcome =
      plan_with({"--size", "model.d_model=16", "--size", "model.d_model=64", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = BudgetJson::parse(outcome.out);
  EXPECT_EQ(json["choices"].size(), 2u);
  const auto wrong = plan_with({"--size", "model.d_model=16", "--size", "model.d_modl=64"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "is no sound configuration")) << wrong.err;
}

TEST_F(PlanOfAMeasuredBudget, CheckRefusesWhatNoMachineHolds) {
  const auto outcome =
      lab_.run({"check", "small.toml", "model.d_model=65536", "model.encoder.num_layers=200",
                "model.encoder.num_heads=2", "model.encoder.ffn_dim=262144"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "training takes at least")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "the largest of this form that fits is model.")) << outcome.err;
  EXPECT_EQ(lab_.run({"check", "small.toml"}).code, 0);
}

}  // namespace
}  // namespace stretto
