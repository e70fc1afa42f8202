#include "interchange/new_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

TEST(NewFolder, AppearsWholeWithoutItsLock) {
  const TempDir dir;
  {
    NewFolder folder(dir / "model");
    EXPECT_EQ(folder.path(), dir / ".tmp-model");
    write_file_atomic(folder.path() / "config.json", "{}");
    EXPECT_FALSE(fs::exists(dir / "model"));
    const Error other = testing::failure(ExitCode::kUsage, [&] { NewFolder(dir / "model"); });
    EXPECT_NE(std::string(other.what()).find("another process writes"), std::string::npos);
    folder.publish();
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"config.json", "model"}));
}

TEST(NewFolder, IsGoneWhenItIsNotPublished) {
  const TempDir dir;
  { const NewFolder folder(dir / "model"); }
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(NewFolder, RemovesWhatAKilledProcessLeftAndNothingElse) {
  const TempDir dir;
  dir.write(".tmp-ours/.stretto-lock", "host 1");
  dir.write(".tmp-ours/part", "half");
  dir.write(".tmp-theirs/notes.txt", "precious");
  dir.write(".tmp-theirs.lock", "precious");
  dir.write(".tmp-file", "precious");
  { const NewFolder folder(dir / "ours"); }
  EXPECT_FALSE(fs::exists(dir / ".tmp-ours"));
  for (const char* name : {"theirs", "file"}) {
    NewFolder folder(dir / name);
    EXPECT_EQ(folder.path(), dir / (std::string(".tmp-") + name + "-1"));
    folder.publish();
  }
  for (const char* name : {".tmp-theirs/notes.txt", ".tmp-theirs.lock", ".tmp-file"}) {
    EXPECT_EQ(read_file(dir / name), "precious") << name;
  }
}

TEST(NewFolder, TakesTheEmptyFolderOfAProcessThatWasKilledBeforeItsLock) {
  const TempDir dir;
  fs::create_directory(dir / ".tmp-model");
  {
    NewFolder folder(dir / "model");
    EXPECT_EQ(folder.path(), dir / ".tmp-model");
    write_file_atomic(folder.path() / "config.json", "{}");
    folder.publish();
  }
  EXPECT_TRUE(fs::exists(dir / "model/config.json"));
  EXPECT_FALSE(fs::exists(dir / ".tmp-model"));
}

}  // namespace
}  // namespace stretto::interchange
