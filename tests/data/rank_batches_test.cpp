#include "data/rank_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace stretto::data {
namespace {

// Who has what of an update, by dealing it out: a whole micro-batch to each as long as there are
// enough; what is left over goes round in turns of equal parts, or once.
std::vector<std::vector<MicroBatchSlice>> dealt(int64_t count, int64_t size, bool cut) {
  std::vector<std::vector<MicroBatchSlice>> ranks(static_cast<size_t>(size));
  int64_t micro = 0;
  for (; count - micro >= size; micro += size) {
    for (int64_t rank = 0; rank < size; ++rank)
      ranks[static_cast<size_t>(rank)].push_back({.micro = micro + rank});
  }
  const int64_t left_over = count - micro;
  int64_t parts = 1;
  while (cut && (parts + 1) * left_over <= size && left_over > 0) ++parts;
  for (size_t rank = 0; micro < count; ++micro) {
    for (int64_t part = 0; part < parts; ++part)
      ranks[rank++].push_back({.micro = micro, .part = part, .parts = parts});
  }
  return ranks;
}

// What RankBatches::at says in closed form, by walking.
std::vector<PlacedSlice> walk(const RankBatches& share, Position start, int64_t num_batches,
                              size_t count) {
  std::vector<PlacedSlice> found;
  for (Position at = start; found.size() < count;) {
    const int64_t micro_batches = std::min(share.update_freq, num_batches - at.index);
    const auto ranks = dealt(micro_batches, share.size, share.cut);
    for (const MicroBatchSlice& slice : ranks[static_cast<size_t>(share.rank)])
      found.push_back({{.epoch = at.epoch, .index = at.index + slice.micro}, slice});
    at.index += micro_batches;
    if (at.index == num_batches) at = {.epoch = at.epoch + 1, .index = 0};
  }
  return found;
}

TEST(RankBatches, DealsOutAnUpdate) {
  for (const bool cut : {false, true}) {
    for (int64_t count = 0; count < 10; ++count) {
      for (int64_t size = 1; size < 12; ++size) {
        const auto ranks = dealt(count, size, cut);
        double most = 0;
        for (int64_t rank = 0; rank < size; ++rank) {
          const RankBatches share{.update_freq = 10, .rank = rank, .size = size, .cut = cut};
          const auto& expected = ranks[static_cast<size_t>(rank)];
          ASSERT_EQ(share.of_update(count), static_cast<int64_t>(expected.size()))
              << count << " micro-batches, rank " << rank << " of " << size;
          double work = 0;
          for (size_t turn = 0; turn < expected.size(); ++turn) {
            EXPECT_EQ(share.slice(static_cast<int64_t>(turn), count), expected[turn]);
            work += 1.0 / static_cast<double>(expected[turn].parts);
          }
          most = std::max(most, work);
        }
        EXPECT_DOUBLE_EQ(rounds_of_update(count, size, cut), most);
      }
    }
  }
}

TEST(RankBatches, AgreesWithWalkingThroughTheUpdates) {
  for (const int64_t num_batches : {1, 5, 6, 13}) {
    for (const int64_t update_freq : {1, 2, 3, 4, 20}) {
      for (const int64_t ranks : {1, 2, 3, 4, -2, -3, -4, -7}) {  // below zero: with cuts
        const int64_t size = std::abs(ranks);
        for (int64_t rank = 0; rank < size; ++rank) {
          const RankBatches share{
              .update_freq = update_freq, .rank = rank, .size = size, .cut = ranks < 0};
          if (share.of_epoch(num_batches) == 0) continue;
          for (int64_t index = 0; index < num_batches; index += update_freq) {
            const Position start{.epoch = 2, .index = index};
            const auto expected = walk(share, start, num_batches, 30);
            for (size_t i = 0; i < expected.size(); ++i) {
              EXPECT_EQ(share.at(start, static_cast<int64_t>(i), num_batches), expected[i])
                  << num_batches << " batches, update_freq " << update_freq << ", rank " << rank
                  << " of " << size << ", start " << index << ", number " << i;
            }
          }
        }
      }
    }
  }
}

TEST(RankBatches, OfAllRanksIsTheWhole) {
  for (int64_t count = 0; count < 10; ++count) {
    for (int64_t size = 1; size < 6; ++size) {
      int64_t sum = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        sum += RankBatches{.update_freq = 4, .rank = rank, .size = size}.of_update(count);
      }
      EXPECT_EQ(sum, count);
    }
  }
}

TEST(RankBatches, RanksBeyondUpdateFreqHaveNothing) {
  EXPECT_EQ((RankBatches{.update_freq = 2, .rank = 2, .size = 4}.of_epoch(7)), 0);
  EXPECT_EQ((RankBatches{.update_freq = 2, .rank = 0, .size = 4}.of_epoch(7)), 4);
  EXPECT_EQ((RankBatches{.update_freq = 2, .rank = 1, .size = 4}.of_epoch(7)), 3);
}

}  // namespace
}  // namespace stretto::data
