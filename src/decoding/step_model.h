#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stretto::decoding {

/// All that search knows of a model: what comes next, for a set of lanes (hypotheses).
///
/// Lanes start in order: source 0 has lanes 0..k-1, source 1 has k..2k-1, and so on.
class StepModel {
 public:
  virtual ~StepModel() = default;

  /// @param tokens  int64 [lanes]: the last token of each lane; beginning-of-sentence first
  /// @return        fp32 [lanes, vocab] natural-log probabilities of the next token
  virtual at::Tensor step(const at::Tensor& tokens) = 0;

  /// From now on lane i continues what lane parents[i] was. `parents` may be shorter than the
  /// present number of lanes: finished sources leave. A lane's parent belongs to the same source.
  virtual void reorder(const std::vector<int64_t>& parents) = 0;

  virtual int64_t vocab_size() const = 0;
};

}  // namespace stretto::decoding
