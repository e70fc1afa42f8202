#include "store/gguf_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "distributed/half.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

template <class Value>
Value value_at(const std::string& bytes, size_t place) {
  Value value{};
  std::memcpy(&value, bytes.data() + place, sizeof(Value));
  return value;
}

TEST(GgufFile, HasHeaderKeysAndAlignedTensors) {
  GgufFile file;
  file.set_u32("a.b", 7);
  file.add_tensor("w", GgufType::kF32, {2, 3}, [] {
    return gguf_values(GgufType::kF32, {1, 2, 3, 4, 5, 6});
  });
  file.add_tensor("v", GgufType::kF32, {1}, [] { return gguf_values(GgufType::kF32, {9}); });
  const stretto::testing::TempDir folder;
  file.write(folder / "m.gguf");
  const std::string bytes = read_file(folder / "m.gguf");
  EXPECT_EQ(bytes.substr(0, 4), "GGUF");
  EXPECT_EQ(value_at<uint32_t>(bytes, 4), 3u);
  EXPECT_EQ(value_at<uint64_t>(bytes, 8), 2u) << "tensors";
  EXPECT_EQ(value_at<uint64_t>(bytes, 16), 1u) << "keys";
  EXPECT_EQ(value_at<uint64_t>(bytes, 24), 3u);
  EXPECT_EQ(bytes.substr(32, 3), "a.b");
  EXPECT_EQ(value_at<uint32_t>(bytes, 35), 4u) << "uint32";
  EXPECT_EQ(value_at<uint32_t>(bytes, 39), 7u);
  // The first tensor: name, number of sizes, sizes with the innermost first, type, offset.
  EXPECT_EQ(bytes.substr(51, 1), "w");
  EXPECT_EQ(value_at<uint32_t>(bytes, 52), 2u);
  EXPECT_EQ(value_at<uint64_t>(bytes, 56), 3u);
  EXPECT_EQ(value_at<uint64_t>(bytes, 64), 2u);
  EXPECT_EQ(value_at<uint32_t>(bytes, 72), 0u);
  EXPECT_EQ(value_at<uint64_t>(bytes, 76), 0u);
  // The second one: 24 bytes of the first fill one unit of 32.
  EXPECT_EQ(value_at<uint64_t>(bytes, 84 + 8 + 1 + 4 + 8 + 4), 32u);
  const size_t data = bytes.size() - 64;
  EXPECT_EQ(data % 32, 0u);
  EXPECT_EQ(value_at<float>(bytes, data), 1);
  EXPECT_EQ(value_at<float>(bytes, data + 32), 9);
}

TEST(GgufFile, WritesStringsAndLists) {
  GgufFile file;
  file.set_strings("t", {"ab", "c"});
  file.set_bool("u", true);
  const stretto::testing::TempDir folder;
  file.write(folder / "m.gguf");
  const std::string bytes = read_file(folder / "m.gguf");
  size_t place = 24 + 8 + 1;
  EXPECT_EQ(value_at<uint32_t>(bytes, place), 9u) << "array";
  EXPECT_EQ(value_at<uint32_t>(bytes, place + 4), 8u) << "of strings";
  EXPECT_EQ(value_at<uint64_t>(bytes, place + 8), 2u);
  EXPECT_EQ(value_at<uint64_t>(bytes, place + 16), 2u);
  EXPECT_EQ(bytes.substr(place + 24, 2), "ab");
  place += 24 + 2 + 8 + 1;
  EXPECT_EQ(bytes.substr(place + 8, 1), "u");
  EXPECT_EQ(value_at<uint32_t>(bytes, place + 9), 7u) << "bool";
  EXPECT_EQ(bytes[place + 13], 1);
}

TEST(GgufValues, BlocksOf32HaveAScaleAndCodes) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 20;
  for (size_t i = 32; i < values.size(); ++i) values[i] = 0;
  const std::string bytes = gguf_values(GgufType::kQ8_0, values);
  ASSERT_EQ(bytes.size(), 2u * 34);
  EXPECT_EQ(bytes.size(), gguf_bytes(GgufType::kQ8_0, 64));
  const float scale = distributed::from_f16(value_at<uint16_t>(bytes, 0));
  EXPECT_NEAR(scale, 20.0F / 127, 1e-4);
  for (size_t i = 0; i < 32; ++i) {
    const auto code = value_at<int8_t>(bytes, 2 + i);
    EXPECT_NEAR(static_cast<float>(code) * scale, values[i], 0.51F * scale) << i;
  }
  EXPECT_EQ(bytes.substr(34), std::string(34, '\0')) << "zeros stay zeros";
}

TEST(GgufValues, CodesInTheMiddleGoAwayFromZero) {
  std::vector<float> values(32, 0);
  values[0] = 127;
  values[1] = 2.5F;
  values[2] = -2.5F;
  const std::string bytes = gguf_values(GgufType::kQ8_0, values);
  EXPECT_EQ(value_at<int8_t>(bytes, 2), 127);
  EXPECT_EQ(value_at<int8_t>(bytes, 3), 3) << "as ggml rounds";
  EXPECT_EQ(value_at<int8_t>(bytes, 4), -3);
}

TEST(GgufValues, HalvesAreRoundedToNearest) {
  const std::string bytes = gguf_values(GgufType::kF16, {1.0F, 65504.0F});
  EXPECT_EQ(value_at<uint16_t>(bytes, 0), 0x3c00);
  EXPECT_EQ(value_at<uint16_t>(bytes, 2), 0x7bff);
}

TEST(GgufFile, RefusesWhatDoesNotFit) {
  GgufFile file;
  const auto nothing = [] { return std::string(); };
  EXPECT_THROW(file.add_tensor(std::string(65, 'n'), GgufType::kF32, {1}, nothing),
               std::invalid_argument);
  EXPECT_THROW(file.add_tensor("w", GgufType::kQ8_0, {2, 33}, nothing), std::invalid_argument);
  EXPECT_THROW(gguf_values(GgufType::kQ8_0, std::vector<float>(33)), std::invalid_argument);
  file.add_tensor("w", GgufType::kF32, {1}, nothing);
  const stretto::testing::TempDir folder;
  EXPECT_THROW(file.write(folder / "m.gguf"), std::invalid_argument);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left behind";
}

}  // namespace
}  // namespace stretto::store
