#include "data/pairs/tsv_lines.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/separator.h"
#include "data/text_lines.h"

namespace stretto::data {
namespace {

class TsvColumn final : public text::LineSource {
 public:
  TsvColumn(std::vector<std::string> paths, int64_t column, char separator,
            BadSampleRule bad_samples)
      : lines_(std::move(paths), bad_samples),
        column_(column),
        separator_(separator),
        bad_(bad_samples) {}

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
    if (!column_of(line, column_, separator_, found)) {
      throw_missing_column(lines_.reader(), line, column_, separator_);
    }
    value.assign(found);
    return true;
  }

  LinesOfFiles lines_;
  int64_t column_;
  char separator_;
  BadSamples bad_;
};

}  // namespace

void throw_missing_column(const LineReader& lines, std::string_view line, int64_t column,
                          char separator) {
  const char other = other_separator(line, separator);
  const bool is_one = line.find(separator) == std::string_view::npos;
  const std::string between = separator == '\t' ? "one tab" : "`" + std::string(1, separator) + "`";
  throw SampleError(lines.name(),
                    ":" + std::to_string(lines.line_number()) + ": this line has no column " +
                        std::to_string(column),
                    is_one && other != '\0'
                        ? advice_on_separator(other) + " if that stands between the columns"
                        : "columns are separated by " + between +
                              " and counted from 1: look at data.src_column and "
                              "data.tgt_column, or repair the line");
}

std::unique_ptr<text::LineSource> open_tsv_column(const std::vector<std::string>& paths,
                                                  int64_t column, char separator,
                                                  BadSampleRule bad_samples) {
  return std::make_unique<TsvColumn>(paths, column, separator, bad_samples);
}

}  // namespace stretto::data
