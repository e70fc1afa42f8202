#include "store/folders.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;

TEST(RemoveFolder, LeavesTheLastEntryWhileThereIsAnother) {
  const stretto::testing::TempDir dir;
  const fs::path folder = dir / "run";
  int n = 1;
  for (bool fails = true; fails; ++n) {
    for (const char* name : {"run/a", "run/mark", "run/z/inner", "run/z/mark"}) dir.write(name, "");
    set_failpoints("*:eio:" + std::to_string(n));
    try {
      remove_folder(folder, "mark");
      fails = false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kIo);
      EXPECT_TRUE(fs::exists(folder / "mark") || fs::is_empty(folder)) << n;
    }
    set_failpoints("");
  }
  EXPECT_GT(n, 6) << "so many calls can fail";
  EXPECT_FALSE(fs::exists(folder));
}

TEST(RemoveFolder, RemovesALinkAndNotWhatItLeadsTo) {
  const stretto::testing::TempDir dir;
  dir.write("run/mark", "");
  fs::create_directory_symlink(dir / "run", dir / "link");
  remove_folder(dir / "link", "mark");
  EXPECT_FALSE(fs::exists(fs::symlink_status(dir / "link")));
  EXPECT_TRUE(fs::exists(dir / "run/mark"));
}

}  // namespace
}  // namespace stretto::store
