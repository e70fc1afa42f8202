#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::failure;

class Opening : public ::testing::Test {
 protected:
  // Who waits for the other side of a pipe is ended, and the test has failed.
  void SetUp() override {
    ::alarm(120);
    ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
    dir_.write("target", "precious");
    fs::create_symlink(dir_ / "target", dir_ / "link");
    fs::create_directories(dir_ / "folder");
  }
  void TearDown() override { ::alarm(0); }

  testing::TempDir dir_;
};

TEST_F(Opening, NothingButARegularFileIsRead) {
  for (const fs::path& path : {dir_ / "pipe", dir_ / "folder", fs::path("/dev/zero")}) {
    const Error error = failure(ExitCode::kUsage, [&] { read_file(path); });
    EXPECT_NE(std::string(error.what()).find(path.string() + ": is a"), std::string::npos)
        << error.what();
    failure(ExitCode::kUsage, [&] { MappedFile map(path); });
  }
  EXPECT_EQ(read_file(dir_ / "link"), "precious") << "links are read through";
  EXPECT_FALSE(read_file("/proc/self/stat").empty()) << "files without a size are read";
}

TEST_F(Opening, AFileHasABoundEvenWhenNobodyNamesOne) {
  std::error_code error;
  fs::resize_file(dir_ / "target", kMaxWholeFileBytes + 1, error);  // of nothing but holes
  if (error) GTEST_SKIP() << "no such large files here: " << error.message();
  failure(ExitCode::kBadData, [&] { read_file(dir_ / "target"); });
}

TEST_F(Opening, ItsOwnFilesAreNeverWrittenThroughALink) {
  for (const char* name : {"link", "pipe", "folder"}) {
    const fs::path path = dir_ / name;
    const Error error = failure(ExitCode::kUsage, [&] { open_own_file(path, O_WRONLY); });
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    failure(ExitCode::kUsage, [&] { FileLock::try_now(path, "test"); });
    failure(ExitCode::kUsage, [&] { FileLock::wait(path); });
    failure(ExitCode::kUsage, [&] { log::open_file(path); });
  }
  fs::create_symlink(dir_ / "not_there", dir_ / "dangling");
  failure(ExitCode::kUsage, [&] { FileLock::wait(dir_ / "dangling"); });
  EXPECT_FALSE(fs::exists(dir_ / "not_there"));
  EXPECT_EQ(read_file(dir_ / "target"), "precious");
}

TEST_F(Opening, ALinkIsReplacedByAnAtomicWriteAndItsTargetLeftAlone) {
  write_file_atomic(dir_ / "link", "new");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(dir_ / "link")));
  EXPECT_EQ(read_file(dir_ / "link"), "new");
  EXPECT_EQ(read_file(dir_ / "target"), "precious");
}

TEST_F(Opening, MakesItsOwnFileAndKeepsWhatIsInIt) {
  EXPECT_TRUE(open_own_file(dir_ / "new", O_WRONLY));
  const Descriptor file = open_own_file(dir_ / "target", O_WRONLY | O_APPEND);
  ASSERT_EQ(::write(file.get(), "!", 1), 1);
  EXPECT_EQ(read_file(dir_ / "target"), "precious!");
}

TEST_F(Opening, ALockTellsWhetherSomebodyHasIt) {
  EXPECT_FALSE(FileLock::is_held(dir_ / "lock"));
  EXPECT_FALSE(fs::exists(dir_ / "lock")) << "looking makes nothing";
  {
    const FileLock held = FileLock::wait(dir_ / "lock");
    EXPECT_TRUE(FileLock::is_held(dir_ / "lock"));
  }
  EXPECT_FALSE(FileLock::is_held(dir_ / "lock"));
}

}  // namespace
}  // namespace stretto
