#pragma once

#include <cstdint>
#include <vector>

#include "compress/compress_options.h"
#include "optim/arena.h"
#include "optim/kept_slots.h"
#include "optim/weight_noise.h"
#include "store/quantised.h"

namespace stretto::compress {

/// The format of `[compress.quantise]`.
store::QuantFormat format_of(const QuantiseOptions& options);

/// Training that sees its weights as they will be stored (`compress.quantise`): an update runs
/// forward and backward with
///
///     r(w) = scale * (code(w) - zero)           compress/quantise.h, round to nearest
///
/// and steps w itself by the gradient at r(w), as if dr/dw was 1 (the straight-through estimator,
/// Bengio et al. 2013, arXiv:1308.3432). With noise p < 1 each group of weights that shares a scale
/// is rounded with probability p, drawn anew in each update, and the others stay as they are
/// (quantisation noise, Fan et al. 2020, arXiv:2004.07320): so few bits train without a bias of
/// gradients. The draw is a function of (key, tensor, group), the same for all micro-batches and
/// processes of an update.
///
/// Memory: one more copy of the tensors that are rounded.
class RoundedWeights {
 public:
  /// Throws Error(kUsage) for a pattern that matches no parameter, for a tensor that cannot be
  /// packed so (store::packing_problem()), and when no tensor would be rounded.
  RoundedWeights(const QuantiseOptions& options, optim::Arena& arena);

  /// Rounds weights for an update; before compress.quantise.begin completed updates nothing.
  /// @param key  of the update: mixed from seed and step
  /// @return restores the weights; until then nothing else may write to them, nor may there be a
  ///         second one
  [[nodiscard]] optim::NoisyWeights round(uint64_t key, int64_t updates);

  /// Rounds all of them, as a file has them; before compress.quantise.begin completed updates, and
  /// with compress.quantise.validate = false, nothing.
  [[nodiscard]] optim::NoisyWeights round_all(int64_t updates);

 private:
  optim::NoisyWeights rounded(double share, uint64_t key);
  void round_slot(const optim::Arena::Slot& slot, double share, uint64_t key);

  const QuantiseOptions options_;
  const store::QuantFormat format_;
  optim::Arena& arena_;
  std::vector<optim::Arena::Slot> slots_;
  optim::KeptSlots kept_;
};

}  // namespace stretto::compress
