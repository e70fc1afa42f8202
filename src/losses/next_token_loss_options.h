#pragma once

#include <cstdint>

#include "config/field.h"
#include "losses/cross_entropy_options.h"

namespace stretto::losses {

/// `[loss]` of tasks that predict each token of a text: cross entropy.
struct NextTokenLossOptions {
  double label_smoothing = 0;
  int64_t sampled_tokens = 0;

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
        field(&O::sampled_tokens, "sampled_tokens",
              "for large vocabularies whose frequent tokens have the smallest ids: training "
              "estimates the sum over all tokens from so many, drawn anew in each update. "
              "Validation and eval take all. 0 = training too",
              between(0, 1000000), {.unit = "tokens"})
            .also_called({"num_sampled", "num_samples", "sampled_softmax", "n_samples",
                          "sampled_softmax_samples"}),
    };
  }
};

}  // namespace stretto::losses
