#include "data/squad/windows.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace stretto::data {
namespace {

/// How much context a token has in a window; run_squad's formula in its order of operations.
double context_of(int64_t token, Span window) {
  const int64_t before = token - window.begin, behind = window.end - 1 - token;
  return static_cast<double>(std::min(before, behind)) + 0.01 * static_cast<double>(window.size());
}

}  // namespace

Windows cut_windows(int64_t question_tokens, int64_t paragraph_tokens,
                    const WindowOptions& options) {
  Windows windows{.question_tokens = std::min(question_tokens, options.max_question_tokens),
                  .spans = {}};
  const int64_t room = options.max_tokens - options.num_specials - windows.question_tokens;
  if (room < 1 || options.stride < 1) {
    throw std::invalid_argument("windows of " + std::to_string(options.max_tokens) +
                                " tokens with stride " + std::to_string(options.stride) +
                                " have no room behind a question of " +
                                std::to_string(windows.question_tokens));
  }
  int64_t begin = 0;
  while (paragraph_tokens - begin > room) {
    windows.spans.push_back({.begin = begin, .end = begin + room});
    begin += std::min(room, options.stride);
  }
  windows.spans.push_back({.begin = begin, .end = paragraph_tokens});
  return windows;
}

std::vector<size_t> max_context_windows(std::span<const Span> spans) {
  int64_t tokens = 0;
  for (const Span& span : spans) tokens = std::max(tokens, span.end);
  std::vector<size_t> best(static_cast<size_t>(tokens));
  std::vector<double> context(best.size(), -1);
  for (size_t window = 0; window < spans.size(); ++window) {
    for (int64_t token = spans[window].begin; token < spans[window].end; ++token) {
      const auto at = static_cast<size_t>(token);
      const double here = context_of(token, spans[window]);
      if (here <= context[at]) continue;
      context[at] = here;
      best[at] = window;
    }
  }
  return best;
}

std::optional<Span> tokens_of_answer(std::span<const Span> offsets, Span answer) {
  std::optional<Span> found;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i].begin >= answer.end || offsets[i].end <= answer.begin) continue;
    const auto token = static_cast<int64_t>(i);
    if (!found) found = Span{.begin = token, .end = token};
    found->end = token + 1;
  }
  return found;
}

std::optional<Span> answer_in_window(Span window, Span answer) {
  if (answer.begin < window.begin || answer.end > window.end) return std::nullopt;
  return Span{.begin = answer.begin - window.begin, .end = answer.end - window.begin};
}

}  // namespace stretto::data
