#include <gtest/gtest.h>
#include <torch/torch.h>

#include "distributed/dist_options.h"
#include "parallel/gradient_reducer.h"
#include "tests/distributed/thread_group.h"

namespace stretto::parallel {
namespace {

struct Table : torch::nn::Module {
  torch::Tensor values;
  Table() { values = register_parameter("values", torch::zeros({3 * (2 << 20) / 4})); }
};

/// In how many parts the 6 MiB of a gradient leave.
int64_t buckets_of(const distributed::DistOptions& options) {
  std::vector<int64_t> buckets(2);
  test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
    Table table;
    optim::Arena arena(table);
    GradientReducer reducer(arena, group, options);
    reducer.begin(1);
    reducer.before_backward(0);
    table.values.sum().backward();
    reducer.after_backward(0);
    reducer.finish();
    buckets[static_cast<size_t>(group.rank())] = reducer.stats().buckets;
  });
  EXPECT_EQ(buckets[0], buckets[1]);
  return buckets[0];
}

TEST(BucketSize, WithoutNcclAutomaticBucketsHaveTwoMebibytes) {
  EXPECT_EQ(buckets_of({.overlap = false}), 3);
  EXPECT_EQ(buckets_of({.bucket_bytes = 3 << 20, .overlap = false}), 2);
}

TEST(BucketSize, IsThatOfWhatCarriesTheBuckets) {
  EXPECT_EQ(distributed::bucket_bytes_of({}, false), 2 * 1024 * 1024);
  EXPECT_EQ(distributed::bucket_bytes_of({}, true), 25 * 1024 * 1024);
  EXPECT_EQ(distributed::bucket_bytes_of({.bucket_bytes = 8192}, true), 8192);
}

}  // namespace
}  // namespace stretto::parallel
