#include <gtest/gtest.h>

#include <algorithm>

#include "config/schema.h"
#include "families/translation/translation_options.h"
#include "lint/rules.h"
#include "tests/lint/sound_config.h"

// Rules speak of a micro-batch by the key that bounds it, and in what that key counts.
namespace stretto::lint {
namespace {

/// What a rule says where micro-batches are bound as no family here bounds them.
Remark said(LintRule rule, const experiment::Experiment& experiment,
            const experiment::BatchBound& bound, const LintContext& context = {}) {
  Subject subject(experiment, context);
  subject.micro_batch = bound;
  Remarks remarks;
  rule(subject, remarks);
  EXPECT_EQ(remarks.size(), 1U);
  return remarks.empty() ? Remark{} : remarks.front();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const experiment::BatchBound kPictures{.key = "data.max_pictures", .value = 64, .unit = "pictures"};
const experiment::BatchBound kRows{.key = "data.max_rows", .value = 200'000, .unit = "tokens"};

TEST(LintOfBatches, AReferenceIsCountedAsMicroBatchesAre) {
  experiment::Experiment experiment;
  experiment.optim.reference_batch = 100;
  experiment.optim.lr_scaling = "linear";
  const Remark remark = said(&rules::scaled_too_far, experiment, kPictures);
  EXPECT_TRUE(has(remark.reason, "(100 pictures)")) << remark.reason;
}

TEST(LintOfBatches, TheKeyThatBoundsMicroBatchesIsNamed) {
  experiment::Experiment experiment;
  translation_of(experiment).data.max_tokens = 200'000;
  experiment.optim.lr = 5e-3;
  const Remark by_hand = said(&rules::high_rate_without_reference, experiment, kRows);
  EXPECT_TRUE(has(by_hand.reason, "train.update_freq or data.max_rows changes")) << by_hand.reason;
  EXPECT_TRUE(has(by_hand.fix, "its data.max_rows * train.update_freq")) << by_hand.fix;
  const Remark few = said(&rules::few_updates_per_epoch, experiment, kRows,
                          LintContext{.files = {.epoch = 25'000}});
  EXPECT_EQ(few.key, "data.max_rows");
}

TEST(LintOfBatches, ABatchIsKeptByTheKeyThatBoundsMicroBatches) {
  experiment::Experiment experiment;
  experiment.train.update_freq = 3;
  experiment.dist.deterministic = true;
  const LintContext two{.processes = 2};
  const Remark bound = said(&rules::idle_processes, experiment, kPictures, two);
  EXPECT_TRUE(has(bound.fix, "(and lower data.max_pictures in proportion")) << bound.fix;
  const Remark free = said(&rules::idle_processes, experiment, {}, two);
  EXPECT_EQ(free.fix, "make it a multiple of the number of processes");
}

TEST(LintOfBatches, TheAdvisedMemoryOfTheSecondMomentFitsTheRun) {
  const auto found = [](int64_t updates, double beta2) {
    std::vector<Finding> about_memory;
    for (auto& finding :
         testing::lint_of({"schedule.warmup_steps=1", "train.max_steps=" + std::to_string(updates),
                           "optim.beta2=" + config::number_text(beta2)})) {
      if (finding.code == "LB012") about_memory.push_back(std::move(finding));
    }
    return about_memory;
  };
  const std::string sets = "optim.beta2 = ";
  for (const int64_t updates : {3, 10, 100, 300, 2'999, 3'000, 3'001, 10'000, 30'000}) {
    for (const double beta2 : {0.98, 0.999, 0.9999, 0.99999}) {
      const auto before = found(updates, beta2);
      // What articles print is sound in a run of any length.
      const bool is_long = beta2 > 0.999 && 3 * 1 / (1 - beta2) > double(updates);
      ASSERT_EQ(before.size(), is_long ? 1U : 0U) << updates << " " << beta2;
      if (before.empty()) continue;
      const std::string& fix = before[0].fix;
      ASSERT_TRUE(fix.starts_with(sets)) << fix;
      const double advised = std::stod(fix.substr(sets.size()));
      EXPECT_LT(advised, beta2) << updates;
      EXPECT_TRUE(found(updates, advised).empty()) << updates << ": " << fix;
      // Nor is it much shorter than it need be.
      EXPECT_GE(2 / (1 - advised), double(updates) / 3 - 2) << updates << ": " << fix;
    }
  }
  EXPECT_EQ(found(100, 0.9999)[0].fix,
            "optim.beta2 = 0.999 remembers 1,000; a smaller batch leaves more updates to the run");
  EXPECT_TRUE(found(2, 0.9999).empty()) << "no value would do";
}

}  // namespace
}  // namespace stretto::lint
