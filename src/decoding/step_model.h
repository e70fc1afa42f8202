#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
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

/// Prompts of any lengths, one behind the other.
struct PackedPrompts {
  std::vector<int64_t> ids = {};      ///< of all
  std::vector<int64_t> lengths = {};  ///< [sources], above 0

  void append(std::span<const int64_t> prompt);
  int64_t size() const { return static_cast<int64_t>(lengths.size()); }
  int64_t longest() const;
  bool are_equally_long() const;
};

/// Prompts of one length as int64 [sources, T]. Throws c10::Error for unequal lengths.
at::Tensor rectangle_of(const PackedPrompts& prompts);

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

  /// The same for prompts of any lengths, each in positions of its own. Lanes of different
  /// histories go on side by side: what a lane gets does not depend on the prompts beside it.
  /// Throws c10::Error for unequal lengths unless takes_unequal_prompts().
  virtual at::Tensor prefill_packed(const PackedPrompts& prompts, int64_t lanes_per_source);
  virtual bool takes_unequal_prompts() const { return false; }

  /// fp32 [lanes]: the logits behind the last result are its log-probabilities plus this. Undefined
  /// where there are no logits, such as in an ensemble: log-probabilities stand for them.
  virtual at::Tensor log_normalisers() const { return {}; }

  /// The most bytes that its caches of keys and values have had, with room for steps to come.
  virtual int64_t most_cache_bytes() const { return 0; }

  virtual int64_t vocab_size() const = 0;
};

}  // namespace stretto::decoding
