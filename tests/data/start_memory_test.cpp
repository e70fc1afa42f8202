#include "data/start_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class StartMemoryTest : public ::testing::Test {
 protected:
  /// Another digest than the file has, remembered in the place of its own.
  FileDigest remember_another() const {
    FileDigest other = digest_of(path_);
    other.stored_hash = ++other.hash;
    StartMemory::put(name_, file_stamp(path_), other);
    return other;
  }

  testing::TempDir folder_;
  const std::string path_ = folder_.write("a.tsv", "one\n");
  const std::string name_ = fs::path(path_).lexically_normal().string() + "\n";
};

TEST_F(StartMemoryTest, AnswersForAFileThatStaysAsItIs) {
  const StartMemory memory;
  const FileDigest digest = digest_of(path_);
  EXPECT_EQ(StartMemory::find(name_, file_stamp(path_)), digest);
  EXPECT_EQ(find_content_hash(path_, {}), digest.stored_hash);
  EXPECT_EQ(stored_hash_of(path_, {}), digest.stored_hash);
  const FileDigest other = remember_another();
  EXPECT_EQ(digest_of(path_), other);
}

TEST_F(StartMemoryTest, ReadsAFileAgainWhoseStampIsAnotherOne) {
  const StartMemory memory;
  const FileDigest digest = digest_of(path_);
  folder_.write("a.tsv", "other\n");
  EXPECT_NE(digest_of(path_).hash, digest.hash);
  EXPECT_NE(stored_hash_of(path_, {}), digest.stored_hash);
}

TEST_F(StartMemoryTest, ReadsAFileAgainThatWasEditedWithItsTimePutBack) {
  const StartMemory memory;
  const FileDigest digest = digest_of(path_);
  const auto time = fs::last_write_time(path_);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // longer than a tick of the clock
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary) << "two\n";
  fs::last_write_time(path_, time);
  EXPECT_NE(digest_of(path_).hash, digest.hash);
  EXPECT_NE(stored_hash_of(path_, {}), digest.stored_hash);
}

TEST_F(StartMemoryTest, ForgetsWithTheLastOne) {
  FileDigest other;
  {
    const StartMemory first;
    {
      const StartMemory second;
      other = remember_another();
    }
    EXPECT_TRUE(find_content_hash(path_, {}));
    EXPECT_EQ(digest_of(path_), other);
  }
  EXPECT_FALSE(find_content_hash(path_, {}));
  EXPECT_NE(digest_of(path_), other);
}

TEST_F(StartMemoryTest, RemembersNothingWhereNoneLives) {
  digest_of(path_);
  const StartMemory memory;
  EXPECT_FALSE(find_content_hash(path_, {}));
}

}  // namespace
}  // namespace stretto::data
