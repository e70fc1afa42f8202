#include "data/share.h"

#include <gtest/gtest.h>

#include <vector>

namespace stretto::data {
namespace {

// What Share::at says in closed form, by walking.
std::vector<Position> walk(const Share& share, Position start, int64_t num_batches, size_t count) {
  std::vector<Position> found;
  for (Position at = start; found.size() < count;) {
    const int64_t in_update = at.index % share.update_freq;
    if (in_update % share.size == share.rank) found.push_back(at);
    if (++at.index == num_batches) at = {.epoch = at.epoch + 1, .index = 0};
  }
  return found;
}

TEST(Share, AgreesWithWalkingThroughTheUpdates) {
  for (const int64_t num_batches : {1, 5, 6, 13}) {
    for (const int64_t update_freq : {1, 2, 3, 4, 20}) {
      for (const int64_t size : {1, 2, 3, 4}) {
        for (int64_t rank = 0; rank < size; ++rank) {
          const Share share{.update_freq = update_freq, .rank = rank, .size = size};
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

TEST(Share, OfAllRanksIsTheWhole) {
  for (int64_t count = 0; count < 10; ++count) {
    for (int64_t size = 1; size < 6; ++size) {
      int64_t sum = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        sum += Share{.update_freq = 4, .rank = rank, .size = size}.of_update(count);
      }
      EXPECT_EQ(sum, count);
    }
  }
}

TEST(Share, RanksBeyondUpdateFreqHaveNothing) {
  EXPECT_EQ((Share{.update_freq = 2, .rank = 2, .size = 4}.of_epoch(7)), 0);
  EXPECT_EQ((Share{.update_freq = 2, .rank = 0, .size = 4}.of_epoch(7)), 4);
  EXPECT_EQ((Share{.update_freq = 2, .rank = 1, .size = 4}.of_epoch(7)), 3);
}

}  // namespace
}  // namespace stretto::data
