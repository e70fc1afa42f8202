#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/lines.h"

namespace stretto::data {

/// Records of fields, a line each or, with quotes, several.
class SeparatedRecords {
 public:
  enum class Kind {
    kTsv,  ///< fields between single tabs; quotes mean nothing
    /// Fields between commas, as RFC 4180: a field may be quoted, then has commas and line ends as
    /// text, and quotes doubled. A line end within quotes becomes `\n`. A quote within a field that
    /// does not begin with one is text.
    kCsv,
  };

  SeparatedRecords(LineReader lines, Kind kind) : lines_(std::move(lines)), kind_(kind) {}

  /// @return false at the end of the input
  /// Throws as LineReader does, and Error(kBadData) with file and line for a quoted field that does
  /// not end, that has more than kMaxLineBytes, or that is followed by text.
  bool next(std::vector<std::string>& fields);

  int64_t line_number() const { return line_number_; }  ///< where the last record begins, from 1
  const std::string& name() const { return lines_.name(); }

 private:
  void take_csv(std::string_view line, std::vector<std::string>& fields);
  std::string take_quoted(std::string_view& line, std::string& more);
  [[noreturn]] void refuse(int64_t line, const std::string& what, const std::string& advice) const;

  LineReader lines_;
  Kind kind_;
  int64_t line_number_ = 0;
};

}  // namespace stretto::data
