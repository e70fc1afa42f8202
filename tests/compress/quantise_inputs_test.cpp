#include "compress/quantise_inputs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "kernels/gemm/linear_inputs.h"
#include "kernels/kernels.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::compress {
namespace {

using stretto::testing::noise;

/// A merged map, one map more and a table that is the output projection too.
struct SmallNet : torch::nn::Module {
  SmallNet() {
    const nn::Init init(1, at::kCPU);
    merged = register_module(
        "merged", nn::Linear(init.child("merged"), 6, 12, nn::LinearOptions{.parts = 3}));
    out = register_module("out", nn::Linear(init.child("out"), 12, 5));
    table = register_module("table", nn::Embedding(init.child("table"), 10, 5, -1));
  }
  nn::Linear merged{nullptr}, out{nullptr};
  nn::Embedding table{nullptr};
};

at::Tensor squares(const at::Tensor& x) {
  return x.t().matmul(x);
}

TEST(QuantiseInputs, AreSummedByTheNameOfTheWeight) {
  SmallNet net;
  const at::NoGradGuard no_grad;
  const at::Tensor a = noise({7, 6}, 1), b = noise({4, 6}, 2);
  InputStatistics statistics(net);
  const at::Tensor y = net.merged->forward(a);
  net.merged->forward(b);
  net.out->forward(y);
  const auto found = statistics.found();
  ASSERT_EQ(found.size(), 2U);
  ASSERT_EQ(found.at("merged.weight").size(), 1U);
  const RowInputs& merged = found.at("merged.weight")[0];
  EXPECT_EQ(merged.from, 0);
  EXPECT_EQ(merged.count, 12);
  EXPECT_EQ(merged.num_rows, 11);
  EXPECT_TRUE(at::allclose(merged.moments, squares(a) + squares(b), 1e-4, 1e-4));
  EXPECT_EQ(merged.lowest, std::min(a.min().item<double>(), b.min().item<double>()));
  EXPECT_EQ(merged.highest, std::max(a.max().item<double>(), b.max().item<double>()));
  EXPECT_TRUE(at::allclose(found.at("out.weight")[0].moments, squares(y), 1e-4, 1e-4));
}

TEST(QuantiseInputs, PartsOfAMergedMapHaveTheirOwn) {
  SmallNet net;
  const at::NoGradGuard no_grad;
  const at::Tensor a = noise({7, 6}, 1), b = noise({4, 6}, 2);
  InputStatistics statistics(net);
  net.merged->rows(a, 0, 4);
  net.merged->rows(b, 4, 8);
  const auto found = statistics.found().at("merged.weight");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].from, 0);
  EXPECT_EQ(found[0].count, 4);
  EXPECT_EQ(found[0].num_rows, 7);
  EXPECT_EQ(found[1].from, 4);
  EXPECT_EQ(found[1].count, 8);
  EXPECT_TRUE(at::allclose(found[1].moments, squares(b), 1e-4, 1e-4));
}

TEST(QuantiseInputs, AreThoseOfAProjectionBehindWhichALossStandsToo) {
  SmallNet net;
  const at::NoGradGuard no_grad;
  const at::Tensor x = noise({7, 12}, 1);
  InputStatistics statistics(net);
  kernels::linear_cross_entropy(x, net.out->weight, at::zeros({7}, at::kLong), 0.1, 5,
                                net.out->bias, 0);
  const auto found = statistics.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(at::allclose(found.at("out.weight")[0].moments, squares(x), 1e-4, 1e-4));
}

TEST(QuantiseInputs, LeaveOutTablesTrainingAndOtherModels) {
  SmallNet net, other;
  InputStatistics statistics(net);
  net.out->forward(noise({3, 12}));
  {
    const at::NoGradGuard no_grad;
    other.out->forward(noise({3, 12}));
    kernels::linear(noise({3, 5}), net.table->weight);
  }
  EXPECT_TRUE(statistics.found().empty());
}

TEST(QuantiseInputs, AreTakenByOneAtATime) {
  SmallNet net;
  {
    InputStatistics statistics(net);
    EXPECT_THROW(InputStatistics second(net), c10::Error);
  }
  const at::NoGradGuard no_grad;
  net.out->forward(noise({3, 12}));
  InputStatistics later(net);
  EXPECT_TRUE(later.found().empty());
}

}  // namespace
}  // namespace stretto::compress
