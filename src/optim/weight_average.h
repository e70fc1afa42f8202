#pragma once

#include <cstdint>
#include <optional>

#include "optim/arena.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// How an average of weights forgets.
struct AverageRule {
  double decay = 0;     ///< in [0, 1): train.ema_decay
  bool warm_up = true;  ///< train.ema_warmup: smaller decays in the first updates
  /// Nothing is forgotten, and neither of the two above is read: see WeightAverage::mean_after().
  bool is_mean = false;

  /// The decay of update t, counted from 1: decay, with a warm-up min(decay, (1 + t) / (10 + t)).
  /// Without one the first weights, which are random, would stay in the average for 1 / (1 - decay)
  /// updates.
  double decay_at(int64_t number) const;
};

/// Exponential moving average of the weights after each update (Polyak & Juditsky 1992; in this
/// form TensorFlow's ExponentialMovingAverage):
///
///     a = w before the first update,   then   a = a + (1 - decay_at(t)) (w - a)
///
/// Or the mean of the weights after each update behind update T (Polyak and Juditsky 1992), where
/// a = w until then:
///
///     a = a + (w - a) / (t - T)                                  in update t > T
///
/// fp32, for the slice that a process updates, and with the same bits for any number of slices and
/// threads. Training does not read it.
class WeightAverage {
 public:
  WeightAverage(AverageRule rule, const Arena& arena, Slice slice);

  /// Begins anew with the arena's weights as they are.
  void begin(const Arena& arena);
  /// After the update of this number, counted from 1.
  void update(const Arena& arena, int64_t number);
  /// A mean begins behind so many updates; nothing: it has not begun. What was averaged stays.
  void mean_after(std::optional<int64_t> updates) { mean_after_ = updates; }

  torch::Tensor& values() { return values_; }  ///< [slice.size()]

 private:
  torch::Tensor part_of(const torch::Tensor& params) const;
  double share_of(int64_t number) const;

  const AverageRule rule_;
  const Slice slice_;
  std::optional<int64_t> mean_after_;
  torch::Tensor values_;
};

/// Name of the average among the tensors of state; runs/checkpoint_tensors.h knows it too.
inline constexpr const char* kWeightAverage = "ema";

/// Keeps a copy of the arena's weights, and restores them to the bit when it is destroyed.
class KeptWeights {
 public:
  explicit KeptWeights(Arena& arena);
  ~KeptWeights();
  KeptWeights(const KeptWeights&) = delete;
  KeptWeights& operator=(const KeptWeights&) = delete;

 private:
  Arena& arena_;
  torch::Tensor params_;
};

}  // namespace stretto::optim
