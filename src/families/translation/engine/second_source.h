#pragma once

#include <string>

#include "experiment/experiment.h"

namespace stretto::tasks {

/// Throws Error(kUsage) where `--src2` is given to a run that reads one source.
/// @param file  its value; empty = not given
void require_second_source(const experiment::Experiment& experiment, const std::string& file);

/// A line of a run that reads two sources, "FIRST<TAB>SECOND".
struct JoinedLine {
  std::string text;     ///< with one tab; empty where there is a problem
  std::string problem;  ///< empty = none
};
/// What a user wrote as one line: cut at its first tab, and others become spaces. A line of white
/// space alone is no problem, and gives no text.
JoinedLine joined_line(const std::string& line);
/// Two lines as one. Both may be empty.
JoinedLine joined_line(const std::string& first, const std::string& second);

}  // namespace stretto::tasks
