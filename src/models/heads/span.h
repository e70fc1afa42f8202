#pragma once

#include <torch/nn/module.h>

#include "kernels/kernels.h"
#include "models/bert_options.h"
#include "nn/init.h"
#include "nn/linear.h"

/// Shape letters: N rows of all sequences, B sequences, D width of rows.
namespace stretto::models {

/// Where an answer begins and ends: two scores for each row (BERT on SQuAD).
class SpanHead : public torch::nn::Module {
 public:
  /// @param init  already at the head's own name: "head"
  SpanHead(const BertOptions& options, const nn::Init& init);

  /// rows [N, D] -> fp32 (or double) [N, 2]: of beginnings, and of ends.
  at::Tensor scores(const at::Tensor& rows) const;
  double operations() const;  ///< multiplications and additions for one row

 private:
  nn::Linear output_{nullptr};
};

/// Which rows an answer may begin or end at, of packed sequences.
struct SpanRows {
  kernels::Offsets offsets;
  at::Tensor allowed = {};  ///< bool [N]; undefined = all. Each sequence needs one at least
};

/// Natural log of the softmax over the allowed rows of each sequence, both columns for themselves;
/// -infinity elsewhere. scores [N, 2] -> [N, 2], differentiable.
at::Tensor span_log_probs(const at::Tensor& scores, const SpanRows& rows);

/// The mean of -log p(begin) and -log p(end) of each sequence, [B], differentiable.
/// @param begins  int64 [B]: row of the answer's first token, counted from its sequence's first row
/// @param ends    of its last token, inclusive
/// Throws c10::Error for places outside their sequence on a CPU. A place that is not allowed has an
/// infinite loss.
at::Tensor span_losses(const at::Tensor& scores, const SpanRows& rows, const at::Tensor& begins,
                       const at::Tensor& ends);

}  // namespace stretto::models
