#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>

#include "config/field.h"

namespace stretto::optim {

/// The constants of a method of loss scaling, where an option is 0.
struct LossScaleMethod {
  std::string_view name;
  double init, least, most;
  int64_t window;  ///< good updates until the scale grows; of fairseq: micro-batches
};

inline constexpr LossScaleMethod kLossScaleMethods[] = {
    {"none", 1, 1, 1, 0},
    {"static", 128, 0, std::numeric_limits<double>::infinity(), 0},
    {"backoff", 16384, 1, 16384, 2000},
    {"fairseq", 128, 1e-4, std::numeric_limits<double>::infinity(), int64_t{1} << 14},
    {"logmax", 1, 1, 16384, 0},
};

/// Null when there is none of this name.
constexpr const LossScaleMethod* find_loss_scale_method(std::string_view name) {
  for (const auto& method : kLossScaleMethods) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

/// `[train.loss_scale]`: what the loss is multiplied by before backward, in half precision.
struct LossScaleOptions {
  std::string name = "auto";
  double init = 0;
  double min = 0;
  double max = 0;
  double factor = 2;
  int64_t window = 0;

  static auto fields() {
    using namespace config;
    using O = LossScaleOptions;
    return std::tuple{
        field(&O::name, "name",
              "auto: fairseq for mixed_fp16, none else; static: init for ever; backoff "
              "(OpenSeq2Seq): halve on overflow, double after window good updates; fairseq: the "
              "same with fairseq's constants; logmax: from the distribution of largest gradients",
              one_of({"auto", "none", "static", "backoff", "fairseq", "logmax"})),
        field(&O::init, "init",
              "first scale; 0 = of the method: static and fairseq 128, backoff 16384, logmax 1",
              at_least(0)),
        field(&O::min, "min", "smallest scale; 0 = of the method: fairseq 1e-4, the others 1",
              at_least(0)),
        field(&O::max, "max",
              "largest scale; 0 = of the method: backoff and logmax 16384, else none", at_least(0)),
        field(&O::factor, "factor", "of growth and shrinking (backoff, fairseq)", greater(1)),
        field(&O::window, "window",
              "good updates until the scale grows; 0 = of the method: backoff 2000, fairseq 2^14 / "
              "train.update_freq",
              at_least(0), {.unit = "updates"}),
    };
  }
};

}  // namespace stretto::optim
