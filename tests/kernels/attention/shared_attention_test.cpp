// Attention whose heads of queries share keys, and whose scores have a bias of distances, against
// formulas written out here and against attention that is given every head's keys.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/padded_attention.h"
#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kHeads = 6, kWidth = 5;

/// (q, k, v) rows in which each head of keys is there once for every head of queries.
at::Tensor with_all_keys(const at::Tensor& qkv, int64_t kv_heads) {
  const at::Tensor heads = qkv.view({qkv.size(0), kHeads + 2 * kv_heads, kWidth});
  const auto parts = heads.split_with_sizes({kHeads, kv_heads, kv_heads}, 1);
  const int64_t sharers = kHeads / kv_heads;
  return at::cat({parts[0], parts[1].repeat_interleave(sharers, 1),
                  parts[2].repeat_interleave(sharers, 1)},
                 1)
      .flatten(1);
}

at::Tensor shared_rows(int64_t rows, int64_t kv_heads) {
  return noise({rows, (kHeads + 2 * kv_heads) * kWidth});
}

TEST(SharedAttention, EqualsAttentionThatIsGivenEveryHeadsKeys) {
  for (const cpu::Table* level : cpu::levels())
    for (const int64_t kv_heads : {1, 2, 3}) {
      const cpu::LevelGuard guard(*level);
      const at::Tensor qkv = shared_rows(40, kv_heads);
      const SelfAttention all{.offsets = cases::lengths({0, 7, 7, 40}),
                              .num_heads = kHeads,
                              .causal = true,
                              .dropout = cases::third(40)};
      SelfAttention shared = all;
      shared.num_kv_heads = kv_heads;
      // The same products in the same order: the same bits.
      EXPECT_TRUE(
          at::equal(self_attention(qkv, shared), self_attention(with_all_keys(qkv, kv_heads), all)))
          << level->name << kv_heads;
    }
}

TEST(SharedAttention, AsManyHeadsOfKeysAsOfQueriesChangeNoBit) {
  const at::Tensor qkv = noise({40, 3 * kHeads * kWidth});
  const SelfAttention plain{.offsets = cases::lengths({0, 7, 40}), .num_heads = kHeads};
  SelfAttention told = plain;
  told.num_kv_heads = kHeads;
  EXPECT_TRUE(at::equal(self_attention(qkv, told), self_attention(qkv, plain)));
}

TEST(SharedAttention, WeightsOfAlignmentsAreTheMeanOverAllHeads) {
  const at::Tensor q = noise({9, kHeads * kWidth}), kv = noise({13, 2 * 2 * kWidth}, 8);
  const CrossAttention options{.query_offsets = cases::lengths({0, 2, 9}),
                               .key_offsets = cases::lengths({0, 5, 13}),
                               .num_heads = kHeads,
                               .dropout = {},
                               .num_kv_heads = 2};
  const at::Tensor want =
      reference::cross_attention_weights(q.to(at::kDouble), kv.to(at::kDouble), options);
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    const at::Tensor got = cross_attention_weights(q, kv, options);
    EXPECT_TRUE(at::allclose(got.to(at::kDouble), want, 1e-4, 1e-6)) << level->name;
    EXPECT_TRUE(at::allclose(got.slice(0, 0, 10).view({2, 5}).sum(1), at::ones({2})));
  }
}

/// One number after the other, one sequence.
double plain_output(const at::Tensor& qkv, const at::Tensor& table, int64_t zero, bool causal,
                    int64_t i, int64_t head, int64_t column) {
  const at::Tensor x = qkv.to(at::kDouble).contiguous();
  const double* rows = x.const_data_ptr<double>();
  const int64_t width = x.size(1), kv_heads = (width / kWidth - kHeads) / 2;
  const int64_t group = head / (kHeads / kv_heads);
  double sum = 0, value = 0;
  for (int64_t j = 0; j < (causal ? i + 1 : x.size(0)); ++j) {
    double score = 0;
    for (int64_t c = 0; c < kWidth; ++c)
      score +=
          rows[i * width + head * kWidth + c] * rows[j * width + (kHeads + group) * kWidth + c];
    // A bias of queries has its ends for all distances beyond them.
    const at::Tensor line = table.dim() == 3 ? table[i][head] : table[head];
    const int64_t distance = std::clamp<int64_t>(zero + j - i, 0, line.size(0) - 1);
    score = score / std::sqrt(double(kWidth)) + line[distance].item<double>();
    sum += std::exp(score);
    value += std::exp(score) * rows[j * width + (kHeads + kv_heads + group) * kWidth + column];
  }
  return value / sum;
}

TEST(DistanceBias, IsAddedToTheScaledScoreOfEachPair) {
  constexpr int64_t kRows = 11, kZero = 12;
  const at::Tensor qkv = shared_rows(kRows, 2), table = noise({kHeads, 24}, 8) * 2;
  for (const auto type : {at::kFloat, at::kDouble})
    for (const bool causal : {false, true}) {
      const at::Tensor got = self_attention(qkv.to(type), {.offsets = cases::lengths({0, kRows}),
                                                           .num_heads = kHeads,
                                                           .causal = causal,
                                                           .dropout = {},
                                                           .num_kv_heads = 2,
                                                           .bias = {table.to(type), kZero}});
      for (const int64_t i : {0, 4, 10})
        for (const int64_t head : {0, 2, 3, 5})
          EXPECT_NEAR(got[i][head * kWidth + 2].item<double>(),
                      plain_output(qkv, table, kZero, causal, i, head, 2), 1e-5)
              << i << ' ' << head << ' ' << causal;
    }
}

TEST(DistanceBias, OfQueriesIsClippedAtItsEnds) {
  constexpr int64_t kRows = 11, kZero = 3;
  const at::Tensor qkv = shared_rows(kRows, 2);
  for (const auto type : {at::kFloat, at::kDouble})
    for (const bool causal : {false, true}) {
      const at::Tensor table = noise({kRows, kHeads, kZero + (causal ? 1 : 4)}, 8) * 2;
      for (const cpu::Table* level : cpu::levels()) {
        const cpu::LevelGuard guard(*level);
        const at::Tensor got = self_attention(qkv.to(type), {.offsets = cases::lengths({0, kRows}),
                                                             .num_heads = kHeads,
                                                             .causal = causal,
                                                             .dropout = {},
                                                             .num_kv_heads = 2,
                                                             .bias = {table.to(type), kZero}});
        for (const int64_t i : {0, 2, 6, 10})
          for (const int64_t head : {0, 2, 3, 5})
            EXPECT_NEAR(got[i][head * kWidth + 2].item<double>(),
                        plain_output(qkv, table, kZero, causal, i, head, 2), 1e-5)
                << level->name << ' ' << i << ' ' << head << ' ' << causal;
      }
    }
}

TEST(DistanceBias, OfQueriesThatAreAlikeIsThatOfATable) {
  constexpr int64_t kRows = 40, kZero = 33;
  const at::Tensor qkv = shared_rows(kRows, 3), table = noise({kHeads, 2 * kZero + 1}, 8);
  const auto attend = [&](const at::Tensor& numbers) {
    return self_attention(qkv, {.offsets = cases::lengths({0, 7, 8, kRows}),
                                .num_heads = kHeads,
                                .causal = false,
                                .dropout = {},
                                .num_kv_heads = 3,
                                .bias = {numbers, kZero}});
  };
  const at::Tensor of_queries = table.unsqueeze(0).repeat({kRows, 1, 1});
  EXPECT_TRUE(at::allclose(attend(of_queries), attend(table), 1e-6, 1e-7));
}

// Its gradients in bfloat16 are those of the rounded rows, within the rounding.
TEST(DistanceBias, OfQueriesHasGradientsInHalfPrecision) {
  const at::Tensor qkv = shared_rows(30, 2), table = noise({30, kHeads, 5}, 8);
  const auto gradients = [&](Compute compute) {
    const ComputeScope scope(compute);
    const at::Tensor x = qkv.clone().requires_grad_(true), y = table.clone().requires_grad_(true);
    const at::Tensor out = self_attention(x, {.offsets = cases::lengths({0, 12, 30}),
                                              .num_heads = kHeads,
                                              .causal = false,
                                              .dropout = {},
                                              .num_kv_heads = 2,
                                              .bias = {y, 2}});
    return torch::autograd::grad({out}, {x, y}, {noise({30, kHeads * kWidth}, 5)});
  };
  const auto exact = gradients(Compute::kFp32), half = gradients(Compute::kBf16);
  for (size_t i = 0; i < exact.size(); ++i) {
    const double error = (half[i] - exact[i]).norm().item<double>();
    EXPECT_GT(error, 0) << i;
    EXPECT_LT(error, 0.03 * exact[i].norm().item<double>()) << i;
  }
}

TEST(DistanceBias, OfQueriesNeedsARowForEachAndDistanceZero) {
  const at::Tensor qkv = noise({9, 3 * kHeads * kWidth});
  const auto attend = [&](std::vector<int64_t> sizes, int64_t zero) {
    return self_attention(qkv, {.offsets = cases::lengths({0, 9}),
                                .num_heads = kHeads,
                                .causal = true,
                                .dropout = {},
                                .bias = {at::zeros(sizes), zero}});
  };
  EXPECT_NO_THROW(attend({9, kHeads, 3}, 2));
  EXPECT_THROW(attend({8, kHeads, 3}, 2), c10::Error);
  EXPECT_THROW(attend({9, kHeads - 1, 3}, 2), c10::Error);
  EXPECT_THROW(attend({9, kHeads, 3}, 3), c10::Error);
  EXPECT_THROW(attend({9, kHeads, 3}, -1), c10::Error);
}

TEST(DistanceBias, OfEqualNumbersChangesNothing) {
  const at::Tensor qkv = noise({30, 3 * kHeads * kWidth});
  SelfAttention options{.offsets = cases::lengths({0, 12, 30}), .num_heads = kHeads};
  const at::Tensor plain = self_attention(qkv, options);
  options.bias = {at::full({kHeads, 35}, 1.5), 17};
  EXPECT_TRUE(at::allclose(self_attention(qkv, options), plain, 1e-4, 1e-6));
}

TEST(DistanceBias, OfPackedSequencesIsThatOfEachSequenceAlone) {
  const at::Tensor qkv = shared_rows(40, 3), table = noise({kHeads, 80}, 8);
  const auto attend = [&](int begin, int end, const std::vector<int>& bounds) {
    return self_attention(qkv.slice(0, begin, end), {.offsets = cases::lengths(bounds),
                                                     .num_heads = kHeads,
                                                     .causal = false,
                                                     .dropout = {},
                                                     .num_kv_heads = 3,
                                                     .bias = {table, 39}});
  };
  EXPECT_TRUE(
      at::equal(attend(0, 40, {0, 7, 8, 40}),
                at::cat({attend(0, 7, {0, 7}), attend(7, 8, {0, 1}), attend(8, 40, {0, 32})})));
}

TEST(DistanceBias, OfATableThatIsTooShortIsRefused) {
  const at::Tensor qkv = noise({9, 3 * kHeads * kWidth});
  const auto attend = [&](bool causal, int64_t columns, int64_t zero) {
    return self_attention(qkv, {.offsets = cases::lengths({0, 9}),
                                .num_heads = kHeads,
                                .causal = causal,
                                .dropout = {},
                                .bias = {at::zeros({kHeads, columns}), zero}});
  };
  EXPECT_NO_THROW(attend(true, 9, 8));
  EXPECT_NO_THROW(attend(false, 17, 8));
  EXPECT_THROW(attend(true, 9, 7), c10::Error);
  EXPECT_THROW(attend(false, 16, 8), c10::Error);
  EXPECT_THROW(self_attention(qkv, {.offsets = cases::lengths({0, 9}),
                                    .num_heads = kHeads,
                                    .causal = true,
                                    .dropout = {},
                                    .bias = {at::zeros({kHeads - 1, 9}), 8}}),
               c10::Error);
}

TEST(SharedAttention, HeadsThatDoNotDivideAreRefused) {
  const CrossAttention options{.query_offsets = cases::lengths({0, 4}),
                               .key_offsets = cases::lengths({0, 4}),
                               .num_heads = kHeads,
                               .dropout = {},
                               .num_kv_heads = 4};
  EXPECT_THROW(
      self_attention(shared_rows(4, 4),
                     {.offsets = cases::lengths({0, 4}), .num_heads = kHeads, .num_kv_heads = 4}),
      c10::Error);
  EXPECT_THROW(cross_attention(noise({4, 30}), noise({4, 40}), options), c10::Error);
}

/// Decodes some lanes step by step, and compares each step with causal attention to the end of it.
/// @param table  [H, D], or [lanes, steps, H, D]: a bias of queries
void expect_decoding_equals(const at::Tensor& table, int64_t zero, int64_t steps) {
  constexpr int64_t kLanes = 3, kSpare = 2;
  const bool of_queries = table.dim() == 4;
  for (const cpu::Table* level : cpu::levels())
    for (const auto type : {at::kFloat, at::kDouble})
      for (const int64_t kv_heads : {1, 2, 6}) {
        const cpu::LevelGuard guard(*level);
        const int64_t narrow = kv_heads * kWidth;
        const at::Tensor qkv = noise({kLanes, steps, kHeads * kWidth + 2 * narrow}).to(type);
        const at::Tensor biases = table.to(type);
        at::Tensor keys = at::zeros({steps + kSpare, kLanes, narrow}, type), values = keys.clone();
        const at::Tensor lineage =
            at::arange(kLanes, at::kInt).unsqueeze(1).repeat({1, steps + kSpare});
        for (int64_t t = 0; t < steps; ++t) {
          const auto parts =
              qkv.select(1, t).split_with_sizes({kHeads * kWidth, narrow, narrow}, 1);
          const at::Tensor got =
              decode_self_attention(parts[0], parts[1], parts[2], keys, values, lineage, t, kHeads,
                                    {of_queries ? biases.select(1, t) : biases, zero});
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            const at::Tensor want = reference::self_attention(
                qkv[lane].slice(0, 0, t + 1),
                {.offsets = cases::lengths({0, static_cast<int>(t) + 1}),
                 .num_heads = kHeads,
                 .causal = true,
                 .dropout = {},
                 .num_kv_heads = kv_heads,
                 .bias = {of_queries ? biases[lane].slice(0, 0, t + 1) : biases, zero}});
            EXPECT_TRUE(at::allclose(got[lane], want[t], 1e-4, 1e-5))
                << level->name << kv_heads << ' ' << t << lane;
          }
        }
      }
}

TEST(SharedAttention, DecodingStepByStepEqualsCausalAttention) {
  expect_decoding_equals(noise({kHeads, 8}, 8), 7, 6);
}

TEST(SharedAttention, DecodingWithABiasOfQueriesEqualsCausalAttention) {
  expect_decoding_equals(noise({3, 7, kHeads, 3}, 8), 2, 7);  // longer than the columns
}

// What a GPU takes for a bias, and where keys are shared, runs here as well.
TEST(PaddedAttention, WithABiasOfQueriesEqualsTheReference) {
  const Offsets offsets{.values = at::tensor({0, 1, 1, 18, 24}, at::kInt), .max_length = 17};
  for (const int64_t zero : {0, 1, 4})
    for (const bool causal : {false, true}) {
      const SelfAttention options{
          .offsets = offsets, .num_heads = kHeads, .causal = causal, .dropout = {}};
      testing::expect_equal(
          [&](const testing::Inputs& in) {
            const auto parts = in[0].chunk(3, 1);
            return cuda::padded_attention(
                parts[0], parts[1], parts[2],
                {offsets, offsets, kHeads, causal, {}, {.table = in[1], .zero = zero}}, {});
          },
          [&](const testing::Inputs& in) {
            SelfAttention biased = options;
            biased.bias = {.table = in[1], .zero = zero};
            return reference::self_attention(in[0], biased);
          },
          {noise({24, 3 * kHeads * kWidth}), noise({24, kHeads, zero + (causal ? 1 : 4)}, 8)},
          {at::kDouble, 1e-9, 1e-11, 1e-11});
    }
}

TEST(PaddedAttention, WithABiasAndSharedKeysEqualsTheReference) {
  const Offsets offsets{.values = at::tensor({0, 1, 1, 18, 24}, at::kInt), .max_length = 17};
  for (const bool causal : {false, true}) {
    const SelfAttention options{.offsets = offsets,
                                .num_heads = kHeads,
                                .causal = causal,
                                .dropout = {},
                                .num_kv_heads = 2};
    testing::expect_equal(
        [&](const testing::Inputs& in) {
          const auto parts =
              in[0].view({24, kHeads + 4, kWidth}).split_with_sizes({kHeads, 2, 2}, 1);
          return cuda::padded_attention(
              parts[0].flatten(1), cuda::shared_by(parts[1], kHeads).flatten(1),
              cuda::shared_by(parts[2], kHeads).flatten(1),
              {offsets, offsets, kHeads, causal, {}, {.table = in[1], .zero = 16}}, {});
        },
        [&](const testing::Inputs& in) {
          SelfAttention biased = options;
          biased.bias = {.table = in[1], .zero = 16};
          return reference::self_attention(in[0], biased);
        },
        {shared_rows(24, 2), noise({kHeads, causal ? 17 : 33}, 8)},
        {at::kDouble, 1e-9, 1e-11, 1e-11});
  }
}

}  // namespace
}  // namespace stretto::kernels
