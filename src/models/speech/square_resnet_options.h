#pragma once

#include <cstdint>

#include "config/field.h"
#include "models/images/resnet_options.h"

namespace stretto::models {

/// `[model]` of a residual network that reads an utterance as one picture of frames and features
/// (models/speech/square_resnet.h): for labels of short utterances, such as commands.
struct SquareResNetOptions : ResNetOptions {
  static constexpr const char* kName = "resnet";
  using Inherited = ResNetOptions;

  int64_t num_frames = 0;

  static auto fields() {
    using namespace config;
    using O = SquareResNetOptions;
    return ResNetOptions::fields().with(Fields{
        field(&O::num_frames, "num_frames",
              "height of the picture: a shorter utterance has as many frames of zeros on both "
              "sides, of a longer one the middle is read; 0 = as many as features",
              between(0, 65536), {.unit = "frames"})
            .also_called({"audio_length", "image_size"}),
    });
  }
};

}  // namespace stretto::models
