#pragma once

#include <string>
#include <tuple>

#include "base/text.h"
#include "config/field.h"

namespace stretto::losses {

/// `[loss]`
struct CrossEntropyOptions {
  std::string name = "cross_entropy";
  double label_smoothing = 0.1;

  /// What stands in the loss beside the negative log-likelihood: "label smoothing 0.1"; empty =
  /// nothing, the two are equal.
  std::string smoothing_words() const {
    return label_smoothing > 0 ? "label smoothing " + shortest(label_smoothing) : "";
  }

  static auto fields() {
    using namespace config;
    using O = CrossEntropyOptions;
    return std::tuple{
        field(&O::name, "name", "which loss", one_of({"cross_entropy"}))
            .also_called({"type", "criterion", "loss_type", "cost_type", "loss"})
            .value_also_called("cross_entropy", {"label_smoothed_cross_entropy"},
                               "with loss.label_smoothing")
            .value_also_called("cross_entropy",
                               {"ce", "ce_mean", "ce_sum", "nll", "nll_loss", "xent"}),
        field(&O::label_smoothing, "label_smoothing",
              "probability spread evenly over all other entries of the vocabulary", fraction())
            .also_called({"smoothing", "label_smoothing_factor", "label_smooth", "epsilon_ls"}),
    };
  }
};

}  // namespace stretto::losses
