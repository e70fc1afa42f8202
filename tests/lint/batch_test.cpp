#include <gtest/gtest.h>

#include "lint/rules.h"

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
                          LintContext{.training_bytes = 100'000});
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

}  // namespace
}  // namespace stretto::lint
