#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/lines.h"

namespace stretto::data {

/// Records of fields, a line each or, with quotes, several.
class SeparatedRecords {
 public:
  enum class Kind {
    kTsv,  ///< fields between single separators, tabs by default; quotes mean nothing
    /// Fields between separators, commas by default, as RFC 4180: a field may be quoted, then has
    /// them and line ends as text, and quotes doubled. A line end within quotes becomes `\n`. A
    /// quote within a field that does not begin with one is text.
    kCsv,
  };

  /// @param separator  one byte; 0: that of the kind
  SeparatedRecords(LineReader lines, Kind kind, char separator = '\0')
      : lines_(std::move(lines)),
        kind_(kind),
        separator_(separator != '\0'    ? separator
                   : kind == Kind::kTsv ? '\t'
                                        : ',') {}

  /// @return false at the end of the input
  /// Throws as LineReader does, and a SampleError for a quoted field that is followed by text; then
  /// the next call reads the next record. Throws Error(kBadData) with file and line where that does
  /// not begin at a known place: a quoted field does not end, has more than kMaxLineBytes, or may
  /// begin in the part of a record that cannot be read.
  bool next(std::vector<std::string>& fields);

  int64_t line_number() const { return line_number_; }  ///< where the last record begins, from 1
  const std::string& name() const { return lines_.name(); }
  char separator() const { return separator_; }
  bool has_quotes() const { return kind_ == Kind::kCsv; }

 private:
  bool next_line(std::string_view& line, bool within_quotes);
  void take_csv(std::string_view line, std::vector<std::string>& fields);
  std::string take_quoted(std::string_view& line, std::string& more);
  [[noreturn]] void refuse(int64_t line, const std::string& what, const std::string& advice) const;

  LineReader lines_;
  std::optional<SampleError> fault_;  ///< of a line within the record that is being read
  Kind kind_;
  char separator_;
  int64_t line_number_ = 0;
};

}  // namespace stretto::data
