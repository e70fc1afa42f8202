#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audio/features.h"
#include "config/field.h"

namespace stretto::audio {

/// A contradiction of options: the keys that it was found by, the first one above all.
struct KeyConflict {
  std::vector<std::string> keys;
  std::string what, hint;
};

/// `[features]`: how samples become the rows that a model sees. The conventions of a dialect are in
/// audio/features.h.
struct FeatureKeys {
  std::string kind = "log_mel";
  std::string dialect = "librosa";
  int64_t rate = 16000;
  double window_seconds = 0.025;
  double hop_seconds = 0.01;
  int64_t fft_size = 0;
  std::string window = "dialect";
  std::string edges = "cover";
  std::string padding = "dialect";
  bool normalise_peak = false;
  double dither = 0;
  double preemphasis = 0.97;
  double power = 2;
  int64_t num_mels = 80;
  double low_hz = 0;
  double high_hz = 0;
  std::string mel_scale = "dialect";
  std::string mel_norm = "dialect";
  std::string compression = "log";
  double floor = 0;
  double decibel_range = 80;
  int64_t num_bins = 0;
  int64_t num_coefficients = 13;
  double lifter = 0;
  bool use_energy = false;
  std::string normalise = "per_feature";
  std::vector<double> mean;
  std::vector<double> std;

  static auto frame_fields() {
    using namespace config;
    using O = FeatureKeys;
    return Fields{
        field(&O::kind, "kind",
              "log_mel: logarithms of mel filter banks. mfcc: cepstral coefficients of them. "
              "spectrogram: the bins of the spectrum themselves",
              one_of({"log_mel", "mfcc", "spectrogram"}), {.hidden_in_shapes = true})
            .also_called({"input_type", "feature_type", "features_type"})
            .value_also_called("log_mel", {"logfbank", "fbank", "mel", "filter_bank"})
            .value_also_called("spectrogram", {"spectrum", "magnitude", "linear"}),
        field(&O::dialect, "dialect",
              "the package whose conventions of frames, windows, padding and filters apply; kaldi "
              "also scales samples to 16 bits, and takes the mean of each frame off",
              one_of({"librosa", "kaldi"}), {.hidden_in_shapes = true})
            .also_called({"backend"})
            .value_also_called("librosa", {"nemo", "torchaudio"}),
        field(&O::rate, "rate", "sounds of another rate are resampled to this one",
              between(1000, 768'000), {.unit = "Hz", .hidden_in_shapes = true})
            .also_called({"sample_rate", "sampling_rate", "sample_freq", "samp_freq", "sr"}),
        field(&O::window_seconds, "window_seconds",
              "length of a frame; a part of a sample is dropped",
              {.min = 0, .max = 10, .min_open = true, .choices = {}},
              {.unit = "seconds", .hidden_in_shapes = true})
            .also_called({"window_size", "frame_length"})
            .also_called({"win_length"}, "win_length / rate"),
        field(
            &O::hop_seconds, "hop_seconds",
            "from the beginning of a frame to that of the next one; a part of a sample is dropped",
            {.min = 0, .max = 10, .min_open = true, .choices = {}},
            {.unit = "seconds", .hidden_in_shapes = true})
            .also_called({"window_stride", "frame_shift"})
            .also_called({"hop_length"}, "hop_length / rate"),
        field(&O::fft_size, "fft_size",
              "points of the Fourier transform; 0 = the next power of two from the window on",
              between(0, 65536), {.unit = "samples", .hidden_in_shapes = true})
            .also_called({"n_fft", "nfft", "num_fft"}),
        field(&O::window, "window", "dialect: hann of librosa, povey of kaldi",
              one_of({"dialect", "hann", "hamming", "blackman", "povey", "rectangular"}),
              {.hidden_in_shapes = true})
            .also_called({"window_type", "window_fn"})
            .value_also_called("hann", {"hanning"})
            .value_also_called("rectangular", {"none", "ones"}),
        field(&O::edges, "edges",
              "cover: frames reach beyond both ends of the sound, which is padded. snip: all "
              "frames lie within it",
              one_of({"cover", "snip"}), {.hidden_in_shapes = true})
            .also_called({"snip_edges"}, "edges = \"snip\" is snip_edges = true")
            .also_called({"center"}, "edges = \"cover\" is center = true"),
        field(&O::padding, "padding",
              "what stands beyond the ends. reflect: the mirrored sound without its last sample "
              "(torch.stft). symmetric: with it. dialect: zeros of librosa, symmetric of kaldi",
              one_of({"dialect", "zeros", "reflect", "symmetric"}), {.hidden_in_shapes = true})
            .also_called({"pad_mode"})
            .value_also_called("zeros", {"constant", "zero"})
            .read_with("edges", {"cover"}),
        field(&O::normalise_peak, "normalise_peak",
              "divide each sound by its largest magnitude, as OpenSeq2Seq does", any(),
              {.hidden_in_shapes = true})
            .also_called({"gain_normalise", "normalize_signal"}),
        field(&O::dither, "dither",
              "standard deviation of the Gaussian noise that training adds, in the scale of the "
              "dialect: 1e-5 is usual with librosa, 1 with kaldi",
              at_least(0)),
        field(&O::preemphasis, "preemphasis", "a of x[t] - a x[t - 1]; 0 = none", between(0, 1),
              {.hidden_in_shapes = true})
            .also_called({"preemph", "preemph_coeff", "preemphasis_coefficient"}),
    };
  }

  static auto spectrum_fields() {
    using namespace config;
    using O = FeatureKeys;
    return Fields{
        field(&O::power, "power", "exponent of magnitudes: 2 = power spectrum, 1 = magnitudes",
              between(0.1, 10), {.hidden_in_shapes = true})
            .also_called({"mag_power"}),
        field(&O::num_mels, "num_mels", "mel filters", between(1, 4096), {.hidden_in_shapes = true})
            .also_called({"n_mels", "num_mel_bins", "nfilt", "num_audio_features", "num_features",
                          "bands", "num_filters"})
            .read_with("kind", {"log_mel", "mfcc"}),
        field(&O::low_hz, "low_hz", "where the first filter begins; 20 is Kaldi's default",
              at_least(0), {.unit = "Hz", .hidden_in_shapes = true})
            .also_called({"fmin", "low_freq", "lowfreq", "f_min"})
            .read_with("kind", {"log_mel", "mfcc"}),
        field(&O::high_hz, "high_hz",
              "where the last filter ends; 0 = half the rate, a negative number is added to that",
              any(), {.unit = "Hz", .hidden_in_shapes = true})
            .also_called({"fmax", "high_freq", "highfreq", "f_max"})
            .read_with("kind", {"log_mel", "mfcc"}),
        field(&O::mel_scale, "mel_scale", "dialect: slaney of librosa, htk of kaldi",
              one_of({"dialect", "slaney", "htk"}), {.hidden_in_shapes = true})
            .also_called({"mel_type", "htk"})
            .read_with("kind", {"log_mel", "mfcc"}),
        field(&O::mel_norm, "mel_norm",
              "area: each triangle has the area 1. peak: the height 1. dialect: area of librosa, "
              "peak of kaldi",
              one_of({"dialect", "area", "peak"}), {.hidden_in_shapes = true})
            .value_also_called("area", {"slaney"})
            .value_also_called("peak", {"none"})
            .read_with("kind", {"log_mel", "mfcc"}),
        field(&O::compression, "compression",
              "log: natural logarithm of numbers that are at least `floor`. log_sum: of the sum "
              "with `floor`. decibel: 10 log10, within a range below the largest. none",
              one_of({"log", "log_sum", "decibel", "none"}), {.hidden_in_shapes = true})
            .also_called({"log_zero_guard_type"})
            .value_also_called("log", {"clamp"})
            .value_also_called("log_sum", {"add"}),
        field(&O::floor, "floor",
              "of compression; 0 = 1e-10 of librosa, 1.19e-7 of kaldi. Tacotron 2: 1e-5, "
              "OpenSeq2Seq: 1e-20",
              at_least(0), {.hidden_in_shapes = true})
            .also_called({"log_zero_guard_value", "energy_floor", "amin", "data_min"}),
        field(&O::decibel_range, "decibel_range", "below the largest number of the sound",
              greater(0), {.unit = "dB", .hidden_in_shapes = true})
            .also_called({"top_db"})
            .read_with("compression", {"decibel"}),
        field(&O::num_bins, "num_bins", "how many bins are kept, from 0 Hz on; 0 = all",
              between(0, 32769))
            .read_with("kind", {"spectrogram"}),
        field(&O::num_coefficients, "num_coefficients", "cepstral coefficients", between(1, 4096))
            .also_called({"n_mfcc", "num_ceps", "numcep"})
            .read_with("kind", {"mfcc"}),
        field(&O::lifter, "lifter", "L of the cepstral lifter; 0 = none, 22 is Kaldi's",
              at_least(0), {.hidden_in_shapes = true})
            .also_called({"cepstral_lifter", "ceplifter"})
            .read_with("kind", {"mfcc"}),
        field(&O::use_energy, "use_energy",
              "the first coefficient is the log energy of the frame instead; kaldi alone", any(),
              {.hidden_in_shapes = true})
            .also_called({"append_energy"})
            .read_with("kind", {"mfcc"}),
    };
  }

  static auto normalise_fields() {
    using namespace config;
    using O = FeatureKeys;
    return Fields{
        field(&O::normalise, "normalise",
              "per_feature: mean 0 and deviation 1 of each feature over the frames of the sound. "
              "global: of all its numbers together. fixed: by `mean` and `std`, which a stream "
              "needs. none",
              one_of({"none", "per_feature", "global", "fixed"}), {.hidden_in_shapes = true})
            .also_called(
                {"normalize", "norm_per_feature", "normalisation", "normalization", "cmvn"})
            .value_also_called("global", {"all_features"}),
        field(&O::mean, "mean", "subtracted from all features, or one number for each feature",
              any(), {.hidden_in_shapes = true})
            .also_called({"fixed_mean"})
            .read_with("normalise", {"fixed"}),
        field(&O::std, "std", "all features are divided by it, or one number for each feature",
              greater(0), {.hidden_in_shapes = true})
            .also_called({"fixed_std"})
            .read_with("normalise", {"fixed"}),
    };
  }

  static auto fields() { return frame_fields().with(spectrum_fields()).with(normalise_fields()); }

  /// The options of the extractor. Throws std::invalid_argument where feature_conflicts() finds
  /// something. Its dither is that of training.
  FeatureOptions options() const;
  /// Numbers of a frame.
  int64_t width() const;
  int64_t hop_samples() const;
  int64_t window_samples() const;
};

/// What contradicts itself among sound values: an fft_size below the window, filters beyond half
/// the rate, more bins than there are. Empty for sound keys.
/// @param section  where the keys stand: "features"
std::vector<KeyConflict> feature_conflicts(const FeatureKeys& keys, const std::string& section);

}  // namespace stretto::audio
