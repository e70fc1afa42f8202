#include "optim/weight_average.h"

#include <gtest/gtest.h>

#include <optional>

#include "kernels/cuda/cuda.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Toy;

TEST(WeightAverage, TheDecayRisesToItsValue) {
  struct Row {
    int64_t number;
    double decay;
  };
  const AverageRule warm{.decay = 0.9}, cold{.decay = 0.9, .warm_up = false};
  for (const Row& row : {Row{1, 2.0 / 11}, Row{2, 3.0 / 12}, Row{10, 11.0 / 20}, Row{79, 80.0 / 89},
                         Row{80, 0.9}, Row{81, 0.9}, Row{1'000'000, 0.9}}) {
    EXPECT_DOUBLE_EQ(warm.decay_at(row.number), row.decay) << row.number;
    EXPECT_DOUBLE_EQ(cold.decay_at(row.number), 0.9) << row.number;
  }
}

// Weights that go 1, 2, 3, …; each row is the average after the update.
TEST(WeightAverage, FollowsATableOfUpdates) {
  struct One : torch::nn::Module {
    torch::Tensor p = register_parameter("p", torch::zeros({1}));
  } model;
  Arena arena(model);
  WeightAverage warm({.decay = 0.5}, arena, {0, arena.size()});
  WeightAverage cold({.decay = 0.5, .warm_up = false}, arena, {0, arena.size()});
  // With a warm-up: 9/11, then 1/4 of that and 3/4 of 2, then 4/13 and 9/13 of 3, 5/14 and 9/14
  // of 4, 6/15 and 9/15 of 5.
  const std::vector<double> warm_table{0.8181818, 1.7045455, 2.6013986, 3.5004995, 4.4001998};
  const std::vector<double> cold_table{0.5, 1.25, 2.125, 3.0625, 4.03125};
  for (size_t i = 0; i < warm_table.size(); ++i) {
    arena.params()[0] = static_cast<double>(i + 1);
    warm.update(arena, static_cast<int64_t>(i) + 1);
    cold.update(arena, static_cast<int64_t>(i) + 1);
    EXPECT_NEAR(warm.values()[0].item<double>(), warm_table[i], 1e-6) << i;
    EXPECT_NEAR(cold.values()[0].item<double>(), cold_table[i], 1e-6) << i;
  }
  warm.begin(arena);
  EXPECT_EQ(warm.values()[0].item<double>(), 5);
}

// Weights that go 1, 2, 3, …; each row is the average after the update.
TEST(WeightAverage, AMeanIsTheWeightsUntilItBeginsAndThenThatOfAllSince) {
  struct One : torch::nn::Module {
    torch::Tensor p = register_parameter("p", torch::zeros({1}));
  } model;
  Arena arena(model);
  WeightAverage mean({.is_mean = true}, arena, {0, arena.size()});
  const std::vector<double> table{1, 2, 3, 3.5, 4, 4.5};  // of 3, 3 and 4, 3 to 5, 3 to 6
  for (size_t i = 0; i < table.size(); ++i) {
    if (i == 2) mean.mean_after(2);
    arena.params()[0] = static_cast<double>(i + 1);
    mean.update(arena, static_cast<int64_t>(i) + 1);
    EXPECT_NEAR(mean.values()[0].item<double>(), table[i], 1e-6) << i;
  }
  mean.mean_after(std::nullopt);
  arena.params()[0] = 0.1;
  mean.update(arena, 7);
  EXPECT_TRUE(torch::equal(mean.values(), arena.params()));
}

TEST(WeightAverage, SlicesAndThreadsHaveTheBitsOfTheWhole) {
  const int threads_before = torch::get_num_threads();
  Toy toy;
  Arena arena(toy);
  const AverageRule rule{.decay = 0.99};
  WeightAverage whole(rule, arena, {0, arena.size()}), threaded(rule, arena, {0, arena.size()});
  WeightAverage first(rule, arena, {0, 1003}), second(rule, arena, {1003, arena.size()});
  for (int step = 1; step <= testing::kSteps; ++step) {
    toy.fill_gradients(step);
    arena.params().sub_(arena.grads(), 0.1);
    torch::set_num_threads(1);
    for (WeightAverage* one : {&whole, &first, &second}) one->update(arena, step);
    torch::set_num_threads(3);
    threaded.update(arena, step);
  }
  torch::set_num_threads(threads_before);
  EXPECT_TRUE(torch::equal(threaded.values(), whole.values()));
  EXPECT_TRUE(torch::equal(torch::cat({first.values(), second.values()}), whole.values()));
  EXPECT_FALSE(torch::equal(whole.values(), arena.params()));
}

TEST(WeightAverage, OnCudaEqualsThatOnACpu) {
  if (!kernels::cuda::available()) GTEST_SKIP() << "no GPU, or a build without CUDA";
  Toy here, there;
  there.to(torch::kCUDA);
  Arena arena(here), on_gpu(there);
  WeightAverage one({.decay = 0.9}, arena, {0, arena.size()});
  WeightAverage other({.decay = 0.9}, on_gpu, {0, on_gpu.size()});
  for (int step = 1; step <= testing::kSteps; ++step) {
    here.fill_gradients(step);
    arena.params().sub_(arena.grads(), 0.1);
    on_gpu.params().copy_(arena.params());
    one.update(arena, step);
    other.update(on_gpu, step);
  }
  EXPECT_TRUE(torch::allclose(other.values().cpu(), one.values(), 1e-5, 1e-6));
}

TEST(KeptWeights, ComeBackToTheBit) {
  Toy toy;
  Arena arena(toy);
  const auto before = arena.params().clone();
  {
    const KeptWeights kept(arena);
    arena.params().mul_(0.3);
    EXPECT_FALSE(torch::equal(arena.params(), before));
  }
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

}  // namespace
}  // namespace stretto::optim
