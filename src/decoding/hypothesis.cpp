#include "decoding/hypothesis.h"

#include <cmath>

namespace stretto::decoding {

double length_penalised(double log_prob, int64_t length, const DecodeOptions& options) {
  const auto tokens = static_cast<double>(length);
  if (options.length_penalty_type == "fairseq") {
    return log_prob / std::pow(tokens, options.length_penalty);
  }
  if (options.length_penalty_type == "gnmt") {
    return log_prob / std::pow((5.0 + tokens) / 6.0, options.length_penalty);
  }
  return log_prob;
}

}  // namespace stretto::decoding
