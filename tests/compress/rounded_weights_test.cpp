#include "compress/rounded_weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "compress/quantise.h"
#include "tests/optim/toy.h"

namespace stretto::compress {
namespace {

using optim::Arena;
using optim::testing::Toy;

constexpr uint64_t kKey = 5;

torch::Tensor values_of(const Arena& arena, const torch::Tensor& flat, const std::string& name) {
  for (const auto& slot : arena.slots()) {
    if (slot.name == name) return Arena::view(flat, slot).clone();
  }
  return {};
}

TEST(RoundedWeights, AreThoseThatAFileWillHave) {
  Toy toy;
  Arena arena(toy);
  const torch::Tensor before = arena.params().clone();
  for (const int64_t bits : {8, 4, 2}) {
    for (const bool symmetric : {true, false}) {
      const QuantiseOptions options{.bits = bits, .symmetric = symmetric};
      RoundedWeights weights(options, arena);
      {
        const auto rounded = weights.round(kKey, 0);
        for (const char* name : {"small", "large", "cube"}) {
          const torch::Tensor was = values_of(arena, before, name);
          EXPECT_TRUE(torch::equal(values_of(arena, arena.params(), name),
                                   nearest(was, format_of(options))))
              << name << bits << symmetric;
          EXPECT_FALSE(torch::equal(values_of(arena, arena.params(), name), was)) << name;
        }
        for (const char* name : {"bias", "gamma"}) {
          EXPECT_TRUE(
              torch::equal(values_of(arena, arena.params(), name), values_of(arena, before, name)));
        }
      }
      EXPECT_TRUE(torch::equal(arena.params(), before)) << "the weights themselves come back";
    }
  }
}

// Zeros of pruned weights too: a code stands for them in every format.
TEST(RoundedWeights, KeepZeros) {
  Toy toy;
  Arena arena(toy);
  {
    const torch::NoGradGuard no_grad;
    arena.params().masked_fill_(arena.params().abs().lt(0.5), 0);
  }
  const torch::Tensor zeros = arena.params().eq(0);
  for (const bool symmetric : {true, false}) {
    RoundedWeights weights({.bits = 3, .symmetric = symmetric}, arena);
    const auto rounded = weights.round(kKey, 0);
    EXPECT_TRUE(arena.params().eq(0).logical_or(zeros.logical_not()).all().item<bool>());
  }
}

TEST(RoundedWeights, NoiseRoundsSomeGroupsAndOthersInTheNextUpdate) {
  Toy toy;
  Arena arena(toy);
  const QuantiseOptions options{.bits = 2, .group = 3, .noise = 0.3, .tensors = {"large"}};
  RoundedWeights weights(options, arena);
  const torch::Tensor was = values_of(arena, arena.params(), "large");
  const torch::Tensor full = nearest(was, format_of(options));
  const auto drawn = [&](uint64_t key) {
    const auto rounded = weights.round(key, 0);
    const torch::Tensor now = values_of(arena, arena.params(), "large");
    const torch::Tensor is_full = now.eq(full).view({70, 11, 3}).all(-1);
    const torch::Tensor is_same = now.eq(was).view({70, 11, 3}).all(-1);
    EXPECT_TRUE(is_full.logical_or(is_same).all().item<bool>()) << "a group is rounded or not";
    return is_full;
  };
  const torch::Tensor first = drawn(1);
  const auto share = first.to(torch::kDouble).mean().item<double>();
  EXPECT_NEAR(share, 0.3, 0.07);  // 770 groups: four deviations
  EXPECT_TRUE(torch::equal(first, drawn(1)));
  EXPECT_FALSE(torch::equal(first, drawn(2)));
}

TEST(RoundedWeights, BeginWhenTheyAreToldTo) {
  Toy toy;
  Arena arena(toy);
  RoundedWeights weights({.bits = 4, .begin = 3}, arena);
  const torch::Tensor before = arena.params().clone();
  for (const int64_t updates : {0, 2, 3, 9}) {
    {
      const auto rounded = weights.round(kKey, updates);
      EXPECT_EQ(torch::equal(arena.params(), before), updates < 3) << updates;
    }
    const auto all = weights.round_all(updates);
    EXPECT_EQ(torch::equal(arena.params(), before), updates < 3) << updates;
  }
  RoundedWeights without({.bits = 4, .validate = false}, arena);
  const auto none = without.round_all(9);
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

TEST(RoundedWeights, RefuseWhatCannotBePackedSo) {
  Toy toy;
  Arena arena(toy);
  const auto refusal = [&](const QuantiseOptions& options) -> std::string {
    try {
      const RoundedWeights weights(options, arena);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({.bits = 4, .group = 5}).find("compress.quantise: `small`"), std::string::npos);
  EXPECT_NE(refusal({.bits = 8, .tensors = {"bias"}}).find("`bias`"), std::string::npos);
  EXPECT_NE(refusal({.bits = 8, .tensors = {"lage"}}).find("compress.quantise.tensors"),
            std::string::npos);
  EXPECT_EQ(refusal({.bits = 4, .group = 3, .except = {"cube"}}), "");
}

}  // namespace
}  // namespace stretto::compress
