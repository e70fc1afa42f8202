#include "parallel/ordered_sum.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "parallel/buckets.h"
#include "tests/distributed/thread_group.h"

namespace stretto::parallel {
namespace {

using stretto::test::run_ranks;

constexpr int64_t kSize = 21;

/// Gradients whose sizes differ so much that each order of additions has a sum of its own.
at::Tensor gradient(int64_t micro_batch) {
  const at::Tensor x = at::arange(kSize, at::kFloat) + 1;
  return at::sin(x * static_cast<double>(7 * micro_batch + 1)) *
         std::pow(10.0, static_cast<double>((3 * micro_batch) % 5 - 2));
}

at::Tensor in_order(int64_t micro_batches) {
  at::Tensor sum = at::zeros({kSize});
  for (int64_t j = 0; j < micro_batches; ++j) sum += gradient(j);
  return sum;
}

/// What stands in the gradients of each rank after two updates; the last has `micro_batches`.
std::vector<at::Tensor> sums(int ranks, int64_t micro_batches, bool everywhere) {
  std::vector<at::Tensor> all(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](distributed::ProcessGroup group) {
    at::Tensor grads = at::zeros({kSize});
    OrderedSum sum(grads, group, equal_slices(kSize, ranks, 4));
    for (const int64_t count : {int64_t{2}, micro_batches}) {
      const int64_t mine = (count - group.rank() + ranks - 1) / ranks;
      sum.begin(mine);
      for (int64_t round = 0; sum.has_rounds(); ++round) {
        // A rank that has none left does not matter, whatever it holds.
        grads.fill_(std::numeric_limits<double>::quiet_NaN());
        if (round < mine) grads.copy_(gradient(round * ranks + group.rank()));
        sum.add_round();
      }
      sum.finish(everywhere);
    }
    all[static_cast<size_t>(group.rank())] = grads.clone();
  });
  return all;
}

TEST(OrderedSum, AddsMicroBatchesInTheirOrderForAnyNumberOfProcesses) {
  EXPECT_FALSE(at::equal(in_order(7), in_order(7).zero_() + gradient(6) + gradient(5) +
                                          gradient(4) + gradient(3) + gradient(2) + gradient(1) +
                                          gradient(0)))
      << "any order would do";
  for (const int64_t micro_batches : {1, 2, 3, 7}) {
    for (const int ranks : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(micro_batches) + " on " + std::to_string(ranks));
      for (const auto& sum : sums(ranks, micro_batches, true)) {
        EXPECT_TRUE(at::equal(sum, in_order(micro_batches)));
      }
    }
  }
}

TEST(OrderedSum, WithoutEverywhereARankHasItsSlice) {
  const auto begins = equal_slices(kSize, 3, 4);
  const auto all = sums(3, 5, false);
  for (size_t rank = 0; rank < 3; ++rank) {
    const auto slice = [&](const at::Tensor& x) {
      return x.narrow(0, begins[rank], begins[rank + 1] - begins[rank]);
    };
    EXPECT_TRUE(at::equal(slice(all[rank]), slice(in_order(5)))) << rank;
  }
}

TEST(OrderedSum, CountsTheBytesOfOneUpdate) {
  constexpr int64_t kBytes = kSize * 4;
  run_ranks(2, [](distributed::ProcessGroup group) {
    OrderedSum sum(at::zeros({kSize}), group, equal_slices(kSize, 2, 4));
    for (int update = 0; update < 2; ++update) {
      sum.begin(2 - group.rank());  // three in all: two rounds
      while (sum.has_rounds()) sum.add_round();
      EXPECT_EQ(sum.bytes(), 2 * kBytes);
      sum.finish(/*everywhere=*/true);
      EXPECT_EQ(sum.bytes(), 3 * kBytes);
    }
  });
  OrderedSum alone(at::zeros({kSize}), {}, {0, kSize});
  alone.begin(2);
  while (alone.has_rounds()) alone.add_round();
  alone.finish(true);
  EXPECT_EQ(alone.bytes(), 0);
}

}  // namespace
}  // namespace stretto::parallel
