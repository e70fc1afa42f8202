#include "models/synthesis/synthesis_losses.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/models/synthesis/synthesis_cases.h"

namespace stretto::models::testing::synthesis {
namespace {

constexpr FrameParts kBoth{.num_mels = 2, .num_bins = 3};

kernels::Offsets offsets(const std::vector<int>& bounds) {
  return {.values = at::tensor(bounds, at::kInt), .max_length = 9};
}

/// Two sentences of 3 and 2 frames, 2 and 3 symbols, two frames a step.
struct Batch {
  SynthesisOutput output;
  nn::PackedRows targets;
  kernels::Offsets text = offsets({0, 2, 5});

  Batch() {
    const auto wide = [](at::IntArrayRef shape, uint64_t seed) {
      return noise(shape, seed).to(at::kDouble);
    };
    output.before = wide({5, 2}, 1);
    output.after = wide({5, 2}, 2);
    output.magnitude = wide({5, 3}, 3);
    output.stop_logits = wide({5}, 4);
    output.attention = wide({2 * 2 + 1 * 3}, 5).abs();
    output.steps = offsets({0, 2, 3});
    output.reduction = 2;
    targets.values = wide({5, 5}, 6);
    targets.offsets = offsets({0, 3, 5});
  }

  SynthesisLosses losses(const SynthesisLossOptions& options) const {
    return synthesis_losses(output, targets, text, kBoth, options);
  }
};

double number(const at::Tensor& x) {
  return x.item<double>();
}

double apart(const std::string& kind, double difference) {
  if (kind == "mse") return difference * difference;
  if (kind == "l1") return std::abs(difference);
  return difference * difference + std::abs(difference);
}

/// Mean over columns of rows, summed.
double distance(const at::Tensor& got, const at::Tensor& want, const std::string& kind) {
  double sum = 0;
  for (int64_t n = 0; n < got.size(0); ++n) {
    for (int64_t j = 0; j < got.size(1); ++j) {
      sum += apart(kind, number(got[n][j]) - number(want[n][j])) / static_cast<double>(got.size(1));
    }
  }
  return sum;
}

TEST(SynthesisLosses, FramesAndMagnitudesAreMeansOverTheirNumbersSummedOverFrames) {
  const Batch batch;
  const at::Tensor mels = batch.targets.values.narrow(1, 0, 2);
  for (const std::string kind : {"mse", "l1", "l1_mse"}) {
    SynthesisLossOptions options;
    options.kind = kind;
    options.magnitude_weight = 0.5;
    const SynthesisLosses got = batch.losses(options);
    EXPECT_NEAR(
        number(got.frames),
        distance(batch.output.before, mels, kind) + distance(batch.output.after, mels, kind),
        1e-12);
    EXPECT_NEAR(number(got.magnitude),
                0.5 * distance(batch.output.magnitude, batch.targets.values.narrow(1, 2, 3), kind),
                1e-12);
    EXPECT_NEAR(number(got.mel_l1), distance(batch.output.after, mels, "l1"), 1e-12);
    EXPECT_FALSE(got.guided.defined());
    EXPECT_NEAR(number(got.total), number(got.frames + got.magnitude + got.stop), 1e-12);
  }
}

TEST(SynthesisLosses, TheLastFrameOfASentenceStops) {
  const Batch batch;
  SynthesisLossOptions options;
  options.stop_weight = 2;
  options.stop_positive_weight = 7;
  const SynthesisLosses got = batch.losses(options);
  double sum = 0, errors = 0;
  for (int64_t n = 0; n < 5; ++n) {
    const double probability = 1 / (1 + std::exp(-number(batch.output.stop_logits[n])));
    const bool is_last = n == 2 || n == 4;
    sum -= is_last ? 7 * std::log(probability) : std::log(1 - probability);
    errors += (probability > 0.5) != is_last ? 1 : 0;
  }
  EXPECT_NEAR(number(got.stop), 2 * sum, 1e-10);
  EXPECT_EQ(number(got.stop_errors), errors);
}

TEST(SynthesisLosses, GuidedAttentionCostsWhatIsFarFromTheDiagonal) {
  const Batch batch;
  SynthesisLossOptions options;
  options.guided_attention = 3;
  options.guided_width = 0.4;
  const auto cost = [](double step, double symbol) {
    return 1 - std::exp(-(symbol - step) * (symbol - step) / (2 * 0.4 * 0.4));
  };
  const at::Tensor& a = batch.output.attention;
  // Steps 0 and 1 of two, which write two frames and one; then the only step, which writes two.
  const double want = 2 * number(a[1]) * cost(0, 0.5) + number(a[2]) * cost(0.5, 0) +
                      2 * (number(a[5]) * cost(0, 1.0 / 3) + number(a[6]) * cost(0, 2.0 / 3));
  const SynthesisLosses got = batch.losses(options);
  EXPECT_NEAR(number(got.guided), 3 * want, 1e-12);
  EXPECT_NEAR(number(got.total), number(got.frames + got.magnitude + got.stop + got.guided), 1e-12);
  Batch without;
  without.output.attention = at::Tensor();
  EXPECT_THROW(without.losses(options), c10::Error);
  EXPECT_EQ(attention_for(options), WantsAttention::kGradient);
  EXPECT_EQ(attention_for({}), WantsAttention::kNo);
}

TEST(SynthesisLosses, GradientsAreThoseOfFiniteDifferences) {
  const Batch batch;
  SynthesisLossOptions options;
  options.kind = "l1_mse";
  options.guided_attention = 1;
  stretto::testing::expect_gradients(
      [&](const stretto::testing::Inputs& in) {
        Batch own;
        own.output.before = in[0];
        own.output.after = in[1];
        own.output.magnitude = in[2];
        own.output.stop_logits = in[3];
        own.output.attention = in[4];
        return own.losses(options).total;
      },
      {batch.output.before, batch.output.after, batch.output.magnitude, batch.output.stop_logits,
       batch.output.attention});
}

TEST(SynthesisLosses, WithoutAPostNetFramesCountOnce) {
  Batch batch;
  batch.output.after = batch.output.before;
  EXPECT_NEAR(number(batch.losses({}).frames),
              distance(batch.output.before, batch.targets.values.narrow(1, 0, 2), "mse"), 1e-12);
}

TEST(SynthesisLosses, ABatchesLossIsTheSumOfItsSentences) {
  const auto model = small_model(small_tacotron2());
  SynthesisLossOptions options;
  options.guided_attention = 1;
  const auto loss = [&](const std::vector<int64_t>& which) {
    const at::NoGradGuard no_grad;
    const SynthesisInput input = input_of(which);
    const nn::PackedRows frames = frames_of(which, kMels);
    const SynthesisOutput out = model->forward(input, frames, {}, attention_for(options));
    return number(synthesis_losses(out, frames, input.text.offsets, model->parts(), options).total);
  };
  EXPECT_NEAR(loss({0, 1, 2, 3}), loss({0}) + loss({1}) + loss({2}) + loss({3}), 1e-8);
}

TEST(AttentionShape, ADiagonalIsOrderlyAndWhatStaysIsNot) {
  std::vector<float> diagonal(20 * 10, 0), stays(20 * 10, 0), even(20 * 10, 0.1f);
  for (int64_t step = 0; step < 20; ++step) {
    diagonal[static_cast<size_t>(step * 10 + step / 2)] = 1;
    stays[static_cast<size_t>(step * 10)] = 1;
  }
  EXPECT_EQ(attention_shape(diagonal, 10).diagonality, 1);
  EXPECT_EQ(attention_shape(diagonal, 10).monotonic, 1);
  EXPECT_EQ(attention_shape(stays, 10).monotonic, 1);
  EXPECT_LT(attention_shape(stays, 10).diagonality, 0.25);
  EXPECT_NEAR(attention_shape(even, 10).diagonality, 0.24, 0.08);
  std::vector<float> back = diagonal;
  for (int64_t step = 10; step < 20; ++step) {
    for (int64_t symbol = 0; symbol < 10; ++symbol) {
      back[static_cast<size_t>(step * 10 + symbol)] = symbol == (step % 2) * 5 ? 1 : 0;
    }
  }
  EXPECT_NEAR(attention_shape(back, 10).monotonic, 9.0 / 19, 0.06);
  EXPECT_EQ(attention_shape(std::vector<float>{1, 0}, 2).monotonic, 1);
}

}  // namespace
}  // namespace stretto::models::testing::synthesis
