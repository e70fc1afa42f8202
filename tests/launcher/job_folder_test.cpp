#include "launcher/job_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/scoped_variable.h"

namespace stretto::launcher {
namespace {

namespace fs = std::filesystem;
using testing::ScopedVariable;

TEST(JobFolder, AMissingTmpdirIsAnErrorThatNamesIt) {
  const ScopedVariable variable("TMPDIR", "/nonexistent/here");
  try {
    const JobFolder folder;
    FAIL() << "made " << folder.path();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kIo);
    EXPECT_NE(std::string(error.what()).find("TMPDIR=/nonexistent/here"), std::string::npos);
    EXPECT_NE(error.advice().find("TMPDIR"), std::string::npos);
  }
}

// As a launcher that was killed left it: nobody holds the lock, and its time is long past.
void age(const fs::path& lock) {
  const timespec past[2] = {{.tv_sec = 1'000'000, .tv_nsec = 0},
                            {.tv_sec = 1'000'000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, lock.c_str(), past, 0), 0);
}

TEST(JobFolder, TheNextJobRemovesWhatDeadLaunchersLeftAndNothingElse) {
  const testing::TempDir place;
  const ScopedVariable variable("TMPDIR", place.path().string());
  const auto leave = [&](const std::string& name) {
    fs::create_directories(place / name / "out");
    std::ofstream(place / name / "launcher") << "";
    age(place / name / "launcher");
    return place / name;
  };
  const auto stale = leave("stretto_job_stale0"), other = leave("other_job_stale0");
  const auto young = leave("stretto_job_young0");
  std::ofstream(young / "launcher") << "touched now";
  fs::create_directories(place / "target");
  fs::create_symlink(place / "target", place / "stretto_job_link00");
  fs::create_directories(place / "stretto_job_noLock");

  const auto foreign = leave("stretto_job_other0");
  const bool is_foreign = ::chown(foreign.c_str(), 12345, 12345) == 0;  // for root alone

  auto living = std::make_unique<JobFolder>();
  age(living->path() / "launcher");
  const JobFolder next;
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(other)) << "not ours by name";
  EXPECT_EQ(fs::exists(foreign), is_foreign) << "another user's";
  EXPECT_TRUE(fs::exists(young)) << "its launcher may be about to lock it";
  EXPECT_TRUE(fs::exists(place / "target"));
  EXPECT_TRUE(fs::exists(place / "stretto_job_noLock"));
  EXPECT_TRUE(fs::exists(living->path())) << "its launcher lives";
  const fs::path path = living->path();
  living.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST(JobFolder, SharedMemoryHasOneToo) {
  const auto folder = shared_memory_folder();
  if (!folder) GTEST_SKIP() << "there is no /dev/shm to write to";
  const fs::path path = folder->path();
  EXPECT_EQ(path.parent_path(), "/dev/shm");
  std::ofstream(path / "vader_segment") << "memory";
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 077, 0u) << "others may look into it";
}

TEST(JobFolder, TheNextJobRemovesWhatAKilledOneSharedToo) {
  const testing::TempDir place;
  fs::create_directories(place / "stretto_job_stale0" / "ompi.here.0");
  std::ofstream(place / "stretto_job_stale0" / "vader_segment.here.0.1") << "memory";
  std::ofstream(place / "stretto_job_stale0" / "launcher") << "";
  age(place / "stretto_job_stale0" / "launcher");
  std::ofstream(place / "vader_segment.here.0.2") << "of another mpirun";
  {
    const JobFolder next(place.path());
    EXPECT_FALSE(fs::exists(place / "stretto_job_stale0"));
    std::ofstream(next.path() / "vader_segment.here.0.3") << "memory";
  }
  EXPECT_TRUE(fs::exists(place / "vader_segment.here.0.2"));
  EXPECT_EQ(std::distance(fs::directory_iterator(place.path()), {}), 1);
}

}  // namespace
}  // namespace stretto::launcher
