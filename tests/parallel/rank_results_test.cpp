#include "parallel/rank_results.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/distributed/thread_group.h"

namespace stretto::parallel {
namespace {

using stretto::test::run_ranks;

data::RankBatches share_of(int64_t rank, int64_t size, bool cut = false) {
  return {.update_freq = 8, .rank = rank, .size = size, .cut = cut};
}

/// Micro-batch j of an update, whole or one of `parts` equal parts.
MicroSums micro_batch(int64_t j, int64_t parts = 1) {
  const auto number = static_cast<double>(j);
  return {(number + 0.25) / static_cast<double>(parts), -number / static_cast<double>(parts),
          (100 + 4 * number) / static_cast<double>(parts)};
}

RankResult result_of(const data::RankBatches& share, int64_t count) {
  RankResult result{.num_sums = 3, .micros = {}};
  for (int64_t turn = 0; turn < share.of_update(count); ++turn) {
    const auto slice = share.slice(turn, count);
    result.micros.push_back(micro_batch(slice.micro, slice.parts));
  }
  return result;
}

/// What `look` sees on every rank, of results without trouble that `change` changed.
void on_ranks(int size, int64_t count, const std::function<void(int64_t rank, RankResult&)>& change,
              const std::function<void(const RankResults&)>& look) {
  run_ranks(size, [&](const distributed::ProcessGroup& group) {
    const auto share = share_of(group.rank(), size);
    RankResult mine = result_of(share, count);
    change(group.rank(), mine);
    look(RankResults::exchange(group, share, count, mine));
  });
}

TEST(RankResults, MicroBatchesComeInTheirOrderWhoeverHadThem) {
  for (int size = 1; size <= 4; ++size) {
    for (int64_t count = 1; count <= 8; ++count) {  // some ranks have fewer, some none
      for (const bool cut : {false, true}) {
        SCOPED_TRACE(std::to_string(count) + " on " + std::to_string(size) + (cut ? ", cut" : ""));
        run_ranks(size, [&](const distributed::ProcessGroup& group) {
          const auto share = share_of(group.rank(), size, cut);
          const auto all = RankResults::exchange(group, share, count, result_of(share, count));
          const auto micros = all.in_order();
          ASSERT_EQ(micros.size(), static_cast<size_t>(count));
          for (int64_t j = 0; j < count; ++j) {
            const auto& got = micros[static_cast<size_t>(j)];
            const auto want = micro_batch(j);
            ASSERT_EQ(got.size(), want.size());
            for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-11) << j;
          }
        });
      }
    }
  }
}

TEST(RankResults, WithoutTroubleThereIsNone) {
  on_ranks(
      3, 5, [](int64_t, RankResult&) {},
      [](const RankResults& all) {
        EXPECT_FALSE(all.any_failed());
        EXPECT_FALSE(all.is_hopeless());
        EXPECT_FALSE(all.late_rank().has_value());
        EXPECT_EQ(all.stop(), 0);
      });
}

TEST(RankResults, OneRankWithoutMemoryIsKnownToAll) {
  for (const bool can_split : {true, false}) {
    on_ranks(
        3, 6,
        [&](int64_t rank, RankResult& mine) {
          mine.can_split = true;  // says nothing where nothing failed
          if (rank != 2) return;
          mine.failed_part = 0;
          mine.can_split = can_split;
        },
        [&](const RankResults& all) {
          EXPECT_TRUE(all.any_failed());
          EXPECT_EQ(all.is_hopeless(), !can_split);
        });
  }
}

TEST(RankResults, ASingleSampleThatDoesNotFitIsHopelessThoughOthersCanSplit) {
  on_ranks(
      3, 6,
      [](int64_t rank, RankResult& mine) {
        mine.failed_part = 1;
        mine.can_split = rank != 1;
      },
      [](const RankResults& all) { EXPECT_TRUE(all.is_hopeless()); });
}

TEST(RankResults, TheFirstRankWithALateGradientIsNamed) {
  on_ranks(
      4, 4, [](int64_t rank, RankResult& mine) { mine.late = rank >= 2; },
      [](const RankResults& all) { EXPECT_EQ(all.late_rank(), std::optional<int64_t>(2)); });
}

TEST(RankResults, TheLargestReasonToStopCounts) {
  on_ranks(
      3, 3, [](int64_t rank, RankResult& mine) { mine.stop = rank == 1 ? 2 : 1; },
      [](const RankResults& all) { EXPECT_EQ(all.stop(), 2); });
}

TEST(RankResults, TheSmallBatchIsThatOfRankZero) {
  on_ranks(
      3, 3,
      [](int64_t rank, RankResult& mine) {
        mine.small = {.weight = 10.0 + static_cast<double>(rank), .sum_norm_sq = 0.5};
      },
      [](const RankResults& all) {
        EXPECT_EQ(all.small_batch().weight, 10);
        EXPECT_EQ(all.small_batch().sum_norm_sq, 0.5);
      });
}

TEST(RankResults, ALossThatIsNotFiniteArrivesAsItIs) {
  on_ranks(
      2, 2,
      [](int64_t rank, RankResult& mine) {
        if (rank == 1) mine.micros[0][0] = std::numeric_limits<double>::infinity();
      },
      [](const RankResults& all) {
        EXPECT_EQ(all.in_order()[0][0], 0.25);
        EXPECT_EQ(all.in_order()[1][0], std::numeric_limits<double>::infinity());
      });
}

}  // namespace
}  // namespace stretto::parallel
