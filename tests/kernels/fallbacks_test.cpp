#include "kernels/fallbacks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/cuda/cuda.h"
#include "kernels/dispatch.h"

namespace stretto::kernels {
namespace {

using Names = std::vector<std::string>;

at::Tensor some_dropout(const at::Tensor& x, const Dropout&) {
  return x;
}

at::Tensor some_step(const RowCache&, const at::Tensor& weights) {
  return weights;
}

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Fallbacks, EveryPlaceOfAnEmptyTableHasANameOfItsOwn) {
  const Names all = empty_places({});
  EXPECT_EQ(all.size(), sizeof(cuda::Table) / sizeof(void (*)()));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(all.front(), "dropout");
  EXPECT_EQ(all.back(), "attentive_step");
}

TEST(Fallbacks, AnOperatorWithAKernelIsNotNamed) {
  Names expected = empty_places({});
  std::erase(expected, "dropout");
  std::erase(expected, "convolution_step");
  cuda::Table table;
  table.dropout = some_dropout;
  table.convolution_step = some_step;
  EXPECT_EQ(empty_places(table), expected);
}

TEST(Fallbacks, ThereAreNoneOnACpu) {
  EXPECT_EQ(fallbacks(at::kCPU), Names{});
}

// What docs/gpu-status.md says of the operators.
TEST(Fallbacks, OnAGpuTheyAreThoseOfTheTableAndNoneInABuildWithoutCuda) {
  const Names found = fallbacks(at::kCUDA);
  if (!cuda::is_built()) {
    EXPECT_EQ(found, Names{});
    EXPECT_EQ(cuda::table().dropout, nullptr);
    return;
  }
  EXPECT_EQ(found, empty_places(cuda::table()));
  EXPECT_EQ(fallbacks(at::Device(at::kCUDA, 1)), found);
  for (const char* name : {"rotary", "recurrent", "time_convolution"})
    EXPECT_TRUE(holds(found, name)) << name;
  for (const char* name : {"dropout", "layer_norm", "self_attention", "linear_cross_entropy"})
    EXPECT_FALSE(holds(found, name)) << name;
}

TEST(Fallbacks, APlaceServesTensorsOnAGpuAlone) {
  const at::Tensor x = at::ones({2, 3});
  EXPECT_EQ(on_gpu(&some_dropout, x), nullptr);
  EXPECT_EQ(on_gpu(cuda::Table().dropout, x), nullptr);
  if (!cuda::available()) return;
  EXPECT_EQ(on_gpu(&some_dropout, x.cuda()), &some_dropout);
  EXPECT_EQ(on_gpu(cuda::Table().dropout, x.cuda()), nullptr);
}

// A table of loops has the name of its level, pointers, and the width of a panel: words, of which
// only those of an empty place are zero. Without AVX512_BF16 the product of fp32 takes the place
// of that on pairs.
TEST(Fallbacks, EveryLevelOfTheCpuHasEveryLoopButThoseOnPairsOfBfloat16) {
  constexpr size_t kWords = sizeof(cpu::Table) / sizeof(uintptr_t);
  static_assert(sizeof(cpu::Table) % sizeof(uintptr_t) == 0);
  for (const cpu::Table* level : cpu::levels()) {
    std::array<uintptr_t, kWords> words{};
    std::memcpy(words.data(), level, sizeof(cpu::Table));
    const bool has_pairs = level->pack_bf16 != nullptr && level->product_bf16 != nullptr;
    EXPECT_EQ(std::count(words.begin(), words.end(), uintptr_t{0}), has_pairs ? 0 : 2)
        << level->name;
  }
}

}  // namespace
}  // namespace stretto::kernels
