#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/choice.h"
#include "models/synthesis/centaur_options.h"
#include "models/synthesis/tacotron2_options.h"

namespace stretto::models {

/// `[model]` of a model that writes frames of sound from text, as `model.name` says. A further kind
/// is one more alternative here, and an overload in models/synthesis/synthesis_model.cpp and in
/// models/synthesis/synthesis_conflicts.cpp.
using SynthesisModelOptions = config::Choice<Tacotron2Options, CentaurOptions>;

/// The declaration of such a `[model]`, with what its names are called elsewhere.
template <class Declared>
Declared with_synthesis_names_elsewhere(Declared model) {
  return std::move(model).value_also_called("tacotron2", {"tacotron", "tacotron_2", "gst_tacotron"},
                                            "model.style.num_tokens gives it style tokens");
}

/// What all kinds have.
inline const SynthesisKeys& keys_of(const SynthesisModelOptions& options) {
  return options.visit([](const auto& kind) -> const SynthesisKeys& { return kind; });
}
inline const std::vector<std::string>& init_of(const SynthesisModelOptions& options) {
  return keys_of(options).init;
}
/// Whether the model normalises over the samples of a batch, so that none may be cut.
inline bool has_batch_norm(const SynthesisModelOptions& /*options*/) {
  return true;
}

/// What a frame of the data is: its parts side by side, mel bands first.
struct FrameParts {
  int64_t num_mels = 0;  ///< 0 where the model writes no mel bands
  int64_t num_bins = 0;  ///< of the magnitude, fft_size / 2 + 1; 0 where the model writes none

  int64_t width() const { return num_mels + num_bins; }
  /// Width of what the decoder writes a frame at a time: the mel bands, if there are any.
  int64_t decoder_width() const { return num_mels > 0 ? num_mels : num_bins; }
  /// Whether bins are made of mel bands by a network of their own.
  bool has_both() const { return num_mels > 0 && num_bins > 0; }
};

/// @param num_mels, num_bins  what the features have, or would have if the model wrote them
inline FrameParts frame_parts(const SynthesisModelOptions& options, int64_t num_mels,
                              int64_t num_bins) {
  const std::string& spectrum = keys_of(options).spectrum;
  return {.num_mels = spectrum == "magnitude" ? 0 : num_mels,
          .num_bins = spectrum == "mel" ? 0 : num_bins};
}

/// `[loss]` of such a model (models/synthesis/synthesis_losses.h).
struct SynthesisLossOptions {
  std::string kind = "mse";
  double magnitude_weight = 1;
  double stop_weight = 1;
  double stop_positive_weight = 10;
  double guided_attention = 0;
  double guided_width = 0.2;

  static auto fields() {
    using namespace config;
    using O = SynthesisLossOptions;
    return Fields{
        field(&O::kind, "kind",
              "of frames before and behind the post-net: mean over the numbers of a frame of the "
              "squared difference, of its absolute value, or of both",
              one_of({"mse", "l1", "l1_mse"}))
            .also_called({"l1_norm", "mel_loss", "loss_type"})
            .value_also_called("mse", {"l2", "squared"})
            .value_also_called("l1", {"mae", "absolute"}),
        field(&O::magnitude_weight, "magnitude_weight",
              "factor of the loss of magnitudes that are written beside mel bands", at_least(0))
            .also_called({"mag_loss_weight", "linear_loss_weight"})
            .read_with_key("model.spectrum", {"both"}),
        field(&O::stop_weight, "stop_weight", "factor of the cross entropy of stopping",
              at_least(0))
            .also_called({"gate_loss_weight", "stop_loss_weight"}),
        field(&O::stop_positive_weight, "stop_positive_weight",
              "how many times a sentence's last frame counts in it; the others count once, and a "
              "sentence has one last frame among hundreds",
              greater(0))
            .also_called({"gate_positive_weight", "bce_pos_weight", "stopnet_pos_weight"})
            .read_unless_zero("stop_weight"),
        field(&O::guided_attention, "guided_attention",
              "factor of a loss that holds attention near the diagonal (Tachibana et al. 2017, "
              "arXiv:1710.08969); 1 is usual, 0 = off",
              at_least(0))
            .also_called({"guided_attn_loss_lambda", "use_guided_attn_loss", "ga_alpha",
                          "guided_attention_loss_weight"}),
        field(&O::guided_width, "guided_width",
              "how far from the diagonal it does not reach, as a share of the length (the paper's "
              "g)",
              greater(0))
            .also_called({"guided_attn_loss_sigma", "ga_sigma"})
            .read_unless_zero("guided_attention"),
    };
  }
};

}  // namespace stretto::models
