#include "data/mixed_batches.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace stretto::data {
namespace {

/// Batches whose only sample tells its epoch and number: 100 * epoch + number. So does their rate.
class Told final : public BatchSource {
 public:
  explicit Told(int64_t size) : size_(size) {}
  int64_t num_batches() const override { return size_; }
  Batch load(int64_t epoch, int64_t index) const override {
    Batch batch;
    batch.sample_ids = {100 * epoch + index};
    return batch;
  }
  double rate_factor(int64_t epoch, int64_t index) const override {
    return static_cast<double>(100 * epoch + index);
  }

 private:
  int64_t size_;
};

MixedSource told(int64_t size, double repeat = 1, int64_t first_sample_id = 0) {
  return {std::make_shared<Told>(size), repeat, first_sample_id};
}

std::vector<int64_t> streams(const BatchSource& source, int64_t epoch = 0) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < source.num_batches(); ++i) found.push_back(source.load(epoch, i).stream);
  return found;
}

/// What the micro-batches of one stream tell, in the order of an epoch.
std::vector<int64_t> told_by(const BatchSource& source, int64_t stream, int64_t epoch) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const Batch batch = source.load(epoch, i);
    if (batch.stream == stream) found.push_back(batch.sample_ids.front());
  }
  return found;
}

struct Spread {
  std::vector<std::pair<int64_t, double>> sources;  ///< micro-batches, repeat
  std::vector<int64_t> streams;
};

TEST(MixedBatches, AreSpreadEvenlyOverAnEpoch) {
  const std::vector<Spread> table{
      {{{3, 1}}, {0, 0, 0}},
      {{{2, 1}, {2, 1}}, {0, 1, 0, 1}},        // equal places: by number
      {{{4, 1}, {2, 1}}, {0, 1, 0, 0, 1, 0}},  // 1/8 1/4 3/8 5/8 3/4 7/8
      {{{2, 1}, {4, 1}}, {1, 0, 1, 1, 0, 1}},  // the same the other way round
      {{{3, 1}, {3, 1}, {1, 1}}, {0, 1, 0, 1, 2, 0, 1}},
      {{{5, 1}, {1, 1}}, {0, 0, 0, 1, 0, 0}},    // both at 1/2
      {{{4, 0.5}, {2, 2}}, {1, 0, 1, 1, 0, 1}},  // 2 and 4
      {{{10, 0.01}, {2, 1}}, {1, 0, 1}},         // at least one
      {{{3, 0.5}, {1, 1}}, {0, 1, 0}},           // 1.5 is 2
  };
  for (const Spread& row : table) {
    std::vector<MixedSource> sources;
    for (const auto& [size, repeat] : row.sources) sources.push_back(told(size, repeat));
    EXPECT_EQ(streams(*mix_batches(std::move(sources))), row.streams);
  }
}

TEST(MixedBatches, HaveOneOrderOfSourcesInEveryEpoch) {
  const auto mixed = mix_batches({told(5), told(3)});
  for (const int64_t epoch : {1, 2, 9}) EXPECT_EQ(streams(*mixed, epoch), streams(*mixed, 0));
}

TEST(MixedBatches, HaveTheRatesOfTheirSources) {
  const auto mixed = mix_batches({told(2, 2), told(3)});
  for (const int64_t epoch : {0, 3}) {
    for (int64_t i = 0; i < mixed->num_batches(); ++i) {
      const auto number = static_cast<double>(mixed->load(epoch, i).sample_ids.front());
      EXPECT_EQ(mixed->rate_factor(epoch, i), number) << epoch << ", " << i;
    }
  }
}

TEST(MixedBatches, OfARepeatOfOneAreTheEpochsOfTheirSource) {
  const auto mixed = mix_batches({told(3), told(2)});
  EXPECT_EQ(told_by(*mixed, 0, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(told_by(*mixed, 0, 4), (std::vector<int64_t>{400, 401, 402}));
  EXPECT_EQ(told_by(*mixed, 1, 4), (std::vector<int64_t>{400, 401}));
}

TEST(MixedBatches, OfARepeatOfOneHalfAreSeenOnceInTwoEpochs) {
  const auto mixed = mix_batches({told(1), told(4, 0.5)});
  EXPECT_EQ(told_by(*mixed, 1, 0), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(told_by(*mixed, 1, 1), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(told_by(*mixed, 1, 2), (std::vector<int64_t>{100, 101}));
}

TEST(MixedBatches, GoOnWhereAnEpochOfTheMixtureCutsTheirOwn) {
  const auto mixed = mix_batches({told(3, 0.5), told(2, 1.5)});  // 2 of 3, and 3 of 2
  EXPECT_EQ(told_by(*mixed, 0, 0), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(told_by(*mixed, 0, 1), (std::vector<int64_t>{2, 100}));
  EXPECT_EQ(told_by(*mixed, 1, 0), (std::vector<int64_t>{0, 1, 100}));
  EXPECT_EQ(told_by(*mixed, 1, 1), (std::vector<int64_t>{101, 200, 201}));
}

TEST(MixedBatches, AreAPureFunctionOfEpochAndIndex) {
  const auto mixed = mix_batches({told(3, 0.7), told(4, 1.3, 1000)});
  const Batch before = mixed->load(5, 2);
  for (int64_t i = mixed->num_batches() - 1; i >= 0; --i) mixed->load(0, i);
  EXPECT_EQ(mixed->load(5, 2).sample_ids, before.sample_ids);
  EXPECT_EQ(mixed->load(5, 2).stream, before.stream);
  for (int64_t i = 0; i < mixed->num_batches(); ++i) {
    EXPECT_EQ(mixed->sample_ids(3, i), mixed->load(3, i).sample_ids);
  }
}

TEST(MixedBatches, AreOfTheEpochOfTheirSourceInTraining) {
  const auto mixed = mix_batches({told(3), told(2, 2)});
  std::set<int64_t> epochs;
  for (int64_t i = 0; i < mixed->num_batches(); ++i) {
    const Batch batch = mixed->load_for_training(1, i);
    EXPECT_EQ(batch.epoch, batch.sample_ids.front() / 100);
    epochs.insert(batch.epoch);
  }
  EXPECT_EQ(epochs, (std::set<int64_t>{1, 2, 3})) << "the second one goes round twice";
}

TEST(MixedBatches, KeepTheSamplesOfTheirSourcesApart) {
  const auto mixed = mix_batches({told(3), told(3, 1, 50)});
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 6; ++i) seen.insert(mixed->load(0, i).sample_ids.front());
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 50, 51, 52}));
}

TEST(MixedBatches, RefuseWhatCannotBeMixed) {
  EXPECT_THROW(mix_batches({}), std::invalid_argument);
  EXPECT_THROW(mix_batches({{}}), std::invalid_argument);
  EXPECT_THROW(mix_batches({told(3), told(0)}), std::invalid_argument);
  EXPECT_THROW(mix_batches({told(3, 0)}), std::invalid_argument);
  EXPECT_THROW(mix_batches({told(3, -1)}), std::invalid_argument);
  EXPECT_THROW(mix_batches({told(3, std::numeric_limits<double>::quiet_NaN())}),
               std::invalid_argument);
  EXPECT_THROW(mix_batches({told(3, 1e12)}), std::invalid_argument);
  EXPECT_THROW(mix_batches({told(3)})->load(0, 3), std::out_of_range);
}

/// Each micro-batch goes on where the one before ended.
class Continued final : public BatchSource {
 public:
  int64_t num_batches() const override { return 3; }
  Order order() const override { return Order::kLanes; }
  Batch load(int64_t /*epoch*/, int64_t index) const override {
    Batch batch;
    batch.sample_ids = {index};
    batch.lanes = {4};
    return batch;
  }
};

TEST(MixedBatches, RefuseMicroBatchesThatContinueLanes) {
  EXPECT_EQ(told(3).batches->order(), Order::kAny);
  EXPECT_EQ(Continued().lanes(0, 2), std::vector<int32_t>{4});
  EXPECT_THROW(mix_batches({told(3), {std::make_shared<Continued>(), 1, 0}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace stretto::data
