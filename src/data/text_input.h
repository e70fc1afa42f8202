#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_stream.h"

namespace stretto::data {

/// One line of an input.
struct InputLine {
  std::string place;    ///< "stdin:3"
  std::string text;     ///< empty when there is a problem
  std::string problem;  ///< why it cannot be used, such as "not UTF-8"; empty = it can
};

/// Lines for `stretto infer`, of one input after the other.
///
/// Lines end as those of `LineReader` do ('\n'; one '\r' before it and a byte order mark at
/// the start of an input are dropped). But there a bad line is an error, since files that go
/// together must stay in step; here it is handed on with its problem, so that a service keeps
/// answering and every input line gets one output line. Bad are lines that are not UTF-8, have a
/// NUL byte, or more than `kMaxLineBytes` bytes; of these no more than that is ever in memory.
class TextInput {
 public:
  /// @param paths  as open_bytes() takes them (plain, .gz, .zst, FILE.zip:MEMBER), and pipes;
  ///               "-" is stdin, and so is an empty list
  /// Opens all regular files once, and so throws for each of them as open_bytes() does, before the
  /// first line is read. That one is damaged comes out later, from next().
  explicit TextInput(std::vector<std::string> paths);

  /// Whether there are paths and none of them is stdin or a pipe, which can be read only once.
  static bool are_files(const std::vector<std::string>& paths);

  /// Lines of these inputs, bad ones too; none unless are_files(). Throws as open_bytes() and its
  /// streams do.
  static std::optional<int64_t> count_lines(const std::vector<std::string>& paths);

  /// Waits for the next line. @return false at the end of the last input
  bool next(InputLine& line);

  /// Whether next() would return without waiting for input: a whole line has come, or the end.
  /// Takes in what has arrived and never waits: a process that sends a line and half of another
  /// gets its answer to the first.
  bool ready();

  /// Whether next() would wait for a person at a terminal.
  bool waits_for_a_person();

 private:
  /// An input that is open; `descriptor` is -1 where reading never waits.
  struct Source {
    std::unique_ptr<ByteStream> bytes;
    int descriptor = -1;
    std::string name;
  };
  static Source open(const std::string& path);
  void open_next();
  void read_some();
  std::optional<size_t> line_end();
  bool has_rest() const { return begin_ < buffer_.size() || dropped_ > 0; }
  InputLine take(size_t end);

  std::vector<std::string> paths_;
  size_t next_path_ = 0;
  Source source_;
  bool at_end_ = true;  ///< of the source
  std::string buffer_;
  size_t begin_ = 0;     ///< what lies before it is read
  size_t searched_ = 0;  ///< between the two there is no line end
  size_t dropped_ = 0;   ///< bytes of this line that are gone, because it has too many
  int64_t number_ = 0;   ///< of the last line
};

}  // namespace stretto::data
