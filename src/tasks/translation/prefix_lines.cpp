#include "tasks/translation/prefix_lines.h"

#include "base/error.h"
#include "base/text.h"

namespace stretto::tasks {

PrefixLines::PrefixLines(const std::string& file, const std::vector<std::string>& input)
    : file_(file), lines_({file}) {
  const auto prefixes = data::TextInput::count_lines({file});
  if (!prefixes) return;
  const auto lines = data::TextInput::count_lines(input);
  if (lines && *lines != *prefixes) throw_unequal(*prefixes, with_thousands(*lines));
}

bool PrefixLines::next(data::InputLine& line) {
  if (!lines_.next(line)) return false;
  ++count_;
  return true;
}

void PrefixLines::throw_too_few(int64_t lines, data::TextInput& input) const {
  data::InputLine line;
  bool at_end = false;
  while (!at_end && input.ready()) {
    at_end = !input.next(line);
    if (!at_end) ++lines;
  }
  throw_unequal(count_, (at_end ? "" : "at least ") + with_thousands(lines));
}

void PrefixLines::require_end(int64_t lines) {
  data::InputLine line;
  int64_t prefixes = count_;
  while (lines_.next(line)) ++prefixes;
  if (prefixes != lines) throw_unequal(prefixes, with_thousands(lines));
}

void PrefixLines::throw_unequal(int64_t prefixes, const std::string& input_lines) const {
  throw Error(
      ExitCode::kBadData,
      "--prefix " + file_ + " has " + counted(prefixes, "line") + ", and the input " + input_lines,
      "give a prefix for each line of the input; an empty line forces nothing");
}

}  // namespace stretto::tasks
