#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

class File : public ::testing::Test {
 protected:
  void TearDown() override { set_failpoints(""); }
  static size_t count_entries(const fs::path& folder) {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
    return count;
  }
  TempDir dir_;
};

ExitCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::kOk;
}

/// How much of a map is in memory, as the system counts it.
size_t resident_bytes(std::string_view map) {
  std::ifstream areas("/proc/self/smaps");
  const auto place = reinterpret_cast<uintptr_t>(map.data());
  bool is_it = false;
  for (std::string line; std::getline(areas, line);) {
    uintptr_t begin = 0, end = 0;
    size_t kib = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) {
      is_it = begin <= place && place < end;
    } else if (is_it && std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) {
      return kib * 1024;
    }
  }
  return 0;
}

TEST_F(File, ReadsBackWhatWasWritten) {
  for (const size_t size : {0, 1, 4096, 65536, 200001}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
    write_file_atomic(dir_ / "f", bytes);
    EXPECT_EQ(read_file(dir_ / "f"), bytes);
    const MappedFile map(dir_ / "f");
    EXPECT_EQ(map.bytes(), bytes);
  }
  EXPECT_EQ(count_entries(dir_.path()), 1u);
}

TEST_F(File, ReadsFilesWithoutASize) {
  EXPECT_FALSE(read_file("/proc/self/stat").empty());
}

TEST_F(File, SaysWhatIsWrongWithAPath) {
  EXPECT_EQ(code_of([&] { read_file(dir_ / "none"); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { read_file(dir_ / "none/deeper"); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { read_file(dir_.path()); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { MappedFile map(dir_ / "none"); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { write_file_atomic(dir_ / "none/f", "x"); }), ExitCode::kIo);
  write_file_atomic(dir_ / "big", std::string(101, 'x'));
  EXPECT_EQ(code_of([&] { read_file(dir_ / "big", 100); }), ExitCode::kBadData);
  EXPECT_EQ(read_file(dir_ / "big", 101).size(), 101u);
}

TEST_F(File, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  write_file_atomic(dir_ / "f", "old");
  for (const char* stage : {"open", "write", "fsync", "close", "rename"}) {
    for (const char* fault : {"enospc", "eio", "throw"}) {
      set_failpoints("file." + std::string(stage) + ":" + fault);
      EXPECT_ANY_THROW(write_file_atomic(dir_ / "f", "new")) << stage << " " << fault;
      set_failpoints("");
      EXPECT_EQ(read_file(dir_ / "f"), "old") << stage << " " << fault;
      EXPECT_EQ(count_entries(dir_.path()), 1u) << stage << " " << fault;
    }
  }
}

TEST_F(File, AFullDiskIsNamedWithARemedy) {
  set_failpoints("file.write:enospc");
  const Error error =
      testing::failure(ExitCode::kIo, [&] { write_file_atomic(dir_ / "f", "new"); });
  EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos);
  EXPECT_NE(error.advice().find("free some space"), std::string::npos);
}

TEST_F(File, AFsyncThatFailsOnceIsAFailure) {
  set_failpoints("file.fsync:eio:1");
  EXPECT_EQ(code_of([&] { write_file_atomic(dir_ / "f", "new"); }), ExitCode::kIo);
  EXPECT_FALSE(fs::exists(dir_ / "f"));
}

TEST_F(File, InterruptedAndShortWritesGoOn) {
  const std::string bytes = "0123456789abcdefghijklmnopqrstuvwxyz";
  set_failpoints("file.write:short:1+;file.read:eintr:1");
  write_file_atomic(dir_ / "f", bytes);
  EXPECT_GE(failpoint_passes(), 7u);  // each call takes half of what is left
  EXPECT_EQ(read_file(dir_ / "f"), bytes);
  set_failpoints("file.write:eintr;file.open:eintr");
  write_file_atomic(dir_ / "f", "again");
  EXPECT_EQ(read_file(dir_ / "f"), "again");
}

TEST_F(File, EveryInterruptedCallIsMadeAgain) {
  for (const char* stage : {"open", "write", "fsync", "rename", "fsync_directory"}) {
    set_failpoints("file." + std::string(stage) + ":eintr");
    EXPECT_NO_THROW(write_file_atomic(dir_ / "f", stage)) << stage;
    set_failpoints("");
    EXPECT_EQ(read_file(dir_ / "f"), stage);
  }
  EXPECT_EQ(count_entries(dir_.path()), 1u);
}

TEST_F(File, FoldersAreMadeWithThoseAboveThem) {
  EXPECT_TRUE(make_directories(dir_ / "a/b/c"));
  EXPECT_FALSE(make_directories(dir_ / "a/b/c"));
  EXPECT_TRUE(make_directories(dir_ / "a/d/"));
  EXPECT_TRUE(fs::is_directory(dir_ / "a/d"));
  write_file_atomic(dir_ / "f", "");
  EXPECT_EQ(code_of([&] { make_directories(dir_ / "f"); }), ExitCode::kIo);
  EXPECT_EQ(code_of([&] { make_directories(dir_ / "f/g"); }), ExitCode::kIo);
  EXPECT_EQ(code_of([&] { rename_path(dir_ / "none", dir_ / "g"); }), ExitCode::kIo);
}

TEST_F(File, ADurableFileRefusesToReplaceAnything) {
  write_file_atomic(dir_ / "f", "old");
  EXPECT_EQ(code_of([&] { DurableFile file(dir_ / "f", "test"); }), ExitCode::kIo);
  EXPECT_EQ(read_file(dir_ / "f"), "old");
}

TEST_F(File, AMapMovesWithoutBeingUnmapped) {
  write_file_atomic(dir_ / "f", "text");
  MappedFile first(dir_ / "f");
  MappedFile second = std::move(first);
  MappedFile third;
  third = std::move(second);
  EXPECT_EQ(third.bytes(), "text");
}

TEST_F(File, WhatAMapForgetsTakesNoMemoryAndCanBeReadAgain) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const std::string bytes(64 * page, 'x');
  write_file_atomic(dir_ / "f", bytes);
  const MappedFile map(dir_ / "f");
  EXPECT_EQ(map.bytes(), bytes);
  EXPECT_EQ(resident_bytes(map.bytes()), bytes.size());
  map.forget(map.bytes().substr(page / 2, 32 * page));  // whole pages alone
  EXPECT_EQ(resident_bytes(map.bytes()), bytes.size() - 31 * page);
  EXPECT_EQ(map.bytes(), bytes);
  map.forget(map.bytes().substr(5, page));  // no whole page
  MappedFile().forget({});
  EXPECT_EQ(resident_bytes(map.bytes()), bytes.size());
}

TEST_F(File, ALockIsRefusedWithTheNameOfItsHolder) {
  const auto held = std::make_unique<FileLock>(FileLock::try_now(dir_ / ".lock", "stretto train"));
  const Error error = testing::failure(ExitCode::kUsage,
                                       [&] { FileLock::try_now(dir_ / ".lock", "stretto train"); });
  const std::string text = error.what();
  EXPECT_NE(text.find("stretto train (process " + std::to_string(::getpid())), std::string::npos)
      << text;
}

TEST_F(File, ALockIsFreeAgainAfterItsHolderWentOrWasKilled) {
  { const FileLock held = FileLock::try_now(dir_ / ".lock", "first"); }
  EXPECT_EQ(read_file(dir_ / ".lock"), "");
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock held = FileLock::wait(dir_ / ".lock");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const FileLock second = FileLock::try_now(dir_ / ".lock", "second");
  EXPECT_NE(read_file(dir_ / ".lock").find("second"), std::string::npos);
}

TEST_F(File, TheCacheFolderFollowsTheEnvironment) {
  const auto restore = [](const char* name) {
    const char* value = std::getenv(name);
    return std::pair{std::string(name), value == nullptr ? std::string() : std::string(value)};
  };
  const auto before = {restore("STRETTO_CACHE"), restore("XDG_CACHE_HOME"), restore("HOME")};
  ::setenv("HOME", "/home/someone", 1);
  ::setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
  ::unsetenv("STRETTO_CACHE");
  EXPECT_EQ(user_cache_dir(), "/home/someone/.cache/stretto");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(user_cache_dir(), "/xdg/stretto");
  ::setenv("STRETTO_CACHE", "/own", 1);
  EXPECT_EQ(user_cache_dir(), "/own");
  for (const auto& [name, value] : before) {
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace
}  // namespace stretto
