#include "base/in_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

namespace stretto {
namespace {

using namespace std::chrono_literals;

TEST(InChild, GivesWhatTheWorkReturnsAndChangesNothingHere) {
  int here = 1;
  const auto result = run_in_child(60s, [&] {
    here = 2;
    return std::to_string(::getppid());
  });
  EXPECT_EQ(result, std::to_string(::getpid()));
  EXPECT_EQ(here, 1);
  // More than a pipe holds at a time.
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(run_in_child(60s, [&] { return much; }), much);
}

TEST(InChild, IsKilledWhenItsTimeIsOver) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_in_child(50ms,
                         [] {
                           for (;;) std::this_thread::sleep_for(1h);
                           return std::string("never");
                         }),
            std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
  EXPECT_EQ(run_in_child(0ms, [] { return std::string("too late"); }), std::nullopt);
}

TEST(InChild, ThatThrowsOrDiesGivesNothing) {
  EXPECT_EQ(run_in_child(60s, []() -> std::string { throw std::runtime_error("no"); }),
            std::nullopt);
  EXPECT_EQ(run_in_child(60s,
                         []() -> std::string {
                           ::raise(SIGKILL);
                           return "no";
                         }),
            std::nullopt);
}

}  // namespace
}  // namespace stretto
