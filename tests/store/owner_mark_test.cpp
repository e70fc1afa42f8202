#include "store/owner_mark.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "store/run_record.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

constexpr const char* kVariable = "STRETTO_STATE";

/// The state folder of a user for one test.
class OwnerMark : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv(kVariable)) before_ = before;
    be("someone");
  }
  void TearDown() override {
    if (before_.empty()) {
      ::unsetenv(kVariable);
    } else {
      ::setenv(kVariable, before_.c_str(), 1);
    }
  }
  void be(const std::string& user) { ::setenv(kVariable, (dir_ / user).c_str(), 1); }

  const stretto::testing::TempDir dir_;
  std::string before_;
};

TEST_F(OwnerMark, IsOfOneUserAndOneText) {
  const std::string mark = owner_mark("text");
  EXPECT_EQ(mark.size(), 64u);
  EXPECT_EQ(owner_mark("text"), mark);
  EXPECT_TRUE(is_own_mark("text", mark));
  EXPECT_FALSE(is_own_mark("texts", mark));
  EXPECT_FALSE(is_own_mark("text", ""));
  be("another");
  EXPECT_FALSE(is_own_mark("text", mark)) << "there is no key";
  EXPECT_FALSE(std::filesystem::exists(owner_key_path())) << "who asks makes no key";
  EXPECT_NE(owner_mark("text"), mark);
  EXPECT_FALSE(is_own_mark("text", mark));
}

TEST_F(OwnerMark, HasAKeyThatNobodyElseReads) {
  const std::string mark = owner_mark("text");
  struct stat status {};
  ASSERT_EQ(::stat(owner_key_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(owner_key_path().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ::chmod(owner_key_path().c_str(), 0644);
  EXPECT_FALSE(is_own_mark("text", mark)) << "others may know this key";
  EXPECT_EQ(owner_mark("text"), "");
  ::chmod(owner_key_path().c_str(), 0600);
  EXPECT_TRUE(is_own_mark("text", mark));
}

TEST_F(OwnerMark, IsLeftOutWhereNoKeyCanBeKept) {
  dir_.write("file", "");
  ::setenv(kVariable, (dir_ / "file").c_str(), 1);
  EXPECT_EQ(owner_mark("text"), "");
  EXPECT_FALSE(is_own_mark("text", std::string(64, '0')));
}

TEST_F(OwnerMark, ShowsThatAConfigurationIsTheUsersOwn) {
  const std::string toml = "[data]\ntest = [\"/a\"]\n[report]\nevery = 1\n";
  const std::string sealed = seal_config(toml, "0123", owner_mark(marked_text(toml, "0123")));
  const auto opened = unseal_config(sealed);
  EXPECT_EQ(opened.state, SealedConfig::State::kWhole);
  EXPECT_EQ(opened.toml, toml) << "the mark is no part of the configuration";
  EXPECT_TRUE(opened.is_own());
  EXPECT_FALSE(unseal_config(seal_config(toml, "0123")).is_own());
  EXPECT_FALSE(unseal_config(seal_config(toml, "0124", opened.mark)).is_own());
  EXPECT_FALSE(unseal_config(seal_config(toml + "a = 1\n", "0123", opened.mark)).is_own());
  be("another");
  EXPECT_FALSE(unseal_config(sealed).is_own());
}

}  // namespace
}  // namespace stretto::store
