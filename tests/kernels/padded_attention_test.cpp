#include "kernels/cuda/padded_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "kernels/reference.h"

namespace stretto::kernels {
namespace {

at::Tensor noise(at::IntArrayRef shape) {
  return at::randn(shape, at::detail::createCPUGenerator(11), at::kDouble).requires_grad_(true);
}

Offsets bounds(const std::vector<int>& values, int64_t longest) {
  return {.values = at::tensor(values, at::kInt), .max_length = longest};
}

Dropout third(int64_t rows) {
  return {.p = 0.3, .key = 0x51ed2705u, .row_keys = at::arange(rows, at::kLong) * 104729 + 5};
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

void expect_equal(const at::Tensor& got, const at::Tensor& want,
                  const std::vector<at::Tensor>& in) {
  EXPECT_TRUE(at::allclose(got, want, 1e-9, 1e-11));
  const at::Tensor slope = at::sin(at::arange(want.numel(), at::kDouble)).view(want.sizes());
  const auto got_slopes = torch::autograd::grad({got}, in, {slope});
  const auto want_slopes = torch::autograd::grad({want}, in, {slope});
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_TRUE(at::allclose(got_slopes[i], want_slopes[i], 1e-9, 1e-11)) << "gradient " << i;
}

TEST(PaddedAttention, SelfAttentionEqualsTheReferenceWithAnEmptySequence) {
  for (const bool causal : {false, true})
    for (const bool drop : {false, true}) {
      const at::Tensor qkv = noise({24, 36});
      const Offsets offsets = bounds({0, 1, 1, 18, 24}, 17);
      const Dropout dropout = drop ? third(24) : Dropout{};
      const auto parts = qkv.chunk(3, 1);
      expect_equal(
          cuda::padded_attention(parts[0], parts[1], parts[2],
                                 {offsets, offsets, 3, causal, dropout}, by_reference(dropout)),
          reference::self_attention(qkv, {offsets, 3, causal, dropout}), {qkv});
    }
}

TEST(PaddedAttention, CrossAttentionEqualsTheReference) {
  const at::Tensor q = noise({9, 8}), kv = noise({20, 16});
  const Offsets queries = bounds({0, 2, 9}, 0), keys = bounds({0, 13, 20}, 0);  // longest unknown
  const auto parts = kv.chunk(2, 1);
  expect_equal(cuda::padded_attention(q, parts[0], parts[1], {queries, keys, 2, false, third(9)},
                                      by_reference(third(9))),
               reference::cross_attention(q, kv, {queries, keys, 2, third(9)}), {q, kv});
}

TEST(PaddedAttention, TooLongALongestChangesNothing) {
  const at::Tensor q = noise({6, 8});
  const Offsets exact = bounds({0, 4, 6}, 4), wide = bounds({0, 4, 6}, 11);
  EXPECT_TRUE(at::allclose(cuda::padded_attention(q, q, q, {exact, exact, 2, true, {}}, {}),
                           cuda::padded_attention(q, q, q, {wide, wide, 2, true, {}}, {})));
}

}  // namespace
}  // namespace stretto::kernels
