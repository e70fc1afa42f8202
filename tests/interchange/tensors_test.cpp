#include "interchange/tensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

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

std::string bytes_written(const store::StreamedTensor& tensor) {
  return tensor.make ? tensor.make() : std::string(tensor.tensor.bytes);
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
  ASSERT_EQ(back.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back[i].tensor.name, views[i].name);
    EXPECT_EQ(back[i].tensor.shape, views[i].shape);
    EXPECT_EQ(bytes_written(back[i]), views[i].bytes);
  }
}

/// A matrix of numbers that differ, as its rows lie.
std::string counted_bytes(int64_t elements, float first = 0) {
  std::vector<float> values;
  for (int64_t i = 0; i < elements; ++i) values.push_back(first + static_cast<float>(i));
  return bytes_of(values);
}

// Heads of queries that share keys and values.
TEST(Tensors, PartsMayHaveRowsOfTheirOwn) {
  const std::string q = bytes_of({1, 2, 3, 4}), k = bytes_of({5, 6});
  const std::vector<TensorView> views{{"q", DType::kF32, {2, 2}, q}, {"k", DType::kF32, {1, 2}, k}};
  const TensorsByName theirs{{"q", &views[0]}, {"k", &views[1]}};
  std::vector<NamePair> names{{.theirs = {"q", "k"}, .ours = "qk", .part_rows = {2, 1}}};
  const auto result = joined(theirs, names, 0, "folder");
  EXPECT_EQ(result.list.tensors[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(result.list.tensors[0].bytes, bytes_of({1, 2, 3, 4, 5, 6}));
  const auto back = separated(result.list.tensors, names, 0, "checkpoint");
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].tensor.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(bytes_written(back[0]), q);
  EXPECT_EQ(back[1].tensor.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(bytes_written(back[1]), k);
  names[0].part_rows = {1, 2};
  const auto error = failure(ExitCode::kBadData, [&] { joined(theirs, names, 0, "folder"); });
  EXPECT_NE(error.message().find("`q` is [2, 2], and in such a model [1, 2]"), std::string::npos)
      << error.message();
  names[0].part_rows = {2, 2};
  failure(ExitCode::kBadData, [&] { separated(result.list.tensors, names, 0, "checkpoint"); });
}

TEST(Tensors, AMatrixIsTransposedOnItsWayInAndOut) {
  const std::string bytes = bytes_of({1, 2, 3, 4, 5, 6});
  const TensorView theirs{"w", DType::kF32, {2, 3}, bytes};
  const NamePair pair{.theirs = {"w"}, .ours = "ours", .transposed = true};
  const auto result = joined({{"w", &theirs}}, {pair}, 0, "folder");
  ASSERT_EQ(result.list.tensors.size(), 1U);
  EXPECT_EQ(result.list.tensors[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(result.list.tensors[0].bytes, bytes_of({1, 4, 2, 5, 3, 6}));
  const auto back = separated(result.list.tensors, {pair}, 0, "checkpoint");
  EXPECT_EQ(back[0].tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(back[0].tensor.bytes.empty()) << "it is made when it is written";
  EXPECT_EQ(bytes_written(back[0]), bytes);
}

// Sizes that no tile divides, and bits of every kind of number.
TEST(Tensors, ATransposedMatrixComesBackToTheBit) {
  const int64_t rows = 67, columns = 41;
  std::string bytes = counted_bytes(rows * columns);
  const uint32_t odd[] = {0x7FC12345, 0xFF800000, 0x80000000, 0x00000001};  // NaN, -inf, -0, tiny
  std::memcpy(bytes.data(), odd, sizeof(odd));
  const TensorView theirs{"w", DType::kF32, {rows, columns}, bytes};
  const NamePair pair{.theirs = {"w"}, .ours = "ours", .transposed = true};
  const auto result = joined({{"w", &theirs}}, {pair}, 0, "folder");
  const auto back = separated(result.list.tensors, {pair}, 0, "checkpoint");
  EXPECT_EQ(bytes_written(back[0]), bytes);
}

TEST(Tensors, PartsAreTransposedBeforeTheyAreJoined) {
  const std::string q = bytes_of({1, 2, 3, 4, 5, 6}), k = counted_bytes(6, 7);
  const TensorView first{"q", DType::kF32, {2, 3}, q}, second{"k", DType::kF32, {2, 3}, k};
  const NamePair pair{.theirs = {"q", "k"}, .ours = "qk", .transposed = true};
  const auto result = joined({{"q", &first}, {"k", &second}}, {pair}, 0, "folder");
  EXPECT_EQ(result.list.tensors[0].shape, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(result.list.tensors[0].bytes, bytes_of({1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}));
  const auto back = separated(result.list.tensors, {pair}, 0, "checkpoint");
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(bytes_written(back[0]), q);
  EXPECT_EQ(bytes_written(back[1]), k);
}

TEST(Tensors, HalvesAreTransposedToo) {
  const std::string half("\x00\x3c\x00\xc0\x00\x40\x00\x00", 8);  // 1, -2, 2, 0
  const TensorView theirs{"w", DType::kF16, {2, 2}, half};
  const auto result =
      joined({{"w", &theirs}}, {{.theirs = {"w"}, .ours = "o", .transposed = true}}, 0, "folder");
  EXPECT_EQ(result.list.tensors[0].dtype, DType::kF32);
  EXPECT_EQ(result.list.tensors[0].bytes, bytes_of({1, 2, -2, 0}));
}

// As GPT-2's layers lie: Conv1D has [in, out], and query, key and value side by side.
TEST(Tensors, AFolderWithTransposedLayersComesBackAsTheSameFile) {
  constexpr NameRow rows[] = {
      {"wte.weight", "embedding.weight", Parts::kWhole},
      {.theirs = "h.*.attn.c_attn", .ours = "layers.*.qkv", .transposed = true}};
  const auto names = expand(rows, 2);
  const stretto::testing::TempDir dir;
  const std::string table = counted_bytes(5 * 4), matrix = counted_bytes(4 * 12, 0.5),
                    bias = counted_bytes(12);
  store::write_safetensors(dir / "model.safetensors",
                           {{"wte.weight", DType::kF32, {5, 4}, table},
                            {"h.0.attn.c_attn.weight", DType::kF32, {4, 12}, matrix},
                            {"h.0.attn.c_attn.bias", DType::kF32, {12}, bias},
                            {"h.1.attn.c_attn.weight", DType::kF32, {4, 12}, matrix},
                            {"h.1.attn.c_attn.bias", DType::kF32, {12}, bias}},
                           {{"format", "pt"}});
  const store::SafetensorsFile file(dir / "model.safetensors");
  TensorsByName theirs;
  for (const auto& tensor : file.tensors()) theirs[tensor.name] = &tensor;
  const auto ours = joined(theirs, names, 0, "folder");
  EXPECT_TRUE(ours.missing.empty());
  ASSERT_EQ(ours.list.tensors.size(), 5U);
  EXPECT_EQ(ours.list.tensors[0].bytes.data(), theirs["wte.weight"]->bytes.data());  // a view
  EXPECT_EQ(ours.list.tensors[1].shape, (std::vector<int64_t>{12, 4}));
  store::stream_safetensors(dir / "again.safetensors",
                            separated(ours.list.tensors, names, 0, "checkpoint"),
                            {{"format", "pt"}});
  EXPECT_EQ(read_file(dir / "again.safetensors"), read_file(dir / "model.safetensors"));
}

TEST(Tensors, OnlyAMatrixIsTransposed) {
  const std::string two = bytes_of({1, 2});
  const TensorView vector{"w", DType::kF32, {2}, two};
  const std::vector<NamePair> names{{.theirs = {"w"}, .ours = "o", .transposed = true}};
  const auto error = failure(ExitCode::kBadData, [&] {
    joined({{"w", &vector}}, names, 0, "folder");
  });
  EXPECT_NE(error.message().find("`w` is [2], a matrix is needed"), std::string::npos);
  const TensorView ours{"o", DType::kF32, {2}, two};
  failure(ExitCode::kBadData, [&] { separated({ours}, names, 0, "checkpoint"); });
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
