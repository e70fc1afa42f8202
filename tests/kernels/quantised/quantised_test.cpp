#include "kernels/quantised/quantised.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/quantised/reference.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise, testing::Threads;

/// First and number of rows or of outputs.
using Stretches = std::vector<std::pair<int64_t, int64_t>>;

/// Which weights, of any codes and scales.
struct CodesCase {
  int bits = 8;
  int64_t outputs = 75, inputs = 96, group = 0;
  bool symmetric = true, one_row_of_scales = false;

  std::string name() const {
    return std::to_string(bits) + " bits, [" + std::to_string(outputs) + ", " +
           std::to_string(inputs) + "], groups of " + std::to_string(group) +
           (symmetric ? "" : ", with zeros") + (one_row_of_scales ? ", one row of scales" : "");
  }
};

at::Tensor codes_in_range(at::IntArrayRef shape, int bits, uint64_t seed) {
  const double half = std::pow(2, bits - 1);
  // Wide enough that both ends are there.
  return (noise(shape, seed) * (0.6 * half)).round().clamp(-half, half - 1).to(at::kChar);
}

QuantisedWeights weights_of(const CodesCase& kind) {
  const int64_t group = kind.group == 0 ? kind.inputs : kind.group;
  const int64_t groups = (kind.inputs + group - 1) / group;
  const int64_t scale_rows = kind.one_row_of_scales ? 1 : kind.outputs;
  QuantisedWeights weights{.bits = kind.bits, .group = kind.group, .codes = {}, .scales = {}};
  weights.codes = codes_in_range({kind.outputs, kind.inputs}, kind.bits, 3);
  weights.scales = noise({scale_rows, groups}, 4) * 0.01;  // some are below 0
  if (!kind.symmetric) weights.zeros = codes_in_range({scale_rows, groups}, kind.bits, 5);
  return weights;
}

/// Every width of codes, whole rows and groups, depths and widths that fill no step and no panel.
std::vector<CodesCase> all_codes_cases() {
  std::vector<CodesCase> cases;
  for (const int bits : {2, 3, 4, 5, 6, 7, 8})
    for (const bool symmetric : {true, false}) {
      cases.push_back({.bits = bits, .symmetric = symmetric});
      cases.push_back({.bits = bits, .outputs = 33, .inputs = 70, .symmetric = symmetric});
      cases.push_back({.bits = bits, .inputs = 96, .group = 32, .symmetric = symmetric});
      cases.push_back({.bits = bits,
                       .outputs = 5,
                       .inputs = 83,
                       .group = 24,
                       .symmetric = symmetric,
                       .one_row_of_scales = true});
      cases.push_back({.bits = bits, .outputs = 1, .inputs = 3, .symmetric = symmetric});
    }
  return cases;
}

/// fp32 sums over groups against those in fp64.
void expect_sums(const at::Tensor& have, const at::Tensor& want, const std::string& what) {
  const double most = want.abs().max().item<double>();
  EXPECT_TRUE(at::allclose(have, want, 1e-5, 1e-6 * most + 1e-9)) << what;
}

TEST(QuantisedLinear, IsTheProductOfRoundedRowsAtEveryLevel) {
  for (const CodesCase& kind : all_codes_cases()) {
    const QuantisedWeights weights = weights_of(kind);
    const QuantisedMatrix matrix(weights);
    const at::Tensor bias = noise({kind.outputs}, 8);
    for (const int64_t rows : {1, 2, 13, 30}) {
      const at::Tensor x = noise({rows, kind.inputs}, 6);
      const at::Tensor want = reference::quantised_linear(x, weights, bias);
      const at::Tensor plain = reference::quantised_linear(x, weights);
      for (const cpu::Table* level : cpu::levels()) {
        const cpu::LevelGuard guard(*level);
        const std::string what =
            kind.name() + ", " + std::to_string(rows) + " rows at " + level->name;
        expect_sums(quantised_linear(x, matrix, bias), want, what);
        expect_sums(quantised_linear(x, matrix), plain, what + " without bias");
      }
    }
  }
}

// The largest codes on both sides: sums of neighbouring products that 16 bits would cut.
TEST(QuantisedLinear, SumsTheLargestCodesExactly) {
  for (const int bits : {2, 4, 6, 7, 8})
    for (const int sign : {-1, 1}) {
      const int64_t inputs = 520, outputs = 40;
      const int code = sign < 0 ? -(1 << (bits - 1)) : (1 << (bits - 1)) - 1;
      const QuantisedMatrix matrix(
          QuantisedWeights{.bits = bits,
                           .group = 0,
                           .codes = at::full({outputs, inputs}, code, at::kChar),
                           .scales = at::ones({outputs, 1})});
      for (const double x : {127.0, -127.0})
        for (const cpu::Table* level : cpu::levels()) {
          const cpu::LevelGuard guard(*level);
          const at::Tensor y = quantised_linear(at::full({14, inputs}, x), matrix);
          const double want = code * x * static_cast<double>(inputs);
          EXPECT_TRUE(at::equal(y, at::full_like(y, want)))
              << bits << " bits, " << code << " times " << x << " at " << level->name;
        }
    }
}

TEST(QuantisedLinear, HasTheSameBitsForAnyThreadsAndRowsBesideARow) {
  const at::Tensor x = noise({230, 96}, 6);
  for (const int bits : {4, 6, 8})
    for (const int64_t group : {0, 32}) {
      const CodesCase kind{.bits = bits, .outputs = 300, .group = group};
      const QuantisedMatrix matrix(weights_of(kind));
      const at::Tensor bias = noise({kind.outputs}, 8);
      for (const cpu::Table* level : cpu::levels()) {
        const cpu::LevelGuard guard(*level);
        at::Tensor all;
        {
          const Threads one(1);
          all = quantised_linear(x, matrix, bias);
        }
        const Threads three(3);
        EXPECT_TRUE(at::equal(quantised_linear(x, matrix, bias), all)) << kind.name();
        for (const auto& [from, count] : Stretches{{0, 1}, {7, 2}, {100, 11}, {3, 40}})
          EXPECT_TRUE(at::equal(quantised_linear(x.narrow(0, from, count), matrix, bias),
                                all.narrow(0, from, count)))
              << kind.name() << ", " << count << " rows at " << level->name;
      }
    }
}

TEST(QuantisedLinear, TakesAnyStretchOfOutputs) {
  const at::Tensor x = noise({20, 96}, 6);
  for (const int bits : {4, 8}) {
    const QuantisedMatrix matrix(weights_of({.bits = bits, .outputs = 140, .group = 32}));
    const at::Tensor bias = noise({140}, 8);
    for (const cpu::Table* level : cpu::levels()) {
      const cpu::LevelGuard guard(*level);
      const at::Tensor all = quantised_linear(x, matrix, bias);
      for (const auto& [first, count] : Stretches{{0, 140}, {64, 32}, {5, 100}, {31, 2}, {139, 1}})
        EXPECT_TRUE(
            at::equal(quantised_linear(x, matrix, bias.narrow(0, first, count), first, count),
                      all.narrow(1, first, count)))
            << first << " and " << count << " at " << level->name;
      EXPECT_EQ(quantised_linear(x, matrix, {}, 100).size(1), 40);
      EXPECT_EQ(quantised_linear(x.narrow(0, 0, 0), matrix).size(0), 0);
    }
  }
}

TEST(QuantisedLinear, TellsRowsThatAreNotFinite) {
  const QuantisedMatrix matrix(weights_of({.bits = 8, .outputs = 40}));
  at::Tensor x = noise({4, 96}, 6);
  x[1][5] = std::numeric_limits<float>::quiet_NaN();
  x[2][95] = -std::numeric_limits<float>::infinity();
  x[3].zero_();
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    const at::Tensor y = quantised_linear(x, matrix);
    EXPECT_TRUE(y[0].isfinite().all().item<bool>());
    EXPECT_TRUE(y[1].isnan().all().item<bool>()) << level->name;
    EXPECT_TRUE(y[2].isnan().all().item<bool>()) << level->name;
    EXPECT_TRUE(at::equal(y[3], at::zeros({40})));
  }
}

TEST(QuantisedLinear, IsNearTheProductOfTheNumbers) {
  const QuantisedMatrix matrix(weights_of({.bits = 8, .outputs = 200, .inputs = 512}));
  const at::Tensor x = noise({50, 512}, 6);
  const at::Tensor want = at::matmul(x, matrix.dense().t());
  const double error = (quantised_linear(x, matrix) - want).norm().item<double>();
  EXPECT_LT(error / want.norm().item<double>(), 0.012);  // a step of 8 bits is 1/127 of the largest
}

TEST(QuantisedLinear, OverwritesAllOfItsResult) {
  const QuantisedMatrix matrix(weights_of({.bits = 4, .outputs = 45, .group = 8}));
  const at::Tensor x = noise({17, 96}, 6), first = quantised_linear(x, matrix);
  const testing::PoisonedMemory poisoned;
  EXPECT_TRUE(at::equal(quantised_linear(x, matrix), first));
}

/// Weights of which three blocks of four are zero: 32 outputs times 32 inputs each.
QuantisedWeights weights_of_blocks(const CodesCase& kind) {
  QuantisedWeights weights = weights_of(kind);
  const at::Tensor zeros =
      kind.symmetric ? at::zeros_like(weights.scales, at::kChar) : weights.zeros;
  const at::Tensor of_inputs =
      zeros.repeat_interleave(kind.group == 0 ? kind.inputs : kind.group, 1)
          .narrow(1, 0, kind.inputs);
  for (int64_t o = 0; o < kind.outputs; o += 32)
    for (int64_t i = 0; i < kind.inputs; i += 32) {
      if ((o / 32 + i / 32) % 4 == 0) continue;
      const int64_t high = std::min<int64_t>(32, kind.outputs - o);
      const int64_t wide = std::min<int64_t>(32, kind.inputs - i);
      weights.codes.narrow(0, o, high)
          .narrow(1, i, wide)
          .copy_(of_inputs.narrow(0, o, high).narrow(1, i, wide));
    }
  return weights;
}

TEST(QuantisedLinear, LeavesEmptyBlocksOut) {
  for (const int bits : {4, 6, 8})
    for (const bool symmetric : {true, false})
      for (const int64_t group : {0, 32, 64}) {
        const CodesCase kind{
            .bits = bits, .outputs = 130, .inputs = 200, .group = group, .symmetric = symmetric};
        const QuantisedWeights weights = weights_of_blocks(kind);
        const QuantisedMatrix matrix(weights);
        ASSERT_NE(matrix.empty(), nullptr) << kind.name();
        EXPECT_EQ(matrix.group(), 32);
        EXPECT_TRUE(at::equal(matrix.dense(), reference::dense(weights))) << kind.name();
        const at::Tensor x = noise({14, kind.inputs}, 6), bias = noise({kind.outputs}, 8);
        const at::Tensor want = reference::quantised_linear(x, weights, bias);
        const at::Tensor ids = at::arange(kind.outputs, at::kLong);
        const QuantisedMatrix whole = matrix.selected(ids);
        EXPECT_EQ(whole.empty(), nullptr);
        for (const cpu::Table* level : cpu::levels()) {
          const cpu::LevelGuard guard(*level);
          const at::Tensor got = quantised_linear(x, matrix, bias);
          expect_sums(got, want, kind.name() + " at " + level->name);
          EXPECT_TRUE(at::equal(got, quantised_linear(x, whole, bias))) << "what is left out is 0";
        }
      }
}

TEST(QuantisedMatrix, KeepsTheGroupsOfWeightsWithoutEmptyBlocks) {
  const QuantisedMatrix matrix(weights_of({.bits = 8, .outputs = 96, .inputs = 128}));
  EXPECT_EQ(matrix.empty(), nullptr);
  EXPECT_EQ(matrix.group(), 128);
  // Groups that no block fits into stay, whatever is zero.
  const QuantisedMatrix odd(QuantisedWeights{.bits = 8,
                                             .group = 40,
                                             .codes = at::zeros({96, 120}, at::kChar),
                                             .scales = at::ones({96, 3})});
  EXPECT_EQ(odd.empty(), nullptr);
}

TEST(QuantisedMatrix, GivesItsNumbersBack) {
  for (const CodesCase& kind : all_codes_cases()) {
    const QuantisedWeights weights = weights_of(kind);
    const QuantisedMatrix matrix(weights);
    const at::Tensor want = reference::dense(weights);
    EXPECT_TRUE(at::equal(matrix.dense(), want)) << kind.name();
    EXPECT_TRUE(at::equal(matrix.dense(0, 1), want.narrow(0, 0, 1))) << kind.name();
    const int64_t last = kind.outputs - 1;
    const at::Tensor ids = at::tensor({last, int64_t{0}, last}, at::kLong);
    EXPECT_TRUE(at::equal(matrix.rows(ids), want.index_select(0, ids))) << kind.name();
  }
}

TEST(QuantisedMatrix, OfSomeRowsHasTheirResults) {
  const at::Tensor x = noise({9, 83}, 6);
  for (const int bits : {3, 8})
    for (const bool symmetric : {true, false}) {
      const QuantisedMatrix matrix(weights_of(
          {.bits = bits, .outputs = 90, .inputs = 83, .group = 24, .symmetric = symmetric}));
      const at::Tensor ids = at::tensor({3, 88, 40, 7, 7}, at::kLong);
      const QuantisedMatrix some = matrix.selected(ids);
      EXPECT_EQ(some.outputs(), 5);
      EXPECT_TRUE(
          at::equal(quantised_linear(x, some), quantised_linear(x, matrix).index_select(1, ids)))
          << bits << " bits";
    }
}

TEST(QuantisedMatrix, TakesTheMemoryOfItsBits) {
  const auto bytes = [](int bits, int64_t group) {
    return QuantisedMatrix(
               weights_of({.bits = bits, .outputs = 512, .inputs = 1024, .group = group}))
        .bytes();
  };
  constexpr int64_t kWeights = 512 * 1024;
  EXPECT_EQ(bytes(8, 0), kWeights + 512 * 4);
  EXPECT_EQ(bytes(4, 0), kWeights / 2 + 512 * 4);
  EXPECT_EQ(bytes(2, 0), bytes(4, 0));
  EXPECT_EQ(bytes(4, 32), kWeights / 2 + 512 * 32 * 4);
}

TEST(QuantisedMatrix, RefusesWhatItCannotHold) {
  EXPECT_EQ(QuantisedMatrix::problem(8, 100, 0), nullptr);
  EXPECT_EQ(QuantisedMatrix::problem(4, 96, 32), nullptr);
  EXPECT_EQ(QuantisedMatrix::problem(4, 20, 20), nullptr);
  EXPECT_NE(QuantisedMatrix::problem(9, 96, 0), nullptr);
  EXPECT_NE(QuantisedMatrix::problem(1, 96, 0), nullptr);
  EXPECT_NE(QuantisedMatrix::problem(4, 96, 12), nullptr);
  EXPECT_NE(QuantisedMatrix::problem(4, 96, -8), nullptr);
  EXPECT_NE(QuantisedMatrix::problem(8, 70000, 0), nullptr);
  EXPECT_EQ(QuantisedMatrix::problem(8, 70000, 64), nullptr);

  const CodesCase kind{.bits = 4, .group = 32, .symmetric = false};
  const auto refused = [&](auto&& change) {
    QuantisedWeights weights = weights_of(kind);
    change(weights);
    EXPECT_THROW(QuantisedMatrix{weights}, c10::Error);
  };
  refused([](QuantisedWeights& w) { w.codes[3][4] = 8; });
  refused([](QuantisedWeights& w) { w.zeros[0][0] = -9; });
  refused([](QuantisedWeights& w) { w.scales = w.scales.narrow(1, 0, 2); });
  refused([](QuantisedWeights& w) { w.zeros = w.zeros.narrow(0, 0, 5); });
  refused([](QuantisedWeights& w) { w.codes = w.codes.to(at::kInt); });
  refused([](QuantisedWeights& w) { w.bits = 3; });

  const QuantisedMatrix matrix(weights_of(kind));
  EXPECT_THROW(quantised_linear(noise({2, 95}), matrix), c10::Error);
  EXPECT_THROW(quantised_linear(noise({2, 96}).to(at::kDouble), matrix), c10::Error);
  EXPECT_THROW(quantised_linear(noise({2, 96}), matrix, noise({3})), c10::Error);
  EXPECT_THROW(quantised_linear(noise({2, 96}), matrix, {}, 70, 6), c10::Error);
  EXPECT_THROW(matrix.rows(at::full({1}, 75, at::kLong)), c10::Error);
  EXPECT_THROW(matrix.selected(at::full({1}, -1, at::kLong)), c10::Error);
}

TEST(QuantisedMatrix, SaysWhereItIsFaster) {
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    const bool is_portable = level == cpu::levels().back();
    const bool is_avx2 = std::string(level->name) == "avx2", has_bytes = cpu::has_byte_product();
    EXPECT_EQ(quantised_is_faster(4, 0), !is_portable) << level->name;
    EXPECT_EQ(quantised_is_faster(4, 32), !is_portable) << level->name;
    EXPECT_EQ(quantised_is_faster(4, 16), has_bytes) << level->name;
    EXPECT_EQ(quantised_is_faster(6, 64), is_avx2 || has_bytes) << level->name;
    EXPECT_EQ(quantised_is_faster(6, 32), has_bytes) << level->name;
    EXPECT_EQ(quantised_is_faster(8, 0), is_avx2 || has_bytes) << level->name;
    EXPECT_EQ(quantised_is_faster(8, 256), is_avx2 || has_bytes) << level->name;
    EXPECT_EQ(quantised_is_faster(8, 128), has_bytes) << level->name;
    EXPECT_FALSE(quantised_is_faster(9, 0));
  }
}

}  // namespace
}  // namespace stretto::kernels
