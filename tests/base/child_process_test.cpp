#include "base/child_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/scoped_variable.h"

namespace stretto {
namespace {

using namespace std::chrono_literals;

TEST(ChildProcess, ItsStderrComesAsItIsWritten) {
  const testing::TempDir folder;
  // It writes the second word once the first has arrived, however late that is read.
  ChildProcess child(
      {find_program("sh"), "-c",
       "printf one >&2; until [ -e \"$1\" ]; do sleep 0.01; done; echo two >&2; exit 3", "sh",
       (folder / "read").string()},
      ChildProcess::Stderr::kPiped);
  std::vector<std::string> chunks;
  for (int i = 0; i < 1000 && (chunks.size() < 2 || !child.poll()); ++i) {
    auto chunk = child.read_stderr(20ms);
    if (chunk.empty()) continue;
    chunks.push_back(chunk);
    folder.write("read", "");
  }
  EXPECT_EQ(chunks, (std::vector<std::string>{"one", "two\n"}));
  EXPECT_EQ(child.poll(), 3);
}

std::string said_by(ChildProcess& child) {
  std::string said;
  while (!child.poll()) said += child.read_stderr(20ms);
  for (auto chunk = child.read_stderr(0ms); !chunk.empty(); chunk = child.read_stderr(0ms)) {
    said += chunk;
  }
  return said;
}

TEST(ChildProcess, AppendsItsOutputToAFile) {
  const testing::TempDir folder;
  const auto file = folder / "output.txt";
  for (int i = 0; i < 2; ++i) {
    ChildProcess child({find_program("sh"), "-c", "echo out; echo err >&2"},
                       ChildProcess::OutputFile{file});
    ASSERT_TRUE(child.wait_for(10s));
    EXPECT_EQ(child.poll(), 0);
  }
  EXPECT_EQ(read_file(file), "out\nerr\nout\nerr\n");
}

TEST(ChildProcess, AppendsItsErrorsToAnotherFile) {
  const testing::TempDir folder;
  ChildProcess child({find_program("sh"), "-c", "echo out; echo err >&2"},
                     ChildProcess::OutputFile{.path = folder / "out", .errors = folder / "err"});
  ASSERT_TRUE(child.wait_for(10s));
  EXPECT_EQ(read_file(folder / "out"), "out\n");
  EXPECT_EQ(read_file(folder / "err"), "err\n");
}

TEST(ChildProcess, TakesVariablesInThePlaceOfThisProcessesOwn) {
  const testing::ScopedVariable kept("STRETTO_TEST_KEPT", "kept");
  const testing::ScopedVariable changed("STRETTO_TEST_CHANGED", "before");
  ChildProcess child({find_program("sh"), "-c", "env | grep STRETTO_TEST_ | sort >&2"},
                     ChildProcess::Stderr::kPiped,
                     {"STRETTO_TEST_CHANGED=after", "STRETTO_TEST_NEW=a=b"});
  EXPECT_EQ(said_by(child),
            "STRETTO_TEST_CHANGED=after\nSTRETTO_TEST_KEPT=kept\nSTRETTO_TEST_NEW=a=b\n");
}

// The blocked or ignored signals, as bits: 1 << (number - 1).
uint64_t signals_in(const std::string& status, const std::string& name) {
  const size_t at = status.find(name);
  return at == std::string::npos ? 0 : std::stoull(status.substr(at + name.size()), nullptr, 16);
}

TEST(ChildProcess, HearsNeitherTermNorHangupAndCanBeEnded) {
  const auto bit = [](int signal) { return uint64_t{1} << (signal - 1); };
  struct sigaction before {};
  ::sigaction(SIGPIPE, nullptr, &before);
  ::signal(SIGPIPE, SIG_IGN);  // as `stretto train` has it
  ChildProcess shell({find_program("sh"), "-c", "exec cat /proc/self/status >&2"},
                     ChildProcess::Stderr::kPiped);
  ::sigaction(SIGPIPE, &before, nullptr);
  const std::string status = said_by(shell);
  const uint64_t blocked = signals_in(status, "SigBlk:\t"),
                 ignored = signals_in(status, "SigIgn:\t");
  EXPECT_EQ(blocked, bit(SIGTERM) | bit(SIGHUP)) << status;
  EXPECT_EQ(ignored & (bit(SIGINT) | bit(SIGPIPE)), 0u) << status;
}

TEST(ChildProcess, CanBeEndedBeforeItsProgramHasBegun) {
  struct sigaction before {};
  ::sigaction(SIGINT, nullptr, &before);
  ::signal(SIGINT, SIG_IGN);  // as a shell without jobs has it for what it starts with &
  sigset_t own, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &own);
  for (int i = 0; i < 20; ++i) {
    ChildProcess sleeper({find_program("sleep"), "60"});
    sleeper.send(ChildProcess::kEnd);
    EXPECT_TRUE(sleeper.wait_for(10s)) << i;
    EXPECT_EQ(sleeper.poll(), 128 + ChildProcess::kEnd);
  }
  ::sigaction(SIGINT, &before, nullptr);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < NSIG; ++signal)
    EXPECT_EQ(::sigismember(&after, signal), ::sigismember(&own, signal)) << signal;
}

}  // namespace
}  // namespace stretto
