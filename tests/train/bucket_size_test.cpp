#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dist/dist_options.h"
#include "tests/train/thread_group.h"
#include "train/gradient_reducer.h"

namespace stretto::train {
namespace {

struct Table : torch::nn::Module {
  torch::Tensor values;
  Table() { values = register_parameter("values", torch::zeros({3 * (2 << 20) / 4})); }
};

/// In how many pieces the 6 MiB of a gradient leave.
int64_t buckets_of(const dist::DistOptions& options) {
  std::vector<int64_t> buckets(2);
  test::run_ranks(2, [&](const dist::ProcessGroup& group) {
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
  EXPECT_EQ(dist::bucket_bytes_of({}, false), 2 * 1024 * 1024);
  EXPECT_EQ(dist::bucket_bytes_of({}, true), 25 * 1024 * 1024);
  EXPECT_EQ(dist::bucket_bytes_of({.bucket_bytes = 8192}, true), 8192);
}

}  // namespace
}  // namespace stretto::train
