#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "optim/precision_options.h"

namespace stretto::optim {

/// What a scaler learns from one attempt at an update.
struct ScaledStep {
  bool overflow = false;  ///< a gradient was not finite
  /// Largest |gradient| of the mean over the update's micro-batches (of all ranks, not over their
  /// tokens), divided by scale(): an estimate of what the backward of one micro-batch holds in half
  /// precision, whatever train.update_freq is. Only logmax looks at it.
  double max_abs = 0;
};

/// Keeps small gradients out of half precision's underflow: the loss is multiplied by `scale()`
/// before backward, the gradients divided by it in the update. All ranks feed it the same values.
class LossScaler {
 public:
  virtual ~LossScaler() = default;
  virtual std::string name() const = 0;  ///< of the method, "none", "static", …
  virtual double scale() const = 0;
  /// Whether an overflow makes it look for another scale; false: scale() is one for ever.
  virtual bool adapts() const { return true; }
  /// Whether update() wants `max_abs`, which costs a pass over the gradients.
  virtual bool wants_max_abs() const { return false; }
  /// After every attempt, skipped or not. Throws Error(kNumeric) when a gradient overflows at the
  /// smallest scale; it names train.loss_scale.min if that set it. What else may help is the
  /// trainer's to say, which knows the run.
  virtual void update(const ScaledStep& step) = 0;
  /// Everything that a resumed run needs, by name.
  virtual std::map<std::string, double> state() const = 0;
  virtual void restore(const std::map<std::string, double>& state) = 0;
};

/// By `options.name` ("none" = scale 1 for ever, "static", "backoff", "fairseq", "logmax"). Throws
/// Error(kUsage) when that is none of them or `init` lies outside of the bounds.
///
/// @param update_freq  micro-batches per update over all processes: fairseq's window is 2^14 / it
std::unique_ptr<LossScaler> make_loss_scaler(const LossScaleOptions& options, int64_t update_freq);

}  // namespace stretto::optim
