#pragma once

#include <cstdint>

#include "config/field.h"

namespace stretto::models {

/// `[model.encoder]` with the name `bag`: each row is the mean of the tokens around it, whatever
/// their order.
struct BagEncoderOptions {
  static constexpr const char* kName = "bag";

  int64_t window = 5;
  double dropout = 0.1;

  static auto fields() {
    using namespace config;
    using O = BagEncoderOptions;
    return Fields{
        field(&O::window, "window", "how many tokens a row is the mean of, its own in the middle",
              between(1, 1001), {.unit = "tokens", .hidden_in_shapes = true})
            .also_called({"window_size", "context_size"}),
        field(&O::dropout, "dropout", "on embeddings", fraction()).also_called({"dropout_rate"}),
    };
  }
};

}  // namespace stretto::models
