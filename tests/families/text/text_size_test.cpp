#include "families/text/text_size.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

TEST(TextSize, CountsCompressedFilesThreefold) {
  const testing::TempDir folder;
  const auto size_of = [&](const std::string& name) {
    const std::vector<std::string> paths{folder.write(name, std::string(100, 'a'))};
    return plain_bytes(paths);
  };
  EXPECT_EQ(size_of("a.txt"), 100);
  EXPECT_EQ(size_of("plain"), 100);
  for (const char* name : {"a.gz", "a.zst", "a.zip"}) EXPECT_EQ(size_of(name), 300) << name;
}

TEST(TextSize, AddsFilesUpAndIsNotKnownWhereOneIsMissing) {
  const testing::TempDir folder;
  std::vector<std::string> paths{folder.write("a", "12345"), folder.write("b.gz", "12")};
  EXPECT_EQ(plain_bytes(paths), 11);
  paths.push_back(folder / "c");
  EXPECT_FALSE(plain_bytes(paths));
  EXPECT_EQ(plain_bytes({}), 0);
}

TEST(TextSize, RoundsTokensUp) {
  EXPECT_EQ(tokens_in(0), 0);
  EXPECT_EQ(tokens_in(kBytesPerToken), 1);
  EXPECT_EQ(tokens_in(kBytesPerToken + 1), 2);
}

}  // namespace
}  // namespace stretto::experiment
