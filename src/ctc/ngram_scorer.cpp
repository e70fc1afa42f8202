#include "ctc/ngram_scorer.h"

#include <algorithm>
#include <utility>

namespace stretto::ctc {
namespace {

constexpr float kLn10 = 2.302585092994045684F;
constexpr size_t kKnown = size_t{1} << 12;
constexpr uint32_t kNoState = 0xFFFFFFFF;

size_t hash_of(const text::NgramState& state) {
  uint64_t hash = state.length;
  for (uint32_t i = 0; i < state.length; ++i)
    hash = (hash ^ state.words[i]) * 0x9E3779B97F4A7C15ULL + (hash >> 29);
  return static_cast<size_t>(hash ^ (hash >> 32));
}

size_t place_of(const decoding::TokenQuery& query) {
  const uint64_t key = (uint64_t{query.state} << 32) | static_cast<uint32_t>(query.token);
  return static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> 52) % kKnown;
}

}  // namespace

NgramScorer::NgramScorer(const text::NgramModel& model)
    : model_(model), places_(1024), known_(kKnown, Known{{kNoState, 0}, {}}) {
  start_ = number_of(model_.begin_history());
}

uint32_t NgramScorer::number_of(const text::NgramState& state) {
  if (states_.size() * 2 >= places_.size()) {
    places_.assign(places_.size() * 2, 0);
    const size_t mask = places_.size() - 1;
    for (size_t i = 0; i < states_.size(); ++i) {
      size_t at = hash_of(states_[i]) & mask;
      while (places_[at] != 0) at = (at + 1) & mask;
      places_[at] = static_cast<uint32_t>(i) + 1;
    }
  }
  const size_t mask = places_.size() - 1;
  size_t at = hash_of(state) & mask;
  for (; places_[at] != 0; at = (at + 1) & mask) {
    if (states_[places_[at] - 1] == state) return places_[at] - 1;
  }
  states_.push_back(state);
  places_[at] = static_cast<uint32_t>(states_.size());
  return places_[at] - 1;
}

decoding::TokenScore NgramScorer::look_up(const decoding::TokenQuery& query) {
  Known& known = known_[place_of(query)];
  if (known.query.state == query.state && known.query.token == query.token) return known.score;
  const text::NgramState history = states_[query.state];
  text::NgramState next;
  const float log10_prob =
      model_.score(history, static_cast<uint32_t>(std::max(query.token, 0)), next);
  decoding::TokenScore found;
  found.log_prob = log10_prob * kLn10;
  found.next = number_of(next);
  known = Known{query, found};
  return found;
}

void NgramScorer::score(std::span<const decoding::TokenQuery> queries,
                        std::span<decoding::TokenScore> scores) {
  for (size_t i = 0; i < queries.size(); ++i) scores[i] = look_up(queries[i]);
}

float NgramScorer::end(uint32_t state) {
  if (model_.end_index() == 0) return 0;  // the model does not say how texts end
  text::NgramState ignored;
  return model_.score(states_[state], model_.end_index(), ignored) * kLn10;
}

void NgramScorer::keep(std::span<uint32_t> states) {
  const std::vector<text::NgramState> before = std::exchange(states_, {});
  std::fill(places_.begin(), places_.end(), 0U);
  std::fill(known_.begin(), known_.end(), Known{{kNoState, 0}, {}});
  start_ = number_of(before[start_]);
  for (uint32_t& state : states) state = number_of(before[state]);
}

}  // namespace stretto::ctc
