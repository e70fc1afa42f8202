#pragma once

#include "losses/cross_entropy_options.h"
#include "nn/output_loss.h"

namespace stretto::losses {

/// Label-smoothed cross entropy (Szegedy et al. 2016, section 7) in fairseq's form, summed over the
/// target tokens, natural log:
///
///     e = label_smoothing / (V - 1)
///     loss = (1 - label_smoothing - e) nll + e sum_v(-log p_v),     nll = -log p(target)
///
/// V counts the real vocabulary, not the rows that round the table up.
nn::OutputLoss cross_entropy(const CrossEntropyOptions& options);

}  // namespace stretto::losses
