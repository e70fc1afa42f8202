#include "data/text_lines.h"

#include <utility>

namespace stretto::data {

LinesOfFiles::LinesOfFiles(std::vector<std::string> paths, BadSampleRule bad_samples)
    : paths_(std::move(paths)), bad_(bad_samples) {}

bool LinesOfFiles::next(std::string& line) {
  std::string_view view;
  if (!next(view)) return false;
  line.assign(view);
  return true;
}

bool LinesOfFiles::next(std::string_view& line) {
  while (reader_ == nullptr || !next_of_file(line)) {
    if (next_path_ == paths_.size()) return false;
    reader_ = std::make_unique<LineReader>(paths_[next_path_++]);
  }
  return true;
}

bool LinesOfFiles::next_of_file(std::string_view& line) {
  while (true) {
    try {
      return reader_->next(line);
    } catch (const SampleError& error) {
      if (!bad_.skips()) throw;
      bad_.add(error);
    }
  }
}

std::unique_ptr<text::LineSource> open_lines(const std::vector<std::string>& paths,
                                             BadSampleRule bad_samples) {
  return std::make_unique<LinesOfFiles>(paths, bad_samples);
}

}  // namespace stretto::data
