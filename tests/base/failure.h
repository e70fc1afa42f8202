#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace stretto::testing {

/// The Error that `call` throws; the test fails when it throws none, one of another code, or one
/// that does not say what to do: as advice, or (of several problems together) below each of them.
template <class Call>
Error failure(ExitCode code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(error.message().find("\n  "), std::string::npos) << error.what();
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ExitCode::kOk, "");
}

}  // namespace stretto::testing
