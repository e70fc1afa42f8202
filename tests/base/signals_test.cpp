#include "base/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <stdexcept>

namespace stretto {
namespace {

int status_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// What a process that was started in a plain way does on SIGHUP: these tests may run under
/// `nohup`.
class PlainHangup {
 public:
  PlainHangup() : before_(::signal(SIGHUP, SIG_DFL)) {}
  ~PlainHangup() { ::signal(SIGHUP, before_); }
  PlainHangup(const PlainHangup&) = delete;
  PlainHangup& operator=(const PlainHangup&) = delete;

 private:
  void (*before_)(int);
};

TEST(StopSignals, RemembersTheFirstSignalOfEachKind) {
  const PlainHangup plain;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    StopSignals stop;
    EXPECT_FALSE(stop.requested());
    ::raise(signal);
    EXPECT_TRUE(stop.requested());
    EXPECT_EQ(stop.which(), signal);
  }
}

TEST(StopSignals, ASecondInterruptLeavesAtOnceWith130) {
  const int status = status_of([] {
    StopSignals stop;
    ::raise(SIGINT);
    ::raise(SIGINT);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(StopSignals, RepeatedTermAndOneInterruptAfterItAreHarmless) {
  const int status = status_of([] {
    StopSignals stop;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    ::raise(SIGINT);
    if (stop.which() != SIGTERM) ::_exit(1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StopSignals, RestoresTheHandlersThatWereThere) {
  const int status = status_of([] {
    ::signal(SIGTERM, [](int) { ::_exit(7); });
    { const StopSignals stop; }
    ::raise(SIGTERM);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(StopSignals, AProcessOnItsWayOutDoesNotDieOfTheSameSignalAgain) {
  const int status = status_of([] {
    for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) {
      ::signal(SIGHUP, SIG_DFL);
      {
        const StopSignals stop;
        ::raise(signal);
        if (stop.which() != signal) ::_exit(1);
      }
      ::raise(signal);
    }
    const StopSignals next;
    if (next.requested()) ::_exit(2);
  });
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StopSignals, ASignalThatComesWhenAllIsDoneDoesNotEndTheProcess) {
  const int status = status_of([] {
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) ::signal(signal, SIG_DFL);
    { const StopSignals stop(StopSignals::AtEnd::kKeep); }
    for (const int signal : {SIGTERM, SIGUSR1, SIGHUP, SIGINT}) ::raise(signal);
  });
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StopSignals, ASecondInterruptEndsAProcessThatHasDoneAll) {
  const int status = status_of([] {
    { const StopSignals stop(StopSignals::AtEnd::kKeep); }
    ::raise(SIGINT);
    ::raise(SIGINT);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(StopSignals, AHangupThatWasIgnoredStaysIgnored) {
  const int status = status_of([] {
    ::signal(SIGHUP, SIG_IGN);  // as nohup does
    const StopSignals stop;
    ::raise(SIGHUP);
    if (stop.requested() || !ignores_hangup()) ::_exit(1);
    ::raise(SIGTERM);
    if (stop.which() != SIGTERM) ::_exit(2);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BrokenPipes, AreNoEndOfTheProcessOnceTheyAreIgnored) {
  const auto write_to_nobody = [] {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    ::close(ends[0]);
    if (::write(ends[1], "x", 1) != -1 || errno != EPIPE) ::_exit(2);
  };
  const int ended = status_of(write_to_nobody);
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGPIPE);
  const int status = status_of([&] {
    ignore_broken_pipes();
    write_to_nobody();
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StopSignals, ThereIsOneAtATime) {
  const StopSignals stop;
  EXPECT_THROW(StopSignals second, std::logic_error);
}

}  // namespace
}  // namespace stretto
