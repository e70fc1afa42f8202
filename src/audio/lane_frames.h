#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "audio/features.h"
#include "audio/fft_tables.h"
#include "audio/frame_loops.h"
#include "audio/real_fft.h"

namespace stretto::audio {

/// The part of a sound that is known, of which frames are made.
struct KnownSound {
  std::span<const float> samples;  ///< those from `first` on
  int64_t first = 0;
  int64_t size = 0;  ///< samples of the whole sound; where it is still open: those so far

  static KnownSound whole(std::span<const float> samples) {
    return {.samples = samples, .size = static_cast<int64_t>(samples.size())};
  }
};

/// The windowed frames of a sound and their Fourier transforms, L = lanes() frames at a time
/// (audio/frame_loops.h). Safe to use from several threads, each with a Workspace.
class LaneFrames {
 public:
  /// Memory of a thread.
  struct Workspace {
    LaneBuffer rows;                        ///< [N, L]
    LaneBuffer spectrum;                    ///< [N / 2 + 1, 2, L]
    std::vector<std::vector<float>> edges;  ///< [L][W]: frames that reach beyond the sound
    std::vector<const float*> starts;       ///< [L]
    std::unique_ptr<RealFft> fft;           ///< of sizes that have no tables
    std::vector<float> one_frame;           ///< [N], for it
  };

  /// @param loops  frame_loops(), or others in a test
  explicit LaneFrames(const FeatureOptions& options, const FrameLoops& loops = frame_loops());

  int64_t lanes() const { return loops_->lanes; }
  int64_t num_bins() const { return fft_size_ / 2 + 1; }
  const FrameLoops& loops() const { return *loops_; }
  /// Zero-based place of the first sample under the window of a frame; negative before the sound.
  int64_t begin_of(int64_t frame) const { return frame * hop_ + shift_; }
  int64_t frame_samples() const { return static_cast<int64_t>(window_.size()); }
  std::span<const float> window() const { return window_; }
  /// Where the window stands among the N samples of the transform.
  int64_t margin() const { return margin_; }

  Workspace workspace() const;
  /// Windowed frames first … first + count - 1, count at most L; the other lanes repeat the last.
  /// @param energies  [L], of Kaldi's dialect; else untouched
  void take(const KnownSound& sound, int64_t first, int64_t count, Workspace& work,
            float* energies) const;
  /// Transforms what take() left. @param bins  [num_bins(), L]: power spectra
  void powers(Workspace& work, float* bins) const;
  /// The same. @param spectrum  [num_bins(), 2, L]
  void spectra(Workspace& work, float* spectrum) const;
  /// Backward: leaves the samples of N-sample frames in work.rows, [N, L], without a window.
  void samples(const float* spectrum, Workspace& work) const;

 private:
  const float* start_of(const KnownSound& sound, int64_t frame, std::vector<float>& edge) const;
  void plain_spectra(Workspace& work, float* spectrum) const;
  void plain_samples(const float* spectrum, Workspace& work) const;

  const FrameLoops* loops_;
  int64_t fft_size_, hop_, margin_, shift_;
  Padding padding_;
  bool is_kaldi_;
  std::vector<float> window_;  ///< [W]
  FrameFinish finish_;
  std::optional<FftTables> tables_;
};

}  // namespace stretto::audio
