#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/lines.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// All lines of the given files (plain, .gz, .zst, zip member), one after the other. Throws as
/// LineReader does; a rule that skips leaves out the lines that it refuses.
class LinesOfFiles final : public text::LineSource {
 public:
  explicit LinesOfFiles(std::vector<std::string> paths, BadSampleRule bad_samples = {});

  bool next(std::string& line) override;
  /// The same without a copy. @param line  valid until the next call
  bool next(std::string_view& line);

  /// The reader of the last line: its file, and the line's number there.
  const LineReader& reader() const { return *reader_; }

 private:
  bool next_of_file(std::string_view& line);

  std::vector<std::string> paths_;
  BadSamples bad_;
  size_t next_path_ = 0;
  std::unique_ptr<LineReader> reader_;
};

/// The same behind its interface.
std::unique_ptr<text::LineSource> open_lines(const std::vector<std::string>& paths,
                                             BadSampleRule bad_samples = {});

}  // namespace stretto::data
