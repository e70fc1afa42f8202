#include "data/pairs/tsv_lines.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/lines.h"
#include "data/text_lines.h"

namespace stretto::data {
namespace {

class TsvColumn final : public text::LineSource {
 public:
  TsvColumn(std::vector<std::string> paths, int64_t column, BadSampleRule bad_samples)
      : lines_(std::move(paths), bad_samples), column_(column), bad_(bad_samples) {}

  bool next(std::string& value) override {
    while (true) {
      try {
        return next_value(value);
      } catch (const SampleError& error) {
        if (!bad_.skips()) throw;
        bad_.add(error);
      }
    }
  }

 private:
  bool next_value(std::string& value) {
    std::string_view line, found;
    if (!lines_.next(line)) return false;
    if (!tsv_column(line, column_, found)) {
      throw_missing_column(lines_.reader().name(), lines_.reader().line_number(), column_);
    }
    value.assign(found);
    return true;
  }

  LinesOfFiles lines_;
  int64_t column_;
  BadSamples bad_;
};

}  // namespace

void throw_missing_column(const std::string& name, int64_t line_number, int64_t column) {
  throw SampleError(
      name,
      ":" + std::to_string(line_number) + ": this line has no column " + std::to_string(column),
      "columns are separated by one tab and counted from 1: look at data.src_column and "
      "data.tgt_column, or repair the line");
}

std::unique_ptr<text::LineSource> open_tsv_column(const std::vector<std::string>& paths,
                                                  int64_t column, BadSampleRule bad_samples) {
  return std::make_unique<TsvColumn>(paths, column, bad_samples);
}

}  // namespace stretto::data
