#pragma once

#include <cstdint>
#include <vector>

#include "nn/output_loss.h"

/// Word-level knowledge distillation: a model learns the distributions of another one (Hinton et
/// al. 2015, arXiv:1503.02531; for translation Kim and Rush 2016, arXiv:1606.07947).
namespace stretto::losses {

/// What stands before the loss of a model: its last rows and its output projection. With it,
/// distributions are computed a block of rows at a time and never stand in memory as a whole.
struct OutputRows {
  at::Tensor rows;          ///< [N, D]
  at::Tensor matrix;        ///< [V, D]
  at::Tensor bias;          ///< [V]; may be undefined
  int64_t num_classes = 0;  ///< C <= V
  double softcap = 0;
};

/// While it lives, output losses on this thread that are recordable() compute nothing, and leave
/// here what they were called with.
class RecordScope {
 public:
  explicit RecordScope(OutputRows& into);
  ~RecordScope();
  RecordScope(const RecordScope&) = delete;
  RecordScope& operator=(const RecordScope&) = delete;

  static OutputRows* current();

 private:
  OutputRows* before_;
};

/// The teachers of the losses that are computed on this thread for as long as it lives.
class TeacherScope {
 public:
  /// @param teachers  of the same tokens, row for row; several are an ensemble, whose distribution
  ///                  is the mean of theirs. Must outlive the scope
  explicit TeacherScope(const std::vector<OutputRows>& teachers);
  ~TeacherScope();
  TeacherScope(const TeacherScope&) = delete;
  TeacherScope& operator=(const TeacherScope&) = delete;

  static const std::vector<OutputRows>* current();

 private:
  const std::vector<OutputRows>* before_;
};

/// `own`, but within a RecordScope.
nn::OutputLoss recordable(nn::OutputLoss own);

struct TeacherWeights {
  double weight = 0.5;     ///< of what is learned from the teacher; the rest is the own loss
  double temperature = 1;  ///< T
};

/// (1 - weight) own + weight T^2 sum_n KL(q_n || p_n), where q_n is the teachers' distribution of
/// row n and p_n the model's, both of logits divided by T. The factor T^2 keeps gradients about as
/// large at any temperature. Without gradients, as in validation, it is `own`.
///
/// Throws c10::Error for a loss with gradients outside a TeacherScope, and where teachers have
/// other rows or classes.
nn::OutputLoss with_teacher(nn::OutputLoss own, TeacherWeights weights);

/// T^2 sum_n KL(q_n || p_n), fp32 or fp64 scalar, differentiable in x [N, D], weight [V, D] and
/// bias [V], which may be undefined.
at::Tensor divergence_from(const std::vector<OutputRows>& teachers, double temperature,
                           const at::Tensor& x, const at::Tensor& weight, int64_t num_classes,
                           const at::Tensor& bias, double softcap);

}  // namespace stretto::losses
