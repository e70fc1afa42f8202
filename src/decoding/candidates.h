#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "decoding/sampling_rules.h"

namespace stretto::decoding {

/// A token that a lane may go on with.
struct Candidate {
  int64_t lane = 0;
  int64_t token = 0;
  float token_log_prob = 0;
  double log_prob = 0;  ///< of the whole hypothesis
};

/// More probable first; equal ones in the order of lane and token, so that results are
/// reproducible.
bool better(const Candidate& a, const Candidate& b);

/// The `count` likeliest tokens of each lane, likeliest first; log_probs fp32 [lanes, vocab].
/// Tokens of probability zero are left out. One pass over the row, without sorting it.
std::vector<std::vector<Candidate>> likeliest(const at::Tensor& log_probs, int64_t count);

/// Tokens that would complete an n-gram which `history` already has.
std::vector<int64_t> repeated_ngram_ends(std::span<const int64_t> history, int64_t order);

}  // namespace stretto::decoding
