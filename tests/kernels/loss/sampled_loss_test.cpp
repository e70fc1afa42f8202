#include "kernels/loss/sampled_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "kernels/compute.h"
#include "tests/kernels/gradcheck.h"
#include "tests/parallel/refusing_allocator.h"

namespace stretto::kernels {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Precision;

/// Tokens whose targets are among the samples, and such whose are not; rows of loss_row's remainder
/// and, with 1,100 tokens, of three blocks.
struct SampledTokens {
  at::Tensor x, weight, bias, targets;
  SampledClasses sampled;

  explicit SampledTokens(int64_t tokens = 7, int64_t width = 5, int64_t classes = 23)
      : x(noise({tokens, width})),
        weight(noise({classes, width}, 8)),
        bias(noise({classes}, 9)),
        targets(at::arange(tokens, at::kLong) * 5 % classes),
        sampled{.ids = at::arange(0, classes, 3, at::kLong),
                .log_weights = noise({(classes + 2) / 3}, 10)} {}

  CrossEntropy sums(const Inputs& in, double softcap = 0) const {
    const auto as_x = SampledClasses{.ids = sampled.ids,
                                     .log_weights = sampled.log_weights.to(in[0].scalar_type())};
    return sampled_cross_entropy(in[0], in[1], targets, as_x, in.size() > 2 ? in[2] : at::Tensor(),
                                 softcap);
  }
  /// The formula in loops over classes.
  at::Tensor plain(const Inputs& in, double softcap = 0) const {
    at::Tensor logits = at::matmul(in[0], in[1].t());
    if (in.size() > 2) logits = logits + in[2];
    logits = softcapped(logits, softcap);
    at::Tensor loss = at::zeros({}, logits.options());
    for (int64_t n = 0; n < in[0].size(0); ++n) {
      const auto target = targets[n].item<int64_t>();
      at::Tensor sum = logits[n][target].exp();
      for (int64_t s = 0; s < sampled.ids.size(0); ++s) {
        const auto c = sampled.ids[s].item<int64_t>();
        if (c != target) sum = sum + (logits[n][c] + sampled.log_weights[s]).exp();
      }
      loss = loss + sum.log() - logits[n][target];
    }
    return loss;
  }
};

TEST(SampledCrossEntropy, IsTheFormulaInEveryTypeWithABiasAndWithout) {
  const SampledTokens tokens;
  for (const bool is_biased : {false, true})
    for (const double softcap : {0.0, 0.9})
      for (const Precision& precision :
           {Precision{at::kDouble, 1e-10, 1e-10, 1e-10}, Precision{at::kFloat}}) {
        SCOPED_TRACE(softcap);
        Inputs in{tokens.x, tokens.weight};
        if (is_biased) in.push_back(tokens.bias);
        testing::expect_equal(
            [&](const Inputs& given) { return tokens.sums(given, softcap).loss_sum; },
            [&](const Inputs& given) { return tokens.plain(given, softcap); }, in, precision);
      }
}

TEST(SampledCrossEntropy, OfManyBlocksOfTokensIsTheFormulaToo) {
  const SampledTokens tokens(1100, 19, 90);
  const Inputs in{tokens.x, tokens.weight * 0.3, tokens.bias};
  testing::expect_equal([&](const Inputs& given) { return tokens.sums(given).loss_sum; },
                        [&](const Inputs& given) {
                          // One logit at a time would take a minute.
                          const at::Tensor logits = at::linear(given[0], given[1], given[2]);
                          const at::Tensor own = logits.gather(1, tokens.targets.unsqueeze(1));
                          const at::Tensor others =
                              (logits.index_select(1, tokens.sampled.ids) +
                               tokens.sampled.log_weights.to(logits.scalar_type()))
                                  .masked_fill(tokens.targets.unsqueeze(1).eq(tokens.sampled.ids),
                                               -INFINITY);
                          return (at::logsumexp(at::cat({own, others}, 1), {1}, true) - own).sum();
                        },
                        in, {});
}

TEST(SampledCrossEntropy, OfAllClassesWithWeightsOfOneIsTheWholeLoss) {
  SampledTokens tokens;
  tokens.sampled = {.ids = at::arange(23, at::kLong), .log_weights = at::zeros({23})};
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Inputs in{tokens.x.to(type), tokens.weight.to(type, false, true).requires_grad_(true),
                    tokens.bias.to(type)};
    const CrossEntropy whole = linear_cross_entropy(in[0], in[1], tokens.targets, 0, 23, in[2]);
    const CrossEntropy got = tokens.sums(in);
    EXPECT_NEAR(got.loss_sum.item<double>(), whole.loss_sum.item<double>(),
                type == at::kDouble ? 1e-10 : 1e-4);
    EXPECT_EQ(got.nll_sum.item<double>(), got.loss_sum.item<double>());
    EXPECT_FALSE(got.nll_sum.requires_grad());
  }
}

TEST(SampledCrossEntropy, ScalesWithTheGradientThatComesBack) {
  const SampledTokens tokens;
  const auto slopes = [&](double scale) {
    const Inputs in{tokens.x.clone().requires_grad_(true),
                    tokens.weight.clone().requires_grad_(true),
                    tokens.bias.clone().requires_grad_(true)};
    return torch::autograd::grad({tokens.sums(in).loss_sum * scale}, in);
  };
  const auto once = slopes(1), eight = slopes(8);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(at::equal(once[i] * 8, eight[i])) << i;
}

TEST(SampledCrossEntropy, InHalfPrecisionGradientsAreNearThoseOfFp32) {
  const SampledTokens tokens(128, 32, 400);
  const auto gradients = [&](Compute compute, double scale) {
    const ComputeScope scope(compute);
    const Inputs in{tokens.x.clone().requires_grad_(true),
                    (tokens.weight * 0.3).requires_grad_(true),
                    tokens.bias.clone().requires_grad_(true)};
    Inputs all = torch::autograd::grad({tokens.sums(in).loss_sum * scale}, in);
    for (at::Tensor& slope : all) slope = slope / scale;
    return all;
  };
  const Inputs want = gradients(Compute::kFp32, 1);
  for (const Compute compute : {Compute::kBf16, Compute::kFp16})
    for (const double scale : {1.0, 128.0}) {
      const Inputs got = gradients(compute, scale);
      for (size_t i = 0; i < want.size(); ++i) {
        const double off = (got[i] - want[i]).norm().item<double>() / want[i].norm().item<double>();
        EXPECT_LT(off, 0.05) << scale << ' ' << i;
        EXPECT_GT(off, 0) << "nothing was rounded";
      }
    }
}

TEST(SampledCrossEntropy, NeverHoldsTheLogitsOfAllTokens) {
  const int64_t count = 2048, classes = 6000, sampled = classes / 3;
  const SampledTokens tokens(count, 8, classes);
  const Inputs in{tokens.x.clone().requires_grad_(true), tokens.weight.clone().requires_grad_(true),
                  tokens.bias.clone().requires_grad_(true)};
  const auto whole = static_cast<size_t>(count * sampled) * sizeof(float);
  const test::RefusingScope scope;
  test::refusal() = {};
  tokens.sums(in).loss_sum.backward();
  EXPECT_LT(test::refusal().largest, whole / 2);
  EXPECT_GT(test::refusal().largest, 0u);
}

TEST(SampledCrossEntropy, OperandsThatDoNotFitAreRefused) {
  const SampledTokens tokens;
  const auto refuse = [&](const SampledTokens& wrong) {
    EXPECT_THROW(
        sampled_cross_entropy(wrong.x, wrong.weight, wrong.targets, wrong.sampled, wrong.bias),
        c10::Error);
  };
  SampledTokens wrong = tokens;
  wrong.targets = at::full_like(tokens.targets, 23);
  refuse(wrong);
  wrong = tokens;
  wrong.bias = noise({22});
  refuse(wrong);
  const auto with_ids = [&](const std::vector<int64_t>& ids) {
    SampledTokens other = tokens;
    other.sampled = {.ids = at::tensor(ids, at::kLong),
                     .log_weights = at::zeros({static_cast<int64_t>(ids.size())})};
    return other;
  };
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{}, {3, 3}, {4, 2}, {-1, 2}, {2, 23}}) {
    refuse(with_ids(ids));
  }
  wrong = with_ids({1, 2});
  wrong.sampled.log_weights = at::zeros({3});
  refuse(wrong);
  const SampledTokens right = with_ids({1, 2});
  EXPECT_NO_THROW(sampled_cross_entropy(right.x, right.weight, right.targets, right.sampled));
}

}  // namespace
}  // namespace stretto::kernels
