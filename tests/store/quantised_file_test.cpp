#include "store/quantised_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

constexpr QuantFormat kFileGroups{
    .bits = 4, .symmetric = false, .scope = QuantScope::kGroup, .group_size = 2};
const std::vector<int64_t> kFileShape{2, 2, 2};

QuantisedTensor packed_matrix() {
  return pack(
      kFileGroups, kFileShape,
      {.codes = {-8, 7, 0, 1, 2, 3, 4, 5}, .scales = {1, 0.5F, -0.25F, 0}, .zeros = {0, -8, 7, 1}});
}

/// A file in memory that can be damaged.
struct PackedFile {
  QuantisedTensor matrix = packed_matrix();
  std::vector<TensorView> tensors = stored_tensors("w", matrix.view());
  std::map<std::string, std::string> metadata{
      {std::string(kQuantisedKey), quantised_metadata({{"w", {kFileGroups, kFileShape}}})}};

  SafetensorsFile file() const { return SafetensorsFile(tensors, metadata); }
};

std::string packed_refusal(const PackedFile& packed) {
  const SafetensorsFile file = packed.file();
  return stretto::testing::failure(ExitCode::kBadData, [&] { QuantisedTensors(file, "here"); })
      .message();
}

void expect_packed_refused(const PackedFile& packed, const std::string& reason) {
  const std::string said = packed_refusal(packed);
  EXPECT_NE(said.find("here"), std::string::npos) << said;
  EXPECT_NE(said.find(reason), std::string::npos) << "wanted: " << reason << "\ngot: " << said;
}

TEST(QuantisedFile, TensorsComeBackFromAFile) {
  const stretto::testing::TempDir dir;
  const PackedFile packed;
  auto tensors = packed.tensors;
  const std::string bias(8, 'x');
  tensors.push_back({"b", DType::kF32, {2}, bias});
  write_safetensors(dir / "f", tensors, packed.metadata);
  const SafetensorsFile file(dir / "f");
  EXPECT_TRUE(is_packed(file));
  const QuantisedTensors found(file, "f");
  ASSERT_EQ(found.tensors().size(), 1U);
  const QuantisedView* view = found.find("w");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->format, kFileGroups);
  EXPECT_EQ(view->shape, kFileShape);
  EXPECT_EQ(view->codes, packed.matrix.codes);
  EXPECT_EQ(view->scales, packed.matrix.scales);
  EXPECT_EQ(view->zeros, packed.matrix.zeros);
  EXPECT_EQ(found.find("b"), nullptr);
  for (const char* part : {"w.codes", "w.scales", "w.zeros"}) EXPECT_TRUE(found.has_part(part));
  EXPECT_FALSE(found.has_part("b"));
  EXPECT_EQ(names_of_tensors(file, "f"), (std::vector<std::string>{"b", "w"}));
}

TEST(QuantisedFile, WithoutADescriptionHasNothingPacked) {
  PackedFile packed;
  packed.metadata.clear();
  const SafetensorsFile file = packed.file();
  EXPECT_FALSE(is_packed(file));
  EXPECT_TRUE(QuantisedTensors(file, "here").empty());
}

TEST(QuantisedFile, PartsThatDoNotFitAreRefused) {
  PackedFile missing;
  missing.tensors.pop_back();
  expect_packed_refused(missing, "`w.zeros` is missing");
  PackedFile type;
  type.tensors[1].dtype = DType::kBF16;
  expect_packed_refused(type, "`w.scales` is not F16 [2, 2]");
  PackedFile shape;
  shape.tensors[0].shape = {1, 4};
  expect_packed_refused(shape, "`w.codes` is not U8 [2, 2]");
  PackedFile twice;
  const std::string numbers(32, '\0');
  twice.tensors.push_back({"w", DType::kF32, kFileShape, numbers});
  expect_packed_refused(twice, "is there without packing, too");
  PackedFile zero;
  zero.matrix.zeros[0] = '\x10';
  zero.tensors = stored_tensors("w", zero.matrix.view());
  expect_packed_refused(zero, "a zero is beyond its bits");
}

TEST(QuantisedFile, DescriptionsThatNobodyWroteAreRefused) {
  const auto refuse = [](const std::string& text, const std::string& reason) {
    PackedFile packed;
    packed.metadata[std::string(kQuantisedKey)] = text;
    expect_packed_refused(packed, reason);
  };
  const auto refuse_w = [&](const std::string& entry, const std::string& reason) {
    refuse(R"({"w":)" + entry + "}", reason);
  };
  refuse("[", "here");
  refuse("[]", "no description of packed tensors");
  refuse_w("4", "needs bits, symmetric, scope, group_size and shape");
  const std::string rest = R"(,"symmetric":false,"scope":"group","group_size":2,"shape":[2,2,2]})";
  refuse_w(R"({"bits":-4)" + rest, "needs bits");
  refuse_w(R"({"bits":4.5)" + rest, "needs bits");
  refuse_w(R"({"bits":5)" + rest, "2, 3, 4, 6 or 8 are possible");
  refuse_w(R"({"bits":18446744073709551615)" + rest, "a huge number");
  refuse_w(R"({"more":1,"bits":4)" + rest, "needs bits");
  const std::string head = R"({"bits":4,"symmetric":false,"scope":)";
  refuse_w(head + R"("column","group_size":2,"shape":[2,2,2]})", "bad scope or shape");
  refuse_w(head + R"("group","group_size":3,"shape":[2,2,2]})", "do not divide");
  refuse_w(head + R"("group","group_size":2,"shape":[8]})", "a vector");
  refuse_w(head + R"("group","group_size":2,"shape":[2,"2"]})", "bad scope or shape");
  refuse_w(head + R"("group","group_size":2,"shape":[4294967296,4294967296,4294967296]})",
           "too many");
}

}  // namespace
}  // namespace stretto::store
