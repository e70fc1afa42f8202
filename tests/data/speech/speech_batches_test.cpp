#include "data/speech/speech_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

namespace stretto::data {
namespace {

/// Samples with even ids, of 0.3 to 6.3 seconds, and as many targets as whole seconds.
UtteranceSamples utterances_of(int64_t count) {
  UtteranceSamples samples;
  for (int64_t i = 0; i < count; ++i) {
    const double seconds = 0.3 + static_cast<double>(i * 37 % 60) / 10;
    samples.ids.push_back(2 * i);
    samples.seconds.push_back(seconds);
    samples.targets.append(std::vector<int64_t>(static_cast<size_t>(seconds), i));
  }
  return samples;
}

double seconds_of(const Batch& batch) {
  const auto& lengths = batch.column<int64_t>(kUtteranceLength).values;
  return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0})) / 100;
}

TEST(UtteranceBatches, AnEpochHasEachSampleOnceWithinTheBounds) {
  const auto source = make_utterance_batches(utterances_of(200), {.batch_seconds = 20,
                                                                  .max_samples = 12,
                                                                  .bucket_seconds = 0.5,
                                                                  .shuffle = Shuffle::kEachEpoch,
                                                                  .seed = 5});
  for (const int64_t epoch : {0, 3}) {
    std::multiset<int64_t> ids;
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      const Batch batch = source->load(epoch, i);
      EXPECT_EQ(batch.sample_ids, source->sample_ids(epoch, i));
      EXPECT_LE(batch.num_sequences(), 12);
      EXPECT_LE(seconds_of(batch), 20);
      const auto& lengths = batch.column<int64_t>(kUtteranceLength).values;
      const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
      EXPECT_LE(*longest - *shortest, 200) << "they are about equally long";
      ids.insert(batch.sample_ids.begin(), batch.sample_ids.end());
      for (int64_t s = 0; s < batch.num_sequences(); ++s) {
        const int64_t number = batch.sample_ids[static_cast<size_t>(s)] / 2;
        const auto target = batch.column<int64_t>(kUtteranceTarget).sequence(s);
        EXPECT_TRUE(
            std::all_of(target.begin(), target.end(), [&](int64_t id) { return id == number; }));
        EXPECT_EQ(lengths[static_cast<size_t>(s)], 30 + number * 37 % 60 * 10);
      }
    }
    EXPECT_EQ(ids.size(), 200U);
    EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 200U);
  }
}

TEST(UtteranceBatches, TheOrderIsAFunctionOfSeedAndEpoch) {
  const auto order = [](uint64_t seed, int64_t epoch, Shuffle shuffle) {
    const auto source = make_utterance_batches(
        utterances_of(60),
        {.batch_seconds = 10, .bucket_seconds = 1, .shuffle = shuffle, .seed = seed});
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      for (const int64_t id : source->sample_ids(epoch, i)) ids.push_back(id);
    }
    return ids;
  };
  EXPECT_EQ(order(1, 2, Shuffle::kEachEpoch), order(1, 2, Shuffle::kEachEpoch));
  EXPECT_NE(order(1, 2, Shuffle::kEachEpoch), order(1, 3, Shuffle::kEachEpoch));
  EXPECT_NE(order(1, 2, Shuffle::kEachEpoch), order(2, 2, Shuffle::kEachEpoch));
  EXPECT_EQ(order(1, 2, Shuffle::kNo), order(2, 5, Shuffle::kNo));
}

TEST(UtteranceBatches, WithBucketsTheCompanyOfASampleChanges) {
  const auto company = [](double bucket) {
    const auto source = make_utterance_batches(
        utterances_of(120),
        {.batch_seconds = 8, .bucket_seconds = bucket, .shuffle = Shuffle::kEachEpoch, .seed = 1});
    std::set<std::multiset<int64_t>> groups;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      for (int64_t i = 0; i < source->num_batches(); ++i) {
        const auto ids = source->sample_ids(epoch, i);
        groups.insert(std::multiset<int64_t>(ids.begin(), ids.end()));
      }
    }
    return groups.size();
  };
  EXPECT_GT(company(2.0), company(0));
}

TEST(UtteranceBatches, ALongSampleIsABatchOfItsOwn) {
  UtteranceSamples samples{.ids = {4, 7, 9}, .seconds = {1, 30, 1}, .targets = {}};
  for (int i = 0; i < 3; ++i) samples.targets.append({i});
  const auto source = make_utterance_batches(samples, {.batch_seconds = 5});
  ASSERT_EQ(source->num_batches(), 2);
  EXPECT_EQ(source->sample_ids(0, 0), (std::vector<int64_t>{4, 9}));
  EXPECT_EQ(source->sample_ids(0, 1), std::vector<int64_t>{7});
}

TEST(UtteranceBatches, FramesMayBoundThemToo) {
  UtteranceSamples samples{.ids = {0, 1, 2, 3}, .seconds = {1, 1, 1, 1}, .targets = {}};
  for (int i = 0; i < 4; ++i) samples.targets.append({i});
  const auto source = make_utterance_batches(
      samples, {.batch_seconds = 100, .max_frames = 160, .frame_seconds = 0.0125});
  EXPECT_EQ(source->num_batches(), 2) << "80 frames each";
}

TEST(UtteranceBatches, ListsOfOtherLengthsAreErrors) {
  EXPECT_THROW(make_utterance_batches({}, {}), std::invalid_argument);
  UtteranceSamples samples = utterances_of(3);
  samples.seconds.pop_back();
  EXPECT_THROW(make_utterance_batches(samples, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::data
