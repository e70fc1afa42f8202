#pragma once

#include <memory>
#include <vector>

#include "data/batch.h"
#include "decoding/step_model.h"
#include "losses/cross_entropy_options.h"
#include "models/seq2seq_model.h"

namespace stretto::tasks {

/// Several models as one (decoding/ensemble.h), or one model, ready to decode these sources.
std::unique_ptr<decoding::StepModel> start_together(
    const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models, const data::PackedTokens& src,
    int64_t lanes_per_src);

/// Sums over the target tokens of a batch, natural log.
struct BatchLoss {
  double loss_sum = 0, nll_sum = 0;
  std::vector<double> pair_nll;  ///< [sequences]: nll_sum of each pair
};

/// Loss of what the models predict together: -log((1/M) sum_m p_m(token | the tokens before it)),
/// and with label smoothing the loss of that mean distribution. It is never above the mean of the
/// models' own.
///
/// The targets are fed token by token to what decoding asks for the next one, so that loss and
/// translations are those of one and the same ensemble; a few sentences at a time, as many as their
/// distributions have room for.
BatchLoss ensemble_loss(const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                        const data::Batch& batch, const losses::CrossEntropyOptions& loss);

/// The loss of a batch by one model (its own) or by an ensemble; no gradient.
BatchLoss batch_loss(const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                     const data::Batch& batch, const losses::CrossEntropyOptions& loss);

}  // namespace stretto::tasks
