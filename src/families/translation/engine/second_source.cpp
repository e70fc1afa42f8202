#include "families/translation/engine/second_source.h"

#include "base/error.h"
#include "data/pairs/two_sources.h"
#include "families/translation/translation_options.h"

namespace stretto::tasks {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

JoinedLine joined_or_empty(std::string_view first, std::string_view second) {
  JoinedLine line;
  if (is_blank(first) && is_blank(second)) return line;
  if (is_blank(first) || is_blank(second)) {
    line.problem = std::string("its ") + (is_blank(first) ? "first" : "second") +
                   " source is empty, and the model reads two";
    return line;
  }
  data::join_sources(first, second, line.text);
  return line;
}

}  // namespace

void require_second_source(const experiment::Experiment& experiment, const std::string& file) {
  if (file.empty() || models::has_two_encoders(translation_of(experiment).model)) return;
  throw Error(ExitCode::kUsage, "--src2 names a second source, and the run's model reads one",
              "leave it out, or give a run that was trained with [[model.encoders]]");
}

JoinedLine joined_line(const std::string& line) {
  const auto texts = data::split_sources(line);
  if (texts) return joined_or_empty(texts->first, texts->second);
  if (is_blank(line)) return {};
  return {.text = {},
          .problem =
              "it has no tab, and the model reads two sources: FIRST<TAB>SECOND, or "
              "--src2 FILE"};
}

JoinedLine joined_line(const std::string& first, const std::string& second) {
  return joined_or_empty(first, second);
}

}  // namespace stretto::tasks
