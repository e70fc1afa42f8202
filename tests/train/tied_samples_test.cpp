#include "train/tied_samples.h"

#include <gtest/gtest.h>

#include "nn/batch_norm.h"
#include "tests/train/recurrent_task.h"
#include "tests/train/toy_task.h"

namespace stretto::train {
namespace {

class TaskWithNorm : public test::ToyTask {
 public:
  torch::nn::Module& model() override { return net; }

  nn::BatchNorm norm{nn::Init(1, at::kCPU), 1};
  torch::nn::Module net;
};

TEST(TiedSamples, AStateOfLanesTiesAndSoDoesABatchNormThatIsNotFrozen) {
  test::ToyTask plain;
  EXPECT_EQ(samples_tied_by(plain), TiedBy::kNothing);
  test::RecurrentTask recurrent;
  EXPECT_EQ(samples_tied_by(recurrent), TiedBy::kCarry);
  TaskWithNorm normed;
  normed.net.register_module("norm", normed.norm);
  EXPECT_EQ(samples_tied_by(normed), TiedBy::kBatchNorm);
  normed.norm->freeze();
  EXPECT_EQ(samples_tied_by(normed), TiedBy::kNothing);
}

TEST(TiedSamples, SayWhyTheyAreNotSplit) {
  for (const auto tied : {TiedBy::kBatchNorm, TiedBy::kCarry}) {
    EXPECT_STRNE(reason_of(tied), "");
  }
  EXPECT_STREQ(reason_of(TiedBy::kNothing), "");
}

}  // namespace
}  // namespace stretto::train
