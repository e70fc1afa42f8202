#include "base/stray_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/descriptor.h"
#include "base/durable_file.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

class StrayFiles : public ::testing::Test {
 protected:
  /// The number of a process that has ended.
  static pid_t dead_process() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = 0;
    ::waitpid(child, &status, 0);
    return child;
  }
  size_t strays() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      count += entry.path().filename().string().starts_with("report.html.tmp-") ? 1 : 0;
    }
    return count;
  }
  fs::path make(const std::string& name) const { return dir_.write(name, "half"); }

  testing::TempDir dir_;
};

TEST_F(StrayFiles, OfAProcessThatWasKilledGoWithTheNextWrite) {
  for (const char* point : {"file.write", "file.fsync", "file.close", "file.rename"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      set_failpoints(std::string(point) + ":kill");
      write_file_atomic(dir_ / "report.html", "new");
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << point;
    EXPECT_EQ(strays(), 1u) << "the test is stale: " << point;
    write_file_atomic(dir_ / "report.html", "whole");
    EXPECT_EQ(strays(), 0u) << point;
    EXPECT_EQ(read_file(dir_ / "report.html"), "whole");
  }
}

TEST_F(StrayFiles, OfTheLivingOfOthersAndOfOtherNamesStay) {
  const pid_t dead = dead_process();
  const fs::path living = make("f" + temporary_suffix(::getppid(), 0));
  const fs::path held = make("f" + temporary_suffix(dead, 1));
  const fs::path other = make("g" + temporary_suffix(dead, 0));
  const fs::path no_number = make("f.tmp-" + std::to_string(dead) + "-x");
  const fs::path padded = make("f.tmp-0" + std::to_string(dead) + "-0");
  const fs::path link = dir_ / ("f" + temporary_suffix(dead, 2));
  fs::create_symlink(dir_.write("target", "precious"), link);
  const fs::path stray = make("f" + temporary_suffix(dead, 3));
  // As a writer on another host, whose number nobody here has.
  const Descriptor writer(::open(held.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
  remove_stray_files(dir_.path(), [](const std::string& name) { return name == "f"; });
  EXPECT_FALSE(fs::exists(stray));
  for (const fs::path& path : {living, held, other, no_number, padded, link}) {
    EXPECT_TRUE(fs::exists(fs::symlink_status(path))) << path;
  }
  EXPECT_EQ(read_file(dir_ / "target"), "precious");
}

TEST_F(StrayFiles, OfThisProcessesNumberAreJudgedByTheirLockAlone) {
  // In a container each start may have the number of the last one.
  const fs::path stray = make("f" + temporary_suffix(::getpid(), 77));
  const fs::path busy = make("f" + temporary_suffix(::getpid(), 78));
  const Descriptor writer(::open(busy.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
  remove_stray_files(dir_.path(), [](const std::string&) { return true; });
  EXPECT_FALSE(fs::exists(stray));
  EXPECT_TRUE(fs::exists(busy));
}

TEST_F(StrayFiles, AFileOnItsWayIsClaimedUntilItIsRenamed) {
  DurableFile file(dir_ / ("f" + temporary_suffix(dead_process(), 0)), "test");
  {
    const Descriptor claim = file.claim();
    ASSERT_TRUE(claim);
    file.write("x");
    file.close();
    remove_stray_files(dir_.path(), [](const std::string&) { return true; });
    EXPECT_FALSE(fs::is_empty(dir_.path())) << "removed between its close and its renaming";
  }
  remove_stray_files(dir_.path(), [](const std::string&) { return true; });
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(StrayFiles, AFolderThatIsNotThereIsEmpty) {
  EXPECT_NO_THROW(remove_stray_files(dir_ / "none", [](const std::string&) { return true; }));
}

}  // namespace
}  // namespace stretto
