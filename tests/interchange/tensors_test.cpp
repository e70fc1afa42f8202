#include "interchange/tensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/failure.h"

namespace stretto::interchange {
namespace {

using store::DType;
using store::TensorView;
using stretto::testing::failure;

std::string bytes_of(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Tensors, HalvesBecomeFloats) {
  std::deque<std::string> kept;
  const std::string half("\x00\x3c\x00\xc0", 4), bf16("\x80\x3f\x00\xc0", 4);  // 1, -2
  EXPECT_EQ(to_f32({"h", DType::kF16, {2}, half}, kept, "f").bytes, bytes_of({1, -2}));
  EXPECT_EQ(to_f32({"b", DType::kBF16, {2}, bf16}, kept, "f").bytes, bytes_of({1, -2}));
  const double wide = 0.1;
  const std::string f64(reinterpret_cast<const char*>(&wide), sizeof(wide));
  EXPECT_EQ(to_f32({"d", DType::kF64, {1}, f64}, kept, "f").bytes, bytes_of({0.1F}));
}

TEST(Tensors, IntegersAreRefused) {
  std::deque<std::string> kept;
  const std::string bytes(8, '\0');
  const auto error = failure(ExitCode::kBadData, [&] {
    to_f32({"position_ids", DType::kI64, {1}, bytes}, kept, "f");
  });
  EXPECT_NE(std::string(error.what()).find("`position_ids` is I64"), std::string::npos);
}

TEST(Tensors, PartsAreJoinedAndSeparatedAgain) {
  const std::string q = bytes_of({1, 2}), k = bytes_of({3, 4}), p = bytes_of({0, 0, 5, 6});
  const std::vector<TensorView> views{
      {"q", DType::kF32, {1, 2}, q}, {"k", DType::kF32, {1, 2}, k}, {"p", DType::kF32, {4, 1}, p}};
  const TensorsByName theirs{{"q", &views[0]}, {"k", &views[1]}, {"p", &views[2]}};
  const std::vector<NamePair> names{{{"q", "k"}, "qk"}, {{"p"}, "positions", true}};
  const auto result = joined(theirs, names, 2, "folder");
  ASSERT_EQ(result.list.tensors.size(), 2U);
  EXPECT_EQ(result.list.tensors[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(result.list.tensors[0].bytes, bytes_of({1, 2, 3, 4}));
  EXPECT_EQ(result.list.tensors[1].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(result.list.tensors[1].bytes, bytes_of({5, 6}));
  const auto back = separated(result.list.tensors, names, 2, "checkpoint");
  ASSERT_EQ(back.tensors.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back.tensors[i].name, views[i].name);
    EXPECT_EQ(back.tensors[i].shape, views[i].shape);
    EXPECT_EQ(back.tensors[i].bytes, views[i].bytes);
  }
}

TEST(Tensors, WhatIsMissingIsNamed) {
  const auto result = joined({}, {{{"q", "k"}, "qk"}}, 0, "folder");
  EXPECT_EQ(result.missing, std::vector<std::string>{"qk"});
  EXPECT_EQ(result.not_found, (std::vector<std::string>{"q", "k"}));
}

TEST(Tensors, PartsMustFitTogether) {
  const std::string two = bytes_of({1, 2}), one = bytes_of({1});
  const TensorView q{"q", DType::kF32, {1, 2}, two}, k{"k", DType::kF32, {1, 1}, one};
  const auto what = [](const TensorsByName& theirs, const NamePair& pair) {
    return std::string(
        failure(ExitCode::kBadData, [&] { joined(theirs, {pair}, 2, "folder"); }).what());
  };
  EXPECT_NE(what({{"q", &q}}, {{"q", "k"}, "qk"}).find("`k` is not"), std::string::npos);
  EXPECT_NE(what({{"q", &q}, {"k", &k}}, {{"q", "k"}, "qk"}).find("[1, 1]"), std::string::npos);
  EXPECT_NE(what({{"q", &q}}, {{"q"}, "p", true}).find("more than 2 rows"), std::string::npos);
  const TensorView empty{"r", DType::kF32, {2, 1}, two};  // without the rows that are left out
  EXPECT_NE(what({{"r", &empty}}, {{"r"}, "p", true}).find("more than 2 rows"), std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
