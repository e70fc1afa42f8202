#include "data/media/known_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;

KnownFile looked_at(const std::string& path, const std::string& content) {
  return {.stamp = stamp_hash(file_stamp(path)), .bytes = content.size(), .hash = xxh3_64(content)};
}

TEST(KnownFile, IsReadAsLongAsItHoldsTheSame) {
  const testing::TempDir folder;
  const std::string path = folder.write("a", "one");
  const KnownFile known = looked_at(path, "one");
  EXPECT_EQ(read_known(path, known), "one");
  std::filesystem::remove(path);
  folder.write("a", "one");
  EXPECT_EQ(read_known(path, known), "one") << "another file of the same content";
}

TEST(KnownFile, AnotherContentIsAFaultOfTheSample) {
  const testing::TempDir folder;
  const std::string path = folder.write("a", "one");
  const KnownFile known = looked_at(path, "one");
  folder.write("a", "two");
  failure(ExitCode::kBadData, [&] { open_known(path, known); });
  folder.write("a", "three");
  EXPECT_EQ(std::string(failure(ExitCode::kBadData, [&] { open_known(path, known); }).what()),
            path + ": has changed since it was looked at (5 bytes now, 3 then)");
  std::filesystem::remove(path);
  EXPECT_EQ(std::string(failure(ExitCode::kBadData, [&] { open_known(path, known); }).what()),
            path + ": is not there any more");
}

}  // namespace
}  // namespace stretto::data
