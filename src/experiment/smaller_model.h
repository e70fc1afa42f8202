#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compress/stack_shape.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// A key of a size, and its value.
struct SizeSetting {
  std::string key;
  int64_t value = 0;
  bool operator==(const SizeSetting&) const = default;
};

/// The settings with which an experiment describes the model that is left when parts of a stack of
/// Transformer layers were taken out (compress/stack_shape.h). The keys are those of the stack's
/// section, `model.encoder.ffn_dim`, or of `[model]` where a model is one stack.
///
/// Throws Error(kUsage) that says why where the configuration cannot say it: a model without these
/// keys; heads where none of them has a width of its own (`head_dim`), or where positions depend on
/// their number; layers where these differ by their number (windows of attention).
std::vector<SizeSetting> smaller_model_settings(const Experiment& options,
                                                const compress::StackShape& now,
                                                const compress::StackShape& left);

/// The experiment with these settings. The keys must be there.
Experiment with_sizes(Experiment options, const std::vector<SizeSetting>& settings);

}  // namespace stretto::experiment
