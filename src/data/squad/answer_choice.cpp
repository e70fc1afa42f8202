#include "data/squad/answer_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_set>

#include "base/text.h"

namespace stretto::data {
namespace {

struct ScoredSpan {
  double score = 0;
  Span tokens;
};

void check_scores(std::span<const WindowScores> windows, const ParagraphTokens& paragraph,
                  const AnswerChoiceOptions& options) {
  if (options.nbest < 1 || options.max_answer_tokens < 1) {
    throw std::invalid_argument("an answer needs at least one candidate of at least one token");
  }
  for (const auto& window : windows) {
    const auto size = static_cast<size_t>(window.tokens.size());
    const bool within = window.tokens.begin >= 0 &&
                        window.tokens.end <= static_cast<int64_t>(paragraph.offsets.size());
    if (window.start.size() == size && window.end.size() == size && within) continue;
    throw std::invalid_argument("the scores of a window do not go with its tokens");
  }
}

std::vector<ScoredSpan> possible_spans(std::span<const WindowScores> windows,
                                       const AnswerChoiceOptions& options) {
  std::vector<Span> spans;
  for (const auto& window : windows) spans.push_back(window.tokens);
  const auto best_window = max_context_windows(spans);
  std::vector<ScoredSpan> possible;
  for (size_t w = 0; w < windows.size(); ++w) {
    const auto& [tokens, start, end, none] = windows[w];
    for (int64_t first = tokens.begin; first < tokens.end; ++first) {
      if (best_window[static_cast<size_t>(first)] != w) continue;
      const int64_t behind = std::min(tokens.end, first + options.max_answer_tokens);
      for (int64_t last = first; last < behind; ++last) {
        const double score = static_cast<double>(start[static_cast<size_t>(first - tokens.begin)]) +
                             static_cast<double>(end[static_cast<size_t>(last - tokens.begin)]);
        if (std::isfinite(score)) possible.push_back({score, {first, last + 1}});
      }
    }
  }
  return possible;
}

std::string text_of(const ParagraphTokens& paragraph, Span tokens) {
  const auto begin =
      static_cast<size_t>(paragraph.offsets[static_cast<size_t>(tokens.begin)].begin);
  const auto end = static_cast<size_t>(paragraph.offsets[static_cast<size_t>(tokens.end - 1)].end);
  return trim(paragraph.text.substr(begin, end - begin));
}

/// The best spans of distinct texts, best first.
std::vector<AnswerCandidate> best_spans(std::vector<ScoredSpan> possible,
                                        const ParagraphTokens& paragraph, int64_t nbest) {
  const auto is_worse = [](const ScoredSpan& a, const ScoredSpan& b) {
    if (a.score != b.score) return a.score < b.score;
    if (a.tokens.begin != b.tokens.begin) return a.tokens.begin > b.tokens.begin;
    return a.tokens.end > b.tokens.end;
  };
  std::vector<AnswerCandidate> best;
  std::unordered_set<std::string> seen;
  std::make_heap(possible.begin(), possible.end(), is_worse);
  while (!possible.empty() && static_cast<int64_t>(best.size()) < nbest) {
    std::pop_heap(possible.begin(), possible.end(), is_worse);
    const auto [score, tokens] = possible.back();
    possible.pop_back();
    std::string text = text_of(paragraph, tokens);
    if (text.empty() || !seen.insert(text).second) continue;
    best.push_back({.text = std::move(text), .tokens = tokens, .score = score});
  }
  return best;
}

/// Puts no answer in its place: one of the nbest, or behind them.
void insert_none(std::vector<AnswerCandidate>& candidates, double score, int64_t nbest) {
  const auto place =
      std::find_if(candidates.begin(), candidates.end(),
                   [score](const AnswerCandidate& other) { return other.score < score; });
  const bool is_among_best = place - candidates.begin() < nbest;
  candidates.insert(place, {.text = "", .tokens = {}, .score = score});
  if (is_among_best && static_cast<int64_t>(candidates.size()) > nbest) candidates.pop_back();
}

/// The smallest score of no answer; nullopt if none is finite.
std::optional<double> smallest_none(std::span<const WindowScores> windows) {
  std::optional<double> smallest;
  for (const auto& window : windows) {
    const auto score = static_cast<double>(window.none);
    if (std::isfinite(score) && score < smallest.value_or(HUGE_VAL)) smallest = score;
  }
  return smallest;
}

/// Compares no answer with the best span, which is the text so far.
void weigh_none(std::optional<double> none, const AnswerChoiceOptions& options,
                AnswerChoice& choice) {
  using Limits = std::numeric_limits<double>;
  auto& difference = choice.none_score_difference;
  if (choice.candidates.empty()) {
    difference = Limits::max();
  } else {
    difference = none ? *none - choice.candidates.front().score : Limits::lowest();
  }
  if (difference > options.none_threshold) choice.text.clear();
  if (none) insert_none(choice.candidates, *none, options.nbest);
}

void set_probabilities(std::vector<AnswerCandidate>& candidates) {
  double sum = 0;
  for (auto& candidate : candidates) {
    candidate.probability = std::exp(candidate.score - candidates.front().score);
    sum += candidate.probability;
  }
  for (auto& candidate : candidates) candidate.probability /= sum;
}

}  // namespace

AnswerChoice choose_answer(std::span<const WindowScores> windows, const ParagraphTokens& paragraph,
                           const AnswerChoiceOptions& options) {
  check_scores(windows, paragraph, options);
  AnswerChoice choice;
  choice.candidates = best_spans(possible_spans(windows, options), paragraph, options.nbest);
  if (!choice.candidates.empty()) choice.text = choice.candidates.front().text;
  if (options.may_have_none) weigh_none(smallest_none(windows), options, choice);
  set_probabilities(choice.candidates);
  return choice;
}

}  // namespace stretto::data
