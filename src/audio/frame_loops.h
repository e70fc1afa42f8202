#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "audio/fft_tables.h"
#include "audio/sparse_filters.h"

/// Loops over several frames at a time, each in a lane of the processor's vectors. What a frame
/// becomes does not depend on its lane, nor on the other frames.
///
/// Layout: a row has a number of each of the L = `lanes` frames; row r begins at r * L. Complex
/// numbers have two rows. Buffers are those of LaneBuffer, whose rows are aligned.
namespace stretto::audio {

/// Memory that vectors of any width may be loaded from.
class LaneBuffer {
 public:
  LaneBuffer() = default;
  /// @param size  numbers, all 0
  explicit LaneBuffer(int64_t size) : lines_(static_cast<size_t>(size + 15) / 16) {}

  float* data() { return lines_.empty() ? nullptr : lines_.front().values; }
  const float* data() const { return lines_.empty() ? nullptr : lines_.front().values; }

 private:
  struct alignas(64) Line {
    float values[16] = {};
  };
  std::vector<Line> lines_;
};

/// Kaldi's work on a frame of raw samples.
struct FrameFinish {
  bool removes_mean = false;
  float preemphasis = 0;
  const float* window = nullptr;  ///< [count]
  int64_t count = 0;              ///< samples of a frame
};

struct FrameLoops {
  const char* name;
  int64_t lanes;  ///< L

  /// Row i becomes sample i of all frames. @param starts  [L]
  void (*gather)(const float* const* starts, int64_t count, float* rows);
  /// rows[i] *= factors[i]
  void (*scale)(float* rows, const float* factors, int64_t count);
  /// Mean, energy, pre-emphasis and window. @param energies  [L]: sums of squares behind the mean
  void (*finish)(float* rows, const FrameFinish& work, float* energies);
  /// The complex transform of M numbers in place; number k ends at places[k].
  void (*transform)(float* rows, const FftTables& tables);
  /// From transformed rows to the power spectrum. @param bins  [N / 2 + 1, L]
  void (*powers)(const float* rows, const FftTables& tables, float* bins);
  /// The same to the complex spectrum. @param spectrum  [N / 2 + 1, 2, L]
  void (*untangle)(const float* rows, const FftTables& tables, float* spectrum);
  /// Back: from a spectrum to rows that transform() turns into samples with their order and their
  /// pairs exchanged, times M.
  void (*tangle)(const float* spectrum, const FftTables& tables, float* rows);
  /// The samples from there. @param samples  [N, L]
  void (*arrange)(const float* rows, const FftTables& tables, float* samples);
  /// @param mels  [filters.size(), L]
  void (*filter)(const float* bins, const SparseFilters& filters, float* mels);
  /// x = factor * ln max(x, floor), or with `adds` factor * ln(x + floor); within 2e-7 of it, or of
  /// its size. Numbers below 1.2e-38 count as that one.
  void (*logarithms)(float* rows, int64_t count, float floor, bool adds, float factor);
  /// x = sqrt(x), x not negative.
  void (*roots)(float* rows, int64_t count);
  /// Adds white Gaussian noise to samples, any number of them: number i is a function of the key
  /// and of i (Philox, and Box and Muller 1958), up to 5.8 deviations.
  void (*noise)(uint64_t key, int64_t count, float deviation, float* samples);
  /// A step of Griffin and Lim: spectrum = magnitudes * direction of (rebuilt - share * before).
  /// @param magnitudes  [count, L]; the others [count, 2, L]
  void (*turn)(const float* rebuilt, const float* before, float share, const float* magnitudes,
               int64_t count, float* spectrum);
};

/// The fastest that this processor has.
const FrameLoops& frame_loops();
/// All that it has, the plain ones first.
std::vector<const FrameLoops*> all_frame_loops();

}  // namespace stretto::audio
