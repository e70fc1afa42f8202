#pragma once

#include <cstdint>
#include <span>

#include "audio/sparse_filters.h"

namespace stretto::audio {

/// The scale on which the centres of the filters are equally spaced.
enum class MelScale : uint8_t {
  kSlaney,  ///< linear up to 1 kHz, logarithmic above (Slaney 1998, Auditory Toolbox); librosa's
  kHtk,     ///< 2595 log10(1 + f / 700), HTK's and Kaldi's
};

/// The axis on which the sides of a triangle are straight lines.
enum class MelTriangles : uint8_t {
  kHertz,  ///< librosa, torchaudio
  kMel,    ///< Kaldi; the bin at the Nyquist frequency is left out
};

struct MelOptions {
  int64_t num_mels = 80;
  double low_hz = 0;
  double high_hz = 0;  ///< 0: the Nyquist frequency; a negative number is added to it
  MelScale scale = MelScale::kSlaney;
  MelTriangles triangles = MelTriangles::kHertz;
  /// Each triangle has the area 1 over its frequencies (librosa's norm="slaney"); else a peak of 1.
  bool has_unit_area = true;
};

/// Overlapping triangles over the bins of a spectrum: filter m rises from the centre of filter m -
/// 1 and falls to that of m + 1. The centres are equally far apart on the mel scale.
class MelFilters {
 public:
  /// Throws std::invalid_argument for frequencies that do not ascend within [0, rate / 2].
  MelFilters(const MelOptions& options, int64_t rate, int64_t fft_size);

  int64_t size() const { return filters_.size(); }
  const SparseFilters& filters() const { return filters_; }
  /// @param bins  [fft_size / 2 + 1]
  /// @param mels  [size()], overwritten: for each filter the weighted sum of the bins
  void apply(std::span<const float> bins, std::span<float> mels) const;

 private:
  SparseFilters filters_;
};

double hz_to_mel(double hz, MelScale scale);
double mel_to_hz(double mel, MelScale scale);

}  // namespace stretto::audio
