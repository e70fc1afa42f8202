#include "compress/masks.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compress/magnitude.h"
#include "tests/compress/refused.h"
#include "tests/optim/toy.h"

namespace stretto::compress {
namespace {

using test::expect_refused;

using optim::Arena, optim::HeldElements, optim::Slice, optim::StateTensor;
using optim::testing::Toy;

/// Zeros of a tensor of the arena.
int64_t zeros_of(const Arena& arena, const std::string& name) {
  for (const auto& slot : arena.slots()) {
    if (slot.name == name) {
      return arena.params().narrow(0, slot.offset, slot.numel).eq(0).sum().item<int64_t>();
    }
  }
  return -1;
}

Slice place_of(const Arena& arena, const std::string& name) {
  for (const auto& slot : arena.slots()) {
    if (slot.name == name) return {slot.offset, slot.offset + slot.numel};
  }
  return {};
}

TEST(Masks, PruneTheSmallestWeightsOfAllMatricesTogether) {
  Toy toy;
  Arena arena(toy);
  const torch::Tensor before = arena.params().clone();
  Masks masks({.sparsity = 0.5}, arena);
  EXPECT_FALSE(masks.any());
  EXPECT_EQ(masks.packed(), nullptr);
  EXPECT_EQ(masks.num_prunable(), 15 + 2310 + 24);
  ASSERT_TRUE(masks.prune(arena, 0.5, 0));
  EXPECT_EQ(masks.num_pruned(), (15 + 2310 + 24) / 2);
  EXPECT_NEAR(masks.sparsity(), 0.5, 1e-3);
  EXPECT_EQ(zeros_of(arena, "small") + zeros_of(arena, "large") + zeros_of(arena, "cube"),
            masks.num_pruned());
  EXPECT_EQ(zeros_of(arena, "bias"), 0);
  // No weight that is left is smaller than one that went.
  float largest_gone = 0, smallest_left = 1e9F;
  for (const char* name : {"small", "large", "cube"}) {
    const Slice place = place_of(arena, name);
    for (int64_t i = place.begin; i < place.end; ++i) {
      const float size = std::fabs(before[i].item<float>());
      if (arena.params()[i].item<float>() == 0) {
        largest_gone = std::max(largest_gone, size);
      } else {
        smallest_left = std::min(smallest_left, size);
        EXPECT_EQ(arena.params()[i].item<float>(), before[i].item<float>());
      }
    }
  }
  EXPECT_LE(largest_gone, smallest_left);
}

TEST(Masks, WithScopeLayerEachTensorLosesTheSameShare) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.6, .scope = "layer"}, arena);
  masks.prune(arena, 0.6, 0);
  EXPECT_EQ(zeros_of(arena, "small"), 9);
  EXPECT_EQ(zeros_of(arena, "large"), 1386);
  EXPECT_EQ(zeros_of(arena, "cube"), 14);
}

TEST(Masks, PatternsSayWhatIsPruned) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.1, .tensors = {"*a*"}, .except = {"small", "gamma"}}, arena);
  masks.prune(arena, 0.1, 0);
  EXPECT_EQ(masks.num_prunable(), 2310 + 7);  // large and bias
  EXPECT_EQ(zeros_of(arena, "small"), 0);
  EXPECT_EQ(zeros_of(arena, "cube"), 0);
  expect_refused([&] { Masks({.sparsity = 0.5, .tensors = {"lage"}}, arena); },
                 "compress.prune.tensors");
  expect_refused([&] { Masks({.sparsity = 0.5, .except = {"nothing"}}, arena); },
                 "compress.prune.except");
  expect_refused([&] { Masks({.sparsity = 0.5, .except = {"*"}}, arena); },
                 "no tensor that trains");
}

// What was pruned stays so, whatever the weights have become.
TEST(Masks, MorePrunedIsPrunedOnTop) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.9}, arena);
  masks.prune(arena, 0.3, 0);
  const torch::Tensor zeros = arena.params().eq(0);
  const torch::NoGradGuard no_grad;
  arena.params().masked_fill_(arena.params().abs().gt(0.8), 1e-4);
  masks.prune(arena, 0.6, 0);
  EXPECT_TRUE(arena.params().eq(0).logical_or(zeros.logical_not()).all().item<bool>());
  EXPECT_EQ(masks.num_pruned(), num_pruned(15 + 2310 + 24, 0.6));
  EXPECT_FALSE(masks.prune(arena, 0.6, 0)) << "it has that share already";
  EXPECT_FALSE(masks.prune(arena, 0.1, 0)) << "nothing comes back";
}

TEST(Masks, ATensorThatTrainsLaterIsPrunedLater) {
  Toy toy;
  Arena arena(toy, Arena::Gradients::kAllocated, {{.name = "large", .begins = 10}});
  Masks masks({.sparsity = 0.5, .scope = "layer"}, arena);
  masks.prune(arena, 0.5, 9);
  EXPECT_EQ(zeros_of(arena, "large"), 0);
  EXPECT_EQ(zeros_of(arena, "small"), 7);
  masks.prune(arena, 0.5, 10);
  EXPECT_EQ(zeros_of(arena, "large"), 1155);
}

TEST(Masks, RefuseToPruneATensorAway) {
  Toy toy;
  Arena arena(toy);
  {
    const torch::NoGradGuard no_grad;
    const Slice cube = place_of(arena, "cube");
    arena.params().narrow(0, cube.begin, cube.size()).mul_(1e-6);
  }
  const torch::Tensor before = arena.params().clone();
  Masks masks({.sparsity = 0.5}, arena);
  expect_refused([&] { masks.prune(arena, 0.5, 0); }, "leaves nothing of `cube`");
  EXPECT_FALSE(masks.any());
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

TEST(Masks, HoldBuffersSlicesAndTheStateOfSlices) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.5}, arena);
  masks.prune(arena, 0.5, 0);
  const torch::Tensor pruned = [&] {  // by the weights, gaps and vectors aside
    torch::Tensor marks = torch::zeros({arena.size()}, torch::kBool);
    for (const char* name : {"small", "large", "cube"}) {
      const Slice place = place_of(arena, name);
      marks.narrow(0, place.begin, place.size())
          .copy_(arena.params().narrow(0, place.begin, place.size()).eq(0));
    }
    return marks;
  }();
  const torch::Tensor want = torch::ones({arena.size()}).masked_fill(pruned, 0);
  torch::Tensor whole = torch::ones({arena.size()});
  masks.apply(whole);
  EXPECT_TRUE(torch::equal(whole, want));
  for (const int64_t cut : {int64_t{0}, int64_t{7}, int64_t{500}, arena.size()}) {
    torch::Tensor low = torch::ones({cut}), high = torch::ones({arena.size() - cut});
    masks.apply(low, {0, cut});
    masks.apply(high, {cut, arena.size()});
    EXPECT_TRUE(torch::equal(torch::cat({low, high}), want)) << cut;
    // A state that has large and what follows alone.
    const HeldElements held(std::vector<Slice>{{place_of(arena, "large").begin, arena.size()}});
    const StateTensor state{"m", torch::ones({held.place_of({cut, arena.size()}).size()}), true,
                            held};
    masks.apply(state, {cut, arena.size()});
    const int64_t begin = std::max(cut, held.stretches().front().begin);
    EXPECT_TRUE(torch::equal(state.values, want.narrow(0, begin, arena.size() - begin))) << cut;
  }
  const StateTensor other{"norms", torch::ones({3}), /*flat=*/false, {}};
  masks.apply(other, {0, arena.size()});
  EXPECT_TRUE(torch::equal(other.values, torch::ones({3})));
}

// Infinite gradients too: zero times infinity is no number.
TEST(Masks, WhatIsNotFiniteBecomesZero) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.5}, arena);
  masks.prune(arena, 0.5, 0);
  torch::Tensor grads = torch::full({arena.size()}, std::numeric_limits<float>::infinity());
  masks.apply(grads);
  EXPECT_EQ(grads.eq(0).sum().item<int64_t>(), masks.num_pruned());
  EXPECT_FALSE(grads.isnan().any().item<bool>());
}

TEST(Masks, GoIntoACheckpointAndBack) {
  Toy toy, other_toy;
  Arena arena(toy), other(other_toy);
  Masks masks({.sparsity = 0.5}, arena);
  masks.prune(arena, 0.5, 0);
  // A run that prunes nothing itself holds them too.
  Masks restored(PruneOptions{}, other);
  EXPECT_TRUE(restored.set(*masks.packed(), torch::kCPU).empty());
  EXPECT_EQ(restored.num_pruned(), masks.num_pruned());
  torch::Tensor one = torch::ones({arena.size()}), two = one.clone();
  masks.apply(one);
  restored.apply(two);
  EXPECT_TRUE(torch::equal(one, two));
  EXPECT_EQ(*restored.packed(), *masks.packed());
  // Masks that fit nothing are named; none at all is no mask.
  EXPECT_EQ(
      restored.set({{"small", std::string(2, '\1')}, {"unknown", "x"}, {"cube", "x"}}, torch::kCPU),
      (std::vector<std::string>{"cube", "unknown"}));
  EXPECT_EQ(restored.num_pruned(), 2);
  restored.set({}, torch::kCPU);
  EXPECT_FALSE(restored.any());
  EXPECT_EQ(restored.packed(), nullptr);
}

// Their weights stay as they are, and the next run may train them.
TEST(Masks, ThoseOfFrozenTensorsAreKept) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.5}, arena);
  masks.prune(arena, 0.5, 0);
  Toy frozen;
  frozen.tensors[1].set_requires_grad(false);  // large
  Arena other(frozen);
  Masks held(PruneOptions{}, other);
  EXPECT_TRUE(held.set(*masks.packed(), torch::kCPU).empty());
  EXPECT_EQ(*held.packed(), *masks.packed());
  EXPECT_LT(held.num_pruned(), masks.num_pruned());
}

TEST(PackedMasks, HaveABitForEachWeight) {
  for (const size_t size : {0U, 1U, 7U, 8U, 9U, 30U}) {
    std::vector<uint8_t> marks(size);
    for (size_t i = 0; i < size; ++i) marks[i] = i % 3 == 0 ? 1 : 0;
    const std::string bits = pack_mask(marks);
    EXPECT_EQ(static_cast<int64_t>(bits.size()), mask_bytes(static_cast<int64_t>(size)));
    EXPECT_EQ(unpack_mask(bits, static_cast<int64_t>(size)), marks);
  }
  EXPECT_EQ(pack_mask(std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 0, 1}), std::string("\1\2"));
  std::vector<float> weights{1, 2, 3};
  apply_mask(std::string("\5"), weights);
  EXPECT_EQ(weights, (std::vector<float>{0, 2, 0}));
  EXPECT_THROW(apply_mask(std::string("\5\5"), weights), c10::Error);
}

TEST(PackedMasks, TravelAsBytes) {
  const PackedMasks masks{{"a", "12"}, {"b.c", std::string("\0x", 2)}, {"", ""}};
  EXPECT_EQ(split_masks(joined_masks(masks)), masks);
  EXPECT_TRUE(split_masks("").empty());
  EXPECT_THROW(split_masks(joined_masks(masks).substr(0, 20)), c10::Error);
}

// Those of a tensor that began anew do not: its weights are its own.
TEST(PackedMasks, HoldWhereTheWeightsAreZero) {
  Toy toy;
  Arena arena(toy);
  Masks masks({.sparsity = 0.5}, arena);
  masks.prune(arena, 0.5, 0);
  PackedMasks packed = *masks.packed();
  packed["unknown"] = "x";
  {
    const torch::NoGradGuard no_grad;
    const Slice large = place_of(arena, "large");
    arena.params().narrow(0, large.begin, large.size()).add_(0.5);
  }
  const PackedMasks left = masks_that_hold(packed, arena);
  EXPECT_EQ(left.count("large"), 0U);
  EXPECT_EQ(left.at("small"), packed.at("small"));
  EXPECT_EQ(left.count("unknown"), 1U);
}

TEST(PruneTensors, GivesMasksAndZerosByTheSameRule) {
  Toy toy;
  Arena arena(toy);
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (const char* name : {"small", "large", "cube"}) {
    const Slice place = place_of(arena, name);
    tensors.emplace_back(name, arena.params().narrow(0, place.begin, place.size()).clone());
  }
  const PackedMasks packed = prune_tensors(tensors, 0.5, "global");
  Masks masks({.sparsity = 0.5}, arena);
  masks.prune(arena, 0.5, 0);
  EXPECT_EQ(packed, *masks.packed());
  for (const auto& [name, weights] : tensors) {
    const Slice place = place_of(arena, name);
    EXPECT_TRUE(torch::equal(weights, arena.params().narrow(0, place.begin, place.size()))) << name;
  }
  expect_refused(
      [] {
        prune_tensors({{"one", torch::ones({1})}, {"two", 2 * torch::ones({3})}}, 0.5, "global");
      },
      "leaves nothing of `one`");
}

}  // namespace
}  // namespace stretto::compress
