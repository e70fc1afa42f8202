#include "models/heads/ctc.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <iterator>
#include <vector>

#include "data/batch.h"
#include "models/packed.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::models {
namespace {

using stretto::testing::noise;

constexpr int64_t kHeadWidth = 6, kNumLabels = 3;

CtcHead ctc_head() {
  CtcHead head(nn::Init(3, at::kCPU).child("head"), kHeadWidth, kNumLabels);
  head.to(at::kDouble);
  return head;
}

/// Sequences of 5 and 4 frames.
kernels::Offsets frames_of_two() {
  return {.values = at::tensor({0, 5, 9}, at::kInt), .max_length = 5};
}

nn::PackedRows labels_of_two() {
  data::PackedTokens labels;
  labels.append(std::vector<int64_t>{2, 0});
  labels.append(std::vector<int64_t>{1, 1});
  return pack(labels, nullptr, at::kCPU);
}

TEST(CtcHead, LossesAreThoseOfItsScoresWithTheLastClassAsTheBlankOne) {
  const CtcHead head = ctc_head();
  const at::Tensor rows = noise({9, kHeadWidth}).to(at::kDouble);
  const auto weights = head.named_parameters();
  const at::Tensor scores = at::linear(rows, weights["output.weight"], weights["output.bias"]);
  EXPECT_TRUE(at::allclose(head.scores(rows), scores));
  const auto got = head.losses(head.scores(rows), frames_of_two(), labels_of_two());
  const at::Tensor log_p = scores.log_softmax(1);
  const auto loss_of = [&](int64_t begin, int64_t end, const std::vector<int64_t>& labels) {
    const std::vector<int64_t> frames{end - begin}, length{std::ssize(labels)};
    return at::ctc_loss(log_p.slice(0, begin, end).unsqueeze(1), at::tensor(labels, at::kLong),
                        frames, length, /*blank=*/kNumLabels, at::Reduction::None);
  };
  const at::Tensor first = loss_of(0, 5, {2, 0}), second = loss_of(5, 9, {1, 1});
  EXPECT_TRUE(at::allclose(got.each, at::cat({first, second}), 1e-10, 1e-12));
  got.each.sum().backward();
  for (const auto& item : head.named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(CtcHead, ScoresAreInSinglePrecisionAtLeast) {
  CtcHead head = ctc_head();
  EXPECT_EQ(head.scores(noise({2, kHeadWidth}).to(at::kDouble)).scalar_type(), at::kDouble);
  head.to(at::kFloat);
  EXPECT_EQ(head.scores(noise({2, kHeadWidth})).scalar_type(), at::kFloat);
  EXPECT_EQ(head.operations(), 2 * kHeadWidth * (kNumLabels + 1));
}

/// Scores whose most probable class at each frame is the one that is listed.
at::Tensor scores_of_classes(const std::vector<int64_t>& classes) {
  return at::one_hot(at::tensor(classes, at::kLong), kNumLabels + 1).to(at::kFloat) * 2;
}

TEST(CtcHead, TheBestAlignmentJoinsRepetitionsAndLeavesBlanksOut) {
  const CtcHead head = ctc_head();
  const at::Tensor scores = scores_of_classes({3, 2, 2, 3, 2, 0, 0, 3, 1});
  const auto found = head.best_alignments(scores, frames_of_two());
  ASSERT_EQ(found.size(), 2u);
  const std::vector<AlignedLabel> first{{2, 1, 2}, {2, 4, 1}}, second{{0, 0, 2}, {1, 3, 1}};
  EXPECT_EQ(found[0].labels, first) << "a blank parts two labels that are alike";
  EXPECT_EQ(found[1].labels, second) << "frames are counted from those of the sequence";
  const double of_a_frame = std::log(std::exp(2.0) / (std::exp(2.0) + 3));
  EXPECT_NEAR(found[0].log_prob, 5 * of_a_frame, 1e-5);
}

TEST(CtcHead, TheBestAlignmentOfNoFramesIsEmpty) {
  const auto found = ctc_head().best_alignments(
      scores_of_classes({1}), {.values = at::tensor({0, 0, 1}, at::kInt), .max_length = 1});
  EXPECT_TRUE(found[0].labels.empty());
  EXPECT_EQ(found[0].log_prob, 0);
  EXPECT_EQ(found[1].labels.size(), 1u);
}

TEST(CtcHead, LearnsLabelsWhosePlacesNobodyTold) {
  const CtcHead head(nn::Init(3, at::kCPU).child("head"), /*width=*/9, kNumLabels);
  const at::Tensor rows = at::eye(9) * 3;  // nine frames that have nothing in common
  torch::optim::SGD optimizer(head.parameters(), 0.5);
  for (int step = 0; step < 400; ++step) {
    optimizer.zero_grad();
    head.losses(head.scores(rows), frames_of_two(), labels_of_two()).each.sum().backward();
    optimizer.step();
  }
  const auto found = head.best_alignments(head.scores(rows), frames_of_two());
  const auto labels_in = [](const Alignment& alignment) {
    std::vector<int64_t> labels;
    for (const AlignedLabel& one : alignment.labels) labels.push_back(one.label);
    return labels;
  };
  EXPECT_EQ(labels_in(found[0]), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(labels_in(found[1]), (std::vector<int64_t>{1, 1}));
}

}  // namespace
}  // namespace stretto::models
