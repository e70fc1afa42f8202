// The parts of the launcher that need no mpirun; tests/dist/faults_test.py has the whole.

#include "dist/local_job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "dist/child_process.h"
#include "dist/job_folder.h"
#include "dist/noise_filter.h"
#include "dist/rank_processes.h"
#include "tests/base/temp_dir.h"

namespace stretto::dist {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string filtered(const std::vector<std::string>& pieces) {
  NoiseFilter filter(47);
  std::string shown;
  for (const auto& piece : pieces) shown += filter.pass(piece);
  return shown + filter.rest();
}

TEST(NoiseFilter, TakesOutTheLauncherAndNothingElse) {
  const std::string noise = "[node-7.lan:47] PMIX ERROR: BAD-PARAM in file a.c at line 1033\n";
  struct Row {
    const char* what;
    std::string in, out;
  };
  const Row rows[] = {
      {"alone", noise, ""},
      {"with zeros", "[n:00047] x\n[n:00471] y\n[n:0047 z\n", "[n:00471] y\n[n:0047 z\n"},
      {"between lines", "step 1\n" + noise + noise + "step 2\n", "step 1\nstep 2\n"},
      {"in a progress line", "\rstep 1" + noise + "\rstep 2", "\rstep 1\rstep 2"},
      {"a rank's", "[node-7.lan:48] PMIX ERROR\n", "[node-7.lan:48] PMIX ERROR\n"},
      {"a number that begins so", "[node-7.lan:471] x\n", "[node-7.lan:471] x\n"},
      {"brackets", "[###  ] [[a:47 [:4\n", "[###  ] [[a:47 [:4\n"},
      {"its event library",
       "step 1\n[warn] Epoll MOD(1) on fd 25 failed. Old events were 6\nstep 2\n",
       "step 1\nstep 2\n"},
      {"another warning", "[warn] epoll\n[warn\n[warn] E", "[warn] epoll\n[warn\n[warn] E"},
      {"an open end", "50 % [node-7:4", "50 % [node-7:4"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(filtered({row.in}), row.out) << row.what;
    std::vector<std::string> bytes;
    for (const char c : row.in) bytes.push_back({c});
    EXPECT_EQ(filtered(bytes), row.out) << row.what << ", byte for byte";
  }
  NoiseFilter filter(47);
  filter.pass("step 1\n" + noise);
  EXPECT_EQ(filter.withheld(), noise);
}

TEST(NoiseFilter, HoldsBackNothingThatMayStandForLong) {
  NoiseFilter filter(47);
  EXPECT_EQ(filter.pass("\rstep 10 [##  ] 3"), "\rstep 10 [##  ] 3");
}

/// While it lives an environment variable has another value.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

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

  auto living = std::make_unique<JobFolder>();
  age(living->path() / "launcher");
  const JobFolder next;
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(other)) << "not ours by name";
  EXPECT_TRUE(fs::exists(young)) << "its launcher may be about to lock it";
  EXPECT_TRUE(fs::exists(place / "target"));
  EXPECT_TRUE(fs::exists(place / "stretto_job_noLock"));
  EXPECT_TRUE(fs::exists(living->path())) << "its launcher lives";
  const fs::path path = living->path();
  living.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST(RankProcesses, AreFoundByTheirEnvironmentUntilTheyEnd) {
  const testing::TempDir folder;
  const auto start = [&](const std::string& job, const std::string& rank) {
    const ScopedVariable in("STRETTO_JOB_FOLDER", job), size("OMPI_COMM_WORLD_SIZE", "4"),
        number("OMPI_COMM_WORLD_RANK", rank);
    return ChildProcess({find_program("sleep"), "60"});
  };
  const std::string here = folder.path().string();
  ChildProcess third = start(here, "3"), first = start(here, "1"), stranger = start("/other", "0");
  const auto found = [&] {
    std::vector<std::pair<int, int64_t>> all;
    for (const auto& one : find_rank_processes(folder.path())) all.emplace_back(one.rank, one.pid);
    return all;
  };
  using Expected = std::vector<std::pair<int, int64_t>>;
  const Expected both{{1, first.pid()}, {3, third.pid()}};
  for (int i = 0; i < 100 && found() != both; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(found(), both);

  EXPECT_FALSE(is_stopped(third.pid()));
  third.send(SIGSTOP);
  for (int i = 0; i < 100 && !is_stopped(third.pid()); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(is_stopped(third.pid()));
  EXPECT_TRUE(is_alive(third.pid()));

  first.send(SIGKILL);  // and nobody asks for its exit code: a zombie
  for (int i = 0; i < 100 && is_alive(first.pid()); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(is_alive(first.pid()));
  EXPECT_EQ(found(), (Expected{{3, third.pid()}}));
}

TEST(ChildProcess, ItsStderrComesAsItIsWritten) {
  ChildProcess child({find_program("sh"), "-c", "printf one >&2; sleep 0.3; echo two >&2; exit 3"},
                     ChildProcess::Stderr::kPiped);
  std::vector<std::string> pieces;
  for (int i = 0; i < 200 && (pieces.size() < 2 || !child.poll()); ++i) {
    if (auto piece = child.read_stderr(20ms); !piece.empty()) pieces.push_back(piece);
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"one", "two\n"}));
  EXPECT_EQ(child.poll(), 3);
}

}  // namespace
}  // namespace stretto::dist
