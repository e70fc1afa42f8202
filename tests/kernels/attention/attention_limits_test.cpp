// How far attention reaches, and how large its scores grow. That both follow the reference, with
// gradients, is in cases.h.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/kernels.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kHeads = 4, kKeys = 2, kWidth = 6, kRowWidth = (kHeads + 2 * kKeys) * kWidth;

SelfAttention within(const AttentionLimits& limits, const std::vector<int>& bounds) {
  return {.offsets = cases::lengths(bounds),
          .num_heads = kHeads,
          .causal = true,
          .dropout = {},
          .num_kv_heads = kKeys,
          .limits = limits};
}

TEST(AttentionLimits, AWindowReadsTheLastKeysAndNoOthers) {
  for (const int64_t window : {1, 2, 33, 50}) {
    const at::Tensor qkv = noise({70, kRowWidth});
    const at::Tensor before = self_attention(qkv, within({.window = window}, {0, 70}));
    for (const int64_t changed : {0, 20, 40, 69}) {
      at::Tensor other = qkv.clone();
      other[changed] += 1;
      const at::Tensor moved =
          (self_attention(other, within({.window = window}, {0, 70})) - before).abs().amax(1);
      for (int64_t row = 0; row < 70; ++row) {
        const bool may_move = row >= changed && row < changed + window;
        EXPECT_EQ(moved[row].item<float>() > 0, may_move)
            << "window " << window << ", row " << row << ", changed " << changed;
      }
    }
  }
}

TEST(AttentionLimits, AWindowOfOneGivesEachTokenItsOwnValue) {
  const at::Tensor qkv = noise({9, kRowWidth});
  const at::Tensor got = self_attention(qkv, within({.window = 1}, {0, 4, 9}));
  const at::Tensor own = qkv.slice(1, (kHeads + kKeys) * kWidth)
                             .reshape({9, kKeys, kWidth})
                             .repeat_interleave(kHeads / kKeys, 1)
                             .reshape({9, -1});
  EXPECT_TRUE(at::allclose(got, own, 1e-6, 1e-6));
}

TEST(AttentionLimits, LimitsThatNothingReachesChangeNoBit) {
  const at::Tensor qkv = noise({70, kRowWidth});
  const std::vector<int> bounds{0, 30, 70};
  const at::Tensor plain = self_attention(qkv, within({}, bounds));
  EXPECT_TRUE(at::equal(self_attention(qkv, within({.window = 40}, bounds)), plain));
  EXPECT_FALSE(at::equal(self_attention(qkv, within({.window = 39}, bounds)), plain));
  EXPECT_TRUE(
      at::allclose(self_attention(qkv, within({.softcap = 1e6}, bounds)), plain, 1e-4, 1e-5));
  EXPECT_FALSE(
      at::allclose(self_attention(qkv, within({.softcap = 0.1}, bounds)), plain, 1e-4, 1e-5));
}

TEST(AttentionLimits, PackedSequencesHaveTheBitsOfEachAlone) {
  const at::Tensor qkv = noise({90, kRowWidth});
  for (const AttentionLimits& limits :
       {AttentionLimits{.window = 5}, AttentionLimits{.window = 40, .softcap = 3}}) {
    const at::Tensor together = self_attention(qkv, within(limits, {0, 7, 8, 90}));
    const auto alone = [&](int64_t begin, int64_t end) {
      return self_attention(qkv.slice(0, begin, end),
                            within(limits, {0, static_cast<int>(end - begin)}));
    };
    EXPECT_TRUE(at::equal(together, at::cat({alone(0, 7), alone(7, 8), alone(8, 90)})));
  }
}

TEST(AttentionLimits, StepsOfDecodingAreTheRowsOfTheWholeSequence) {
  constexpr int64_t kSteps = 40;
  for (const AttentionLimits& limits :
       {AttentionLimits{.window = 7}, AttentionLimits{.softcap = 0.9}, AttentionLimits{.window = 1},
        AttentionLimits{.window = 16, .softcap = 5}}) {
    for (const cpu::Table* level : cpu::levels()) {
      const cpu::LevelGuard guard(*level);
      const at::Tensor qkv = noise({kSteps, kRowWidth});
      const at::Tensor want = self_attention(qkv, within(limits, {0, kSteps}));
      const int64_t q = kHeads * kWidth, e = kKeys * kWidth;
      // What no step has written is no number.
      at::Tensor keys = at::full({kSteps, 1, e}, NAN), values = at::full({kSteps, 1, e}, NAN);
      at::Tensor wide_keys = at::zeros({kSteps, 1, e}, at::kDouble),
                 wide_values = wide_keys.clone();
      const at::Tensor lineage = at::zeros({1, kSteps}, at::kInt);
      for (int64_t t = 0; t < kSteps; ++t) {
        const auto parts = qkv.slice(0, t, t + 1).split_with_sizes({q, e, e}, 1);
        const at::Tensor got = decode_self_attention(parts[0].contiguous(), parts[1].contiguous(),
                                                     parts[2].contiguous(), keys, values, lineage,
                                                     t, kHeads, {}, {}, limits);
        EXPECT_TRUE(at::allclose(got[0], want[t], 1e-4, 1e-5)) << level->name << ", step " << t;
        const auto wide = qkv.slice(0, t, t + 1).to(at::kDouble).split_with_sizes({q, e, e}, 1);
        const at::Tensor plain = decode_self_attention(
            wide[0], wide[1], wide[2], wide_keys, wide_values, lineage, t, kHeads, {}, {}, limits);
        EXPECT_TRUE(at::allclose(got.to(at::kDouble), plain, 1e-4, 1e-5)) << "step " << t;
      }
    }
  }
}

TEST(AttentionLimits, RefuseWhatDoesNotGoTogether) {
  const at::Tensor qkv = noise({5, kRowWidth});
  SelfAttention options = within({.window = 2}, {0, 5});
  options.causal = false;
  EXPECT_THROW(self_attention(qkv, options), c10::Error);
  options = within({.softcap = 2}, {0, 5});
  options.bias = {.table = noise({kHeads, 5}), .zero = 4};
  EXPECT_THROW(self_attention(qkv, options), c10::Error);
  options = within({.window = 2}, {0, 5});
  options.bias = {.table = noise({5, kHeads, 3}), .zero = 2};
  EXPECT_THROW(self_attention(qkv, options), c10::Error);
  options = within({.window = -1}, {0, 5});
  EXPECT_THROW(self_attention(qkv, options), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
