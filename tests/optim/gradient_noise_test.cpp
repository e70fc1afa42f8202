#include "optim/gradient_noise.h"

#include <cmath>

#include "base/hash.h"
#include "base/random.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Toy;

TEST(GradientNoise, ItsDeviationFallsWithTheStep) {
  struct Row {
    double eta, decay;
    int64_t step;
    double deviation;
  };
  for (const Row& row :
       {Row{0.3, 0.55, 0, 0.5477226}, Row{0.3, 0.55, 1, 0.4526655}, Row{0.3, 0.55, 99, 0.1543692},
        Row{0.01, 0.55, 0, 0.1}, Row{0.25, 0, 1000, 0.5}, Row{1, 1, 3, 0.5}}) {
    EXPECT_NEAR(gradient_noise_deviation(row.eta, row.decay, row.step), row.deviation, 1e-6)
        << row.eta << ", step " << row.step;
  }
}

torch::Tensor noise(Arena& arena, const std::vector<int64_t>& begins, uint64_t key = 9,
                    double deviation = 1) {
  arena.zero_grads();
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    add_gradient_noise(arena, {begins[i], begins[i + 1]}, key, deviation);
  }
  return arena.grads().clone();
}

TEST(GradientNoise, IsStandardNormalAndOfItsOwnForEachTensorAndKey) {
  struct Wide : torch::nn::Module {
    torch::Tensor a = register_parameter("a", torch::zeros({300, 300}));
    torch::Tensor b = register_parameter("b", torch::zeros({300, 300}));
  } model;
  Arena arena(model);
  const torch::Tensor all = noise(arena, {0, arena.size()}).to(torch::kDouble);
  const torch::Tensor a = all.narrow(0, 0, 90'000), b = all.narrow(0, 90'000, 90'000);
  for (const auto& one : {a, b}) {
    EXPECT_NEAR(one.mean().item<double>(), 0, 0.015);
    EXPECT_NEAR(one.square().mean().item<double>(), 1, 0.02);
    EXPECT_NEAR(one.pow(4).mean().item<double>(), 3, 0.15);
  }
  EXPECT_NEAR((a * b).mean().item<double>(), 0, 0.015);
  EXPECT_NEAR((a.slice(0, 0, -1) * a.slice(0, 1)).mean().item<double>(), 0, 0.015);
  const torch::Tensor other = noise(arena, {0, arena.size()}, /*key=*/10).to(torch::kDouble);
  EXPECT_NEAR((all * other).mean().item<double>(), 0, 0.012);
  EXPECT_TRUE(torch::allclose(noise(arena, {0, arena.size()}, 9, 0.25).to(torch::kDouble),
                              0.25 * all, 1e-6, 1e-7));
}

TEST(GradientNoise, IsBoxMullerOverPhiloxByNameAndPlace) {
  Toy toy;
  Arena arena(toy);
  const torch::Tensor got = noise(arena, {0, arena.size()});
  for (const auto& slot : arena.slots()) {
    for (int64_t i = 0; i < slot.numel; ++i) {
      const auto words = Philox::at(9, xxh3_64(slot.name), static_cast<uint64_t>(i / 4));
      const size_t pair = i % 4 < 2 ? 0 : 2;
      const double uniform = ((words[pair] >> 8) + 1) / 16777216.0;
      const double angle = 2 * M_PI * (words[pair + 1] >> 8) / 16777216.0;
      const double want =
          std::sqrt(-2 * std::log(uniform)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      ASSERT_NEAR(got[slot.offset + i].item<double>(), want, 1e-5) << slot.name << '[' << i << ']';
    }
  }
  EXPECT_EQ(testing::sum_of_gaps(arena, got), 0);
}

TEST(GradientNoise, SlicesAndThreadsHaveTheBitsOfTheWhole) {
  const int before = torch::get_num_threads();
  Toy toy;
  Arena arena(toy);
  const torch::Tensor whole = noise(arena, {0, arena.size()});
  EXPECT_TRUE(torch::equal(noise(arena, {0, 17, 1003, 1003, arena.size()}), whole));
  torch::set_num_threads(3);
  EXPECT_TRUE(torch::equal(noise(arena, {0, arena.size()}), whole));
  torch::set_num_threads(before);
}

TEST(GradientNoise, IsAddedToWhatIsThere) {
  Toy toy;
  Arena arena(toy);
  const torch::Tensor alone = noise(arena, {0, arena.size()});
  toy.fill_gradients(1);
  const torch::Tensor gradient = arena.grads().clone();
  add_gradient_noise(arena, {0, arena.size()}, 9, 1);
  EXPECT_TRUE(torch::equal(arena.grads(), gradient + alone));
}

}  // namespace
}  // namespace stretto::optim
