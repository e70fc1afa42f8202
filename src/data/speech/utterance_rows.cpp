#include "data/speech/utterance_rows.h"

#include <algorithm>
#include <cstddef>

namespace stretto::data {
namespace {

constexpr std::string_view kSpaceOfRows = " \t\r\f\v";

std::string_view without_space(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpaceOfRows), text.size());
  text.remove_prefix(begin);
  const size_t end = text.find_last_not_of(kSpaceOfRows);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

}  // namespace

NamedText split_name(std::string_view line) {
  line = without_space(line);
  const size_t end = std::min(line.find_first_of(kSpaceOfRows), line.size());
  return {.name = line.substr(0, end), .text = without_space(line.substr(end))};
}

void refuse_utterance(const std::string& path, const std::string& file, int64_t line,
                      const std::string& what, const std::string& advice) {
  const std::string place = (file.starts_with(path) ? file.substr(path.size()) : ": " + file) +
                            ":" + std::to_string(line);
  throw SampleError(path, place + ": " + what, advice);
}

}  // namespace stretto::data
