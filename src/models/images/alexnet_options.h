#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "nn/init_options.h"

namespace stretto::models {

/// `[model]` of AlexNet in the form of "One weird trick" (Krizhevsky 2014, arXiv:1404.5997), as
/// torchvision and OpenSeq2Seq have it (models/images/alexnet.h).
struct AlexNetOptions {
  static constexpr const char* kName = "alexnet";

  double dropout = 0.5;
  std::vector<std::string> init;

  static auto fields() {
    using namespace config;
    using O = AlexNetOptions;
    return Fields{
        field(&O::dropout, "dropout", "in front of each of the two hidden linear layers",
              fraction())
            .also_called({"dropout_rate", "drop_rate", "head_dropout"})
            .also_called({"dropout_keep_prob", "keep_prob"}, "1 - the probability of keeping"),
        nn::init_field(&O::init),
    };
  }
};

/// The smallest height and width of a picture that leaves a pixel behind all poolings.
inline constexpr int64_t kAlexNetSmallestImage = 63;

}  // namespace stretto::models
