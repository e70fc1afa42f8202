#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/byte_stream.h"

namespace stretto::data {

class SampleError;

/// The fault of a line with a NUL byte. @param column  of that byte, from 1
SampleError nul_byte_error(const std::string& name, int64_t line, int64_t column);

/// Longest line in bytes, line end not counted: just under 1 MB.
inline constexpr int64_t kMaxLineBytes = 999'999;

/// Cuts a stream into lines in bounded memory.
///
/// A line ends at '\n' alone (U+2028, form feed and a lone '\r' are text, so that files that go
/// together can never fall out of step); one '\r' before it is dropped, and so is a byte order mark
/// at the start of the file. The last line needs no '\n'. Bytes are passed on as they are. A file
/// in which '\r' alone ends lines is refused.
class LineReader {
 public:
  /// @param name  what messages call the input
  LineReader(std::unique_ptr<ByteStream> bytes, std::string name);
  /// Opens a path of `[data]`; throws as open_bytes() does.
  explicit LineReader(const std::string& path);

  /// @param line  valid until the next call
  /// Throws a SampleError (data/bad_samples.h), with file and line, at a NUL byte or at a line that
  /// is too long: the next call goes on behind that line. Throws Error(kBadData) where '\r' alone
  /// ends lines.
  bool next(std::string_view& line);

  int64_t line_number() const { return line_number_; }  ///< of the last line, from 1
  const std::string& name() const { return name_; }
  /// Double quotes in the line that the last call refused: they tell whether a quoted field goes on
  /// behind it.
  int64_t refused_quotes() const { return refused_quotes_; }
  /// Whether the last call refused a line because it is too long.
  bool refused_long() const { return refused_long_; }

 private:
  bool fill();
  bool find_end(size_t& length);
  [[noreturn]] void throw_too_long();
  void require_line_ends(std::string_view text) const;

  std::unique_ptr<ByteStream> bytes_;
  std::string name_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;
  bool at_end_ = false, refused_long_ = false;
  int64_t line_number_ = 0, refused_quotes_ = 0;
};

/// Column `column` (from 1) of a line of columns, or false when there are fewer. Nothing is quoted.
bool column_of(std::string_view line, int64_t column, char separator, std::string_view& value);

}  // namespace stretto::data
