#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "kernels/ctc/ctc.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/packed_rows.h"

/// Shape letters: N frames of all sequences, B sequences, D width of rows, L labels.
namespace stretto::models {

/// A label of an alignment, and the frames of its sequence that have it.
struct AlignedLabel {
  int64_t label = 0;
  int64_t first_frame = 0;
  int64_t num_frames = 0;

  bool operator==(const AlignedLabel&) const = default;
};

/// An alignment of one sequence.
struct Alignment {
  std::vector<AlignedLabel> labels;
  double log_prob = 0;  ///< of the alignment, natural log; NaN where a score is
};

/// Labels of a sequence whose places are not known, such as the characters of an utterance
/// (Graves et al. 2006; kernels/ctc/ctc.h):
///
///     scores = output rows                          [N, L + 1]
///
/// Classes 0 to L - 1 are the labels, as a tokenizer numbers them, and L is the frame without one.
class CtcHead : public torch::nn::Module {
 public:
  /// @param init  already at the head's own name, such as "head"
  CtcHead(const nn::Init& init, int64_t width, int64_t num_labels);

  /// rows [N, D] -> fp32 (or double) [N, L + 1]
  at::Tensor scores(const at::Tensor& rows) const;
  /// @param frames  the rows that scores are of
  /// @param labels  ids of the same sequences (models/packed.h), on the device of the scores
  kernels::CtcLosses losses(const at::Tensor& scores, const kernels::Offsets& frames,
                            const nn::PackedRows& labels) const;
  /// The most probable alignment of each sequence: at each frame the most probable class, the first
  /// of several. Needs no labels.
  std::vector<Alignment> best_alignments(const at::Tensor& scores,
                                         const kernels::Offsets& frames) const;

  int64_t num_labels() const { return num_labels_; }  ///< L
  int64_t blank() const { return num_labels_; }
  double operations() const;  ///< multiplications and additions for one row

 private:
  int64_t num_labels_;
  nn::Linear output_{nullptr};
};

}  // namespace stretto::models
