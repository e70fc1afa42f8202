#pragma once

#include "losses/cross_entropy_options.h"
#include "nn/output_loss.h"

namespace stretto::losses {

/// The loss that `loss.name` names. Throws Error(kUsage) with the known names for another one.
nn::OutputLoss make_loss(const CrossEntropyOptions& options);

}  // namespace stretto::losses
