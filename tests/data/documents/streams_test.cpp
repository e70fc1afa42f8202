// A stream of documents as stretches that stand for themselves, and as lanes that go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/documents/lanes.h"
#include "data/documents/stretches.h"
#include "tests/base/failure.h"
#include "tests/data/documents/numbered_documents.h"

namespace stretto::data {
namespace {

using stretto::testing::documents_of;
using stretto::testing::failure;
using Ids = std::vector<int64_t>;

/// What stands before each id of a stream, where a separator stands before the first.
Ids before_each(const Ids& ids) {
  Ids before{0};
  before.insert(before.end(), ids.begin(), ids.end() - 1);
  return before;
}

Ids ids_of(std::span<const int64_t> ids) {
  return {ids.begin(), ids.end()};
}

TEST(Stretches, HaveEachTokenOnceWithTheOneBeforeIt) {
  const auto documents = documents_of({4, 1, 5});  // 1 2 3 4 0 5 0 6 7 8 9 10 0
  struct Case {
    int64_t length, max_tokens;
    size_t batches;
  };
  for (const auto& one : {Case{5, 10, 2}, Case{13, 13, 1}, Case{20, 20, 1}, Case{1, 4, 4}}) {
    const auto source =
        make_stretches(documents, {.length = one.length, .max_tokens = one.max_tokens});
    EXPECT_EQ(source->order(), Order::kAny);
    EXPECT_EQ(source->num_batches(), static_cast<int64_t>(one.batches)) << one.length;
    std::map<int64_t, Ids> inputs, next;
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      const Batch batch = source->load(0, i);
      for (int64_t k = 0; k < batch.num_sequences(); ++k) {
        const int64_t id = batch.sample_ids[static_cast<size_t>(k)];
        EXPECT_TRUE(inputs.emplace(id, ids_of(stream_inputs(batch).sequence(k))).second);
        next[id] = ids_of(stream_next(batch).sequence(k));
      }
    }
    Ids all_inputs, all_next;
    for (const auto& [id, ids] : inputs) {
      EXPECT_LE(std::ssize(ids), one.length);
      all_inputs.insert(all_inputs.end(), ids.begin(), ids.end());
      all_next.insert(all_next.end(), next[id].begin(), next[id].end());
    }
    EXPECT_EQ(all_next, documents->ids()) << one.length;
    EXPECT_EQ(all_inputs, before_each(documents->ids())) << one.length;
  }
}

TEST(Stretches, AreShuffledByEpochAndSeedAlone) {
  const auto documents = documents_of({200});
  const StretchSetting setting{
      .length = 4, .max_tokens = 8, .shuffle = Shuffle::kEachEpoch, .seed = 7};
  const auto one = make_stretches(documents, setting), other = make_stretches(documents, setting);
  std::set<Ids> orders;
  for (const int64_t epoch : {0, 1, 2}) {
    Ids order;
    std::set<int64_t> ids;
    for (int64_t i = one->num_batches() - 1; i >= 0; --i) {
      const auto sample_ids = one->load(epoch, i).sample_ids;
      EXPECT_EQ(other->sample_ids(epoch, i), sample_ids);
      order.insert(order.end(), sample_ids.begin(), sample_ids.end());
      ids.insert(sample_ids.begin(), sample_ids.end());
    }
    EXPECT_EQ(ids.size(), 51u) << "201 ids in stretches of 4";
    EXPECT_EQ(order.size(), 51u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u);
}

/// The stretches of an epoch by their numbers: inputs, and the tokens behind them.
std::map<int64_t, std::pair<Ids, Ids>> stretches_of(const BatchSource& source, int64_t epoch) {
  std::map<int64_t, std::pair<Ids, Ids>> found;
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const Batch batch = source.load(epoch, i);
    for (int64_t k = 0; k < batch.num_sequences(); ++k) {
      const bool is_new = found
                              .emplace(batch.sample_ids[static_cast<size_t>(k)],
                                       std::pair{ids_of(stream_inputs(batch).sequence(k)),
                                                 ids_of(stream_next(batch).sequence(k))})
                              .second;
      EXPECT_TRUE(is_new);
    }
  }
  return found;
}

TEST(Stretches, MayBeCutFromAnotherPlaceOnInEachEpoch) {
  const auto documents = documents_of({4, 1, 5, 30});  // 44 ids
  const Ids& ids = documents->ids();
  for (const int64_t length : {1, 5, 11, 44, 100}) {
    const StretchSetting setting{.length = length,
                                 .max_tokens = 200,
                                 .shuffle = Shuffle::kEachEpoch,
                                 .random_start = true,
                                 .seed = 7};
    const auto source = make_stretches(documents, setting);
    const auto other = make_stretches(documents, setting);
    std::set<int64_t> starts;
    for (const int64_t epoch : {0, 1, 2, 3, 9}) {
      const auto stretches = stretches_of(*source, epoch);
      EXPECT_EQ(stretches, stretches_of(*other, epoch));
      Ids inputs, next;
      for (const auto& [number, columns] : stretches) {
        EXPECT_LE(std::ssize(columns.second), length);
        EXPECT_EQ(columns.first.size(), columns.second.size());
        inputs.insert(inputs.end(), columns.first.begin(), columns.first.end());
        next.insert(next.end(), columns.second.begin(), columns.second.end());
      }
      // The stream from some place on to its end, and on from its begin.
      bool is_turned = false;
      for (size_t start = 0; start < ids.size() && !is_turned; ++start) {
        const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(start);
        Ids turned(middle, ids.end());
        turned.insert(turned.end(), ids.begin(), middle);
        Ids before{start == 0 ? ids.back() : *(middle - 1)};
        before.insert(before.end(), turned.begin(), turned.end() - 1);
        is_turned = next == turned && inputs == before;
        if (is_turned) starts.insert(static_cast<int64_t>(start));
      }
      EXPECT_TRUE(is_turned) << "epoch " << epoch << ", stretches of " << length;
    }
    EXPECT_GE(starts.size(), 3u) << "of five epochs";
  }
}

TEST(Stretches, MustFitIntoAMicroBatch) {
  const auto documents = documents_of({200});
  failure(ExitCode::kUsage, [&] { make_stretches(documents, {.length = 9, .max_tokens = 8}); });
  EXPECT_THROW(make_stretches(documents, {.length = 0, .max_tokens = 8}), std::invalid_argument);
}

/// A lane of some epochs, stretch after stretch: its columns and the ids of its samples.
struct ReadLane {
  Ids inputs, next, samples, lengths;
};

std::map<int32_t, ReadLane> read_lanes(const BatchSource& source, int64_t first_epoch,
                                       int64_t epochs) {
  std::map<int32_t, ReadLane> lanes;
  for (int64_t epoch = first_epoch; epoch < first_epoch + epochs; ++epoch) {
    for (int64_t i = 0; i < source.num_batches(); ++i) {
      const Batch batch = source.load(epoch, i);
      EXPECT_EQ(source.lanes(epoch, i), batch.lanes);
      EXPECT_EQ(source.sample_ids(epoch, i), batch.sample_ids);
      EXPECT_EQ(std::ssize(batch.lanes), batch.num_sequences());
      for (int64_t k = 0; k < batch.num_sequences(); ++k) {
        auto& lane = lanes[batch.lanes[static_cast<size_t>(k)]];
        const auto inputs = stream_inputs(batch).sequence(k), next = stream_next(batch).sequence(k);
        lane.inputs.insert(lane.inputs.end(), inputs.begin(), inputs.end());
        lane.next.insert(lane.next.end(), next.begin(), next.end());
        lane.samples.push_back(batch.sample_ids[static_cast<size_t>(k)]);
        lane.lengths.push_back(std::ssize(next));
      }
    }
  }
  return lanes;
}

TEST(DocumentLanes, HaveEachTokenOnceInAnEpochInStretchesOfAboutEqualLength) {
  for (const int64_t tokens : {5, 6, 7, 23, 24, 25, 100}) {
    const auto documents = documents_of({tokens, 1});
    for (const int64_t lanes : {1, 2, 3}) {
      for (const int64_t length : {2, 3, 8, 1000}) {
        for (int64_t groups = 1; groups <= lanes; ++groups) {
          const auto source =
              make_lanes(documents, {.lanes = lanes, .groups = groups, .length = length});
          EXPECT_EQ(source->order(), Order::kLanes);
          const auto read = read_lanes(*source, 0, 1);
          EXPECT_EQ(std::ssize(read), lanes);
          Ids next, inputs, samples;
          for (const auto& [number, lane] : read) {
            next.insert(next.end(), lane.next.begin(), lane.next.end());
            inputs.insert(inputs.end(), lane.inputs.begin(), lane.inputs.end());
            samples.insert(samples.end(), lane.samples.begin(), lane.samples.end());
            const auto [least, most] =
                std::minmax_element(lane.lengths.begin(), lane.lengths.end());
            EXPECT_GE(*least, 1);
            EXPECT_LE(*most, length);
            EXPECT_LE(*most - *least, 1);
            EXPECT_EQ(std::ssize(lane.lengths), source->num_batches() / groups);
          }
          EXPECT_EQ(next, documents->ids()) << tokens << " " << lanes << " " << length;
          EXPECT_EQ(inputs, before_each(documents->ids()));
          Ids places(samples.size());
          std::iota(places.begin(), places.end(), 0);
          EXPECT_EQ(samples, places) << "in the order of the text";
        }
      }
    }
  }
}

TEST(DocumentLanes, GoOnWhereTheirTextDoesFromEpochToEpoch) {
  const auto documents = documents_of({50, 49});  // 101 ids
  const auto source = make_lanes(documents, {.lanes = 4, .groups = 2, .length = 6});
  const auto& ids = documents->ids();
  for (const auto& [number, lane] : read_lanes(*source, 0, 4)) {
    // From the lane's own part to the end of the text, and on from its begin.
    const size_t begin = ids.size() * static_cast<size_t>(number) / 4;
    Ids wanted(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end());
    wanted.insert(wanted.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(begin));
    EXPECT_EQ(lane.next, wanted) << number;
  }
  EXPECT_EQ(read_lanes(*source, 5, 1).at(3).next, read_lanes(*source, 1, 1).at(3).next);
}

TEST(DocumentLanes, KeepTheirPlaceInAnUpdate) {
  const auto source = make_lanes(documents_of({100}), {.lanes = 7, .groups = 3, .length = 5});
  for (int64_t i = 0; i < source->num_batches(); ++i) {
    for (const int32_t lane : source->lanes(2, i)) EXPECT_EQ(lane % 3, i % 3);
  }
  EXPECT_EQ(source->num_batches() % 3, 0);
  EXPECT_THROW(source->load(0, source->num_batches()), std::out_of_range);
  EXPECT_THROW(source->load(0, -1), std::out_of_range);
}

TEST(DocumentLanes, NeedTwoTokensEach) {
  const auto documents = documents_of({4});  // 5 ids
  EXPECT_NE(failure(ExitCode::kBadData, [&] { make_lanes(documents, {.lanes = 3, .length = 4}); })
                .message()
                .find("a text of 5 tokens is too short for 3 lanes"),
            std::string::npos);
  EXPECT_EQ(make_lanes(documents, {.lanes = 2, .length = 4})->num_batches(), 1);
  EXPECT_THROW(make_lanes(documents, {.lanes = 2, .length = 1}), std::invalid_argument);
  EXPECT_THROW(make_lanes(documents, {.lanes = 2, .groups = 3, .length = 4}),
               std::invalid_argument);
}

LaneSetting varied(int64_t lanes, int64_t length, double halved) {
  return {.lanes = lanes, .length = length, .deviation = 5, .halved = halved, .seed = 7};
}

TEST(VariedLanes, HaveEachTokenOnceInEveryEpoch) {
  for (const int64_t tokens : {5, 6, 24, 100, 1000}) {
    const auto documents = documents_of({tokens});
    for (const int64_t lanes : {1, 2, 3}) {
      for (const int64_t length : {2, 5, 35, 2000}) {
        const auto source = make_lanes(documents, varied(lanes, length, 0.05));
        for (const int64_t epoch :
             {int64_t{0}, lanes}) {  // of both epochs lane 0 has the first part
          Ids next;
          for (const auto& [number, lane] : read_lanes(*source, epoch, 1)) {
            next.insert(next.end(), lane.next.begin(), lane.next.end());
            EXPECT_GE(*std::min_element(lane.lengths.begin(), lane.lengths.end()), 1);
          }
          EXPECT_EQ(next, documents->ids()) << tokens << " " << lanes << " " << length;
        }
      }
    }
  }
}

TEST(VariedLanes, AreAFunctionOfSeedEpochAndIndex) {
  const auto documents = documents_of({20'000});
  const auto one = make_lanes(documents, varied(4, 35, 0.05));
  const auto other = make_lanes(documents, varied(4, 35, 0.05));
  auto setting = varied(4, 35, 0.05);
  setting.seed = 8;
  const auto seeded = make_lanes(documents, setting);
  const auto lengths = [](const BatchSource& source, int64_t epoch, bool backwards) {
    Ids all;
    for (int64_t i = 0; i < source.num_batches(); ++i) {
      const int64_t index = backwards ? source.num_batches() - 1 - i : i;
      all.push_back(stream_next(source.load(epoch, index)).length(0));
    }
    if (backwards) std::reverse(all.begin(), all.end());
    return all;
  };
  const Ids first = lengths(*one, 0, false);
  for (const int64_t epoch : {5, 3, 1, 9, 2}) lengths(*other, epoch, false);
  EXPECT_EQ(lengths(*other, 0, true), first);
  EXPECT_NE(lengths(*one, 1, false), first);
  EXPECT_NE(lengths(*seeded, 0, false), first);
}

TEST(VariedLanes, AreAsLongAsTheyAreDrawnAndAllLanesAlike) {
  const auto documents = documents_of({400'000});
  for (const double halved : {0.0, 0.5}) {
    const auto source = make_lanes(documents, varied(2, 70, halved));
    int64_t short_ones = 0;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      const Batch batch = source->load(3, i);
      const auto length = static_cast<double>(stream_next(batch).length(0));
      EXPECT_NEAR(length, static_cast<double>(stream_next(batch).length(1)), 1);
      EXPECT_NEAR(source->rate_factor(3, i), length / 70, 1.01 / 70);
      short_ones += length < 52 ? 1 : 0;
      sum += length;
      squares += length * length;
    }
    const auto count = static_cast<double>(source->num_batches());
    const double mean = sum / count, deviation = std::sqrt(squares / count - mean * mean);
    EXPECT_NEAR(mean, 70 * (1 - halved / 2), 0.5);
    EXPECT_NEAR(static_cast<double>(short_ones) / count, halved, 0.02);
    // The deviation of N(70, 5) alone, and of a mixture with N(35, 5).
    EXPECT_NEAR(deviation, halved == 0 ? 5 : std::sqrt(25 + 17.5 * 17.5), 0.4);
  }
}

TEST(VariedLanes, LengthsAndRatesFollowATable) {
  const auto source = make_lanes(documents_of({999}), varied(2, 35, 0.05));
  const auto even = make_lanes(documents_of({999}), {.lanes = 2, .length = 35});
  Ids lengths;
  double rates = 0;
  for (int64_t i = 0; i < source->num_batches(); ++i) {
    lengths.push_back(stream_next(source->load(0, i)).length(0));
    rates += source->rate_factor(0, i);
    EXPECT_EQ(even->rate_factor(0, i % even->num_batches()), 1);
  }
  EXPECT_EQ(lengths, (Ids{27, 34, 33, 32, 42, 32, 39, 31, 36, 40, 30, 36, 31, 24, 33}));
  EXPECT_NEAR(rates, 500.0 / 35, 1e-9) << "as much as all tokens of a lane";
}

TEST(VariedLanes, RefuseNumbersThatMeanNothing) {
  const auto documents = documents_of({100});
  EXPECT_THROW(make_lanes(documents, {.lanes = 2, .length = 5, .deviation = -1}),
               std::invalid_argument);
  EXPECT_THROW(make_lanes(documents, varied(2, 5, 1.5)), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::data
