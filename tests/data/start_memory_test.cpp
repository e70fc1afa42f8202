#include "data/start_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class StartMemoryTest : public ::testing::Test {
 protected:
  /// Another content of the same size under the same stamp, as no program leaves it.
  void replace_unseen(const std::string& text) const {
    const auto time = fs::last_write_time(path_);
    std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary) << text;
    fs::last_write_time(path_, time);
  }

  testing::TempDir folder_;
  const std::string path_ = folder_.write("a.tsv", "one\n");
};

TEST_F(StartMemoryTest, AnswersForAFileThatStaysAsItIs) {
  const StartMemory memory;
  const FileDigest digest = digest_of(path_);
  replace_unseen("two\n");
  EXPECT_EQ(digest_of(path_), digest);
  EXPECT_EQ(content_hashes({path_}, {}, 1).front(), digest.stored_hash);
  EXPECT_EQ(stored_hash_of(path_, {}), digest.stored_hash);
}

TEST_F(StartMemoryTest, ReadsAFileAgainWhoseStampIsAnotherOne) {
  const StartMemory memory;
  const FileDigest digest = digest_of(path_);
  folder_.write("a.tsv", "other\n");
  EXPECT_NE(digest_of(path_).hash, digest.hash);
  EXPECT_NE(stored_hash_of(path_, {}), digest.stored_hash);
}

TEST_F(StartMemoryTest, ForgetsWithTheLastOne) {
  FileDigest digest;
  {
    const StartMemory first;
    {
      const StartMemory second;
      digest = digest_of(path_);
    }
    EXPECT_TRUE(find_content_hash(path_, {}));
  }
  EXPECT_FALSE(find_content_hash(path_, {}));
  replace_unseen("two\n");
  EXPECT_NE(digest_of(path_).hash, digest.hash);
}

TEST_F(StartMemoryTest, RemembersNothingWhereNoneLives) {
  digest_of(path_);
  const StartMemory memory;
  EXPECT_FALSE(find_content_hash(path_, {}));
}

}  // namespace
}  // namespace stretto::data
