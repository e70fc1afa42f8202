#include "kernels/ctc/ctc.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/ctc/reference.h"
#include "kernels/offsets.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kCtcClasses = 4;

using Labels = std::vector<std::vector<int64_t>>;

CtcTargets targets_of(const std::vector<int64_t>& num_frames, const Labels& labels,
                      int64_t blank = kCtcClasses - 1) {
  std::vector<int64_t> all, lengths;
  for (const auto& one : labels) {
    all.insert(all.end(), one.begin(), one.end());
    lengths.push_back(std::ssize(one));
  }
  return {.frames = offsets_of(num_frames),
          .labels = at::tensor(all, at::kLong),
          .label_offsets = offsets_of(lengths),
          .blank = blank};
}

/// Repeated labels, a blank that is needed, frames to spare, none to spare, and no labels.
const std::vector<int64_t> kFrames{5, 3, 1, 6, 2};
const Labels kLabels{{0, 2}, {1, 1}, {2}, {0, 0, 1}, {}};

at::Tensor ctc_scores(int64_t frames = 17) {
  return noise({frames, kCtcClasses}).to(at::kDouble) * 2;
}

/// What is left of an alignment.
std::vector<int64_t> labels_of(const std::vector<int64_t>& alignment, int64_t blank) {
  std::vector<int64_t> labels;
  for (size_t t = 0; t < alignment.size(); ++t) {
    const bool repeats = t > 0 && alignment[t] == alignment[t - 1];
    if (alignment[t] != blank && !repeats) labels.push_back(alignment[t]);
  }
  return labels;
}

/// -log p(labels | frames), by all alignments that there are.
double slow_ctc(const at::Tensor& scores, const std::vector<int64_t>& labels, int64_t blank) {
  const at::Tensor p = scores.softmax(1);
  const int64_t frames = scores.size(0), classes = scores.size(1);
  std::vector<int64_t> alignment(static_cast<size_t>(frames));
  double sum = 0;
  const auto count = static_cast<int64_t>(std::pow(classes, frames));
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number;
    double product = 1;
    for (int64_t t = 0; t < frames; ++t, rest /= classes) {
      alignment[static_cast<size_t>(t)] = rest % classes;
      product *= p[t][rest % classes].item<double>();
    }
    if (labels_of(alignment, blank) == labels) sum += product;
  }
  return -std::log(sum);
}

TEST(CtcLoss, IsThatOfTheSumOverAllAlignments) {
  for (const int64_t blank : {kCtcClasses - 1, int64_t{0}}) {
    Labels labels = kLabels;
    if (blank == 0) {
      for (auto& one : labels) {
        for (int64_t& label : one) ++label;
      }
    }
    const at::Tensor scores = ctc_scores();
    const CtcLosses got = ctc_loss(scores, targets_of(kFrames, labels, blank));
    int64_t first = 0;
    for (size_t b = 0; b < labels.size(); ++b) {
      const at::Tensor own = scores.slice(0, first, first + kFrames[b]);
      EXPECT_NEAR(got.each[static_cast<int64_t>(b)].item<double>(), slow_ctc(own, labels[b], blank),
                  1e-12)
          << b;
      first += kFrames[b];
    }
    EXPECT_TRUE(got.possible.all().item<bool>());
  }
}

TEST(CtcLoss, GradientsAreThoseOfFiniteDifferences) {
  testing::expect_gradients(
      [](const auto& in) { return ctc_loss(in[0], targets_of(kFrames, kLabels)).each; },
      {ctc_scores()});
}

TEST(CtcLoss, ValuesAndGradientsAreThoseOfLibtorch) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    testing::expect_equal(
        [](const auto& in) { return ctc_loss(in[0], targets_of(kFrames, kLabels)).each; },
        [](const auto& in) {
          return reference::ctc_loss(in[0], targets_of(kFrames, kLabels)).each;
        },
        {ctc_scores()}, {.type = type});
  }
}

TEST(CtcLoss, OfLongSequencesIsThatOfLibtorch) {
  std::vector<int64_t> labels(150);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i * i % 3);
  const auto targets = [&] { return targets_of({700, 260}, {labels, labels}); };
  testing::expect_equal([&](const auto& in) { return ctc_loss(in[0], targets()).each; },
                        [&](const auto& in) { return reference::ctc_loss(in[0], targets()).each; },
                        {ctc_scores(960)}, {.type = at::kDouble, .relative = 1e-9});
  const at::Tensor sure = ctc_scores(960).to(at::kFloat) * 1000;
  const CtcLosses got = ctc_loss(sure, targets());
  EXPECT_TRUE(got.each.isfinite().all().item<bool>()) << "probabilities far below any number";
  EXPECT_GT(got.each.min().item<double>(), 1000);
}

// Two labels that are alike need three frames.
TEST(CtcLoss, OfAnImpossiblePairIsNothingAndIsCounted) {
  const auto targets = [] { return targets_of({2, 2, 0, 4}, {{1, 1}, {0, 1, 2}, {2}, {0}}); };
  for (const bool by_libtorch : {false, true}) {
    SCOPED_TRACE(by_libtorch);
    const at::Tensor scores = ctc_scores(8).requires_grad_(true);
    const CtcLosses got =
        by_libtorch ? reference::ctc_loss(scores, targets()) : ctc_loss(scores, targets());
    EXPECT_TRUE(at::equal(got.possible, at::tensor({0, 0, 0, 1}, at::kInt).to(at::kBool)));
    EXPECT_TRUE(at::equal(got.each.detach().slice(0, 0, 3), at::zeros({3}, at::kDouble)));
    got.each.sum().backward();
    EXPECT_TRUE(scores.grad().isfinite().all().item<bool>());
    EXPECT_TRUE(scores.grad().slice(0, 0, 4).eq(0).all().item<bool>());
    EXPECT_TRUE(scores.grad().slice(0, 4).ne(0).any().item<bool>());
  }
}

TEST(CtcLoss, OfNoFramesAndNoLabelsIsZero) {
  const auto targets = targets_of({0, 3}, {{}, {1}});
  for (const CtcLosses& got :
       {ctc_loss(ctc_scores(3), targets), reference::ctc_loss(ctc_scores(3), targets)}) {
    EXPECT_EQ(got.each[0].item<double>(), 0);
    EXPECT_GT(got.each[1].item<double>(), 0);
    EXPECT_TRUE(got.possible.all().item<bool>());
  }
}

TEST(CtcLoss, OfASequenceHasTheSameBitsInEveryBatch) {
  const at::Tensor scores = ctc_scores().to(at::kFloat);
  const auto gradient_of = [](const at::Tensor& of, const CtcTargets& targets) {
    const at::Tensor x = of.clone().requires_grad_(true);
    const at::Tensor each = ctc_loss(x, targets).each;
    return std::pair{each.detach(), torch::autograd::grad({each.sum()}, {x})[0]};
  };
  const auto [losses, slopes] = gradient_of(scores, targets_of(kFrames, kLabels));
  int64_t first = 0;
  for (size_t b = 0; b < kLabels.size(); ++b) {
    const int64_t end = first + kFrames[b];
    const auto alone =
        gradient_of(scores.slice(0, first, end), targets_of({kFrames[b]}, {kLabels[b]}));
    EXPECT_TRUE(at::equal(alone.first[0], losses[static_cast<int64_t>(b)])) << b;
    EXPECT_TRUE(at::equal(alone.second, slopes.slice(0, first, end))) << b;
    first = end;
  }
}

TEST(CtcLoss, WithoutAGradientIsTheSame) {
  const at::Tensor scores = ctc_scores().requires_grad_(true);
  const at::Tensor with = ctc_loss(scores, targets_of(kFrames, kLabels)).each;
  const torch::NoGradGuard no_grad;
  const at::Tensor without = ctc_loss(scores, targets_of(kFrames, kLabels)).each;
  EXPECT_FALSE(without.requires_grad());
  EXPECT_TRUE(at::equal(without, with));
}

TEST(CtcLoss, OfScoresThatAreNotFiniteIsNotFinite) {
  for (const double odd : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (int64_t frame = 0; frame < 5; ++frame) {
      const at::Tensor scores = ctc_scores();
      scores[frame][1] = odd;
      const at::Tensor each = ctc_loss(scores, targets_of(kFrames, kLabels)).each;
      EXPECT_FALSE(each[0].isfinite().item<bool>()) << frame;
      EXPECT_TRUE(each.slice(0, 1).isfinite().all().item<bool>()) << "the others see nothing of it";
    }
  }
}

// exp(-200) is no number of single precision, and the labels need that class.
TEST(CtcLoss, OfAClassFarBelowTheOthersIsThatOfLibtorch) {
  at::Tensor scores = ctc_scores();
  scores.select(1, 0).sub_(200);
  testing::expect_equal(
      [](const auto& in) { return ctc_loss(in[0], targets_of(kFrames, kLabels)).each; },
      [](const auto& in) { return reference::ctc_loss(in[0], targets_of(kFrames, kLabels)).each; },
      {scores});
}

TEST(CtcLoss, AClassThatCannotBeIsNothingToOtherLabels) {
  at::Tensor scores = ctc_scores();
  scores.select(1, 1).fill_(-std::numeric_limits<double>::infinity());
  scores.requires_grad_(true);
  const at::Tensor each = ctc_loss(scores, targets_of(kFrames, kLabels)).each;
  EXPECT_NEAR(each[0].item<double>(),
              slow_ctc(scores.detach().slice(0, 0, kFrames[0]), kLabels[0], kCtcClasses - 1),
              1e-12);
  EXPECT_EQ(each[1].item<double>(), std::numeric_limits<double>::infinity()) << "of that class";
  each[0].backward();
  EXPECT_TRUE(scores.grad().slice(0, 0, kFrames[0]).isfinite().all().item<bool>());
}

TEST(CtcLoss, RefusesWhatDoesNotFit) {
  const at::Tensor scores = ctc_scores(3);
  EXPECT_THROW(ctc_loss(scores, targets_of({3}, {{kCtcClasses}})), c10::Error);
  EXPECT_THROW(ctc_loss(scores, targets_of({3}, {{-1}})), c10::Error);
  EXPECT_THROW(ctc_loss(scores, targets_of({3}, {{kCtcClasses - 1}})), c10::Error) << "blank";
  EXPECT_THROW(ctc_loss(scores, targets_of({4}, {{1}})), c10::Error);
  EXPECT_THROW(ctc_loss(scores, targets_of({1, 2}, {{1}})), c10::Error);
  EXPECT_THROW(ctc_loss(scores, targets_of({3}, {{1}}, kCtcClasses)), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
