#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "optim/arena.h"
#include "optim/kept_slots.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// The weights of an update with noise added, or rounded, as long as this object lives. Then the
/// arena has its own weights again, to the bit, because they were kept. A default one does nothing.
class NoisyWeights {
 public:
  NoisyWeights() = default;
  /// @param restore  called once, at the end
  explicit NoisyWeights(std::function<void()> restore) : restore_(std::move(restore)) {}
  NoisyWeights(NoisyWeights&& other) noexcept : restore_(std::move(other.restore_)) {
    other.restore_ = nullptr;
  }
  NoisyWeights& operator=(NoisyWeights&&) = delete;
  ~NoisyWeights() {
    if (restore_) restore_();
  }

 private:
  std::function<void()> restore_;
};

/// Gaussian noise on weights while an update runs forward and backward (An 1996, Neural Computation
/// 8(3); Graves 2013, arXiv:1303.5778, section 3.3, has a deviation of 0.075):
///
///     gradient = d loss / d w   at   w + deviation * n,   n ~ N(0, 1);   the step is made from w
///
/// n is optim/normal_noise.h's: a function of key, name and element, so that all processes compute
/// with the same weights without sending any. `optim.weight_noise_tensors` names the tensors by
/// patterns; without one it is all of two dimensions or more, and biases and gains of norms have
/// none. The CPU draws, for a GPU too. Memory: one more copy of these tensors.
class WeightNoise {
 public:
  /// Throws Error(kUsage) for a pattern that matches no parameter.
  WeightNoise(const OptimOptions& options, Arena& arena);

  /// Adds noise to the tensors that train after so many completed updates.
  /// @param key  of the step: mixed from seed and step
  /// @return restores the weights; before that nothing else may write to them, nor may there be a
  ///         second one
  [[nodiscard]] NoisyWeights add(uint64_t key, int64_t updates = 0);

 private:
  Arena& arena_;
  const double deviation_;
  std::vector<Arena::Slot> slots_;
  KeptSlots kept_;  ///< the weights without noise
};

}  // namespace stretto::optim
