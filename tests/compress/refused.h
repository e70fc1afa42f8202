#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"

namespace stretto::compress::test {

/// Expects Error(kUsage) whose message has these words.
inline void expect_refused(const std::function<void()>& call, const std::string& why) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    return;
  }
  ADD_FAILURE() << "not refused: " << why;
}

}  // namespace stretto::compress::test
