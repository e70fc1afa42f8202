#include "kernels/attention/padded_attention.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "kernels/reference.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using cases::third;
using testing::Inputs, testing::noise;

// Both compute in double.
const testing::Precision kExact{at::kDouble, 1e-9, 1e-11, 1e-11};

Offsets bounds(const std::vector<int>& values, int64_t longest) {
  return {.values = at::tensor(values, at::kInt), .max_length = longest};
}

/// The dropout rule applied to rows of weights, head by head, as a GPU kernel does it.
cuda::WeightsOf by_reference(const Dropout& dropout) {
  const cuda::DropWeights drop = [dropout](const at::Tensor& weights, const at::Tensor& row_keys,
                                           int64_t heads, int64_t queries) {
    std::vector<at::Tensor> factors;
    for (int64_t row = 0; row < weights.size(0); ++row)
      factors.push_back(reference::dropout_factors(dropout, row_keys.slice(0, row, row + 1),
                                                   (row / queries % heads) << 20, weights.size(1)));
    return weights * at::cat(factors);
  };
  return [drop](const cuda::PaddedScores& of) { return cuda::plain_weights(of, drop); };
}

TEST(PaddedAttention, SelfAttentionEqualsTheReferenceWithAnEmptySequence) {
  for (const bool causal : {false, true})
    for (const bool drop : {false, true}) {
      const Offsets offsets = bounds({0, 1, 1, 18, 24}, 17);
      const Dropout dropout = drop ? third(24) : Dropout{};
      testing::expect_equal(
          [&](const Inputs& in) {
            const auto parts = in[0].chunk(3, 1);
            return cuda::padded_attention(parts[0], parts[1], parts[2],
                                          {offsets, offsets, 3, causal, dropout},
                                          by_reference(dropout));
          },
          [&](const Inputs& in) {
            return reference::self_attention(in[0], {offsets, 3, causal, dropout});
          },
          {noise({24, 36})}, kExact);
    }
}

TEST(PaddedAttention, CrossAttentionEqualsTheReference) {
  const Offsets queries = bounds({0, 2, 9}, 0), keys = bounds({0, 13, 20}, 0);  // longest unknown
  testing::expect_equal(
      [&](const Inputs& in) {
        const auto parts = in[1].chunk(2, 1);
        return cuda::padded_attention(in[0], parts[0], parts[1],
                                      {queries, keys, 2, false, third(9)}, by_reference(third(9)));
      },
      [&](const Inputs& in) {
        return reference::cross_attention(in[0], in[1], {queries, keys, 2, third(9)});
      },
      {noise({9, 8}), noise({20, 16}, 8)}, kExact);
}

TEST(PaddedAttention, TooLongALongestChangesNothing) {
  const at::Tensor q = noise({6, 8}).to(at::kDouble);
  const Offsets exact = bounds({0, 4, 6}, 4), wide = bounds({0, 4, 6}, 11);
  EXPECT_TRUE(at::allclose(cuda::padded_attention(q, q, q, {exact, exact, 2, true, {}}, {}),
                           cuda::padded_attention(q, q, q, {wide, wide, 2, true, {}}, {})));
}

TEST(PaddedAttention, WeightsOfWhatIsNotSeenAreZeroWhateverTheScores) {
  const auto ids = [](const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); };
  at::Tensor scores = noise({2, 3, 4, 4});
  scores.select(1, 0).slice(2, 3).fill_(INFINITY);  // the padding key of the first sequence
  scores.select(1, 2).fill_(INFINITY);              // a sequence without keys
  scores.requires_grad_(true);
  const at::Tensor weights = cuda::plain_weights({.scores = scores,
                                                  .type = at::kFloat,
                                                  .query_starts = ids({0, 4, 5}),
                                                  .query_lengths = ids({4, 1, 2}),
                                                  .key_lengths = ids({3, 4, 0}),
                                                  .causal = false,
                                                  .dropout = {}},
                                                 {});
  const at::Tensor slopes = torch::autograd::grad({weights}, {scores}, {noise({2, 3, 4, 4}, 8)})[0];
  const auto are_zero = [&](int64_t sequence, const auto& part) {
    return part(weights.select(1, sequence)).eq(0).all().template item<bool>() &&
           part(slopes.select(1, sequence)).eq(0).all().template item<bool>();
  };
  EXPECT_TRUE(are_zero(0, [](const at::Tensor& x) { return x.slice(2, 3); }));
  EXPECT_TRUE(are_zero(1, [](const at::Tensor& x) { return x.slice(1, 1); }));
  EXPECT_TRUE(are_zero(2, [](const at::Tensor& x) { return x; }));
  EXPECT_TRUE(at::allclose(weights.sum(3).select(1, 0), at::ones({2, 4})));
  EXPECT_TRUE(slopes.isfinite().all().item<bool>());
}

/// Causal self-attention of `q` beside the reference.
void expect_causal_reference(const at::Tensor& q, const Offsets& offsets) {
  const at::Tensor got = cuda::padded_attention(q, q, q, {offsets, offsets, 2, true, {}}, {});
  const at::Tensor want = reference::self_attention(at::cat({q, q, q}, 1), {offsets, 2, true, {}});
  EXPECT_TRUE(at::allclose(got, want)) << offsets.values;
}

TEST(PaddedAttention, BatchesInTurnDoNotTakeEachOthersSequences) {
  const at::Tensor q = noise({9, 8}).to(at::kDouble);
  std::vector<Offsets> batches;
  for (int i = 1; i < 9; ++i) batches.push_back(bounds({0, i, 9}, i % 2 == 0 ? 9 : 0));
  for (int round = 0; round < 2; ++round)
    for (const Offsets& batch : batches)
      for (int layer = 0; layer < 2; ++layer) expect_causal_reference(q, batch);
  // The same values for other rows, and with another longest sequence.
  const Offsets empty_end = bounds({0, 4, 9, 9}, 5);
  expect_causal_reference(q, empty_end);
  expect_causal_reference(q, {.values = empty_end.values, .max_length = 17});
}

TEST(PaddedAttention, OffsetsChangedInPlaceAreReadAgain) {
  const at::Tensor q = noise({9, 8}).to(at::kDouble);
  const Offsets offsets = bounds({0, 4, 9}, 9);
  expect_causal_reference(q, offsets);
  offsets.values.copy_(at::tensor({0, 7, 9}, at::kInt));
  expect_causal_reference(q, offsets);
}

TEST(PaddedAttention, WhatInferenceModeMadeIsNotKeptForTraining) {
  const at::Tensor q = noise({9, 8}).to(at::kDouble);
  const Offsets offsets = bounds({0, 4, 9}, 9);
  {
    const c10::InferenceMode inference;
    expect_causal_reference(q, offsets);
    expect_causal_reference(q, bounds({0, 4, 9}, 9));
  }
  const at::Tensor leaf = q.clone().requires_grad_(true);
  const at::Tensor out =
      cuda::padded_attention(leaf, leaf, leaf, {offsets, offsets, 2, true, {}}, {});
  EXPECT_TRUE(torch::autograd::grad({out.sum()}, {leaf})[0].isfinite().all().item<bool>());
  const c10::InferenceMode inference;
  expect_causal_reference(q, offsets);
}

}  // namespace
}  // namespace stretto::kernels
