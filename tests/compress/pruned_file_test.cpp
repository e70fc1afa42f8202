#include "compress/pruned_file.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::compress {
namespace {

store::TensorView view_in_file(const std::string& name, const at::Tensor& values,
                               store::DType dtype = store::DType::kF32) {
  return {name,
          dtype,
          values.sizes().vec(),
          {static_cast<const char*>(values.const_data_ptr()), values.nbytes()}};
}

std::vector<float> numbers_of(const store::SafetensorsFile& file, const std::string& name) {
  const auto* found = file.find(name);
  std::vector<float> numbers(found->bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), found->bytes.data(), found->bytes.size());
  return numbers;
}

TEST(PrunedFile, HasZerosInTheNamedTensorsAndMasksOfThem) {
  const at::Tensor a = torch::tensor({{1.0F, -4.0F}, {3.0F, 0.5F}}),
                   b = torch::tensor({2.0F, 5.0F});
  const at::Tensor half = torch::tensor({0.25F, 8.0F}).view({1, 2}).to(at::kHalf);
  const store::SafetensorsFile file(
      {view_in_file("a", a), view_in_file("b", b), view_in_file("half", half, store::DType::kF16)});
  const auto pruned = prune_file(file, {"a", "half"}, 0.5, "global");
  EXPECT_EQ(numbers_of(pruned.file, "a"), (std::vector<float>{0, -4, 3, 0}));
  EXPECT_EQ(numbers_of(pruned.file, "b"), (std::vector<float>{2, 5}));
  EXPECT_EQ(numbers_of(pruned.file, "half"), (std::vector<float>{0, 8}));
  EXPECT_EQ(pruned.file.find("half")->dtype, store::DType::kF32);
  EXPECT_EQ(unpack_mask(pruned.masks.at("a"), 4), (std::vector<uint8_t>{1, 0, 0, 1}));
  EXPECT_EQ(a[0][0].item<float>(), 1) << "the file itself changed";
}

TEST(PrunedFile, TakesWholeBlocksOut) {
  const at::Tensor weight = torch::ones({64, 64});
  weight.narrow(0, 32, 32).narrow(1, 0, 32).fill_(0.5);
  weight.narrow(0, 0, 32).narrow(1, 32, 32).fill_(0.25);
  const store::SafetensorsFile file({view_in_file("w", weight)});
  const auto pruned = prune_file(file, {"w"}, 0.5, "block");
  const std::vector<uint8_t> marks = unpack_mask(pruned.masks.at("w"), 64 * 64);
  const at::Tensor mask = at::tensor(marks, at::kByte).view({64, 64});
  EXPECT_EQ(mask.sum().item<int64_t>(), 2 * 32 * 32);
  EXPECT_EQ(mask.narrow(0, 0, 32).narrow(1, 32, 32).sum().item<int64_t>(), 32 * 32);
  EXPECT_EQ(mask.narrow(0, 32, 32).narrow(1, 0, 32).sum().item<int64_t>(), 32 * 32);
}

TEST(PrunedFile, RefusesToTakeAllOfATensor) {
  const at::Tensor small = torch::tensor({1e-6F, 1e-6F}).view({1, 2}),
                   large = torch::tensor({1.0F, 2.0F}).view({1, 2});
  const store::SafetensorsFile file({view_in_file("small", small), view_in_file("large", large)});
  const auto error = stretto::testing::failure(ExitCode::kUsage, [&] {
    prune_file(file, {"small", "large"}, 0.5, "global");
  });
  EXPECT_NE(std::string(error.what()).find("small"), std::string::npos) << error.what();
  EXPECT_NO_THROW(prune_file(file, {"small", "large"}, 0.5, "layer"));
}

TEST(PrunedFile, MasksAreJoinedWeightByWeight) {
  const PackedMasks one{{"a", std::string("\x01", 1)}, {"b", std::string("\x02", 1)}};
  const PackedMasks two{{"a", std::string("\x04", 1)}, {"c", std::string("\x08", 1)}};
  EXPECT_EQ(joined(one, two), (PackedMasks{{"a", std::string("\x05", 1)},
                                           {"b", std::string("\x02", 1)},
                                           {"c", std::string("\x08", 1)}}));
}

}  // namespace
}  // namespace stretto::compress
