#include "train/update_batches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/base/failure.h"
#include "tests/train/recurrent_task.h"
#include "tests/train/toy_task.h"

namespace stretto::train {
namespace {

using Ids = std::vector<int64_t>;
using Positions = std::vector<data::Position>;

/// Eight micro-batches an epoch, of two samples each.
class UpdateBatchesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kPrefetch = 2;

  UpdateBatches batches(const data::RankBatches& share) const {
    return {source_, share, {.depth = kPrefetch}};
  }
  /// The samples of the next update on this rank; moves behind it.
  static Ids next(UpdateBatches& batches) {
    batches.load();
    Ids ids;
    for (const data::Batch& batch : batches.batches()) {
      ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    }
    batches.advance();
    return ids;
  }
  /// The samples of these micro-batches.
  Ids of(int64_t epoch, const std::vector<int64_t>& indices) const {
    Ids ids;
    for (const int64_t index : indices) {
      const auto batch = source_.load(epoch, index);
      ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    }
    return ids;
  }

  test::ToySource source_;
};

/// The ids as tensors, which take a different time for each batch.
Prepared with_ids(data::Batch batch) {
  const auto number = static_cast<uint64_t>(batch.sample_ids.front());
  std::this_thread::sleep_for(std::chrono::microseconds(mix64(3, number) % 800));
  Prepared made(std::move(batch));
  made.add(made.column(data::kSource));
  made.add(made.tensor(0).to(at::kFloat).mul(0.1F).cumsum(0));
  return made;
}

/// The tensors of the next update on this rank; moves behind it.
std::vector<at::Tensor> next_tensors(UpdateBatches& batches) {
  batches.load();
  std::vector<at::Tensor> tensors;
  for (const Prepared& batch : batches.batches()) {
    tensors.push_back(batch.tensor(0).clone());
    tensors.push_back(batch.tensor(1).clone());
  }
  batches.advance();
  return tensors;
}

TEST_F(UpdateBatchesTest, TensorsAndTheirOrderAreTheSameForAnyDepthAndThreads) {
  constexpr int kUpdates = 9;  // more than two epochs of 3, 3 and 2 micro-batches
  std::vector<std::vector<at::Tensor>> expected;
  for (const data::Loading& loading :
       {data::Loading{.depth = 1, .threads = 1}, data::Loading{.depth = 3, .threads = 2},
        data::Loading{.depth = 8, .threads = 4}}) {
    UpdateBatches tried(source_, {.update_freq = 3}, loading, {.prepare = with_ids});
    tried.seek({});
    for (size_t update = 0; update < kUpdates; ++update) {
      const auto tensors = next_tensors(tried);
      if (loading.threads == 1) expected.push_back(tensors);
      ASSERT_EQ(tensors.size(), expected[update].size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        EXPECT_TRUE(at::equal(tensors[i], expected[update][i])) << loading.threads << " threads";
      }
    }
  }
  EXPECT_TRUE(at::equal(expected[0][0], at::tensor(of(0, {0}), at::kLong)));
}

TEST_F(UpdateBatchesTest, DataThatBecameFewerGoOnWithTheNextEpoch) {
  UpdateBatches tried(source_, {.update_freq = 3}, {}, {.prepare = with_ids});
  tried.seek({.epoch = 1, .index = source_.num_batches() + 5});
  const auto tensors = next_tensors(tried);
  tried.seek({.epoch = 2, .index = 0});
  const auto wanted = next_tensors(tried);
  ASSERT_EQ(tensors.size(), wanted.size());
  for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(at::equal(tensors[i], wanted[i]));
}

/// What augmentation is made of: a number for each sample, of (seed, epoch, id).
Prepared augmented(data::Batch batch) {
  Prepared made(std::move(batch));
  const data::Batch& samples = made;
  std::vector<double> noise;
  for (const int64_t id : samples.sample_ids) {
    const uint64_t key =
        mix64(mix64(/*seed=*/5, static_cast<uint64_t>(samples.epoch)), static_cast<uint64_t>(id));
    noise.push_back(RandomStream(key).uniform());
  }
  made.add(at::tensor(noise, at::kDouble));
  return made;
}

/// The numbers of the samples of an epoch, from where the batches stand; in the order of ids.
std::map<int64_t, double> augmentation_of_an_epoch(UpdateBatches& batches, bool splits) {
  std::map<int64_t, double> found;
  const int64_t epoch = batches.position().epoch;
  while (batches.position().epoch == epoch) {
    batches.load();
    if (splits) batches.split(0);
    for (const Prepared& batch : batches.batches()) {
      const auto& ids = batch.batch().sample_ids;
      for (size_t i = 0; i < ids.size(); ++i) {
        found[ids[i]] = batch.tensor()[static_cast<int64_t>(i)].item<double>();
      }
    }
    batches.advance();
  }
  return found;
}

TEST_F(UpdateBatchesTest, AugmentationIsAnotherOneInEachEpochAndAFunctionOfEpochAndId) {
  std::vector<std::map<int64_t, double>> epochs;
  UpdateBatches walked(source_, {.update_freq = 3}, {.depth = 4, .threads = 3},
                       {.prepare = augmented});
  walked.seek({});
  for (int i = 0; i < 3; ++i) epochs.push_back(augmentation_of_an_epoch(walked, /*splits=*/false));
  EXPECT_EQ(epochs[0].size(), 16u);
  for (const auto& [id, number] : epochs[0]) {
    EXPECT_NE(epochs[1].at(id), number);
    EXPECT_NE(epochs[2].at(id), epochs[1].at(id));
  }
  UpdateBatches resumed(source_, {.update_freq = 2}, {.depth = 1}, {.prepare = augmented});
  resumed.seek({.epoch = 2, .index = 0});
  EXPECT_EQ(augmentation_of_an_epoch(resumed, /*splits=*/true), epochs[2])
      << "cut, prepared anew, and begun elsewhere";
}

TEST_F(UpdateBatchesTest, WhatPreparingABatchThrowsIsThrownWhereItIsDue) {
  const int64_t broken = of(0, {5}).front();
  for (const int64_t threads : {1, 4}) {
    UpdateBatches tried(source_, {.update_freq = 2}, {.depth = 8, .threads = threads},
                        {.prepare = [broken](data::Batch batch) {
                          if (batch.sample_ids.front() == broken) {
                            throw Error(ExitCode::kBadData, "pictures/7.jpg: it ends too early",
                                        "copy it again");
                          }
                          return with_ids(std::move(batch));
                        }});
    tried.seek({});
    EXPECT_EQ(next(tried), of(0, {0, 1}));
    EXPECT_EQ(next(tried), of(0, {2, 3}));
    const Error error = testing::failure(ExitCode::kBadData, [&] { tried.load(); });
    EXPECT_NE(std::string(error.what()).find("pictures/7.jpg: it ends too early"),
              std::string::npos);
    tried.seek({.epoch = 0, .index = 6});
    EXPECT_EQ(next(tried), of(0, {6, 7}));
  }
}

TEST_F(UpdateBatchesTest, EachPartOfAMicroBatchIsPreparedByItself) {
  const auto whole = of(0, {0});
  for (const int64_t rank : {0, 1}) {
    UpdateBatches tried(source_, {.update_freq = 1, .rank = rank, .size = 2, .cut = true},
                        {.depth = 2}, {.prepare = with_ids});
    tried.seek({});
    const auto tensors = next_tensors(tried);
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_TRUE(at::equal(tensors[0], at::tensor({whole[static_cast<size_t>(rank)]}, at::kLong)));
  }
  UpdateBatches split(source_, {}, {}, {.prepare = with_ids});
  split.seek({});
  split.load();
  split.split(0);
  for (const size_t half : {0U, 1U}) {
    EXPECT_TRUE(at::equal(split.batches()[half].tensor(), at::tensor({whole[half]}, at::kLong)));
  }
}

TEST_F(UpdateBatchesTest, TensorsAreOnTheDeviceBeforeTheyAreUsed) {
  UpdateBatches tried(source_, {}, {}, {.prepare = with_ids, .device = at::kMeta});
  tried.seek({});
  tried.load();
  EXPECT_TRUE(tried.batches()[0].tensor().is_meta()) << "sent ahead";
  tried.split(0);
  EXPECT_TRUE(tried.batches()[0].tensor().is_cpu()) << "there may be no memory for it";
  EXPECT_TRUE(tried.on_device(0).tensor().is_meta());
  EXPECT_TRUE(tried.on_device(1).tensor(1).is_meta());
}

TEST_F(UpdateBatchesTest, EndsInAnyState) {
  std::atomic<int> at_work = 0;
  const Prepare prepare = [&](data::Batch batch) {
    ++at_work;
    Prepared made = with_ids(std::move(batch));
    if (made.batch().sample_ids.front() == 6) throw std::runtime_error("batch 3 is broken");
    --at_work;
    return made;
  };
  const data::Loading loading{.depth = 6, .threads = 3};
  { UpdateBatches never(source_, {}, loading, {.prepare = prepare}); }
  for (int updates = 0; updates < 9; ++updates) {
    at_work = 0;
    {
      UpdateBatches tried(source_, {}, loading, {.prepare = prepare});
      tried.seek({});
      for (int i = 0; i < updates; ++i) {
        try {
          tried.load();
        } catch (const std::runtime_error&) {
        }
        tried.advance();
      }
      if (updates % 2 == 0) tried.seek({.epoch = 1, .index = 0});  // while threads are at work
    }
    const int behind = at_work;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(at_work, behind) << "no thread is at work any more";
  }
}

TEST_F(UpdateBatchesTest, AnUpdateNeverCrossesAnEpoch) {
  auto tried = batches({.update_freq = 3});
  tried.seek({});
  EXPECT_EQ(next(tried), of(0, {0, 1, 2}));
  EXPECT_EQ(next(tried), of(0, {3, 4, 5}));
  EXPECT_EQ(next(tried), of(0, {6, 7}));
  EXPECT_EQ(tried.position(), (data::Position{.epoch = 1, .index = 0}));
  EXPECT_EQ(next(tried), of(1, {0, 1, 2}));
}

TEST_F(UpdateBatchesTest, TheSameUpdateIsLoadedAfterASeek) {
  auto tried = batches({.update_freq = 2});
  tried.seek({.epoch = 2, .index = 4});
  EXPECT_EQ(next(tried), of(2, {4, 5}));
  tried.seek({.epoch = 0, .index = 2});
  EXPECT_EQ(next(tried), of(0, {2, 3}));
}

TEST_F(UpdateBatchesTest, RanksShareTheMicroBatchesOutAndHashTheSame) {
  auto first = batches({.update_freq = 4, .rank = 0, .size = 2});
  auto second = batches({.update_freq = 4, .rank = 1, .size = 2});
  auto alone = batches({.update_freq = 4});
  for (auto* one : {&first, &second, &alone}) {
    one->seek({});
    EXPECT_EQ(one->load(), 4) << "of all ranks";
  }
  EXPECT_EQ(first.hash(), alone.hash());
  EXPECT_EQ(second.hash(), alone.hash());
  first.advance();
  EXPECT_EQ(next(first), of(0, {4, 6}));
}

TEST_F(UpdateBatchesTest, ASplitKeepsSamplesAndPlaces) {
  auto tried = batches({.update_freq = 2});
  tried.seek({});
  tried.load();
  tried.split(1);
  ASSERT_EQ(tried.batches().size(), 3U);
  const Ids whole = of(0, {1});
  EXPECT_EQ(tried.batches()[1].batch().sample_ids, Ids{whole[0]});
  EXPECT_EQ(tried.batches()[2].batch().sample_ids, Ids{whole[1]});
  EXPECT_EQ(tried.positions(), (Positions{{0, 0}, {0, 1}, {0, 1}}));
  tried.advance();
  EXPECT_EQ(tried.position(), (data::Position{.epoch = 0, .index = 2}));
}

TEST(UpdateBatchesOfLanes, AllRanksKnowTheLanesOfAllMicroBatches) {
  const test::LaneSource source(/*groups=*/4);
  const std::vector<std::vector<int32_t>> expected{{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}};
  for (const int64_t size : {1, 2, 3}) {
    for (int64_t rank = 0; rank < size; ++rank) {
      UpdateBatches tried(source, {.update_freq = 4, .rank = rank, .size = size}, {.depth = 2});
      tried.seek({.epoch = 1, .index = 4});
      tried.load();
      EXPECT_EQ(tried.lanes(), expected) << rank << " of " << size;
    }
  }
}

}  // namespace
}  // namespace stretto::train
