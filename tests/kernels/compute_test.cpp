#include "kernels/compute.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/cast.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rounding.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using testing::Inputs;
using testing::noise;

const std::vector<Compute> kHalves{Compute::kBf16, Compute::kFp16};

/// Bits of fraction, the smallest exponent.
struct Format {
  int fraction, least_exponent;
};

Format format_of(Compute compute) {
  return compute == Compute::kBf16 ? Format{7, -126} : Format{10, -14};
}

/// Distance of neighbouring values of the half type around each |x|.
at::Tensor unit(const at::Tensor& x, Compute compute) {
  const Format format = format_of(compute);
  const at::Tensor exponent = at::floor(at::log2(x.abs().to(at::kDouble).clamp_min(1e-45)))
                                  .clamp_min(format.least_exponent);
  return at::exp2(exponent - format.fraction);
}

at::Tensor native(const at::Tensor& x, Compute compute) {
  return x.to(half_type(compute)).to(at::kFloat);
}

Inputs leaves(const Inputs& inputs) {
  Inputs all;
  for (const at::Tensor& x : inputs) all.push_back(x.clone().requires_grad_(true));
  return all;
}

/// The value and the gradients of one case; forward under `forward`, backward under `backward`.
Inputs results(const cases::Case& one, Compute forward, Compute backward) {
  const Inputs inputs = leaves(one.inputs);
  const at::Tensor out = [&] {
    const ComputeScope scope(forward);
    return one.run(inputs);
  }();
  const ComputeScope scope(backward);
  Inputs all = torch::autograd::grad({out}, inputs, {noise(out.sizes(), 3)});
  all.insert(all.begin(), out.detach());
  return all;
}

Inputs results(const cases::Case& one, Compute compute) {
  return results(one, compute, Compute::kFp32);
}

bool has_products(const cases::Case& one) {
  return one.name.find("attention") != std::string::npos || one.name.starts_with("linear") ||
         one.name.ends_with("convolution");
}

double distance(const at::Tensor& got, const at::Tensor& want) {
  return ((got - want).norm() / (want.norm() + 1e-30)).item<double>();
}

void expect_same_bits(const at::Tensor& got, const at::Tensor& want) {
  ASSERT_EQ(got.numel(), want.numel());
  const float *a = got.const_data_ptr<float>(), *b = want.const_data_ptr<float>();
  for (int64_t i = 0; i < got.numel(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << "element " << i << ": " << a[i] << " instead of " << b[i];
  }
}

/// Both signs of every upper half of a number with lower halves around ties.
at::Tensor telling_numbers() {
  std::vector<float> all;
  for (uint32_t upper = 0; upper < 0x10000; upper += 3)
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u,
                                 0x7FFFu, 0x8000u, 0x8001u, 0xEFFFu, 0xF000u, 0xFFFFu})
      all.push_back(std::bit_cast<float>(upper << 16 | lower));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float x : {0.0f,
                        65504.0f,
                        65519.996f,
                        65520.0f,
                        65536.0f,
                        3.3895314e38f,
                        3.4028235e38f,
                        6.1035156e-5f,
                        6.097555e-5f,
                        5.9604645e-8f,
                        2.9802322e-8f,
                        2.9802326e-8f,
                        8.9406967e-8f,
                        1e-40f,
                        1e-45f,
                        kInfinity,
                        std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::signaling_NaN(),
                        1.00390625f,
                        1.01171875f,
                        1.00048828125f,
                        1.00146484375f})
    for (const float sign : {1.0f, -1.0f}) all.push_back(sign * x);
  return at::tensor(all, at::kFloat);
}

TEST(Compute, RoundingEqualsATenBitForBitAtEveryLevel) {
  const at::Tensor x = telling_numbers();
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    for (const Compute compute : kHalves) {
      SCOPED_TRACE(std::string(level->name) + (compute == Compute::kBf16 ? " bf16" : " fp16"));
      const at::Tensor got = rounded(x, compute);
      expect_same_bits(got, native(x, compute));
      EXPECT_TRUE(at::equal(got.isnan(), x.isnan()));
    }
  }
}

TEST(Compute, RoundingInPlaceEqualsRoundingToACopy) {
  at::Tensor x = noise({1000});
  for (const Compute compute : kHalves) {
    const at::Tensor copy = rounded(x, compute);
    at::Tensor same = x.clone();
    round_(same, compute);
    EXPECT_TRUE(at::equal(same, copy));
    EXPECT_FALSE(at::equal(same, x));
  }
  EXPECT_TRUE(rounded(x, Compute::kTf32).is_same(x));
}

TEST(Compute, ScopesNestAndBelongToTheirThread) {
  EXPECT_EQ(ComputeScope::current(), Compute::kFp32);
  const ComputeScope outer(Compute::kBf16);
  {
    const ComputeScope inner(Compute::kFp16);
    EXPECT_EQ(ComputeScope::current(), Compute::kFp16);
    std::thread([] { EXPECT_EQ(ComputeScope::current(), Compute::kFp32); }).join();
  }
  EXPECT_EQ(ComputeScope::current(), Compute::kBf16);
}

struct Shape {
  int64_t rows, depth, columns;
};

/// Below and above the sizes where our product is taken; odd depth leaves half a pair.
const std::vector<Shape> kShapes{{5, 6, 7}, {61, 71, 45}, {131, 301, 75}};

void expect_within_a_unit(const at::Tensor& got, const at::Tensor& want, const at::Tensor& sizes,
                          Compute compute) {
  // Two fp32 sums of the same numbers in another order differ by some 1e-7 of the sum of sizes.
  const at::Tensor allowed = unit(want, compute) * 1.001 + sizes.to(at::kDouble) * 1e-6;
  const at::Tensor off = (got.to(at::kDouble) - want.to(at::kDouble)).abs();
  EXPECT_LE((off / allowed).max().item<double>(), 1.0);
}

TEST(Compute, ProductsEqualNativeHalfProductsWithinOneUnit) {
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : kHalves)
      for (const auto& [n, d, o] : kShapes) {
        SCOPED_TRACE(std::string(level->name) + " " + std::to_string(n) +
                     (compute == Compute::kBf16 ? " bf16" : " fp16"));
        const cpu::LevelGuard guard(*level);
        const at::ScalarType type = half_type(compute);
        const at::Tensor x = noise({n, d}), w = noise({o, d}, 8), b = noise({o}, 9);
        const at::Tensor dy = noise({n, o}, 10);
        const Inputs in = leaves({x, w, b});
        const ComputeScope scope(compute);
        const at::Tensor y = kernels::linear(in[0], in[1], in[2]);
        const auto slopes = torch::autograd::grad({y}, in, {dy});
        const at::Tensor xh = x.to(type), wh = w.to(type), dyh = dy.to(type);
        expect_within_a_unit(y.detach(), at::linear(xh, wh, b.to(type)).to(at::kFloat),
                             at::linear(x.abs(), w.abs()), compute);
        expect_within_a_unit(slopes[0], at::mm(dyh, wh).to(at::kFloat), at::mm(dy.abs(), w.abs()),
                             compute);
        expect_within_a_unit(slopes[1], at::mm(dyh.t(), xh).to(at::kFloat),
                             at::mm(dy.abs().t(), x.abs()), compute);
        EXPECT_TRUE(at::allclose(slopes[2], dy.sum(0), 1e-5, 1e-5)) << "a sum is not a product";
        expect_same_bits(y.detach(), native(y.detach(), compute));
        for (const size_t i : {size_t{0}, size_t{1}})
          expect_same_bits(slopes[i], native(slopes[i], compute));
      }
}

TEST(Compute, CastsOfOperandsEqualOwnProductsWithinOneUnit) {
  // What a GPU runs, here on the CPU.
  for (const Compute compute : kHalves) {
    const Inputs in = leaves({noise({61, 71}), noise({45, 71}, 8), noise({45}, 9)});
    const at::Tensor dy = noise({61, 45}, 10);
    const at::Tensor got = cast::linear(in[0], in[1], in[2], compute);
    const ComputeScope scope(compute);
    const at::Tensor want = kernels::linear(in[0], in[1], in[2]);
    const at::Tensor sizes = at::linear(in[0].abs(), in[1].abs());
    expect_within_a_unit(got.detach(), want.detach(), sizes.detach(), compute);
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    const auto a = torch::autograd::grad({got}, in, {dy});
    const auto b = torch::autograd::grad({want}, in, {dy});
    const double coarse = compute == Compute::kBf16 ? 4e-3 : 5e-4;
    for (size_t i = 0; i < in.size(); ++i) EXPECT_LT(distance(a[i], b[i]), coarse) << i;
  }
}

TEST(Compute, AResultInTheHalfTypeHasTheNumbersOfTheOneInFp32) {
  for (const Compute compute : kHalves) {
    const at::ScalarType type = half_type(compute);
    const Inputs in = leaves({noise({61, 71}), noise({45, 71}, 8), noise({45}, 9)});
    const at::Tensor dy = noise({61, 45}, 10).to(type);
    const at::Tensor wide = cast::linear(in[0], in[1], in[2], compute);
    const at::Tensor got = cast::linear(in[0], in[1], in[2], compute, Storage::kRounded);
    EXPECT_EQ(got.scalar_type(), type);
    expect_same_bits(widened(got).detach(), wide.detach());
    EXPECT_TRUE(widened(wide).is_same(wide));
    const auto a = torch::autograd::grad({got}, in, {dy});
    const auto b = torch::autograd::grad({wide}, in, {dy.to(at::kFloat)});
    for (size_t i = 0; i < in.size(); ++i) expect_same_bits(a[i], b[i]);
    // Rows in the half type get their gradient in it.
    const Inputs narrow = leaves({in[0].detach().to(type)});
    const at::Tensor again = cast::linear(narrow[0], in[1], in[2], compute);
    expect_same_bits(again.detach(), wide.detach());
    const at::Tensor slope = torch::autograd::grad({again}, narrow, {dy.to(at::kFloat)})[0];
    EXPECT_EQ(slope.scalar_type(), type);
    expect_same_bits(widened(slope), b[0]);
  }
}

TEST(Compute, Binary16OverflowsWhereBfloat16DoesNot) {
  const at::Tensor x = at::full({64, 64}, 300.0f), w = at::eye(64) * 300;
  const auto largest = [&](Compute compute) {
    const ComputeScope scope(compute);
    return kernels::linear(x, w).max().item<float>();
  };
  EXPECT_EQ(largest(Compute::kFp32), 90000.0f);
  EXPECT_NEAR(largest(Compute::kBf16), 90000.0f, 256.0f);
  EXPECT_TRUE(std::isinf(largest(Compute::kFp16)));
  // An operand alone may overflow too.
  const ComputeScope scope(Compute::kFp16);
  EXPECT_FALSE(at::isfinite(kernels::linear(at::full({64, 64}, 1e5f), at::eye(64) * 1e-3))
                   .all()
                   .item<bool>());
}

TEST(Compute, BackwardUsesWhatWasRecorded) {
  for (const cases::Case& one : cases::large()) {
    if (!has_products(one)) continue;
    for (const Compute compute : kHalves) {
      SCOPED_TRACE(one.name);
      const Inputs inside = results(one, compute, compute);
      const Inputs after = results(one, compute, Compute::kFp32);
      const Inputs fp32 = results(one, Compute::kFp32, Compute::kFp32);
      const Inputs late = results(one, Compute::kFp32, compute);
      for (size_t i = 0; i < inside.size(); ++i) {
        EXPECT_TRUE(at::equal(inside[i], after[i])) << i;
        EXPECT_TRUE(at::equal(fp32[i], late[i])) << i;
      }
      EXPECT_FALSE(at::equal(inside[1], fp32[1]));
    }
  }
}

TEST(Compute, GradientsStayCloseToThoseOfFp32) {
  for (const cpu::Table* level : cpu::levels())
    for (const cases::Case& one : cases::large())
      for (const Compute compute : kHalves) {
        SCOPED_TRACE(one.name + " at " + level->name +
                     (compute == Compute::kBf16 ? " bf16" : " fp16"));
        const cpu::LevelGuard guard(*level);
        const Inputs got = results(one, compute), want = results(one, Compute::kFp32);
        const double near = compute == Compute::kBf16 ? 1.5e-2 : 2e-3;
        for (size_t i = 0; i < got.size(); ++i) {
          if (has_products(one))
            EXPECT_LT(distance(got[i], want[i]), near) << i;
          else
            EXPECT_TRUE(at::equal(got[i], want[i])) << i << ": only products are rounded";
        }
      }
}

TEST(Compute, OneThreadAndManyGiveTheSameBitsInHalfPrecision) {
  const int before = at::get_num_threads();
  for (const Compute compute : kHalves)
    for (const cases::Case& one : cases::large()) {
      if (!has_products(one)) continue;
      SCOPED_TRACE(one.name);
      at::set_num_threads(1);
      const Inputs alone = results(one, compute);
      at::set_num_threads(3);
      const Inputs shared = results(one, compute);
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(alone[i], shared[i])) << i;
    }
  at::set_num_threads(before);
}

TEST(Compute, Tf32OnACpuIsFp32) {
  for (const cases::Case& one : cases::large()) {
    SCOPED_TRACE(one.name);
    const Inputs got = results(one, Compute::kTf32), want = results(one, Compute::kFp32);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
  }
}

TEST(Compute, DoubleIsNeverRounded) {
  const at::Tensor x = noise({5, 6}).to(at::kDouble), w = noise({7, 6}, 8).to(at::kDouble);
  const ComputeScope scope(Compute::kBf16);
  EXPECT_TRUE(at::equal(kernels::linear(x, w), at::linear(x, w)));
}

TEST(Compute, AttentionRoundsOperandsAndWeightsButNotScores) {
  const Offsets whole = cases::lengths({0, 33});
  for (const Compute compute : kHalves) {
    const at::Tensor qkv = noise({33, 3 * 16}) * 3;
    const auto r = [&](const at::Tensor& x) { return native(x, compute); };
    const auto part = r(qkv).chunk(3, 1);
    const at::Tensor scores = at::mm(part[0], part[1].t()) / 4;
    const at::Tensor want = r(at::mm(r(at::softmax(scores, -1)), part[2]));
    const ComputeScope scope(compute);
    const at::Tensor got = self_attention(qkv, {whole, 1, false, {}});
    const at::Tensor steps = (got - want).abs().to(at::kDouble) / unit(want.abs() + 0.5, compute);
    EXPECT_LE(steps.max().item<double>(), 1.01);
    // Rounded scores would be off by more: the softmax multiplies their error.
    EXPECT_LT(steps.mean().item<double>(), 0.05);
  }
}

TEST(Compute, DecodingAStepEqualsTheLastRowOfCausalAttention) {
  for (const Compute compute : kHalves) {
    const ComputeScope scope(compute);
    const at::Tensor qkv = noise({4, 3 * 16}) * 2;
    const at::Tensor want = self_attention(qkv, {cases::lengths({0, 4}), 2, true, {}});
    at::Tensor k = at::zeros({4, 1, 16}), v = at::zeros({4, 1, 16}), out;
    const at::Tensor lineage = at::zeros({1, 4}, at::kInt);
    for (int64_t t = 0; t < 4; ++t) {
      const auto part = qkv.slice(0, t, t + 1).chunk(3, 1);
      out = decode_self_attention(part[0], part[1], part[2], k, v, lineage, t, 2);
    }
    EXPECT_LE(((out - want.slice(0, 3)).abs().to(at::kDouble) / unit(want.abs().max(), compute))
                  .max()
                  .item<double>(),
              1.01);
  }
}

/// Rows whose logits leave almost no probability to most of many classes.
struct SteepLoss {
  at::Tensor x = noise({64, 32}), weight = noise({400, 32}, 8) * 0.6;
  at::Tensor targets = at::arange(64, at::kLong) * 6;

  Inputs gradients(Compute compute, double scale) const {
    const Inputs in = leaves({x, weight});
    const at::Tensor loss = [&] {
      const ComputeScope scope(compute);
      return linear_cross_entropy(in[0], in[1], targets, 0.0, 400).loss_sum;
    }();
    Inputs all = torch::autograd::grad({loss * scale}, in);
    for (at::Tensor& slope : all) slope = slope / scale;
    return all;
  }
};

TEST(Compute, TheLossIsThatOfRoundedLogits) {
  const SteepLoss steep;
  for (const Compute compute : kHalves) {
    const at::Tensor logits =
        native(at::mm(native(steep.x, compute), native(steep.weight, compute).t()), compute);
    const double want = at::nll_loss(at::log_softmax(logits.to(at::kDouble), 1), steep.targets, {},
                                     at::Reduction::Sum)
                            .item<double>();
    const ComputeScope scope(compute);
    const double got =
        linear_cross_entropy(steep.x, steep.weight, steep.targets, 0.0, 400).nll_sum.item<double>();
    EXPECT_NEAR(got, want, 2e-4 * want);
    const double plain = [&] {
      const ComputeScope fp32(Compute::kFp32);
      return linear_cross_entropy(steep.x, steep.weight, steep.targets, 0.0, 400)
          .nll_sum.item<double>();
    }();
    EXPECT_NE(got, plain);
  }
}

TEST(Compute, TheBiasOfTheLossIsAddedBeforeLogitsAreRounded) {
  const SteepLoss steep;
  const at::Tensor bias = noise({400}, 9) * 3;
  for (const Compute compute : kHalves) {
    const at::Tensor sums =
        at::mm(native(steep.x, compute), native(steep.weight, compute).t()) + bias;
    const double want = at::nll_loss(at::log_softmax(native(sums, compute).to(at::kDouble), 1),
                                     steep.targets, {}, at::Reduction::Sum)
                            .item<double>();
    const ComputeScope scope(compute);
    const CrossEntropy got =
        linear_cross_entropy(steep.x, steep.weight, steep.targets, 0.0, 400, bias);
    EXPECT_NEAR(got.nll_sum.item<double>(), want, 2e-4 * want);
  }
}

TEST(Compute, TheBiasOfTheLossHasItsGradientAtAnyLossScale) {
  const SteepLoss steep;
  const auto slope = [&](Compute compute, double scale) {
    const at::Tensor bias = at::zeros({400}).requires_grad_(true);
    const at::Tensor loss = [&] {
      const ComputeScope scope(compute);
      return linear_cross_entropy(steep.x, steep.weight, steep.targets, 0.1, 400, bias).loss_sum;
    }();
    return torch::autograd::grad({loss * scale}, {bias})[0] / scale;
  };
  for (const Compute compute : kHalves)
    for (const double scale : {1.0, 1024.0})
      EXPECT_LT(distance(slope(compute, scale), slope(Compute::kFp32, 1)), 2e-2) << scale;
}

TEST(Compute, SlopesOfLogitsSurviveBinary16AtAnyLossScale) {
  SteepLoss steep;
  // Rows so alike that a class is improbable in all of them: slopes far below what binary16 holds.
  steep.x = steep.x.slice(0, 0, 1) + steep.x * 0.05;
  steep.weight = steep.weight * 1.5;
  const Inputs want = steep.gradients(Compute::kFp32, 1);
  for (const double scale : {1.0, 1024.0})
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_LT(distance(steep.gradients(Compute::kFp16, scale)[i], want[i]), 3e-3) << scale;
  const at::Tensor size = std::get<0>(want[1].abs().max(1));
  const at::Tensor small = size.gt(1e-7).logical_and(size.lt(2e-6)).nonzero().flatten();
  ASSERT_GT(small.size(0), 10);
  const at::Tensor got = steep.gradients(Compute::kFp16, 1024.0)[1];
  for (int64_t i = 0; i < small.size(0); ++i) {
    const int64_t row = small[i].item<int64_t>();
    EXPECT_LT(distance(got[row], want[1][row]), 0.1) << row;
  }
}

TEST(Compute, GradientsOfTheLossOverflowAndVanishByItsScale) {
  const SteepLoss steep;
  EXPECT_FALSE(at::isfinite(steep.gradients(Compute::kFp16, 1e7)[0]).all().item<bool>());
  EXPECT_TRUE(at::isfinite(steep.gradients(Compute::kBf16, 1e7)[0]).all().item<bool>());
  EXPECT_EQ(steep.gradients(Compute::kFp16, 1e-9)[0].abs().max().item<float>(), 0.0f);
  EXPECT_GT(steep.gradients(Compute::kBf16, 1e-9)[0].abs().max().item<float>(), 0.0f);
}

TEST(Compute, WeightGradientsOfTwoMicroBatchesAddInFp32) {
  const at::Tensor w = noise({45, 71}, 8).requires_grad_(true), x = noise({61, 71});
  const auto backward = [&](const at::Tensor& dy) {
    const at::Tensor y = [&] {
      const ComputeScope scope(Compute::kBf16);
      return kernels::linear(x, w);
    }();
    return torch::autograd::grad({y}, {w}, {dy})[0];
  };
  const at::Tensor a = noise({61, 45}, 10), b = noise({61, 45}, 11) * 1e-4;
  const at::Tensor sum = backward(a) + backward(b);
  for (const at::Tensor& dy : {a, b}) {
    const ComputeScope scope(Compute::kBf16);
    (kernels::linear(x, w) * dy).sum().backward();
  }
  EXPECT_TRUE(at::equal(w.grad(), sum));
  EXPECT_FALSE(at::equal(w.grad(), native(sum, Compute::kBf16)));
}

TEST(Compute, FastBfloat16IsThereWhereTheBestLevelMultipliesPairs) {
  const bool pairs = cpu::levels().front()->product_bf16 != nullptr;
  EXPECT_EQ(has_fast_bf16(), pairs && cpu::has_fast_product());
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    EXPECT_EQ(gemm::Packed({noise({40, 40})}, Compute::kBf16).holds_pairs(),
              level->product_bf16 != nullptr);
    EXPECT_FALSE(gemm::Packed({noise({40, 40})}, Compute::kFp16).holds_pairs());
  }
}

}  // namespace
}  // namespace stretto::kernels
