#include "data/pairs/text_lines.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/lines.h"

namespace stretto::data {
namespace {

/// One line after the other of several inputs, or of one column of them.
class Lines final : public text::LineSource {
 public:
  Lines(std::vector<std::string> paths, int64_t column)
      : paths_(std::move(paths)), column_(column) {}

  bool next(std::string& line) override {
    std::string_view view;
    while (true) {
      if (reader_ != nullptr && reader_->next(view)) break;
      if (next_path_ == paths_.size()) return false;
      reader_ = std::make_unique<LineReader>(paths_[next_path_++]);
    }
    if (column_ > 0 && !tsv_column(view, column_, view)) {
      throw_missing_column(reader_->name(), reader_->line_number(), column_);
    }
    line.assign(view);
    return true;
  }

 private:
  std::vector<std::string> paths_;
  int64_t column_;  ///< 0 = the whole line
  size_t next_path_ = 0;
  std::unique_ptr<LineReader> reader_;
};

}  // namespace

void throw_missing_column(const std::string& name, int64_t line_number, int64_t column) {
  throw Error(ExitCode::kBadData,
              name + ":" + std::to_string(line_number) + ": this line has no column " +
                  std::to_string(column),
              "columns are separated by one tab and counted from 1: look at data.src_column and "
              "data.tgt_column, or repair the line");
}

std::unique_ptr<text::LineSource> open_lines(const std::vector<std::string>& paths) {
  return std::make_unique<Lines>(paths, 0);
}

std::unique_ptr<text::LineSource> open_tsv_column(const std::vector<std::string>& paths,
                                                  int64_t column) {
  return std::make_unique<Lines>(paths, column);
}

}  // namespace stretto::data
