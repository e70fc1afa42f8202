#include "families/translation/engine/side_lines.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stretto::tasks {

SideFile prefix_file(std::string path) {
  return {.option = "--prefix",
          .path = std::move(path),
          .advice = "give a prefix for each line of the input; an empty line forces nothing"};
}

SideFile second_source_file(std::string path) {
  return {
      .option = "--src2",
      .path = std::move(path),
      .advice = "line i of both is one sentence to translate: look for a file that was cut off"};
}

SideLines::SideLines(SideFile file, const std::vector<std::string>& input)
    : file_(std::move(file)), lines_({file_.path}) {
  const auto own = data::TextInput::count_lines({file_.path});
  if (!own) return;
  const auto lines = data::TextInput::count_lines(input);
  if (lines && *lines != *own) throw_unequal(*own, with_thousands(*lines));
}

bool SideLines::next(data::InputLine& line) {
  if (!lines_.next(line)) return false;
  ++count_;
  return true;
}

void SideLines::throw_too_few(int64_t lines, data::TextInput& input) const {
  data::InputLine line;
  bool at_end = false;
  while (!at_end && input.ready()) {
    at_end = !input.next(line);
    if (!at_end) ++lines;
  }
  throw_unequal(count_, (at_end ? "" : "at least ") + with_thousands(lines));
}

void SideLines::require_end(int64_t lines) {
  data::InputLine line;
  int64_t own = count_;
  while (lines_.next(line)) ++own;
  if (own != lines) throw_unequal(own, with_thousands(lines));
}

void SideLines::throw_unequal(int64_t count, const std::string& input_lines) const {
  throw Error(ExitCode::kBadData,
              file_.option + " " + file_.path + " has " + counted(count, "line") +
                  ", and the input " + input_lines,
              file_.advice);
}

}  // namespace stretto::tasks
