#include "optim/arena.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "kernels/kernels.h"
#include "optim/optimizer.h"

namespace stretto::optim {
namespace {

struct TwoLayers : torch::nn::Module {
  torch::nn::Linear first{nullptr}, second{nullptr};
  TwoLayers() {
    torch::manual_seed(3);
    first = register_module("first", torch::nn::Linear(6, 5));
    second = register_module("second", torch::nn::Linear(5, 6));
  }
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::relu(first(x))); }
};

struct Tied : torch::nn::Module {
  torch::Tensor shared;
  Tied() {
    shared = register_parameter("a", torch::ones({4, 4}));
    register_parameter("b", shared);
  }
};

TEST(Arena, ParametersKeepTheirValuesAndBecomeViews) {
  TwoLayers model;
  const auto before = model.first->weight.detach().clone();
  Arena arena(model);
  EXPECT_TRUE(torch::equal(model.first->weight, before));
  arena.params().zero_();
  EXPECT_EQ(model.first->weight.abs().sum().item<float>(), 0.0F);
}

TEST(Arena, AMatrixKnowsTheMapsThatItMerges) {
  TwoLayers model;
  model.second->weight.set_requires_grad(false);
  Arena arena(model);
  arena.set_part_rows(model.first->weight, {2, 3});
  arena.set_part_rows(model.second->weight, {3, 3});  // frozen: it has no slot
  for (const auto& slot : arena.slots()) {
    const std::vector<int64_t> parts{2, 3};
    EXPECT_EQ(slot.part_rows, slot.name == "first.weight" ? parts : std::vector<int64_t>{});
  }
  EXPECT_THROW(arena.set_part_rows(model.first->weight, {2, 2}), c10::Error);
  EXPECT_THROW(arena.set_part_rows(model.first->bias, {2, 3}), c10::Error);
}

TEST(Arena, OfAModelThatOnlyDecodesHasNoGradients) {
  TwoLayers model;
  const Arena arena(model, Arena::Gradients::kNone);
  EXPECT_FALSE(model.first->weight.grad().defined());
  EXPECT_EQ(arena.params().numel(), arena.size());
  EXPECT_EQ(arena.parameter(0).data_ptr(),
            Arena::view(arena.params(), arena.slots()[0]).data_ptr());
}

TEST(Arena, BackwardAccumulatesInPlaceAndKeepsTheViews) {
  TwoLayers model, plain;
  Arena arena(model);
  const auto x = torch::randn({3, 6});
  for (int i = 0; i < 2; ++i) {
    model.forward(x).square().sum().backward();
    plain.forward(x).square().sum().backward();
  }
  for (const auto& slot : arena.slots()) {
    const auto expected = plain.named_parameters()[slot.name].grad();
    EXPECT_TRUE(torch::allclose(Arena::view(arena.grads(), slot), expected)) << slot.name;
    EXPECT_EQ(model.named_parameters()[slot.name].grad().data_ptr(),
              Arena::view(arena.grads(), slot).data_ptr())
        << slot.name;
  }
  arena.zero_grads();
  EXPECT_EQ(model.second->bias.grad().abs().sum().item<float>(), 0.0F);
}

TEST(Arena, OffsetsAreAlignedAndMatricesComeFirst) {
  TwoLayers model;
  const Arena arena(model);
  bool vectors = false;
  for (const auto& slot : arena.slots()) {
    EXPECT_EQ(slot.offset * 4 % 64, 0) << slot.name;
    vectors = vectors || slot.shape.size() < 2;
    EXPECT_EQ(slot.shape.size() < 2, vectors) << slot.name;
  }
  EXPECT_EQ(arena.num_parameters(), 6 * 5 + 5 + 5 * 6 + 6);
}

/// Tensors of 1 to 17 elements, so that every remainder of a cache line occurs.
struct OddSizes : torch::nn::Module {
  OddSizes() {
    for (int64_t n = 1; n <= 17; ++n) {
      register_parameter("vector" + std::to_string(n), torch::ones({n}));
      register_parameter("matrix" + std::to_string(n), torch::ones({1, n}));
    }
  }
};

TEST(Arena, EveryParameterAndGradientBeginsAtACacheLine) {
  const auto misaligned = [](const torch::Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64;
  };
  // Several arenas, since an allocator may be lucky once.
  std::vector<std::unique_ptr<OddSizes>> models;
  for (int i = 0; i < 5; ++i) {
    const auto& model = models.emplace_back(std::make_unique<OddSizes>());
    Arena arena(*model);
    EXPECT_EQ(misaligned(arena.params()), 0U);
    EXPECT_EQ(misaligned(arena.grads()), 0U);
    ASSERT_EQ(arena.slots().size(), 34U);
    for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
      const auto& parameter = arena.parameter(slot);
      EXPECT_EQ(misaligned(parameter), 0U) << arena.slots()[slot].name;
      EXPECT_EQ(misaligned(parameter.grad()), 0U) << arena.slots()[slot].name;
    }
  }
}

TEST(Arena, ATiedParameterAppearsOnce) {
  Tied model;
  const Arena arena(model);
  ASSERT_EQ(arena.slots().size(), 1U);
  EXPECT_EQ(arena.num_parameters(), 16);
}

TEST(Arena, AFrozenParameterHasNoSlotAndNoGradientButIsSavedAndHashed) {
  TwoLayers model, plain;
  const uint64_t hash = Arena(plain).weights_hash();
  model.first->weight.set_requires_grad(false);
  model.second->bias.set_requires_grad(false);
  const auto before = model.first->weight.clone();
  Arena arena(model);
  EXPECT_EQ(arena.num_parameters(), 5 + 5 * 6);
  ASSERT_EQ(arena.slots().size(), 2U);
  EXPECT_EQ(arena.slots()[0].name, "second.weight");
  EXPECT_EQ(arena.slots()[1].name, "first.bias");
  ASSERT_EQ(arena.buffers().size(), 2U);
  EXPECT_EQ(arena.buffers()[0].name, "first.weight");
  EXPECT_EQ(arena.buffers()[1].name, "second.bias");
  EXPECT_TRUE(arena.buffers()[0].is_parameter);
  EXPECT_EQ(arena.weights_hash(), hash) << "it is of the weights, not of what trains";
  model.forward(torch::ones({2, 6})).sum().backward();
  EXPECT_FALSE(model.first->weight.grad().defined());
  EXPECT_GT(model.second->weight.grad().abs().sum().item<float>(), 0.0F);
  arena.params().zero_();
  EXPECT_TRUE(torch::equal(model.first->weight, before));
}

TEST(Arena, WeightsHashIsOfRawParametersSortedByName) {
  TwoLayers model;
  Xxh3Stream expected;
  for (const char* name : {"first.bias", "first.weight", "second.bias", "second.weight"}) {
    const auto tensor = model.named_parameters()[name].detach().contiguous();
    expected.update(tensor.data_ptr(), tensor.nbytes());
  }
  const Arena arena(model);
  EXPECT_EQ(arena.weights_hash(), expected.digest());
}

TEST(Arena, TheNormIgnoresTheGaps) {
  TwoLayers model;
  Arena arena(model);
  model.forward(torch::ones({2, 6})).sum().backward();
  double sum = 0;
  for (const auto& parameter : model.parameters()) {
    sum += parameter.grad().square().sum().item<double>();
  }
  EXPECT_NEAR(kernels::sum_of_squares(arena.grads()), sum, 1e-5);
}

}  // namespace
}  // namespace stretto::optim
