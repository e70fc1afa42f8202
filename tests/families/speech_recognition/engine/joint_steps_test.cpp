#include "families/speech_recognition/engine/joint_steps.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "decoding/search.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kClasses = 4;  // three labels, and the boundary or the blank

/// Attention whose labels are always the same.
class ConstantSteps final : public decoding::StepModel {
 public:
  explicit ConstantSteps(at::Tensor log_probs) : log_probs_(std::move(log_probs)) {}
  at::Tensor step(const at::Tensor& tokens) override {
    return log_probs_.expand({tokens.size(0), kClasses}).clone();
  }
  void reorder(const std::vector<int64_t>& /*parents*/) override {}
  int64_t vocab_size() const override { return kClasses; }

 private:
  at::Tensor log_probs_;
};

class JointStepsTest : public ::testing::Test {
 protected:
  /// Frames of two utterances, of 6 and 4 rows.
  const at::Tensor frames_ =
      (2 * stretto::testing::noise({10, kClasses}, 3)).log_softmax(1).to(at::kFloat).contiguous();
  const at::Tensor attention_ = at::tensor({0.5, 0.2, 0.2, 0.1}, at::kFloat).log();

  std::unique_ptr<JointSteps> steps(double weight, int64_t first, int64_t end,
                                    int64_t lanes) const {
    const std::vector<int64_t> all{0, 6, 10};
    std::vector<int64_t> offsets;
    for (int64_t i = first; i <= end; ++i) {
      offsets.push_back(all[static_cast<size_t>(i)] - all[static_cast<size_t>(first)]);
    }
    const at::Tensor own = frames_.slice(0, all[static_cast<size_t>(first)]);
    return std::make_unique<JointSteps>(
        std::make_unique<ConstantSteps>(attention_),
        std::span<const float>(own.const_data_ptr<float>(), static_cast<size_t>(own.numel())),
        offsets, lanes, weight);
  }
  static std::vector<std::vector<decoding::Hypothesis>> texts(decoding::StepModel& model,
                                                              std::vector<int64_t> lengths) {
    decoding::DecodeOptions options;
    options.method = "beam";
    options.beam_size = 6;
    options.nbest = 6;
    options.length_penalty_type = "none";
    options.max_len_a = 1;
    options.max_len_b = 10;
    decoding::SearchInput input;
    input.src_lengths = std::move(lengths);
    input.bos = input.eos = kClasses - 1;
    return decoding::search(model, input, options);
  }
};

TEST_F(JointStepsTest, AScoreIsTheWeightedSumOfThoseOfTheText) {
  constexpr double kWeight = 0.3;
  const auto joint = steps(kWeight, 0, 1, 6);
  const auto found = texts(*joint, {6}).front();
  ASSERT_FALSE(found.empty());
  const ctc::PrefixScores scores(
      std::span<const float>(frames_.const_data_ptr<float>(), 6 * kClasses), kClasses);
  for (const auto& hypothesis : found) {
    auto state = scores.start();
    double attention = attention_[kClasses - 1].item<double>();
    for (const int64_t label : hypothesis.ids) {
      state = scores.extended(state, label);
      attention += attention_[label].item<double>();
    }
    std::vector<double> gains(kClasses);
    scores.gains(state, gains);
    const double ctc = state.prefix + gains.back();
    EXPECT_NEAR(hypothesis.log_prob, (1 - kWeight) * attention + kWeight * ctc, 1e-4);
  }
}

TEST_F(JointStepsTest, ATextDoesNotDependOnTheUtteranceBesideIt) {
  const auto both = texts(*steps(0.5, 0, 2, 6), {6, 4});
  const auto first = texts(*steps(0.5, 0, 1, 6), {6}), second = texts(*steps(0.5, 1, 2, 6), {4});
  const auto expect_same = [](const std::vector<decoding::Hypothesis>& one,
                              const std::vector<decoding::Hypothesis>& other) {
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].ids, other[i].ids);
      EXPECT_EQ(one[i].log_prob, other[i].log_prob);
    }
  };
  expect_same(both[0], first[0]);
  expect_same(both[1], second[0]);
}

TEST_F(JointStepsTest, FramesLeadWhereAttentionSaysNothing) {
  // Alone, attention ends at once or repeats label 0.
  const auto joint = texts(*steps(0.9, 0, 1, 6), {6}).front().front().ids;
  const auto alone = texts(*steps(0, 0, 1, 6), {6}).front().front().ids;
  EXPECT_NE(joint, alone);
}

}  // namespace
}  // namespace stretto::tasks
