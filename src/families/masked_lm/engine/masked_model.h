#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/documents/masked_batches.h"
#include "families/text/engine/text_teacher.h"
#include "models/encoder.h"
#include "models/text_model.h"
#include "train/evaluation.h"

/// A masked language model on batches of masked text.
namespace stretto::tasks {

/// Sums over the masked tokens of a batch, of which there may be none.
struct MaskedSums {
  /// Scalar with a gradient, where one is wanted: nll, or what a teacher makes of it.
  at::Tensor loss;
  at::Tensor nll;    ///< scalar without one: natural logarithm
  at::Tensor right;  ///< scalar: tokens that the model takes for the most probable ones
};
/// And what is asked for beside them.
struct MaskedPass {
  MaskedSums sums;
  TextPass parts = {};
};
/// @param batch  as prepare_masked() makes it
MaskedPass masked_pass(models::TextModel& model, const train::Prepared& batch,
                       const models::ForwardContext& context, PassParts parts);
/// @param batch  as prepare_masked() makes it
MaskedSums masked_loss(models::TextModel& model, const train::Prepared& batch,
                       const models::ForwardContext& context);

/// A batch with its texts as rows(0), and what masked_loss() reads of their masks.
train::Prepared prepare_masked(data::Batch batch, const models::TextModel& model);

/// How well a model finds the masked tokens of a text.
struct MaskedScore {
  double nll = 0;       ///< mean over masked tokens, natural logarithm
  double accuracy = 0;  ///< share of them that the model takes for the most probable ones
  int64_t masked_tokens = 0, tokens = 0;
};
/// @param batches  with fixed masks, such as those of data::make_masked_eval_batches(); they are
///                 shared out among processes (train/evaluation.h)
MaskedScore score_masked(models::TextModel& model, const data::BatchSource& batches,
                         train::EvaluationSetup setup = {});

/// One guess for a masked token.
struct Filler {
  int64_t id = 0;
  double probability = 0;
};
/// The guesses for one masked token.
struct MaskFillers {
  std::vector<Filler> best;  ///< from high to low
  /// Whether the log-probabilities of all tokens are finite. A logit that is too small for its type
  /// takes its token out of the list, and leaves the probabilities of the others finite.
  bool is_finite = true;
};
/// The `count` most probable tokens of each row of log_probs [M, C].
std::vector<MaskFillers> best_fillers(const at::Tensor& log_probs, int64_t count);

/// The same of each row of a batch that data::kMaskedRows names, in their order. However many there
/// are, log-probabilities of 256 rows are in memory at a time.
std::vector<MaskFillers> fillers_of(models::TextModel& model, const data::Batch& batch,
                                    int64_t count);

}  // namespace stretto::tasks
