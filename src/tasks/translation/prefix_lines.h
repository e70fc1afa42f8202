#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text_input.h"

namespace stretto::tasks {

/// The lines of `infer --prefix FILE`, one for each line of the input.
class PrefixLines {
 public:
  /// @param input  what is translated, as TextInput takes it
  /// Where neither side comes through a pipe, lines are counted first: throws Error(kBadData) with
  /// both counts when they differ, before anything is translated.
  PrefixLines(const std::string& file, const std::vector<std::string>& input);

  /// Waits for the next line. @return false when there are no more
  bool next(data::InputLine& line);

  /// Throws Error(kBadData) with both counts: there is no prefix for the line that `input` gave
  /// last, its `lines`-th. Reads on as far as nobody has to be waited for.
  [[noreturn]] void throw_too_few(int64_t lines, data::TextInput& input) const;

  /// Throws Error(kBadData) with both counts unless `lines` lines of input used up all prefixes.
  void require_end(int64_t lines);

 private:
  [[noreturn]] void throw_unequal(int64_t prefixes, const std::string& input_lines) const;

  std::string file_;
  data::TextInput lines_;
  int64_t count_ = 0;  ///< given so far
};

}  // namespace stretto::tasks
