#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stretto::decoding {

/// What `step` gives for the last tokens of `prompts` [sources, T], having been called with those
/// of all lanes of each step.
template <class Step>
at::Tensor prefill_by_steps(const at::Tensor& prompts, int64_t lanes_per_source, const Step& step) {
  const at::Tensor of_lanes = prompts.repeat_interleave(lanes_per_source, 0);
  at::Tensor last;
  for (int64_t t = 0; t < prompts.size(1); ++t) last = step(of_lanes.select(1, t).contiguous());
  return last;
}

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

  /// Prompts of one length, before any step: as many steps, of which the last one is returned. A
  /// model that can makes them in one pass.
  /// @param prompts  int64 [sources, T], T > 0: what all lanes of a source begin with
  /// @return         as step()
  virtual at::Tensor prefill(const at::Tensor& prompts, int64_t lanes_per_source) {
    return prefill_by_steps(prompts, lanes_per_source,
                            [this](const at::Tensor& tokens) { return step(tokens); });
  }

  virtual int64_t vocab_size() const = 0;
};

}  // namespace stretto::decoding
