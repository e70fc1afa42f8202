#pragma once

#include <cstdint>

#include "config/field.h"
#include "losses/cross_entropy_options.h"

namespace stretto::losses {

/// `[loss]` of tasks that predict each token of a text: cross entropy.
struct NextTokenLossOptions {
  double label_smoothing = 0;
  int64_t samples = 0;

  /// As losses/registry.h takes it.
  CrossEntropyOptions cross_entropy() const {
    CrossEntropyOptions options;
    options.label_smoothing = label_smoothing;
    return options;
  }

  static auto fields() {
    using namespace config;
    using O = NextTokenLossOptions;
    return Fields{
        field(&O::label_smoothing, "label_smoothing",
              "probability spread evenly over all other entries of the vocabulary", fraction())
            .also_called({"smoothing", "label_smoothing_factor", "label_smooth", "epsilon_ls"}),
        field(&O::samples, "samples",
              "entries of the vocabulary that training estimates the normaliser from, drawn anew "
              "in each update, frequent ones more often (sampled softmax, for large vocabularies "
              "in the order of frequency); 0 = all. Validation and eval always take all",
              at_least(0))
            .also_called({"num_sampled", "sampled_softmax", "n_samples", "nce_samples"}),
    };
  }
};

}  // namespace stretto::losses
