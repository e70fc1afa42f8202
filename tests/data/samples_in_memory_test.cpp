#include "data/samples_in_memory.h"

#include <gtest/gtest.h>

#include <set>

namespace stretto::data {
namespace {

Batch three_samples() {
  Batch samples{.sample_ids = {0, 1, 2}, .columns = {PackedTokens{}, Ragged<float>{}}};
  for (const int64_t length : {3, 1, 2}) {
    samples.column<int64_t>(0).append(std::vector<int64_t>(static_cast<size_t>(length), length));
    samples.column<float>(1).append(std::vector<float>{0.5f * static_cast<float>(length)});
  }
  return samples;
}

TEST(SamplesInMemory, StandInTheOrderOfTheirLengthsWithAllColumns) {
  const SamplesInMemory samples(three_samples());
  Batch batch = samples.empty_batch();
  EXPECT_EQ(batch.num_sequences(), 0);
  for (uint64_t i = 0; i < 3; ++i) samples.append(/*epoch=*/0, samples.sample_at(i), batch);
  EXPECT_EQ(batch.sample_ids, (std::vector<int64_t>{1, 2, 0}));
  EXPECT_EQ(batch.column<int64_t>(0).values, (std::vector<int64_t>{1, 2, 2, 3, 3, 3}));
  EXPECT_EQ(batch.column<float>(1).values, (std::vector<float>{0.5f, 1, 1.5f}));
}

TEST(SamplesInMemory, AllComeInEachEpoch) {
  const auto batches = make_length_batches(std::make_shared<SamplesInMemory>(three_samples()),
                                           {.max_rows = {3}}, Shuffle::kEachEpoch, /*seed=*/1);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int64_t> seen;
    for (int64_t i = 0; i < batches->num_batches(); ++i) {
      for (const int64_t id : batches->load(epoch, i).sample_ids) seen.insert(id);
    }
    EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2}));
  }
}

}  // namespace
}  // namespace stretto::data
