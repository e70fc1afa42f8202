#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

#include "kernels/kernels.h"
#include "losses/teacher.h"
#include "models/bert_options.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/output_loss.h"

namespace stretto::models {

/// What a MaskedTokenHead is built from beside `[model]`.
struct MaskedTokenHeadSetup {
  nn::Init init;                 ///< already at the head's own name: "head"
  int64_t rows = 0;              ///< V of its matrix and of its bias; may be rounded up
  int64_t num_classes = 0;       ///< the real vocabulary, at most V; the rest has p = 0
  nn::Embedding tied = nullptr;  ///< the encoder's table [V, D]; null = `output.weight` of its own
  double label_smoothing = 0;    ///< as kernels::linear_cross_entropy has it
  /// Learns from a teacher too: training then needs a losses::TeacherScope.
  std::optional<losses::TeacherWeights> teacher = {};
};

/// The token that stood where a mask is (Devlin et al. 2019, section 3.1):
///
///     p(token | row) = softmax(norm(activation(dense row)) W^T + bias) over the first C of V rows
///
/// It is given the rows of masked positions alone, M of them, and makes logits for a block of rows
/// at a time: [M, V] never exists as a whole. The activation is that of `model.activation`; of
/// gated ones it is gelu.
class MaskedTokenHead : public torch::nn::Module {
 public:
  /// Throws c10::Error where num_classes is not in 2..V, or a tied table is not D wide.
  MaskedTokenHead(const BertOptions& options, const MaskedTokenHeadSetup& setup);

  /// rows [M, D], labels int64 [M] on their device -> sums over the M rows: loss, nll, and how
  /// often the token is the most probable one. `token_nll` is defined where no gradient is wanted.
  kernels::CrossEntropy loss(const at::Tensor& rows, const at::Tensor& labels) const;

  /// rows [M, D] -> fp32 [M, C], natural log, whole: for few rows.
  at::Tensor log_probs(const at::Tensor& rows) const;

  int64_t num_classes() const { return num_classes_; }                               ///< C
  const at::Tensor& matrix() const { return tied_ ? tied_->weight : own_->weight; }  ///< W [V, D]
  /// Multiplications and additions of loss() for one row.
  double operations() const;

  at::Tensor bias;  ///< [V]; starts at zero

 private:
  at::Tensor projection() const { return tied_ ? tied_->weight : own_->operand(); }
  at::Tensor transformed(const at::Tensor& rows) const;  // norm(activation(dense row)) [M, D]

  nn::Linear dense_{nullptr}, own_{nullptr};
  nn::Norm norm_{nullptr};
  nn::Embedding tied_;
  kernels::Activation activation_;
  int64_t num_classes_;
  nn::OutputLoss loss_;
};

}  // namespace stretto::models
