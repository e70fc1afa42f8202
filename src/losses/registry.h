#pragma once

#include "losses/cross_entropy.h"

namespace stretto::losses {

/// The loss that `loss.name` names. Throws Error(kUsage) with the known names for another one.
nn::OutputLoss make_loss(const CrossEntropyOptions& options);

/// The same loss of two passes over each token, for training alone; null where R-Drop is off.
nn::OutputLoss make_pair_loss(const CrossEntropyOptions& options);

/// The same loss of distributions, for several models that predict together.
DistributionLoss make_distribution_loss(const CrossEntropyOptions& options);

}  // namespace stretto::losses
