#include "data/store_use.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log_silence.h"
#include "data/sample_store.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class StoreUseTest : public ::testing::Test {
 protected:
  StorePlace place(uint64_t key, const std::string& kind = "texts") const {
    return {.root = folder_.path(), .kind = kind, .key = key, .num_parts = 1};
  }
  SampleStore open(uint64_t key, const std::string& kind = "texts") const {
    return open_samples(place(key, kind), [](SampleStoreWriter& writer) {
      writer.append(0, "text");
      return std::vector<uint64_t>{};
    });
  }
  bool is_there(uint64_t key) const { return fs::exists(place(key).folder()); }
  void age(uint64_t key, int days, const std::string& kind = "texts") const {
    fs::last_write_time(place(key).folder() / ("opened." + kind),
                        fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  }
  /// What is said while a new store of a kind is written.
  std::string said_with_new(uint64_t key, const std::string& kind = "texts") const {
    ::testing::internal::CaptureStderr();
    open(key, kind);
    return ::testing::internal::GetCapturedStderr();
  }

  testing::TempDir folder_;
};

TEST_F(StoreUseTest, WithANewStoreThoseThatNobodyOpenedForLongAreRemoved) {
  for (const uint64_t key : {1, 2, 3}) open(key);
  age(1, 31);
  age(2, 31);
  age(3, 29);
  EXPECT_EQ(said_with_new(3).find("removed"), std::string::npos) << "it was found, not written";
  age(3, 29);
  const log::Silence silence;  // nothing removes them again
  const std::string said = said_with_new(4);
  EXPECT_NE(said.find("removed 2 folders of texts"), std::string::npos) << said;
  EXPECT_EQ(said.find("removed"), said.rfind("removed")) << said;
  EXPECT_FALSE(is_there(1) || is_there(2));
  EXPECT_TRUE(is_there(3) && is_there(4));
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp")) << entry.path();
  }
  EXPECT_FALSE(open(1).from_cache());
}

TEST_F(StoreUseTest, StoresOfAnotherKindStay) {
  open(1);
  age(1, 31);
  open(2, "tokens");
  EXPECT_TRUE(is_there(1));
  fs::create_directories(folder_ / "mine");
  open(3);
  EXPECT_FALSE(is_there(1));
  EXPECT_TRUE(fs::exists(folder_ / "mine"));
}

TEST_F(StoreUseTest, AStoreThatIsOpenOrLockedStays) {
  {
    const auto held = open(1);
    age(1, 31);
    open(2);
    EXPECT_TRUE(is_there(1)) << "it is open";
    EXPECT_EQ(held.part(0), "text");
  }
  {
    const auto lock = FileLock::wait(place(1).folder().string() + ".lock");
    open(3);
    EXPECT_TRUE(is_there(1)) << "another process builds it";
  }
  open(4);
  EXPECT_FALSE(is_there(1));
}

TEST_F(StoreUseTest, OpeningRenewsTheTime) {
  open(1);
  age(1, 31);
  EXPECT_TRUE(open(1).from_cache());
  open(2);
  EXPECT_TRUE(is_there(1));
}

// Another process may be removing the folder, which has to be empty in the end.
TEST_F(StoreUseTest, AStoreWithoutAMarkIsOpenedAndNotWrittenTo) {
  open(1);
  fs::remove(place(1).folder() / "opened.texts");
  EXPECT_TRUE(open(1).from_cache());
  EXPECT_FALSE(fs::exists(place(1).folder() / "opened.texts"));
  open(2);
  EXPECT_TRUE(is_there(1));
}

TEST_F(StoreUseTest, AMarkThatIsALinkIsNotFollowed) {
  open(1);
  const auto mark = place(1).folder() / "opened.texts";
  fs::remove(mark);
  const fs::path other = folder_.write("other", "");
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(other, before);
  fs::create_symlink(other, mark);
  EXPECT_TRUE(open(1).from_cache());
  EXPECT_EQ(fs::last_write_time(other), before);
}

}  // namespace
}  // namespace stretto::data
