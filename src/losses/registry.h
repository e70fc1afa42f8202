#pragma once

#include "losses/cross_entropy.h"
#include "losses/next_token_loss_options.h"

namespace stretto::losses {

/// The loss that `loss.name` names. Throws Error(kUsage) with the known names for another one.
nn::OutputLoss make_loss(const CrossEntropyOptions& options);

/// The same loss of two passes over each token, for training alone; null where R-Drop is off.
nn::OutputLoss make_pair_loss(const CrossEntropyOptions& options);

/// The same loss of distributions, for several models that predict together.
DistributionLoss make_distribution_loss(const CrossEntropyOptions& options);

/// Cross entropy of the next token, its sum over the vocabulary estimated by samples where
/// `loss.sampled_tokens` says so: training then needs a SampleScope (losses/sampled_softmax.h).
nn::OutputLoss make_next_token_loss(const NextTokenLossOptions& options);

}  // namespace stretto::losses
