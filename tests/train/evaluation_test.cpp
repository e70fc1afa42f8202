#include "train/evaluation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/length_batches.h"
#include "data/samples_in_memory.h"
#include "tests/distributed/played_group.h"
#include "tests/distributed/thread_group.h"
#include "tests/kernels/scopes.h"

namespace stretto::train {
namespace {

constexpr int64_t kSamples = 23;

/// Batches of up to 3 samples, from short to long, so that their order is not that of the samples.
std::unique_ptr<data::BatchSource> batches_of_samples() {
  data::Batch samples{.sample_ids = {}, .columns = {data::PackedTokens{}}};
  for (int64_t i = 0; i < kSamples; ++i) {
    samples.sample_ids.push_back(i);
    samples.column<int64_t>(0).append(std::vector<int64_t>(static_cast<size_t>(1 + 5 * i % 7), i));
  }
  return data::make_length_batches(std::make_shared<data::SamplesInMemory>(std::move(samples)),
                                   {.max_rows = {0}, .max_samples = 3}, data::Shuffle::kNo, 0);
}

/// Parts without a batch.
EvaluationParts empty_parts(int64_t count) {
  return {.count = count, .load = [](int64_t) { return std::vector<data::Batch>(); }};
}

/// Numbers whose sum depends on the order in which they are added.
double number_of(int64_t sample) {
  return std::pow(10.0, sample % 17) / (3 + static_cast<double>(sample));
}

/// The number of each sample.
ScoreTable evaluated(const EvaluationSetup& setup) {
  const auto batches = batches_of_samples();
  return evaluate(parts_of(*batches), ScoreTable(kSamples, 1), setup,
                  [&](int64_t /*part*/, std::span<const Prepared> read, ScoreTable& table) {
                    for (const int64_t sample : read.front().batch().sample_ids) {
                      table.row(sample)[0] = number_of(sample);
                    }
                  });
}

std::vector<double> sums_of_batches(const EvaluationSetup& setup) {
  return evaluate_sums(*batches_of_samples(), 2, setup,
                       [](const data::Batch& batch) -> std::vector<double> {
                         double sum = 0;
                         for (const int64_t sample : batch.sample_ids) sum += number_of(sample);
                         return {sum, static_cast<double>(batch.num_sequences())};
                       });
}

TEST(Evaluation, SumsHaveTheSameBitsForAnyNumberOfProcessesAndThreads) {
  double expected = 0, expected_of_batches = 0;
  for (int64_t i = 0; i < kSamples; ++i) expected += number_of(i);
  const auto batches = batches_of_samples();
  for (int64_t number = 0; number < batches->num_batches(); ++number) {
    double sum = 0;
    for (const int64_t sample : batches->sample_ids(0, number)) sum += number_of(sample);
    expected_of_batches += sum;
  }
  for (const BatchThreads how : {BatchThreads::kOne, BatchThreads::kAll}) {
    for (const int threads : {1, 3}) {
      const testing::Threads scope(threads);
      for (const int processes : {1, 2, 3, 9}) {
        std::mutex mutex;
        stretto::test::run_ranks(processes, [&](const distributed::ProcessGroup& group) {
          const auto table = evaluated({.group = group, .threads = how});
          const auto sums = sums_of_batches({.group = group, .threads = how});
          const std::lock_guard lock(mutex);
          EXPECT_EQ(table.sum(0), expected) << processes << " processes, " << threads << " threads";
          EXPECT_EQ(sums, (std::vector<double>{expected_of_batches, kSamples}));
          for (int64_t i = 0; i < kSamples; ++i) EXPECT_EQ(table.row(i)[0], number_of(i));
        });
      }
    }
  }
}

TEST(Evaluation, EachPartIsComputedOnceWithoutGradients) {
  for (const BatchThreads how : {BatchThreads::kOne, BatchThreads::kAll}) {
    for (const int64_t parts : {0, 1, 7}) {
      std::atomic<int> calls = 0;
      const auto table = evaluate(empty_parts(parts), ScoreTable(parts, 1), {.threads = how},
                                  [&](int64_t part, std::span<const Prepared>, ScoreTable& found) {
                                    ++calls;
                                    found.row(part)[0] = at::GradMode::is_enabled() ? 100 : 1;
                                  });
      EXPECT_EQ(calls, parts);
      EXPECT_EQ(table.sum(0), static_cast<double>(parts));
    }
  }
}

TEST(Evaluation, AFailureIsThrownAsItIs) {
  for (const BatchThreads how : {BatchThreads::kOne, BatchThreads::kAll}) {
    EXPECT_THROW(evaluate(empty_parts(5), ScoreTable(5, 1), {.threads = how},
                          [](int64_t part, std::span<const Prepared>, ScoreTable&) {
                            if (part == 3) throw std::out_of_range("the fourth");
                          }),
                 std::out_of_range);
  }
}

// A batch has its columns as tensors, wherever it was prepared and however far ahead.
TEST(Evaluation, BatchesArePreparedAsTrainingPreparesThem) {
  const auto batches = batches_of_samples();
  const Prepare prepare = [](data::Batch batch) {
    EXPECT_FALSE(at::GradMode::is_enabled());
    Prepared made(std::move(batch));
    made.add(made.column(0).sum());
    return made;
  };
  for (const BatchThreads how : {BatchThreads::kOne, BatchThreads::kAll}) {
    for (const int64_t threads : {1, 4}) {
      stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
        const auto sums =
            evaluate_sums(*batches, 1,
                          {.group = group,
                           .threads = how,
                           .loading = {.depth = 5, .threads = threads},
                           .prepare = prepare},
                          [](const Prepared& batch) -> std::vector<double> {
                            const auto& values = batch.batch().column<int64_t>(0).values;
                            EXPECT_EQ(batch.tensor().item<int64_t>(),
                                      std::accumulate(values.begin(), values.end(), int64_t{0}));
                            return {1};
                          });
        EXPECT_EQ(sums.front(), static_cast<double>(batches->num_batches()));
      });
    }
  }
}

TEST(Evaluation, AFailureOfPreparingIsThrownAsItIs) {
  const auto batches = batches_of_samples();
  const Prepare prepare = [](data::Batch batch) {
    if (std::ranges::count(batch.sample_ids, 14) > 0)
      throw std::out_of_range("sample 14 is no picture");
    return Prepared(std::move(batch));
  };
  for (const BatchThreads how : {BatchThreads::kOne, BatchThreads::kAll}) {
    std::string said;
    try {
      evaluate_sums(*batches, 1, {.threads = how, .prepare = prepare},
                    [](const Prepared&) { return std::vector<double>{1}; });
    } catch (const std::out_of_range& error) {
      said = error.what();
    }
    EXPECT_EQ(said, "sample 14 is no picture");
  }
}

TEST(Evaluation, EndsWhenAPeerIsLost) {
  for (const BatchThreads how : {BatchThreads::kOne, BatchThreads::kAll}) {
    int computed = 0;
    const EvaluationSetup alone{.group = stretto::test::group_that_lost_a_peer(), .threads = how};
    EXPECT_THROW(evaluate(empty_parts(4), ScoreTable(4, 1), alone,
                          [&](int64_t, std::span<const Prepared>, ScoreTable&) { ++computed; }),
                 std::runtime_error);
    EXPECT_EQ(computed, 0);
  }
}

TEST(ScoreTable, TakesTensorsOfAnyTypeIntoTheRowsOfSamples) {
  ScoreTable table(4, 3);
  const std::vector<int64_t> samples{3, 1};
  table.fill(samples, 0, at::tensor({1.5f, 2.5f, 3.5f, 4.5f}).view({2, 2}));
  table.fill(samples, 2, at::tensor({7, 8}, at::kLong));
  const auto row = [&](int64_t i) {
    const auto numbers = table.row(i);
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(row(0), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(row(1), (std::vector<double>{3.5, 4.5, 8}));
  EXPECT_EQ(row(3), (std::vector<double>{1.5, 2.5, 7}));
}

TEST(ScoreTable, NumbersThatAreNotFiniteReachEveryProcess) {
  stretto::test::run_ranks(3, [](const distributed::ProcessGroup& group) {
    ScoreTable table(3, 1);
    const double numbers[] = {std::numeric_limits<double>::infinity(), std::nan(""), 0.1};
    table.row(group.rank())[0] = numbers[group.rank()];
    table.merge(group);
    EXPECT_EQ(table.row(0)[0], numbers[0]);
    EXPECT_TRUE(std::isnan(table.row(1)[0]));
    EXPECT_EQ(table.row(2)[0], 0.1);
  });
}

TEST(Evaluation, EveryProcessHasAllAnswers) {
  const std::vector<std::string> all{"one", std::string("\0\n\xff", 3), "", std::string(1000, 'x')};
  for (const int processes : {1, 2, 3, 6}) {
    stretto::test::run_ranks(processes, [&](const distributed::ProcessGroup& group) {
      std::vector<std::string> answers(all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        if (static_cast<int>(i) % group.size() == group.rank()) answers[i] = all[i];
      }
      merge_answers(group, answers);
      EXPECT_EQ(answers, all) << processes << " processes";
    });
  }
}

}  // namespace
}  // namespace stretto::train
