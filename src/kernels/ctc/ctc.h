#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/kernels.h"

/// Connectionist temporal classification (Graves et al. 2006, ICML, section 4) on packed rows.
/// Types, devices, errors and threads are as in kernels.h; fp32 and fp64 on a CPU have a kernel of
/// their own, all else goes by way of padded rows and libtorch's operator.
///
/// Shape letters: N frames and L labels of all sequences, B sequences, C classes.
namespace stretto::kernels {

/// Which labels belong to which frames.
struct CtcTargets {
  Offsets frames;         ///< of B sequences of the N rows; max_length counts on a GPU
  at::Tensor labels;      ///< int64 [L], classes but the blank one
  Offsets label_offsets;  ///< of the same B sequences
  int64_t blank = 0;      ///< the class of a frame without a label
};

struct CtcLosses {
  /// [B], differentiable: -log p(labels | frames), natural log; 0, without a gradient, where the
  /// pair is impossible.
  at::Tensor each;
  /// bool [B]: whether there are frames enough, which are as many as labels, and one more between
  /// two that are alike.
  at::Tensor possible;
};

/// An alignment gives each frame a class; its labels are what is left once repetitions of a class
/// are one, and blanks are taken out. With p(class | frame) = softmax(scores) over the classes,
///
///     p(labels | frames) = sum over alignments of these labels of prod over frames p(class |
///     frame)
///
/// scores [N, C], any numbers, such as what a linear map gives -> as above, in fp32 or fp64. Sums
/// over alignments are taken in fp64, as logarithms. A sequence sees itself alone: its loss and
/// gradient have the same bits in every batch. No labels are a target too: all frames are blank.
///
/// Scores that are not finite give losses that are not. Throws c10::Error for offsets that do not
/// fit, and on a CPU for labels that are no class, or the blank one.
CtcLosses ctc_loss(const at::Tensor& scores, const CtcTargets& targets);

}  // namespace stretto::kernels
