#include "experiment/lint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "experiment/experiment_schema.h"
#include "experiment/rules.h"
#include "tests/config/temp_folder.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSound =
    "[data]\n"
    "train_src = [\"a\"]\ntrain_tgt = [\"b\"]\nvalid_src = [\"c\"]\nvalid_tgt = [\"d\"]\n"
    "[train]\nmax_steps = 9000\n";

/// Findings of kSound with overrides, which must be sound as well.
std::vector<Finding> lint_of(const std::vector<std::string>& overrides,
                             const LintContext& context = {}) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  const auto origins =
      config::load_text(kSound, "my.toml", "/nowhere", overrides, experiment_schema(options),
                        experiment_schema(fallback), problems);
  check_rules(options, origins, problems);
  for (const auto& problem : problems) ADD_FAILURE() << problem.place << ": " << problem.what;
  return lint(options, origins, context);
}

std::vector<std::string> codes_of(const std::vector<Finding>& findings) {
  std::vector<std::string> codes;
  for (const auto& finding : findings) codes.push_back(finding.code);
  return codes;
}

struct BadConfig {
  const char* code;
  const char* key;
  std::vector<std::string> overrides;
  LintContext context = {};
};

const std::vector<BadConfig>& bad_configs() {
  static const std::vector<BadConfig> list{
      {"LB001",
       "schedule.warmup_steps",
       {"optim.reference_batch=1000", "optim.lr_scaling=linear", "schedule.warmup_steps=0"}},
      {"LB002", "schedule.warmup_steps", {"train.update_freq=32", "schedule.warmup_steps=100"}},
      {"LB003",
       "optim.reference_batch",
       {"optim.reference_batch=100", "optim.lr_scaling=linear", "optim.lr=1e-5"}},
      {"LB004", "optim.lr", {"train.update_freq=32", "optim.lr=5e-3"}},
      {"LB005", "optim.lr_scaling", {"optim.reference_batch=1000", "optim.lr_scaling=linear"}},
      {"LB006",
       "optim.lr_scaling",
       {"optim.name=sgd", "optim.reference_batch=1000", "optim.lr_scaling=sqrt"}},
      {"LB007", "schedule.warmup", {"train.update_freq=32", "schedule.warmup=constant"}},
      {"LB008", "optim.weight_decay", {"optim.weight_decay=0.1"}},
      {"LB009",
       "optim.no_decay",
       {"optim.name=adamw", "optim.weight_decay=0.1", "optim.no_decay=none"}},
      {"LB010", "train.update_freq", {"train.update_freq=2"}, {.training_bytes = 100'000}},
      {"LB011",
       "train.update_freq",
       {"train.update_freq=20", "schedule.name=constant", "schedule.warmup_steps=0"}},
      {"LB012", "optim.beta2", {"optim.beta2=0.9999"}},
      {"LB013", "train.average_last", {"train.average_last=5", "train.save_every=1500"}},
      {"LB014", "optim.clip_norm", {"optim.name=larc", "optim.clip_norm=1"}},
      {"LB015", "schedule.warmup_steps", {"schedule.warmup_steps=8000"}},
      {"MP001",
       "train.loss_scale.name",
       {"train.precision=mixed_fp16", "train.loss_scale.name=none"}},
      {"MP002",
       "train.loss_scale.init",
       {"train.precision=mixed_fp16", "train.loss_scale.name=static",
        "train.loss_scale.init=65536"}},
      {"MP003", "train.loss_scale.name", {"train.loss_scale.name=backoff"}},
      {"DP001", "dist.compress", {"dist.compress=fp16"}},
      {"DP002", "dist.bucket_bytes", {"dist.bucket_bytes=4096"}},
      {"DP003", "train.update_freq", {"train.update_freq=4"}, {.processes = 3}},
      {"EV001", "data.valid_src", {"data.valid_src=[]", "data.valid_tgt=[]"}},
      {"EV002", "eval.every", {"eval.every=10000"}},
      {"EV003", "eval.bleu_sentences", {"eval.best_metric=bleu", "eval.bleu_sentences=100"}},
      {"EV004", "eval.every", {"eval.every=5"}},
      {"SC001", "schedule.total_steps", {"schedule.name=cosine", "schedule.total_steps=8000"}},
      {"SC002", "schedule.total_steps", {"schedule.name=linear", "schedule.total_steps=20000"}},
      {"SC003", "schedule.warmup_steps", {"schedule.warmup_steps=0"}},
      {"SC004", "optim.lr", {"optim.lr=0.5"}},
      {"SC005", "loss.label_smoothing", {"loss.label_smoothing=0.5"}},
      {"CK001", "train.save_every", {"train.save_every=10000"}},
      {"CK002", "train.average_last", {"train.average_last=3", "train.save_every=5000"}},
  };
  return list;
}

TEST(Lint, EachBadConfigurationRaisesItsCodeAtItsKey) {
  for (const auto& bad : bad_configs()) {
    SCOPED_TRACE(bad.code);
    bool found = false;
    for (const auto& finding : lint_of(bad.overrides, bad.context)) {
      if (finding.code != bad.code) continue;
      found = true;
      EXPECT_EQ(finding.key, bad.key);
      EXPECT_FALSE(finding.reason.empty());
      EXPECT_FALSE(finding.fix.empty());
    }
    EXPECT_TRUE(found);
  }
}

TEST(Lint, EveryRuleHasABadConfigurationAndACodeOfItsOwn) {
  std::vector<std::string> tested;
  for (const auto& bad : bad_configs()) tested.push_back(bad.code);
  EXPECT_EQ(tested, lint_codes());
  EXPECT_EQ(std::set<std::string>(tested.begin(), tested.end()).size(), tested.size());
}

TEST(Lint, ASoundConfigurationRaisesNothing) {
  const std::vector<std::vector<std::string>> sound{
      {},
      {"train.update_freq=128", "optim.lr=1e-3"},  // Ott et al. 2018, with its warm-up of 4,000
      {"train.update_freq=32", "schedule.warmup_steps=900"},  // a tenth of the run
      {"train.update_freq=32", "optim.name=radam", "schedule.name=constant",
       "schedule.warmup_steps=0"},
      {"optim.name=adamw", "optim.weight_decay=0.1"},
      {"optim.name=adamw", "optim.weight_decay=0.1", "optim.no_decay=[\"*.bias\", \"*norm.*\"]"},
      {"optim.name=sgd", "optim.lr=0.1", "optim.momentum_form=rate_inside"},
      {"optim.reference_batch=1000", "optim.lr_scaling=sqrt"},
      {"optim.name=sgd", "optim.reference_batch=1000", "optim.lr_scaling=linear"},
      {"optim.reference_batch=4096", "optim.lr_scaling=linear"},
      {"train.precision=mixed_fp16", "dist.compress=fp16"},
      {"train.precision=mixed_bf16", "dist.compress=bf16"},
      {"schedule.name=noam", "optim.lr=2"},
      {"schedule.name=cosine", "train.average_last=5"},
  };
  for (const auto& overrides : sound) {
    for (const auto& finding : lint_of(overrides)) {
      ADD_FAILURE() << (overrides.empty() ? "" : overrides.front()) << ": " << finding.code << " "
                    << finding.key << ": " << finding.reason;
    }
  }
}

TEST(Lint, ProcessesThatShareEvenlyOrNearlySoRaiseNothing) {
  const auto idle = [](const char* update_freq, int64_t processes) {
    return codes_of(lint_of({update_freq}, {.processes = processes}));
  };
  EXPECT_EQ(idle("train.update_freq=8", 4), std::vector<std::string>{});
  EXPECT_EQ(idle("train.update_freq=1", 2), std::vector<std::string>{"DP003"});
  EXPECT_EQ(idle("train.update_freq=8", 3), std::vector<std::string>{"DP003"});  // 8 of 9
  EXPECT_EQ(idle("train.update_freq=200", 3), std::vector<std::string>{});       // 200 of 201
}

TEST(Lint, DecayIsJudgedByThePatterns) {
  const auto decays = [](const char* patterns) {
    const auto codes = codes_of(lint_of({"optim.name=adamw", "optim.weight_decay=0.1", patterns}));
    return codes == std::vector<std::string>{"LB009"};
  };
  EXPECT_TRUE(decays("optim.no_decay=[\"*.bias\"]"));  // norms have a weight too
  EXPECT_TRUE(decays("optim.no_decay=[\"*embedding*\"]"));
  EXPECT_FALSE(decays("optim.no_decay=[\"*\"]"));
  EXPECT_TRUE(decays("optim.groups=[\"*norm* weight_decay=0.1\"]"));
  EXPECT_FALSE(decays("optim.groups=[\"*norm* lr_scale=0.1\"]"));
  EXPECT_FALSE(decays("optim.groups=[\"encoder.* weight_decay=0.2\"]"));  // matrices as well
}

TEST(Lint, AFindingTellsWhereTheValueStands) {
  const auto written = lint_of({"optim.lr=0.5"});
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].place, "command line, `optim.lr=0.5`");
  const auto left = lint_of({"train.max_steps=5000"});  // 4,000 of them are warm-up
  ASSERT_EQ(codes_of(left), std::vector<std::string>{"LB015"});
  EXPECT_EQ(left[0].place, "default");
}

TEST(Lint, TheTrainingTextIsMeasuredOnDiskAndGuessedWhenCompressed) {
  const stretto::testing::TempFolder folder;
  data::DataOptions data;
  data.train_src = {folder.write("a.en", std::string(1000, 'x'))};
  data.train_tgt = {folder.write("a.de", std::string(1200, 'x'))};
  EXPECT_EQ(training_bytes(data), 1200);
  data.train_tsv = {folder.write("b.tsv.gz", std::string(100, 'x'))};
  EXPECT_EQ(training_bytes(data), 1350);
  data.train_src.push_back("/no/such/file");
  EXPECT_EQ(training_bytes(data), 0);
}

TEST(Inspect, LintsAConfigurationWhoseDataIsMissing) {
  const stretto::testing::TempFolder folder;
  const auto path = folder.write("my.toml", std::string(kSound) + "[optim]\nlr = 0.5\n");
  const auto found = inspect(path, {});
  EXPECT_TRUE(found.problems.empty());
  EXPECT_EQ(found.missing.size(), 4u);
  ASSERT_EQ(codes_of(found.findings), std::vector<std::string>{"SC004"});
  EXPECT_EQ(found.findings[0].place, std::string(path) + ":9:1");
}

TEST(Inspect, DoesNotJudgeWhatIsBroken) {
  const stretto::testing::TempFolder folder;
  const auto path = folder.write("my.toml", std::string(kSound) + "[optim]\nlr = 0.5\n");
  const auto found = inspect(path, {"model.d_model=7"});
  EXPECT_FALSE(found.problems.empty());
  EXPECT_TRUE(found.findings.empty());
}

TEST(Inspect, TheShippedRecipesRaiseNothing) {
  size_t count = 0;
  for (const char* folder : {"configs", "examples"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(STRETTO_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".toml") continue;
      // A model alone is a part of recipes.
      if (entry.path().parent_path().filename() == "models") continue;
      const auto found = inspect(entry.path(), {});
      for (const auto& problem : found.problems) ADD_FAILURE() << problem.place << problem.what;
      for (const auto& finding : found.findings) {
        ADD_FAILURE() << entry.path() << ": " << finding.code << " " << finding.key << ": "
                      << finding.reason;
      }
      ++count;
    }
  }
  EXPECT_GE(count, 5u);
}

TEST(Lint, TheManualExplainsEveryCode) {
  const auto page = read_file(fs::path(STRETTO_SOURCE_DIR) / "docs" / "large-batches.md");
  for (const auto& code : lint_codes()) {
    EXPECT_NE(page.find("| " + code + " |"), std::string::npos) << code;
  }
}

}  // namespace
}  // namespace stretto::experiment
