#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "experiment/preflight_found.h"

namespace stretto::experiment {

/// Whether a line is not blank and has nothing to see: spaces of Unicode, such as U+00A0 and
/// U+200B, with or without ASCII white space. To readers of text it is text.
bool is_invisible_line(std::string_view line);

/// What looks like blank lines or line ends in the files of a key, and is text to their readers:
/// invisible lines, and files whose lines have more carriage returns inside than there are lines.
class TextLookalikes {
 public:
  /// Lines of a file, with or without their ends; a file's one after the other.
  void read(const std::string& path, std::string_view text);
  /// Adds a doubt for each of the two that was found; called once, behind the last line.
  void tell(const std::string& key, Preflight& found);

 private:
  struct Found {
    int64_t count = 0, files = 0;
    std::string first;  ///< file
  };

  void look(std::string_view line);
  void end_file();
  static void note(int64_t count, const std::string& path, Found& found);
  static std::string files_text(const Found& found);

  std::string path_;
  int64_t lines_ = 0, returns_ = 0, invisible_ = 0;  ///< of this file
  Found all_invisible_, all_returns_;
};

}  // namespace stretto::experiment
