#pragma once

#include <functional>

#include "losses/cross_entropy_options.h"
#include "nn/output_loss.h"

namespace stretto::losses {

/// Where several models predict together there is no one output matrix, but a distribution:
/// (log_probs fp32 [N, V] natural log, targets int64 [N]) -> sums over the N tokens, no gradient.
using DistributionLoss =
    std::function<kernels::CrossEntropy(const at::Tensor& log_probs, const at::Tensor& targets)>;

/// Label-smoothed cross entropy (Szegedy et al. 2016, section 7) in fairseq's form, summed over the
/// target tokens, natural log:
///
///     e = label_smoothing / (V - 1)
///     loss = (1 - label_smoothing - e) nll + e sum_v(-log p_v),     nll = -log p(target)
///
/// V counts the real vocabulary, not the rows that round the table up. With `teacher` it is
/// with_teacher() (losses/teacher.h).
nn::OutputLoss cross_entropy(const CrossEntropyOptions& options);

/// The same of two passes over each token with other dropout, pulled together by `r_drop`:
/// kernels::linear_r_drop, whose x is [2N, D]. Null where `r_drop` is 0.
nn::OutputLoss cross_entropy_of_pairs(const CrossEntropyOptions& options);

/// The same of distributions over the V entries.
DistributionLoss cross_entropy_of_distributions(const CrossEntropyOptions& options);

}  // namespace stretto::losses
