#include "distributed/cores.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace stretto::distributed {
namespace {

TEST(Cores, TheLimitOfOpenMpIsHeeded) {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("OMP_NUM_THREADS");
  const int64_t all = threads_for({}, 0);
  struct Row {
    const char* value;
    int64_t expected;
  };
  const Row rows[] = {{"1", 1}, {"1,2", 1}, {"99999", all}, {"0", all}, {"many", all}, {"", all}};
  for (const auto& row : rows) {
    ::setenv("OMP_NUM_THREADS", row.value, 1);
    EXPECT_EQ(threads_for({}, 0), row.expected) << row.value;
    EXPECT_EQ(threads_for({}, 3), 3) << "run.threads decides";
  }
  if (before == nullptr) {
    ::unsetenv("OMP_NUM_THREADS");
  } else {
    ::setenv("OMP_NUM_THREADS", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace stretto::distributed
