#include "base/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(StopSignals, RemembersTheFirstSignalOfEachKind) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
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

TEST(StopSignals, ThereIsOneAtATime) {
  const StopSignals stop;
  EXPECT_THROW(StopSignals second, std::logic_error);
}

}  // namespace
}  // namespace stretto
