#include "base/failpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>

#include "base/error.h"

namespace stretto {
namespace {

class Failpoint : public ::testing::Test {
 protected:
  void TearDown() override { set_failpoints(""); }
};

TEST_F(Failpoint, DoesNothingWithoutRules) {
  set_failpoints("");
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint_passes(), 0u);
}

TEST_F(Failpoint, FailsAtTheNamedPassOnly) {
  set_failpoints("a:enospc:2");
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint("b"), 0);
  EXPECT_EQ(failpoint("a"), ENOSPC);
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint_passes(), 4u);
}

TEST_F(Failpoint, IsArmedWhileThereAreRules) {
  set_failpoints("");
  EXPECT_FALSE(failpoints_armed());
  set_failpoints("a:enomem:2");
  EXPECT_TRUE(failpoints_armed());
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint("a"), ENOMEM);
  EXPECT_EQ(failpoint_passes(), 2u);  // asking is no pass
}

TEST_F(Failpoint, FailsForEverWithAPlus) {
  set_failpoints("a:eio:2+; b:eintr");
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint("a"), EIO);
  EXPECT_EQ(failpoint("a"), EIO);
  EXPECT_EQ(failpoint("b"), EINTR);
}

TEST_F(Failpoint, StarCountsAllNamesTogether) {
  set_failpoints("*:eio:3");
  EXPECT_EQ(failpoint("a"), 0);
  EXPECT_EQ(failpoint("b"), 0);
  EXPECT_EQ(failpoint("c"), EIO);
  EXPECT_EQ(failpoint("d"), 0);
}

TEST_F(Failpoint, ShortHalvesAWriteButNeverToNothing) {
  set_failpoints("a:short:1+");
  size_t size = 5;
  EXPECT_EQ(failpoint("a", size), 0);
  EXPECT_EQ(size, 2u);
  failpoint("a", size);
  failpoint("a", size);
  EXPECT_EQ(size, 1u);
}

TEST_F(Failpoint, ThrowsOutOfMemory) {
  set_failpoints("a:throw");
  EXPECT_THROW(failpoint("a"), std::bad_alloc);
}

TEST_F(Failpoint, ThrowsWhatNobodyForesees) {
  set_failpoints("a:bug");
  EXPECT_THROW(failpoint("a"), std::logic_error);
}

TEST_F(Failpoint, KillsTheProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    set_failpoints("a:kill:2");
    failpoint("a");
    failpoint("a");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(Failpoint, TerminatesTheProcessUnlessItHandlesThat) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGTERM, SIG_IGN);
    set_failpoints("a:term:1+");
    if (failpoint("a") != 0) ::_exit(1);
    ::signal(SIGTERM, SIG_DFL);
    failpoint("a");
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST_F(Failpoint, RefusesWhatItDoesNotUnderstand) {
  for (const char* bad : {"a", "a:", "a:explode", ":kill", "a:kill:0", "a:kill:x", "a:kill:1:2",
                          "a:kill:-1", "a:kill:1++", "a:kill:"}) {
    EXPECT_THROW(set_failpoints(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace stretto
