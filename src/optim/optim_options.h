#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::optim {

/// `[optim]`
struct OptimOptions {
  std::string name = "adam";
  double lr = 5e-4;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0.9;
  bool nesterov = false;
  double clip_norm = 0;

  static auto fields() {
    using namespace config;
    using O = OptimOptions;
    return std::tuple{
        field(&O::name, "name",
              "adam adds weight decay to the gradient, adamw takes it off the weight, sgd has "
              "momentum",
              one_of({"adam", "adamw", "sgd"})),
        field(&O::lr, "lr", "peak learning rate", greater(0)),
        field(&O::beta1, "beta1", "decay of the first moment (adam, adamw)", fraction()),
        field(&O::beta2, "beta2", "decay of the second moment (adam, adamw)", fraction()),
        field(&O::epsilon, "epsilon", "added to the root of the second moment", greater(0)),
        field(&O::weight_decay, "weight_decay", "not on biases and norms", at_least(0)),
        field(&O::momentum, "momentum", "of sgd", fraction()),
        field(&O::nesterov, "nesterov", "look-ahead form of sgd's momentum"),
        field(&O::clip_norm, "clip_norm",
              "gradients are scaled down to this global norm; 0 = never", at_least(0)),
    };
  }
};

/// `[schedule]`: learning rate as a function of the update.
struct ScheduleOptions {
  std::string name = "inverse_sqrt";
  int64_t warmup_steps = 4000;
  double warmup_init_lr = 1e-7;
  double min_lr = 0;
  int64_t total_steps = 0;
  double power = 1.0;

  static auto fields() {
    using namespace config;
    using O = ScheduleOptions;
    return std::tuple{
        field(&O::name, "name", "shape after the warm-up",
              one_of({"constant", "inverse_sqrt", "linear", "cosine", "polynomial"})),
        field(&O::warmup_steps, "warmup_steps", "linear rise from warmup_init_lr to optim.lr",
              at_least(0), {.unit = "updates"}),
        field(&O::warmup_init_lr, "warmup_init_lr", "learning rate of update 0", at_least(0)),
        field(&O::min_lr, "min_lr", "floor, and the end of linear, cosine and polynomial",
              at_least(0)),
        field(&O::total_steps, "total_steps",
              "update at which linear, cosine and polynomial end; 0 = train.max_steps", at_least(0),
              {.unit = "updates"}),
        field(&O::power, "power", "of polynomial", greater(0)),
    };
  }
};

}  // namespace stretto::optim
