#pragma once

#include <gtest/gtest.h>

#include <string>

namespace stretto::testing {

/// What `command` writes to standard output. An exception of `command` passes, and the next test
/// may catch output again.
template <class Command>
std::string standard_output_of(const Command& command) {
  ::testing::internal::CaptureStdout();
  try {
    command();
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

}  // namespace stretto::testing
