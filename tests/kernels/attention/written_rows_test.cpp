// Which rows attention writes: all of every sequence, on memory that holds anything, and zeroes
// where a row belongs to no sequence.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::Inputs;
using testing::noise;
using testing::PoisonedMemory;

/// Sequences without keys or without queries, and heads that no vector divides, among them.
std::vector<cases::Case> kinds_of_attention() {
  const std::vector<int> queries{0, 1, 1, 18, 58}, keys{0, 0, 17, 20, 59};
  std::vector<cases::Case> all = cases::attention(queries, keys, 40);
  for (const auto& more :
       {cases::shared_attention(queries, keys, 20),
        cases::attention_with_bias_of_queries(queries, 20), cases::limited_attention(queries, 20)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(AttentionRows, NoNumberOfASequenceIsReadBeforeItIsWritten) {
  for (const cpu::Table* level : cpu::levels())
    for (const cases::Case& one : kinds_of_attention()) {
      SCOPED_TRACE(one.name + " at level " + level->name);
      const cpu::LevelGuard guard(*level);
      const Inputs want = cases::value_and_gradients(one);
      const PoisonedMemory poisoned;
      ASSERT_TRUE(at::empty({1}).isnan().item<bool>());
      const Inputs got = cases::value_and_gradients(one);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
    }
}

TEST(AttentionRows, ThoseOfNoSequenceAreZero) {
  const PoisonedMemory poisoned;
  const at::Tensor qkv = noise({12, 24}).requires_grad_(true);
  const at::Tensor out = self_attention(qkv, {cases::lengths({2, 5, 9}), 2, true, {}});
  const at::Tensor slope = torch::autograd::grad({out}, {qkv}, {noise({12, 8}, 3)})[0];
  for (const at::Tensor& rows : {out.detach(), slope}) {
    EXPECT_EQ(at::cat({rows.slice(0, 0, 2), rows.slice(0, 9, 12)}).abs().max().item<float>(), 0.0f);
    EXPECT_GT(rows.abs().max().item<float>(), 0.0f);
  }
}

TEST(AttentionRows, ThoseOfNoSequenceAreZeroOnEitherSideOfCrossAttention) {
  const PoisonedMemory poisoned;
  const at::Tensor q = noise({9, 8}).requires_grad_(true);
  const at::Tensor kv = noise({11, 16}, 8).requires_grad_(true);
  const CrossAttention options{.query_offsets = cases::lengths({0, 4, 7}),
                               .key_offsets = cases::lengths({1, 6, 11}),
                               .num_heads = 2,
                               .dropout = {}};
  const at::Tensor out = cross_attention(q, kv, options);
  const auto slopes = torch::autograd::grad({out}, {q, kv}, {noise({9, 8}, 3)});
  for (const at::Tensor& none :
       {out.detach().slice(0, 7), slopes[0].slice(0, 7), slopes[1].slice(0, 0, 1)})
    EXPECT_EQ(none.abs().max().item<float>(), 0.0f);
  EXPECT_TRUE(at::isfinite(slopes[1]).all().item<bool>());
}

}  // namespace
}  // namespace stretto::kernels
