#include "store/npy_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

TEST(NpyFile, HasTheHeaderOfNumPy) {
  const std::string header = npy_header(3, 2);
  ASSERT_EQ(header.size(), 128u) << "a multiple of 64, so that data are aligned";
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(header.substr(8, 2), std::string("\x76\x00", 2)) << "118 bytes follow";
  EXPECT_TRUE(header.substr(10).starts_with(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } "));
  EXPECT_EQ(header.back(), '\n');
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(npy_header(kMost, kMost).size(), 128u);
}

TEST(NpyFile, HoldsRowsInTheirOrder) {
  const stretto::testing::TempDir folder;
  const auto path = folder / "vectors.npy";
  NpyFile file(path, 2);
  const std::vector<float> first{1, 2, 3, 4}, second{5, 6};
  file.append(first);
  file.append({});
  file.append(second);
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is there before all of it is";
  file.finish();
  const std::string bytes = read_file(path);
  ASSERT_EQ(bytes.size(), 128u + 6 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 128), npy_header(3, 2));
  std::vector<float> values(6);
  std::memcpy(values.data(), bytes.data() + 128, 6 * sizeof(float));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(NpyFile, LeavesNothingBehindWithoutItsEnd) {
  const stretto::testing::TempDir folder;
  {
    NpyFile file(folder / "vectors.npy", 3);
    EXPECT_THROW(file.append(std::vector<float>{1, 2}), std::invalid_argument);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THROW(NpyFile(folder / "nowhere/vectors.npy", 3), Error);
}

}  // namespace
}  // namespace stretto::store
