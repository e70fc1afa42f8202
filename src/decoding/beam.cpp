#include "decoding/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stretto::decoding {
namespace {

/// The continuations of all lanes, the best num_ranked() of them in front and in order.
std::vector<Candidate> ranked_continuations(std::span<const Lane> lanes,
                                            std::span<const std::vector<Candidate>> rows,
                                            int64_t num_ranked) {
  std::vector<Candidate> ranked;
  for (size_t k = 0; k < lanes.size(); ++k) {
    if (lanes[k].dead) continue;
    for (Candidate candidate : rows[k]) {
      candidate.lane = static_cast<int64_t>(k);
      candidate.log_prob = lanes[k].log_prob + candidate.token_log_prob;
      ranked.push_back(candidate);
    }
  }
  const auto width = std::min(std::ssize(ranked), static_cast<std::ptrdiff_t>(num_ranked));
  std::partial_sort(ranked.begin(), ranked.begin() + width, ranked.end(), better);
  ranked.resize(static_cast<size_t>(width));
  return ranked;
}

}  // namespace

void Continuation::add(const Lane& lane, int64_t parent, const Candidate& choice) {
  lanes.push_back(lane);
  lanes.back().ids.push_back(choice.token);
  lanes.back().token_log_probs.push_back(choice.token_log_prob);
  lanes.back().log_prob += choice.token_log_prob;
  parents.push_back(parent);
}

Lane Continuation::take_back() {
  Lane lane = std::move(lanes.back());
  lanes.pop_back();
  parents.pop_back();
  return lane;
}

Hypothesis ended_by_token(const Lane& lane, float log_prob, const DecodeOptions& options) {
  Hypothesis done;
  done.ids = lane.ids;
  done.token_log_probs = lane.token_log_probs;
  done.token_log_probs.push_back(log_prob);
  done.log_prob = lane.log_prob + log_prob;
  done.length = static_cast<int64_t>(lane.ids.size()) + 1;
  done.score = length_penalised(done.log_prob, done.length, options);
  done.number = lane.number;
  return done;
}

Hypothesis ended_by(const Lane& lane, OutputEnd end, const DecodeOptions& options) {
  Hypothesis done;
  done.ids = lane.ids;
  done.token_log_probs = lane.token_log_probs;
  done.log_prob = lane.log_prob;
  done.length = std::ssize(lane.ids);
  done.score = length_penalised(done.log_prob, done.length, options);
  done.end = end;
  done.number = lane.number;
  return done;
}

Hypothesis not_a_number() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Hypothesis none;
  none.score = none.log_prob = kNan;
  return none;
}

void rank_hypotheses(std::vector<Hypothesis>& hypotheses, const DecodeOptions& options) {
  const auto nbest = static_cast<size_t>(std::min(options.nbest, options.beam_size));
  std::stable_sort(hypotheses.begin(), hypotheses.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  if (hypotheses.size() > nbest) hypotheses.resize(nbest);
}

int64_t longest_output(int64_t src_length, int64_t before, int64_t max_length,
                       const DecodeOptions& options) {
  const double bound =
      options.max_len_a * static_cast<double>(src_length) + double(options.max_len_b);
  const double hard = static_cast<double>(max_length) - static_cast<double>(before);
  return std::max<int64_t>(static_cast<int64_t>(std::min(bound, hard)), 0);
}

bool BeamRules::is_end(int64_t token) const {
  return token == eos || std::ranges::find(ends, token) != ends.end();
}

Continuation extend_beam(std::span<const Lane> lanes, int64_t first_lane,
                         std::span<const std::vector<Candidate>> rows, const BeamRules& rules,
                         std::vector<Hypothesis>& finished) {
  const int64_t beam_size = rules.options.beam_size;
  const auto is_full = [&] { return std::ssize(finished) >= beam_size; };
  const std::vector<Candidate> ranked = ranked_continuations(lanes, rows, rules.num_ranked());
  Continuation next;
  for (int64_t place = 0; place < std::ssize(ranked); ++place) {
    const Candidate& candidate = ranked[static_cast<size_t>(place)];
    const Lane& lane = lanes[static_cast<size_t>(candidate.lane)];
    if (rules.is_end(candidate.token)) {
      if (place < beam_size && !is_full()) {
        finished.push_back(ended_by_token(lane, candidate.token_log_prob, rules.options));
      }
      continue;
    }
    if (std::ssize(next.lanes) >= beam_size || is_full()) continue;
    next.add(lane, first_lane + candidate.lane, candidate);
    const OutputEnd end = rules.end_of ? rules.end_of(next.lanes.back()) : OutputEnd::kToken;
    if (end == OutputEnd::kToken) continue;
    const Lane ended = next.take_back();
    if (place < beam_size) finished.push_back(ended_by(ended, end, rules.options));
  }
  if (is_full()) return {};
  return next;
}

}  // namespace stretto::decoding
