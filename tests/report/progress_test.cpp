#include "report/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <limits>
#include <regex>

#include "base/log.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

ProgressState example() {
  return {.step = 1200,
          .last_step = 6000,
          .epoch = 3,
          .epoch_fraction = 0.425,
          .numbers = {{"loss", 2.1341}, {"ppl", 8.45}},
          .lr = 4.2e-4,
          .grad_norm = 0.812,
          .rate = 3912.4,
          .rate_unit = "tok",
          .eta_seconds = 750,
          .memory_bytes = int64_t{412} << 20};
}

TEST(ProgressText, SaysEverythingWhereThereIsRoom) {
  EXPECT_EQ(format_progress(example(), 200),
            "step 1,200/6,000 20% · epoch 3 (42%) · loss 2.134 · ppl 8.45 · lr 4.2e-4 · |g| 0.81 · "
            "3,912 tok/s · 412 MiB · ETA 12m 30s");
}

TEST(ProgressText, LeavesOutTheLeastImportantFirst) {
  EXPECT_EQ(format_progress(example(), 80),
            "step 1,200/6,000 20% · loss 2.134 · ppl 8.45 · 3,912 tok/s · ETA 12m 30s");
  EXPECT_EQ(format_progress(example(), 50), "step 1,200/6,000 20% · loss 2.134 · ETA 12m 30s");
  EXPECT_EQ(format_progress(example(), 34), "step 1,200/6,000 20% · loss 2.134");
  EXPECT_EQ(format_progress(example(), 10), "step 1,20…");
}

TEST(ProgressText, IsNeverWiderThanTheTerminal) {
  ProgressState hostile = example();
  hostile.numbers[0].value = std::numeric_limits<double>::quiet_NaN();
  hostile.numbers[1].value = 1e300;
  hostile.grad_norm = std::numeric_limits<double>::infinity();
  hostile.step = hostile.last_step = std::numeric_limits<int64_t>::max();
  for (const ProgressState& state : {example(), ProgressState{}, hostile}) {
    for (int columns = -1; columns < 220; ++columns) {
      const std::string line = format_progress(state, columns, "validating");
      EXPECT_LE(static_cast<int>(count_code_points(line)), std::max(0, columns)) << line;
    }
  }
}

TEST(ProgressText, ShowsTheActivityEvenWhenNarrow) {
  EXPECT_EQ(format_progress(example(), 36, "validating"), "step 1,200/6,000 20% · validating");
}

TEST(ProgressText, CallsNumbersAndRateAsTheTaskDoes) {
  ProgressState state = example();
  state.numbers = {{"smoothed loss", 2.1341}, {"ppl", 8.45}, {"accuracy", 0.5}};
  state.rate_unit = "images";
  EXPECT_NE(
      format_progress(state, 200).find(" · smoothed loss 2.134 · ppl 8.45 · accuracy 0.50 · "),
      std::string::npos);
  EXPECT_NE(format_progress(state, 200).find(" · 3,912 images/s · "), std::string::npos);
}

TEST(ProgressText, SaysNothingOfWhatIsUnknown) {
  ProgressState state = example();
  state.last_step = 0;
  state.eta_seconds = -1;
  state.memory_bytes = 0;
  const std::string line = format_progress(state, 200);
  EXPECT_TRUE(line.starts_with("step 1,200 · ")) << line;
  EXPECT_EQ(line.find("ETA"), std::string::npos);
  EXPECT_TRUE(line.ends_with(" tok/s")) << line;
}

TEST(Progress, WritesPlainLinesWhereStderrIsNoTerminal) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(1000);
    ProgressState state = example();
    for (state.step = 1; state.step <= 50; ++state.step) progress.update(state);
    progress.set_activity("saving");
    progress.finish();
    progress.finish();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;  // the first and the last state
  EXPECT_TRUE(text.starts_with("step 1/6,000 0%")) << text;
  EXPECT_NE(text.find("\nstep 50/6,000"), std::string::npos) << text;
}

/// A terminal of a given width as stderr.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave < 0) return;
    resize(columns);
    saved_ = ::dup(STDERR_FILENO);
    ::dup2(slave, STDERR_FILENO);
    ::close(slave);
  }
  ~Terminal() {
    restore();
    if (master_ >= 0) ::close(master_);
  }
  bool works() const { return saved_ >= 0; }
  void resize(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  /// What was written so far.
  std::string read_all() {
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(master_, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  void restore() {
    if (saved_ < 0) return;
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    saved_ = -1;
  }

 private:
  int master_ = -1, saved_ = -1;
};

TEST(Progress, ClearsItsLineForLogLinesAndEndsOnAFreshOne) {
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  Terminal terminal(60);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo-terminal here";
  std::string text;
  {
    Progress progress;
    progress.update(example());
    log::info("validation is over");
    terminal.resize(30);
    progress.set_activity("saving");
    progress.finish();
    text = terminal.read_all();
  }
  terminal.restore();
  ::unsetenv("NO_COLOR");
  const std::string wide = "step 1,200/6,000 20% · loss 2.134 · ETA 12m 30s";
  const std::string saving = "step 1,200/6,000 20% · saving";  // 29 columns, the last one is free
  const std::string narrow = "step 1,200/6,000 20%";
  const std::string erase = "\r\x1b[K";
  EXPECT_EQ(text, erase + wide + erase + "validation is over\r\n" + erase + wide + erase + saving +
                      erase + narrow + "\r\n");
}

}  // namespace
}  // namespace stretto::report
