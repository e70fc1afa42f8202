#pragma once

#include <cstdint>
#include <vector>

#include "decoding/decode_options.h"

namespace stretto::decoding {

/// What ended an output.
enum class OutputEnd : uint8_t {
  kToken,  ///< end-of-sentence
  kStop,   ///< OutputWatch
  kBound,  ///< it has as many tokens as it may
};

/// One finished output.
struct Hypothesis {
  std::vector<int64_t> ids;  ///< neither beginning- nor end-of-sentence
  double score = 0;          ///< log_prob after the length penalty; what n-best is sorted by
  double log_prob = 0;       ///< natural log, sum over the tokens, end-of-sentence included
  std::vector<float> token_log_probs;  ///< [length]
  int64_t length = 0;                  ///< tokens, end-of-sentence included
  OutputEnd end = OutputEnd::kToken;
  int64_t number = 0;  ///< of a sample among those of its source
};

/// score of `length` tokens (end included): fairseq log_prob / length^a; gnmt (Wu et al. 2016,
/// equation 14) log_prob / ((5 + length) / 6)^a; none log_prob.
double length_penalised(double log_prob, int64_t length, const DecodeOptions& options);

}  // namespace stretto::decoding
