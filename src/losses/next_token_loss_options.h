#pragma once

#include "config/field.h"
#include "losses/cross_entropy_options.h"

namespace stretto::losses {

/// `[loss]` of tasks that predict each token of a text: cross entropy.
struct NextTokenLossOptions {
  double label_smoothing = 0;

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
    };
  }
};

}  // namespace stretto::losses
