#include "base/atomic_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

TEST(AtomicFile, ReplacesTheOldFileAtOnce) {
  const testing::TempDir folder;
  const std::string path = folder.write("file", "old");
  AtomicFile file(path);
  file.write("head");
  file.write("tail");
  file.write_at(1, "EA");
  EXPECT_EQ(read_file(path), "old");
  file.publish();
  EXPECT_EQ(read_file(path), "hEAdtail");
}

TEST(AtomicFile, KeepsTheOldFileWithoutItsEnd) {
  const testing::TempDir folder;
  const std::string path = folder.write("file", "old");
  AtomicFile(path).write("new");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace stretto
