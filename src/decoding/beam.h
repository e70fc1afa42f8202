#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "decoding/candidates.h"
#include "decoding/decode_options.h"
#include "decoding/hypothesis.h"

/// What all searches do with a source: its outputs in the making, and the rule by which a beam goes
/// on. Of this room alone.
namespace stretto::decoding {

/// A lane: an output in the making.
struct Lane {
  std::vector<int64_t> ids;
  std::vector<float> token_log_probs;
  double log_prob = 0;
  int64_t number = 0;  ///< of the hypothesis, for sampling
  bool dead = false;   ///< fills a beam that has fewer continuations than lanes
};

/// What is next: the lanes that go on, and which lane of before each of them continues.
struct Continuation {
  std::vector<Lane> lanes;
  std::vector<int64_t> parents;

  void add(const Lane& lane, int64_t parent, const Candidate& choice);
  /// What was added last, which does not go on.
  Lane take_back();
};

/// A lane that ends with a token of this log-probability.
Hypothesis ended_by_token(const Lane& lane, float log_prob, const DecodeOptions& options);
/// A lane that ends without one.
Hypothesis ended_by(const Lane& lane, OutputEnd end, const DecodeOptions& options);
/// The only hypothesis of a source for which the model gave NaN.
Hypothesis not_a_number();

/// Best score first, at most `nbest`.
void rank_hypotheses(std::vector<Hypothesis>& hypotheses, const DecodeOptions& options);

/// The bound of the outputs of a source, end-of-sentence not counted.
/// @param before  positions that are taken in front of them
int64_t longest_output(int64_t src_length, int64_t before, int64_t max_length,
                       const DecodeOptions& options);

/// By what a beam goes on.
struct BeamRules {
  const DecodeOptions& options;
  int64_t eos;
  std::span<const int64_t> ends = {};  ///< further tokens that end an output
  /// What ends an output behind any other token; kToken = nothing. None: nothing ever.
  std::function<OutputEnd(const Lane&)> end_of = nullptr;

  bool is_end(int64_t token) const;
  /// Continuations of a source that are ranked: so many that beam_size go on though each of the
  /// first lanes has all its ends among them.
  int64_t num_ranked() const { return (2 + std::ssize(ends)) * options.beam_size; }
};

/// A step of one source, as search() states it. What ends is put to `finished`; where that has
/// beam_size hypotheses then, nothing goes on.
/// @param lanes       those to go on from: in the first step one, since all are equal
/// @param first_lane  the number that `parents` have for the first of them
/// @param rows        continuations of each lane, likeliest first, num_ranked() or all
Continuation extend_beam(std::span<const Lane> lanes, int64_t first_lane,
                         std::span<const std::vector<Candidate>> rows, const BeamRules& rules,
                         std::vector<Hypothesis>& finished);

}  // namespace stretto::decoding
