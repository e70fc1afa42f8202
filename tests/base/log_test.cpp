#include "base/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log_history.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

using testing::TempDir;

class Log : public ::testing::Test {
 protected:
  void TearDown() override {
    log::close_file();
    log::set_quiet(false);
    log::set_screen_hooks({});
  }
  TempDir dir_;
};

TEST_F(Log, WritesLinesWithTimeStampsToTheFileAndWithoutToTheScreen) {
  log::open_file(dir_ / "log.txt");
  ::testing::internal::CaptureStderr();
  log::info("one");
  log::warn("two");
  log::error("three");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "one\nwarning: two\nerror: three\n");
  const std::string stamp = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ )";
  EXPECT_TRUE(std::regex_match(
      read_file(dir_ / "log.txt"),
      std::regex(stamp + "one\n" + stamp + "warning: two\n" + stamp + "error: three\n")));
}

TEST_F(Log, QuietHidesInfoOnTheScreenOnly) {
  log::open_file(dir_ / "log.txt");
  log::set_quiet(true);
  ::testing::internal::CaptureStderr();
  log::info("one");
  log::warn("two");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: two\n");
  EXPECT_NE(read_file(dir_ / "log.txt").find("one"), std::string::npos);
}

TEST_F(Log, ASilenceDropsWhatItsThreadTellsButErrors) {
  log::open_file(dir_ / "log.txt");
  ::testing::internal::CaptureStderr();
  {
    const log::Silence silence;
    log::info("one");
    log::warn("two");
    std::thread([] { log::info("three"); }).join();
    { const log::Silence inner; }
    log::info("four");
    log::error("five");
  }
  log::info("six");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "three\nerror: five\nsix\n");
  EXPECT_EQ(read_file(dir_ / "log.txt").find("one"), std::string::npos);
}

TEST_F(Log, ALiftedSilenceHoldsAgainAfterwards) {
  ::testing::internal::CaptureStderr();
  {
    const log::Silence outer;
    const log::Silence inner;
    {
      const log::SilenceLifted lifted;
      log::warn("one");
    }
    log::warn("two");
  }
  { const log::SilenceLifted without_any; }
  log::warn("three");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: one\nwarning: three\n");
}

TEST_F(Log, ClearsAndRedrawsTheProgressLineAroundEachLine) {
  std::string calls;
  log::set_screen_hooks({.clear = [](void* c) { *static_cast<std::string*>(c) += 'c'; },
                         .redraw = [](void* c) { *static_cast<std::string*>(c) += 'r'; },
                         .context = &calls});
  ::testing::internal::CaptureStderr();
  log::info("one");
  log::warn("two");
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls, "crcr");
}

TEST_F(Log, LetsNoDataDriveTheTerminal) {
  ::testing::internal::CaptureStderr();
  log::info("a\x1b[2Jb\nc");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "a\\x1b[2Jb\nc\n");
}

TEST_F(Log, LinesOfSeveralThreadsNeverMix) {
  log::open_file(dir_ / "log.txt");
  log::set_quiet(true);
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; ++c) {
    threads.emplace_back([c] {
      for (int i = 0; i < 200; ++i) log::info(std::string(100, c));
    });
  }
  for (auto& thread : threads) thread.join();
  const auto lines = split(trim(read_file(dir_ / "log.txt")), '\n');
  EXPECT_EQ(lines.size(), 800u);
  for (const auto& line : lines) {
    const std::string text = line.substr(line.find(' ') + 1);
    EXPECT_EQ(text, std::string(100, text[0]));
  }
}

TEST_F(Log, RemembersTheLastLinesThatItSuppressed) {
  log::set_quiet(true);
  for (int i = 0; i < 20; ++i) log::info("line " + std::to_string(i) + "\n  more");
  const auto lines = log::withheld_lines();
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines.front(), "line 16");
  EXPECT_EQ(lines.back(), "  more");
}

TEST_F(Log, AppendsToAnExistingFileAndRefusesAnImpossibleOne) {
  write_file_atomic(dir_ / "log.txt", "before\n");
  log::open_file(dir_ / "log.txt");
  log::set_quiet(true);
  log::info("after");
  EXPECT_TRUE(read_file(dir_ / "log.txt").starts_with("before\n2"));
  EXPECT_THROW(log::open_file(dir_ / "none/log.txt"), Error);
}

}  // namespace
}  // namespace stretto
