#include "data/images/image_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "data/batch_walk.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;

std::vector<int32_t> labels_of(int64_t samples) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < samples; ++i) labels.push_back(static_cast<int32_t>(100 + i));
  return labels;
}

Ids ids_of_epoch(const BatchSource& source, int64_t epoch) {
  Ids ids;
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const Ids part = source.sample_ids(epoch, i);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

Ids numbers(int64_t count) {
  Ids ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = i;
  return ids;
}

TEST(ImageBatches, AnEpochHasEachPictureOnceInAnotherOrder) {
  const auto source = make_image_batches(
      labels_of(10), {.max_samples = 4, .shuffle = Shuffle::kEachEpoch, .seed = 3});
  ASSERT_EQ(source->num_batches(), 3);
  EXPECT_EQ(source->load(0, 0).num_sequences(), 4);
  EXPECT_EQ(source->load(0, 2).num_sequences(), 2) << "the last one is smaller";
  EXPECT_EQ(sorted(ids_of_epoch(*source, 0)), numbers(10));
  EXPECT_EQ(sorted(ids_of_epoch(*source, 1)), numbers(10));
  EXPECT_NE(ids_of_epoch(*source, 0), ids_of_epoch(*source, 1));
  const auto other = make_image_batches(
      labels_of(10), {.max_samples = 4, .shuffle = Shuffle::kEachEpoch, .seed = 4});
  EXPECT_NE(ids_of_epoch(*source, 0), ids_of_epoch(*other, 0));
}

TEST(ImageBatches, ABatchHasTheLabelsOfItsPictures) {
  const auto source = make_image_batches(
      labels_of(10), {.max_samples = 4, .shuffle = Shuffle::kEachEpoch, .seed = 3});
  const Batch batch = source->load_for_training(5, 1);
  EXPECT_EQ(batch.epoch, 5);
  EXPECT_EQ(batch.sample_ids, source->sample_ids(5, 1));
  for (size_t i = 0; i < batch.sample_ids.size(); ++i) {
    EXPECT_EQ(batch.column<int64_t>(kImageLabel).values[i], 100 + batch.sample_ids[i]);
    EXPECT_EQ(batch.column<int64_t>(kImageDraw).values[i], batch.sample_ids[i]);
  }
}

TEST(ImageBatches, EvaluationKeepsTheOrder) {
  const auto source = make_image_batches(labels_of(5), {.max_samples = 2});
  EXPECT_EQ(ids_of_epoch(*source, 0), numbers(5));
}

TEST(ImageBatches, TheLastSmallOneMayBeLeftOut) {
  const auto dropping = [](int64_t samples) {
    return make_image_batches(labels_of(samples), {.max_samples = 4, .drop_last = true});
  };
  EXPECT_EQ(dropping(10)->num_batches(), 2);
  EXPECT_EQ(dropping(8)->num_batches(), 2);
  EXPECT_EQ(dropping(3)->num_batches(), 1) << "an epoch has one at least";
  EXPECT_THROW(dropping(10)->load(0, 2), std::out_of_range);
}

TEST(ImageBatches, RepeatedPicturesAreAugmentedAnew) {
  const auto source = make_image_batches(
      labels_of(12), {.max_samples = 7, .repeats = 3, .shuffle = Shuffle::kEachEpoch, .seed = 1});
  EXPECT_EQ(source->num_batches(), 2);
  const Batch batch = source->load(0, 0);
  ASSERT_EQ(batch.num_sequences(), 6) << "two pictures, three times each";
  EXPECT_EQ(batch.sample_ids[0], batch.sample_ids[2]);
  EXPECT_EQ(batch.sample_ids[1], batch.sample_ids[5]);
  EXPECT_NE(batch.sample_ids[0], batch.sample_ids[1]);
  const auto& draws = batch.column<int64_t>(kImageDraw).values;
  EXPECT_EQ(std::set<int64_t>(draws.begin(), draws.end()).size(), 6U);
  EXPECT_EQ(draws[0], batch.sample_ids[0]);
  EXPECT_EQ(draws[2], batch.sample_ids[0] + 12);
  EXPECT_EQ(batch.sample_ids, source->sample_ids(0, 0));

  std::set<int64_t> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const Ids ids = ids_of_epoch(*source, epoch);
    EXPECT_EQ(ids.size(), 12U);
    seen.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(seen.size(), 12U) << "three epochs show all pictures";
}

TEST(ImageBatches, ProcessesHaveTheSamplesOfOne) {
  const auto source = make_image_batches(
      labels_of(50), {.max_samples = 6, .shuffle = Shuffle::kEachEpoch, .seed = 2});
  const int64_t updates = 3, update_freq = 3;
  const Ids all = ids_of_epoch(*source, 0);
  ASSERT_EQ(source->num_batches(), updates * update_freq);
  for (int64_t size = 1; size <= 3; ++size) {
    Ids found;
    for (int64_t rank = 0; rank < size; ++rank) {
      const RankBatches share{.update_freq = update_freq, .rank = rank, .size = size, .cut = true};
      const BatchWalk walk(*source, {}, share);
      for (int64_t i = 0; i < share.of_epoch(source->num_batches()); ++i) {
        const Batch part = walk.load(i);
        found.insert(found.end(), part.sample_ids.begin(), part.sample_ids.end());
      }
    }
    EXPECT_EQ(sorted(found), sorted(all)) << size;
  }
}

TEST(ImageBatches, WithoutSamplesThereAreNone) {
  EXPECT_THROW(make_image_batches({}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::data
