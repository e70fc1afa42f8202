#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "config/load.h"

namespace stretto::config {

/// What came of reading a configuration.
template <class Options>
struct Reading {
  Options options, fallback;  ///< what was read, and the defaults
  Origins origins;
  std::vector<Problem> problems;

  /// All problems, as the user sees them; empty if there is none.
  std::string message() const {
    try {
      throw_problems(problems);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.message();
    }
    return "";
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const auto& note : origins.notes()) all.push_back(note.text());
    return all;
  }
};

/// Reads text as the file a.toml in the folder /base.
template <class Options>
Reading<Options> read_text(const std::string& text,
                           const std::vector<std::string>& overrides = {}) {
  Reading<Options> reading;
  reading.origins = load_text(text, "a.toml", "/base", overrides, schema_of(reading.options),
                              schema_of(reading.fallback), reading.problems);
  return reading;
}

}  // namespace stretto::config
