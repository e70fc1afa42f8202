#pragma once

#include <cstdint>
#include <span>

/// All alignments of one sequence at once, on raw numbers. No libtorch.
namespace stretto::kernels::ctc {

/// T frames and U labels; C classes.
template <class T>
struct Sequence {
  const T* scores;  ///< [T, C]
  const T* shares;  ///< [T, C]: softmax(scores), in which what is far below 1 may be 0
  int64_t num_frames;
  int64_t num_classes;
  std::span<const int64_t> labels;  ///< [U]
  int64_t blank;

  const T* scores_at(int64_t t) const { return scores + t * num_classes; }
  const T* shares_at(int64_t t) const { return shares + t * num_classes; }
};

/// The frames that these labels need: one each, and a blank one between two that are alike.
int64_t frames_needed(std::span<const int64_t> labels);

/// -log p(labels | frames), natural log. The sequence has the frames that its labels need.
///
/// @param slopes  [T, C]: gets the derivative by each score, softmax(scores) minus the share of
///                alignments that have this class at this frame; null where none is wanted
double loss_of(const Sequence<float>& sequence, float* slopes);
double loss_of(const Sequence<double>& sequence, double* slopes);

}  // namespace stretto::kernels::ctc
