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
        field(&O::name, "name", "which loss", one_of({"cross_entropy"})),
        field(&O::label_smoothing, "label_smoothing",
              "probability spread evenly over all other entries of the vocabulary", fraction()),
    };
  }
};

}  // namespace stretto::losses
