#pragma once

#include <cstdint>
#include <string>

namespace stretto::plan {

/// What takes memory while a model is trained, in one process.
struct MemoryInputs {
  double parameters = 0;
  double trained_share = 1;  ///< of them: the others have no gradient
  double state_values = 2;   ///< that the optimizer keeps for a weight: Adam 2, SGD with momentum 1
  bool has_average = false;  ///< a second set of weights: a moving average
  bool copies_to_save = false;  ///< checkpoints are written from a copy in memory
  double units = 0;             ///< of work of a micro-batch
  double flops = 0;             ///< of training, for a unit of work
  /// Products that a value which a layer gives is the sum of, about: a Transformer's d_model. 0 =
  /// not known, and then nothing is said of activations.
  double fan_in = 0;
};

/// Bytes, at the peak of an update.
struct TrainingMemory {
  double weights = 0, gradients = 0, optimizer = 0, average = 0, copy = 0;
  double activations = 0;  ///< about
  double program = 0;      ///< libtorch, code, buffers

  /// What is certain: weights, gradients and what belongs to them.
  double certain() const { return weights + gradients + optimizer + average + copy; }
  double total() const { return certain() + activations + program; }
  /// Less it cannot be: activations are known within a factor.
  double at_least() const;
};

/// Values that forward keeps for backward, for each that a matrix product gives: the norms,
/// activations and dropouts between the products have theirs.
inline constexpr double kKeptValues = 1.5;
/// By which activations may be less than said.
inline constexpr double kActivationFactor = 4;
/// A process that has loaded libtorch.
inline constexpr double kProgramBytes = 250e6;

/// Values that forward keeps for a unit of work, for each kept value of a product's result 1.
double kept_values(const MemoryInputs& inputs);

TrainingMemory training_memory(const MemoryInputs& inputs);

/// The most work of a micro-batch with which the total stays within `bytes`; 0 when not even
/// weights fit, and infinity when activations are not known.
double largest_work(const MemoryInputs& inputs, double bytes);

/// Values that an optimizer keeps for a weight, by its name; 2 for one that is not known.
double state_values_of(const std::string& optimizer, double momentum);

}  // namespace stretto::plan
