#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "config/field.h"

namespace stretto::optim {

/// No scale leaves this range: the scaled loss, and what its gradients are multiplied by in the
/// update, are fp32 numbers.
inline constexpr double kLeastLossScale = 0x1p-126, kLargestLossScale = 0x1p127;

/// The constants of a method of loss scaling, where an option is 0.
///
/// OpenSeq2Seq keeps the scales of backoff and logmax at 1 or above, which is meant for a mean
/// loss. What is scaled here is the sum over the tokens of a micro-batch, as in fairseq, thousands
/// of times larger: so all methods may go down as far as fairseq's.
struct LossScaleMethod {
  std::string_view name;
  double init, least, most;
  int64_t window;  ///< good updates until the scale grows; of fairseq: micro-batches
};

inline constexpr LossScaleMethod kLossScaleMethods[] = {
    {"none", 1, 1, 1, 0},
    {"static", 128, kLeastLossScale, kLargestLossScale, 0},
    {"backoff", 16384, 1e-4, 16384, 2000},
    {"fairseq", 128, 1e-4, kLargestLossScale, int64_t{1} << 14},
    {"logmax", 1, 1e-4, 16384, 0},
};

/// Null when there is none of this name.
constexpr const LossScaleMethod* find_loss_scale_method(std::string_view name) {
  for (const auto& method : kLossScaleMethods) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

/// The values of a key that chooses arithmetic: train.precision, eval.precision.
inline config::Range precision_names() {
  return config::one_of({"auto", "auto_fp16", "fp32", "tf32", "mixed_bf16", "mixed_fp16"});
}

/// What other toolkits call these values.
template <class Declaration>
Declaration with_other_precision_names(Declaration key) {
  return std::move(key)
      .value_also_called("mixed_bf16", {"bf16", "bfloat16", "bf16_mixed", "amp_bf16"})
      .value_also_called("mixed_fp16", {"fp16", "float16", "half", "16", "16_mixed", "amp",
                                        "amp_fp16", "O1", "O2"})
      .value_also_called("mixed_fp16", {"mixed"}, "or \"mixed_bf16\"")
      .value_also_called("fp32", {"float32", "float", "32", "full", "single", "O0"});
}

/// Whether this value of train.precision chooses fp16, here or on another machine.
constexpr bool may_be_fp16(std::string_view precision) {
  return precision == "mixed_fp16" || precision == "auto_fp16";
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
    return Fields{
        field(&O::name, "name",
              "auto: fairseq for mixed_fp16, none else. static: init for ever. backoff "
              "(OpenSeq2Seq): halve on overflow, double after window good updates. fairseq: "
              "the same with fairseq's constants. logmax: from the distribution of largest "
              "gradients",
              one_of({"auto", "none", "static", "backoff", "fairseq", "logmax"}))
            .also_called({"type", "loss_scale_type", "loss_scaling", "grad_scaler", "cost_scaling"})
            .value_also_called("backoff", {"dynamic"})
            .value_also_called("static", {"constant", "fixed"})
            .value_also_called("none", {"off", "false"}),
        field(&O::init, "init",
              "first scale; 0 = of the method: static and fairseq 128, backoff 16384, logmax 1",
              at_least(0))
            .also_called({"fp16_init_scale", "init_scale", "initial_scale", "init_loss_scale",
                          "static_loss_scale"})
            .read_with("name", {"static", "backoff", "fairseq", "logmax"}),
        field(&O::min, "min", "smallest scale; 0 = 1e-4, with static none", at_least(0))
            .also_called({"min_loss_scale", "min_scale"})
            .read_with("name", {"static", "backoff", "fairseq", "logmax"}),
        field(
            &O::max, "max",
            "largest scale, at most 2^127; 0 = of the method: backoff and logmax 16384, else 2^127",
            at_least(0))
            .also_called({"max_loss_scale", "max_scale"})
            .read_with("name", {"static", "backoff", "fairseq", "logmax"}),
        field(&O::factor, "factor", "of growth and shrinking (backoff, fairseq)", greater(1))
            .also_called({"growth_factor", "scale_factor"})
            .read_with("name", {"backoff", "fairseq"}),
        field(&O::window, "window",
              "good updates until the scale grows; 0 = of the method: backoff 2000, fairseq 2^14 / "
              "train.update_freq",
              at_least(0), {.unit = "updates"})
            .also_called(
                {"fp16_scale_window", "growth_interval", "loss_scale_window", "scale_window"})
            .read_with("name", {"backoff", "fairseq"}),
    };
  }
};

/// Between what a scale may move, its first one included.
struct LossScaleBounds {
  double least, most;
};

constexpr LossScaleBounds loss_scale_bounds(const LossScaleOptions& options,
                                            const LossScaleMethod& method) {
  return {std::max(options.min > 0 ? options.min : method.least, kLeastLossScale),
          std::min(options.max > 0 ? options.max : method.most, kLargestLossScale)};
}

}  // namespace stretto::optim
