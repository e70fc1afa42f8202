#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text_input.h"

namespace stretto::tasks {

/// An option of `infer` that names a file with a line for each line of the input.
struct SideFile {
  std::string option;  ///< "--prefix"
  std::string path;
  std::string advice;  ///< to whoever gave another number of lines
};
/// `--prefix FILE`, and `--src2 FILE`.
SideFile prefix_file(std::string path);
SideFile second_source_file(std::string path);

/// The lines of such a file.
class SideLines {
 public:
  /// @param input  what is translated, as TextInput takes it
  /// Where neither side comes through a pipe, lines are counted first: throws Error(kBadData) with
  /// both counts when they differ, before anything is translated.
  SideLines(SideFile file, const std::vector<std::string>& input);

  /// Waits for the next line. @return false when there are no more
  bool next(data::InputLine& line);

  /// Throws Error(kBadData) with both counts: the file has none for the line that `input` gave
  /// last, its `lines`-th. Reads on as far as nobody has to be waited for.
  [[noreturn]] void throw_too_few(int64_t lines, data::TextInput& input) const;

  /// Throws Error(kBadData) with both counts unless `lines` lines of input used up all of the
  /// file's.
  void require_end(int64_t lines);

 private:
  [[noreturn]] void throw_unequal(int64_t count, const std::string& input_lines) const;

  SideFile file_;
  data::TextInput lines_;
  int64_t count_ = 0;  ///< given so far
};

}  // namespace stretto::tasks
