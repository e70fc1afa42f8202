#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "models/batch_norm_keys.h"
#include "nn/init_options.h"

namespace stretto::models {

/// `[model]` of OpenSeq2Seq's network for CIFAR (example_configs/image2label/cifar-nv.py; see
/// models/images/cifar_net.h).
struct CifarNetOptions {
  static constexpr const char* kName = "cifar_net";

  int64_t image_size = 32;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-4;
  std::vector<std::string> init;

  static auto fields() {
    using namespace config;
    using O = CifarNetOptions;
    return Fields{field(&O::image_size, "image_size",
                        "height and width of the pictures, which the last layer is as wide as; "
                        "OpenSeq2Seq crops to 28",
                        between(4, 1024), {.unit = "pixels"})
                      .also_called({"img_size", "input_size", "crop_size"})}
        .with(batch_norm_fields<O>())
        .with(Fields{nn::init_field(&O::init)});
  }
};

}  // namespace stretto::models
