#pragma once

#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::losses {

/// `[loss]`
struct CrossEntropyOptions {
  std::string name = "cross_entropy";
  double label_smoothing = 0.1;

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
