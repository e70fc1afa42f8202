#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention/placed.h"
#include "kernels/cpu/table.h"
#include "kernels/kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kPlacedHeads = 4, kPlacedWidth = 16, kPlacedHeadWidth = 4, kPlacedSteps = 5;

/// How scores are made beside the products.
struct ScoreKind {
  std::string name;
  bool has_bias = false;
  AttentionLimits limits = {};

  DistanceBias bias() const {
    if (!has_bias) return {};
    return {.table = noise({kPlacedHeads, 9}, 31), .zero = 8};
  }
};

const std::vector<ScoreKind>& score_kinds() {
  static const std::vector<ScoreKind> kinds{{.name = "plain"},
                                            {.name = "bias", .has_bias = true},
                                            {.name = "window", .limits = {.window = 2}},
                                            {.name = "softcap", .limits = {.softcap = 2.0}}};
  return kinds;
}

/// The same steps in both forms: slots of steps, and rows anywhere. In the middle, lanes 1 and 2
/// begin to continue what lane 0 was.
class BothForms {
 public:
  static constexpr int64_t kLanes = 3;

  explicit BothForms(int64_t kv_heads) : row_(kv_heads * kPlacedHeadWidth) {
    k_cache_ = at::zeros({kPlacedSteps, kLanes, row_});
    v_cache_ = at::zeros({kPlacedSteps, kLanes, row_});
    lineage_ = at::zeros({kLanes, kPlacedSteps}, at::kInt);
    // Nobody reads what was not written.
    keys_ = at::full({kRows, row_}, std::numeric_limits<float>::quiet_NaN());
    values_ = keys_.clone();
  }

  void expect_equal_steps(const ScoreKind& kind) {
    for (int64_t t = 0; t < kPlacedSteps; ++t) {
      if (t == 3) {
        lineage_ = lineage_.index_select(0, at::tensor({0, 0, 0}, at::kLong));
        histories_[1] = histories_[2] = histories_[0];
      }
      for (int32_t lane = 0; lane < kLanes; ++lane) {
        const auto row = static_cast<int32_t>(kRows - 1 - (t * kLanes + lane));
        histories_[static_cast<size_t>(lane)].push_back(row);
      }
      lineage_.select(1, t).copy_(at::arange(kLanes, at::kInt));
      const auto seed = static_cast<uint64_t>(100 + 10 * t);
      const at::Tensor q = noise({kLanes, kPlacedWidth}, seed);
      const at::Tensor k = noise({kLanes, row_}, seed + 1), v = noise({kLanes, row_}, seed + 2);
      const at::Tensor slots = decode_self_attention(q, k, v, k_cache_, v_cache_, lineage_, t,
                                                     kPlacedHeads, kind.bias(), {}, kind.limits);
      const at::Tensor placed = placed_self_attention(q, k, v, keys_, values_, histories_,
                                                      kPlacedHeads, kind.bias(), kind.limits);
      EXPECT_TRUE(at::equal(slots, placed)) << kind.name << ", step " << t;
    }
  }

 private:
  static constexpr int64_t kRows = kPlacedSteps * kLanes + 2;

  int64_t row_;
  at::Tensor k_cache_, v_cache_, lineage_, keys_, values_;
  std::vector<std::vector<int32_t>> histories_ = std::vector<std::vector<int32_t>>(kLanes);
};

TEST(PlacedAttention, HasTheBitsOfSlotsOfSteps) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    for (const ScoreKind& kind : score_kinds()) BothForms(kv_heads).expect_equal_steps(kind);
  }
}

TEST(PlacedAttention, ALaneDoesNotDependOnHowLongOthersAre) {
  const std::vector<std::vector<int32_t>> histories{{6}, {3, 0, 5}, {1, 4}};
  const at::Tensor q = noise({3, kPlacedWidth}), k = noise({3, kPlacedWidth}, 8),
                   v = noise({3, kPlacedWidth}, 9);
  const at::Tensor keys = noise({7, kPlacedWidth}, 10), values = noise({7, kPlacedWidth}, 11);
  for (const ScoreKind& kind : score_kinds()) {
    at::Tensor all_keys = keys.clone(), all_values = values.clone();
    const at::Tensor all = placed_self_attention(q, k, v, all_keys, all_values, histories,
                                                 kPlacedHeads, kind.bias(), kind.limits);
    for (int64_t lane = 0; lane < 3; ++lane) {
      at::Tensor own_keys = keys.clone(), own_values = values.clone();
      const std::span own(histories.data() + lane, 1);
      const at::Tensor alone =
          placed_self_attention(q.narrow(0, lane, 1), k.narrow(0, lane, 1), v.narrow(0, lane, 1),
                                own_keys, own_values, own, kPlacedHeads, kind.bias(), kind.limits);
      EXPECT_TRUE(at::equal(all[lane], alone[0])) << kind.name << ", lane " << lane;
    }
  }
}

TEST(PlacedAttention, ItsPlainFormIsTheSameButForRounding) {
  const std::vector<std::vector<int32_t>> histories{{6}, {3, 0, 5}, {1, 4}};
  const at::Tensor q = noise({3, kPlacedWidth}), k = noise({3, 2 * kPlacedHeadWidth}, 8),
                   v = noise({3, 2 * kPlacedHeadWidth}, 9);
  for (const ScoreKind& kind : score_kinds()) {
    at::Tensor keys = noise({7, 2 * kPlacedHeadWidth}, 10),
               values = noise({7, 2 * kPlacedHeadWidth}, 11);
    at::Tensor wide_keys = keys.to(at::kDouble), wide_values = values.to(at::kDouble);
    const at::Tensor fused = placed_self_attention(q, k, v, keys, values, histories, kPlacedHeads,
                                                   kind.bias(), kind.limits);
    const at::Tensor plain =
        placed_self_attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), wide_keys,
                              wide_values, histories, kPlacedHeads, kind.bias(), kind.limits);
    EXPECT_TRUE(at::allclose(fused.to(at::kDouble), plain, 1e-5, 1e-5)) << kind.name;
  }
}

/// One lane with queries of four heads and a history of rows in any order.
struct LongHistory {
  at::Tensor q, keys, values;

  LongHistory(int64_t kv_heads, int64_t head_width)
      : q(noise({1, kPlacedHeads * head_width}, 3)),
        keys(noise({kRows, kv_heads * head_width}, 4)),
        values(noise({kRows, kv_heads * head_width}, 5)) {}

  /// The last row of the history is where the new one is written.
  at::Tensor attended(const std::vector<int32_t>& history, at::ScalarType type) const {
    const std::vector<std::vector<int32_t>> histories{history};
    const at::Tensor k = keys.narrow(0, history.back(), 1).to(type);
    const at::Tensor v = values.narrow(0, history.back(), 1).to(type);
    at::Tensor to_keys = keys.to(type).clone(), to_values = values.to(type).clone();
    return placed_self_attention(q.to(type), k, v, to_keys, to_values, histories, kPlacedHeads);
  }

  static constexpr int64_t kRows = 50;
};

// Steps are taken a vector of them at a time, half a vector, or one by one.
TEST(PlacedAttention, AHistoryOfAnyLengthIsThatOfItsPlainFormAtEveryLevel) {
  for (const int64_t kv_heads : {1, 2, 4})
    for (const int64_t head_width : {4, 20, 64}) {
      const LongHistory lane(kv_heads, head_width);
      std::vector<int32_t> history;
      for (int32_t step = 0; step < 45; ++step) {
        history.push_back((7 * step + 3) % LongHistory::kRows);
        const at::Tensor plain = lane.attended(history, at::kDouble);
        for (const cpu::Table* level : cpu::levels()) {
          const cpu::LevelGuard guard(*level);
          const at::Tensor have = lane.attended(history, at::kFloat).to(at::kDouble);
          EXPECT_TRUE(at::allclose(have, plain, 1e-4, 1e-5))
              << step + 1 << " steps, heads of " << head_width << " at " << level->name;
        }
      }
    }
}

// So that a sentence has the same translation wherever its steps begin.
TEST(PlacedAttention, AScoreHasTheSameBitsWithAndWithoutOthersBesideIt) {
  for (const int64_t head_width : {20, 64}) {
    LongHistory lane(kPlacedHeads, head_width);
    // Rows from 20 on have scores so low that their weights are zero.
    lane.keys.narrow(0, 20, 30).copy_(lane.q.expand({30, -1}) * -1e3);
    for (const cpu::Table* level : cpu::levels()) {
      const cpu::LevelGuard guard(*level);
      for (int32_t steps = 1; steps < 18; ++steps) {
        std::vector<int32_t> own, with_more;
        for (int32_t step = 0; step < steps; ++step) own.push_back(step);
        for (int32_t more = 0; more < 20 - steps; ++more) {
          // What is written last belongs to the history, so more steps come before it.
          with_more = own;
          with_more.insert(with_more.end() - 1, static_cast<size_t>(more), 20);
          EXPECT_TRUE(
              at::equal(lane.attended(with_more, at::kFloat), lane.attended(own, at::kFloat)))
              << steps << " and " << more << " steps, heads of " << head_width << " at "
              << level->name;
        }
      }
    }
  }
}

TEST(PlacedAttention, OverMemoriesWithGapsItHasTheBitsOfPackedOnes) {
  for (const int64_t kv_heads : {1, 4}) {
    const int64_t row = kv_heads * kPlacedHeadWidth;
    const at::Tensor q = noise({6, kPlacedWidth}), packed = noise({9, 2 * row}, 8);
    at::Tensor kv = at::full({20, 2 * row}, std::numeric_limits<float>::quiet_NaN());
    kv.narrow(0, 11, 4).copy_(packed.narrow(0, 0, 4));
    kv.narrow(0, 2, 1).copy_(packed.narrow(0, 4, 1));
    kv.narrow(0, 5, 4).copy_(packed.narrow(0, 5, 4));
    const PlacedMemories memories{.begins = {11, 2, 5}, .lengths = {4, 1, 4}, .lanes = {3, 1, 2}};
    const at::Tensor placed = placed_cross_attention(q, kv, memories, kPlacedHeads);
    const at::Tensor expected = cross_attention(q, packed,
                                                {.query_offsets = cases::lengths({0, 3, 4, 6}),
                                                 .key_offsets = cases::lengths({0, 4, 5, 9}),
                                                 .num_heads = kPlacedHeads,
                                                 .dropout = {},
                                                 .num_kv_heads = kv_heads});
    EXPECT_TRUE(at::equal(placed, expected)) << kv_heads;
    const at::Tensor plain =
        placed_cross_attention(q.to(at::kDouble), kv.to(at::kDouble), memories, kPlacedHeads);
    EXPECT_TRUE(at::allclose(plain, expected.to(at::kDouble), 1e-5, 1e-5)) << kv_heads;
  }
}

TEST(PlacedAttention, ThreadsThatShareALaneLeaveItsBits) {
  constexpr int64_t kWide = 64;
  std::vector<std::vector<int32_t>> histories(1);
  for (int32_t row = 0; row < 300; ++row) histories[0].push_back(299 - row);
  const at::Tensor q = noise({1, kWide}), k = noise({1, kWide}, 8), v = noise({1, kWide}, 9);
  for (const ScoreKind& kind : score_kinds()) {
    if (kind.has_bias) continue;  // it is not as long
    const auto attended = [&](int threads) {
      const stretto::testing::Threads scope(threads);
      at::Tensor keys = noise({300, kWide}, 10), values = noise({300, kWide}, 11);
      return placed_self_attention(q, k, v, keys, values, histories, kPlacedHeads, {}, kind.limits);
    };
    EXPECT_TRUE(at::equal(attended(1), attended(4))) << kind.name;
  }
}

TEST(PlacedAttention, RefusesRowsThatThereAreNot) {
  at::Tensor keys = noise({4, kPlacedWidth}), values = noise({4, kPlacedWidth});
  const at::Tensor q = noise({1, kPlacedWidth});
  const auto step = [&](const std::vector<std::vector<int32_t>>& histories) {
    placed_self_attention(q, q, q, keys, values, histories, kPlacedHeads);
  };
  EXPECT_THROW(step({{4}}), c10::Error);
  EXPECT_THROW(step({{}}), c10::Error);
  EXPECT_THROW(step({{0}, {1}}), c10::Error) << "one lane too many";
  const at::Tensor kv = noise({4, 2 * kPlacedWidth});
  EXPECT_THROW(
      placed_cross_attention(q, kv, {.begins = {3}, .lengths = {2}, .lanes = {1}}, kPlacedHeads),
      c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
