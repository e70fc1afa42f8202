#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audio/feature_keys.h"
#include "config/field.h"

namespace stretto::audio {

/// `[augment]`: random changes of sounds and features in training, each a function of (seed, epoch,
/// sample). In this order: speed, stretch, reverberation, noises of files, white noise, masks.
struct AugmentKeys {
  std::vector<double> speeds;
  double speed_range = 0;
  double stretch_range = 0;
  std::vector<std::string> impulse_files;
  double impulse_probability = 0.5;
  std::vector<std::string> noise_files;
  double noise_file_probability = 0.5;
  double min_snr = 10, max_snr = 30;
  double noise_probability = 0;
  double min_noise_level = -90, max_noise_level = -60;
  int64_t feature_masks = 0, feature_mask_width = 27;
  int64_t time_masks = 0, time_mask_frames = 100;
  double time_mask_share = 1;

  static auto sound_fields() {
    using namespace config;
    using O = AugmentKeys;
    const Meta decibel{.unit = "dB"};
    return Fields{
        field(&O::speeds, "speeds",
              "each sound is played at one of these speeds, pitch included; 0.9, 1, 1.1 is usual",
              between(0.25, 4))
            .also_called({"speed_factors", "speed_perturb", "speed_perturbation_ratio"}),
        field(&O::speed_range, "speed_range",
              "each sound is played at a speed between 1 - x and 1 + x, pitch included",
              between(0, 0.75))
            .also_called({"time_stretch_ratio"}),
        field(&O::stretch_range, "stretch_range",
              "each sound is stretched to a tempo between 1 - x and 1 + x, without its pitch",
              between(0, 0.75))
            .also_called({"time_stretch", "tempo"}),
        field(&O::impulse_files, "impulse_files",
              "impulse responses of rooms; sounds are convolved with one of them", any(),
              {.is_path = true, .takes_folders = true})
            .also_called({"rir_files", "rirs", "impulse_responses", "reverb"}),
        field(&O::impulse_probability, "impulse_probability", "chance of a sound to get one",
              between(0, 1))
            .also_called({"rir_prob", "reverb_probability"}),
        field(&O::noise_files, "noise_files", "sounds that are added to those of training", any(),
              {.is_path = true, .takes_folders = true})
            .also_called({"noises", "noise_manifest", "musan"}),
        field(&O::noise_file_probability, "noise_file_probability",
              "chance of a sound to get one of noise_files", between(0, 1)),
        field(&O::min_snr, "min_snr", "smallest ratio of a sound to a noise of noise_files",
              between(-60, 120), decibel)
            .also_called({"min_snr_db", "snr"}),
        field(&O::max_snr, "max_snr", "largest ratio", between(-60, 120), decibel)
            .also_called({"max_snr_db"}),
        field(&O::noise_probability, "noise_probability", "chance of a sound to get white noise",
              between(0, 1))
            .also_called({"white_noise"}),
        field(&O::min_noise_level, "min_noise_level",
              "smallest level of white noise below full scale", between(-160, 0), decibel)
            .also_called({"noise_level_min", "min_level"})
            .read_unless_zero("noise_probability"),
        field(&O::max_noise_level, "max_noise_level", "largest level of white noise",
              between(-160, 0), decibel)
            .also_called({"noise_level_max", "max_level"})
            .read_unless_zero("noise_probability"),
    };
  }

  static auto mask_fields() {
    using namespace config;
    using O = AugmentKeys;
    return Fields{
        field(&O::feature_masks, "feature_masks", "SpecAugment: masks of features of a sound",
              between(0, 1000))
            .also_called({"freq_masks", "n_freq_mask", "num_freq_masks"}),
        field(&O::feature_mask_width, "feature_mask_width", "most features of a mask",
              between(1, 4096))
            .also_called({"freq_width", "width_freq_mask", "freq_mask_param"})
            .read_unless_zero("feature_masks"),
        field(&O::time_masks, "time_masks", "SpecAugment: masks of frames of a sound",
              between(0, 1000))
            .also_called({"n_time_mask", "num_time_masks"}),
        field(&O::time_mask_frames, "time_mask_frames", "most frames of a mask", between(1, 100000),
              {.unit = "frames"})
            .also_called({"time_width", "width_time_mask", "time_mask_param"})
            .read_unless_zero("time_masks"),
        field(&O::time_mask_share, "time_mask_share",
              "a mask of frames covers at most this share of the sound", between(0, 1))
            .also_called({"time_mask_max_ratio"})
            .read_unless_zero("time_masks"),
    };
  }

  static auto fields() { return sound_fields().with(mask_fields()); }

  /// Whether anything is changed at all.
  bool is_empty() const;
  /// Largest speed or tempo: a sound may become shorter by this factor.
  double most_speed() const;
};

/// A range whose end is below its beginning; speeds beside speed_range. Empty for sound keys.
/// @param section  where the keys stand: "augment"
std::vector<KeyConflict> augment_conflicts(const AugmentKeys& keys, const std::string& section);

}  // namespace stretto::audio
