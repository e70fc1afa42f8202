#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "optim/arena.h"
#include "optim/optim_options.h"

namespace stretto::optim {

/// What one update is told.
struct UpdateStep {
  double lr = 0;
  double grad_scale = 1;  ///< gradients are multiplied by this first: 1 / tokens, clipping
  int64_t number = 1;     ///< 1 for the first update; bias correction needs it
};

/// An update rule over the whole arena. Its state is flat buffers with the arena's offsets.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(Arena& arena, const UpdateStep& update) = 0;
  /// Name and buffer of each piece of state, each of arena.size() elements.
  virtual std::vector<std::pair<std::string, torch::Tensor>> state() = 0;
};

/// By `options.name`; an unknown name throws Error(kUsage) that lists the known ones.
std::unique_ptr<Optimizer> make_optimizer(const OptimOptions& options, const Arena& arena);

/// Euclidean norm of the gradients times `grad_scale`; not finite when any gradient is not.
double gradient_norm(const torch::Tensor& grads, double grad_scale);

/// Factor that brings a norm under `clip_norm`: min(1, clip_norm / (norm + 1e-6)); 1 when clip_norm
/// is 0.
double clip_factor(double norm, double clip_norm);

}  // namespace stretto::optim
