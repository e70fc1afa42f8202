#pragma once

#include <cstdint>

#include "config/field.h"

namespace stretto::audio {

/// Keys of a section that turns spectrograms into sounds. A section inherits them.
struct GriffinLimOptions {
  int64_t griffin_lim_iterations = 50;
  double griffin_lim_momentum = 0.99;
  double magnitude_power = 1;
  int64_t mel_iterations = 100;

  /// The key that counts where the spectrograms are mel bands.
  static auto mel_iterations_field() {
    using namespace config;
    return field(&GriffinLimOptions::mel_iterations, "mel_iterations",
                 "updates of the spectrum that explains mel filter banks best", between(0, 10000),
                 {.change = Change::kScoring});
  }

  /// The other keys.
  static auto phase_fields() {
    using namespace config;
    using O = GriffinLimOptions;
    const Meta scoring{.change = Change::kScoring};
    return Fields{
        field(&O::griffin_lim_iterations, "griffin_lim_iterations",
              "of Griffin-Lim, which finds phases for magnitudes", between(1, 10000), scoring)
            .also_called({"n_iter", "griffin_lim_iters", "griffin_iters"}),
        field(&O::griffin_lim_momentum, "griffin_lim_momentum",
              "of the fast algorithm (Perraudin et al. 2013); 0 = that of Griffin and Lim",
              fraction(), scoring),
        field(&O::magnitude_power, "magnitude_power",
              "magnitudes are raised to it first: above 1 there is less noise; OpenSeq2Seq has 1.5",
              between(0.5, 4), scoring)
            .also_called({"griffin_lim_power", "sharpening_factor"}),
    };
  }
};

}  // namespace stretto::audio
