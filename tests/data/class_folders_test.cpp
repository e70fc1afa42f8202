#include "data/class_folders.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using Folders = std::set<std::string>;

TEST(ClassFolders, LeadingFoldersThatAllPicturesShareAreNoClasses) {
  const Folders flat{"cat", "dog"}, nested{"set/train/cat", "set/train/dog/small"};
  EXPECT_EQ(shared_folders(flat, flat), 0U);
  EXPECT_EQ(shared_folders(nested, nested), 2U);
  EXPECT_EQ(folder_at("set/train/dog/small", 2), "dog");
  EXPECT_EQ(folder_at("set/train", 2), "");
}

TEST(ClassFolders, TheLastFolderIsAlwaysAClass) {
  EXPECT_EQ(shared_folders({"cat"}, {"cat"}), 0U);
  EXPECT_EQ(shared_folders({"train/cat"}, {"train", "train/cat"}), 1U);
  EXPECT_EQ(shared_folders({"train", "train/cat"}, {"train", "train/cat"}), 0U);
  EXPECT_EQ(shared_folders({}, {"cat"}), 0U);
}

TEST(ClassFolders, AFolderBesideWithoutPicturesIsAClassToo) {
  EXPECT_EQ(shared_folders({"cat/small", "cat/large"}, {"cat", "cat/small", "cat/large", "dog"}),
            0U);
}

TEST(ClassFolders, SetsAreNoClasses) {
  const auto error = failure(ExitCode::kUsage, [] { require_no_sets({"test", "train"}, "/d/"); });
  EXPECT_EQ(std::string(error.what()), "/d/: its folders test and train are sets, not classes");
  EXPECT_NE(error.advice().find("/d/test"), std::string::npos) << error.advice();
  require_no_sets({"test", "cat"}, "/d");
  require_no_sets({"test"}, "/d");
}

}  // namespace
}  // namespace stretto::data
