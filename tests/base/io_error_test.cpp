#include "base/io_error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/base/failure.h"

namespace stretto {
namespace {

TEST(IoError, EveryErrnoThatAUserCanMendHasAdvice) {
  for (const int value : {ENOSPC, EDQUOT, EACCES, EROFS, EMFILE}) {
    const auto error =
        testing::failure(ExitCode::kIo, [&] { throw_io_error("cannot write", "place", value); });
    EXPECT_FALSE(error.advice().empty()) << value;
    EXPECT_NE(std::string(error.what()).find("cannot write place: "), std::string::npos);
  }
}

}  // namespace
}  // namespace stretto
