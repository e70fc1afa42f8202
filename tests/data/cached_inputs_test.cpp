#include "data/cached_inputs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/settled.h"

namespace stretto::data {
namespace {

TEST(CachedInputs, AreToldApartByContentWhereverTheyLie) {
  const testing::TempDir dir;
  const std::string cache = (dir / "cache").string();
  const auto inputs = open_cached_inputs(cache, {dir.write("a.json", "{}")});
  ASSERT_TRUE(inputs);
  EXPECT_EQ(inputs->root, dir / "cache");
  EXPECT_EQ(open_cached_inputs(cache, {dir.write("b.json", "{}")})->contents, inputs->contents);
  EXPECT_NE(open_cached_inputs(cache, {dir.write("b.json", "[]")})->contents, inputs->contents);
  EXPECT_NE(open_cached_inputs(cache, {dir.write("b.tsv", "{}")})->contents, inputs->contents)
      << "the ending tells how it is read";
}

TEST(CachedInputs, AFileThatIsLinkedWhileItIsReadIsTheSameAndOneThatIsWrittenIsNot) {
  const testing::TempDir dir;
  const std::string path = dir.write("a.json", "{}");
  test::let_settle({path});  // so that the time of the link is another one
  const auto inputs = open_cached_inputs((dir / "cache").string(), {path, path});
  ASSERT_TRUE(inputs);
  const FileStamp before = file_stamp(path);
  std::filesystem::create_hard_link(path, dir / "b.json");
  ASSERT_NE(file_stamp(path), before);
  EXPECT_NO_THROW(inputs->files.check_unchanged());
  dir.write("a.json", "[]");
  const Error error =
      testing::failure(ExitCode::kBadData, [&] { inputs->files.check_unchanged(); });
  EXPECT_EQ(std::string(error.what()), path + ": changed while it was being read");
}

TEST(CachedInputs, AMissingFileIsLeftToItsReaderAndAMissingCacheIsAnErrorOfTheSystem) {
  const testing::TempDir dir;
  EXPECT_FALSE(open_cached_inputs((dir / "cache").string(), {"/nowhere/a.json"}));
  const std::string no_folder = dir.write("file", "") + "/cache";
  testing::failure(ExitCode::kIo, [&] { open_cached_inputs(no_folder, {"/nowhere/a.json"}); });
}

}  // namespace
}  // namespace stretto::data
