#include "data/text_lines.h"

#include <utility>

namespace stretto::data {

LinesOfFiles::LinesOfFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

bool LinesOfFiles::next(std::string& line) {
  std::string_view view;
  if (!next(view)) return false;
  line.assign(view);
  return true;
}

bool LinesOfFiles::next(std::string_view& line) {
  while (reader_ == nullptr || !reader_->next(line)) {
    if (next_path_ == paths_.size()) return false;
    reader_ = std::make_unique<LineReader>(paths_[next_path_++]);
  }
  return true;
}

std::unique_ptr<text::LineSource> open_lines(const std::vector<std::string>& paths) {
  return std::make_unique<LinesOfFiles>(paths);
}

}  // namespace stretto::data
