#include "base/stdout.h"

#include <gtest/gtest.h>

#include <iostream>

#include "tests/base/failure.h"

namespace stretto {
namespace {

TEST(Stdout, ThatCannotBeWrittenIsAnError) {
  flush_stdout();
  std::cout.setstate(std::ios::badbit);
  const Error error = testing::failure(ExitCode::kIo, [] { flush_stdout(); });
  std::cout.clear();
  EXPECT_STREQ(error.what(), "cannot write to stdout");
}

}  // namespace
}  // namespace stretto
