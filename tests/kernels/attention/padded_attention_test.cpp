#include "kernels/attention/padded_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

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
cuda::DropWeights by_reference(const Dropout& dropout) {
  return [dropout](const at::Tensor& weights, const at::Tensor& row_keys, int64_t heads,
                   int64_t queries) {
    std::vector<at::Tensor> factors;
    for (int64_t row = 0; row < weights.size(0); ++row)
      factors.push_back(reference::dropout_factors(dropout, row_keys.slice(0, row, row + 1),
                                                   (row / queries % heads) << 20, weights.size(1)));
    return weights * at::cat(factors);
  };
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

}  // namespace
}  // namespace stretto::kernels
