#include "optim/weight_noise.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "optim/normal_noise.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Toy;

constexpr uint64_t kKey = 9;

/// The names of the tensors whose elements all differ; the others must not have moved by a bit.
std::vector<std::string> changed(const Arena& arena, const torch::Tensor& before) {
  std::vector<std::string> names;
  for (const auto& slot : arena.slots()) {
    const torch::Tensor now = Arena::view(arena.params(), slot), then = Arena::view(before, slot);
    if (torch::equal(now, then)) continue;
    EXPECT_TRUE(now.ne(then).all().item<bool>()) << slot.name;
    names.push_back(slot.name);
  }
  return names;
}

TEST(WeightNoise, IsDrawnByNameAndPlaceForMatricesAlone) {
  Toy toy;
  Arena arena(toy);
  WeightNoise noise({.weight_noise = 0.5}, arena);
  const torch::Tensor before = arena.params().clone();
  const NoisyWeights noisy = noise.add(kKey);
  EXPECT_EQ(changed(arena, before), (std::vector<std::string>{"small", "large", "cube"}));
  for (const auto& slot : arena.slots()) {
    if (slot.shape.size() < 2) continue;
    const torch::Tensor want = before.narrow(0, slot.offset, slot.numel) +
                               normal_noise(slot.name, {0, slot.numel}, kKey, 0.5F);
    EXPECT_TRUE(torch::equal(arena.params().narrow(0, slot.offset, slot.numel), want)) << slot.name;
  }
  EXPECT_EQ(testing::sum_of_gaps(arena, arena.params()), 0);
}

TEST(WeightNoise, LeavesTheVeryBitsThatWereThere) {
  Toy toy;
  Arena arena(toy);
  // What a subtraction would lose: weights that vanish beside the noise.
  arena.params().mul_(1e-9);
  const torch::Tensor before = arena.params().clone();
  WeightNoise noise({.weight_noise = 3}, arena);
  for (uint64_t key = 0; key < 3; ++key) {
    {
      const NoisyWeights noisy = noise.add(key);
      EXPECT_FALSE(torch::equal(arena.params(), before));
    }
    EXPECT_TRUE(torch::equal(arena.params(), before)) << key;
  }
}

TEST(WeightNoise, IsAnotherOneForEachKeyAndNoneByDefault) {
  Toy toy;
  Arena arena(toy);
  WeightNoise noise({.weight_noise = 0.1}, arena);
  const torch::Tensor before = arena.params().clone();
  std::vector<torch::Tensor> seen;
  for (const uint64_t key : {1, 2, 1}) {
    const NoisyWeights noisy = noise.add(key);
    seen.push_back(arena.params().clone());
  }
  EXPECT_TRUE(torch::equal(seen[0], seen[2]));
  EXPECT_FALSE(torch::equal(seen[0], seen[1]));
  {
    const NoisyWeights none;
    EXPECT_TRUE(torch::equal(arena.params(), before));
  }
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

TEST(WeightNoise, IsOfTheTensorsThatPatternsName) {
  Toy toy;
  Arena arena(toy);
  const torch::Tensor before = arena.params().clone();
  {
    WeightNoise noise({.weight_noise = 0.5, .weight_noise_tensors = {"bias", "?mall"}}, arena);
    const NoisyWeights noisy = noise.add(kKey);
    EXPECT_EQ(changed(arena, before), (std::vector<std::string>{"small", "bias"}));
  }
  EXPECT_TRUE(torch::equal(arena.params(), before));
  try {
    WeightNoise noise({.weight_noise = 0.5, .weight_noise_tensors = {"smal"}}, arena);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("optim.weight_noise_tensors: `smal` matches no parameter"),
              std::string::npos)
        << error.message();
  }
}

TEST(WeightNoise, OfATensorThatIsDrawnInPartsIsThatOfTheWhole) {
  struct Large : torch::nn::Module {
    torch::Tensor table = register_parameter("table", torch::zeros({1025, 1027}));
  } model;
  Arena arena(model);
  WeightNoise noise({.weight_noise = 1}, arena);
  const NoisyWeights noisy = noise.add(kKey);
  EXPECT_TRUE(torch::equal(arena.params().narrow(0, 0, 1025 * 1027),
                           normal_noise("table", {0, 1025 * 1027}, kKey, 1)));
}

}  // namespace
}  // namespace stretto::optim
