#include "parallel/communication_thread.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stretto::parallel {
namespace {

TEST(CommunicationThread, JobsRunInOrderOnAnotherThread) {
  CommunicationThread thread;
  std::vector<int> done;
  std::thread::id where;
  for (int i = 0; i < 100; ++i) {
    thread.submit([&, i] {
      where = std::this_thread::get_id();
      done.push_back(i);
    });
  }
  thread.wait();
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(done, expected);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(CommunicationThread, WaitRethrowsTheFirstFailureOnceAndLaterJobsAreDropped) {
  CommunicationThread thread;
  bool ran = false;
  thread.submit([] { throw std::runtime_error("first"); });
  thread.submit([&] { ran = true; });
  try {
    thread.wait();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "first");
  }
  EXPECT_FALSE(ran);
  thread.submit([&] { ran = true; });
  thread.wait();
  EXPECT_TRUE(ran);
}

TEST(CommunicationThread, WaitWithoutJobsReturns) {
  CommunicationThread thread;
  thread.wait();
}

}  // namespace
}  // namespace stretto::parallel
