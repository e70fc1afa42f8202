#pragma once

#include <vector>

#include "models/seq2seq_options.h"
#include "optim/group_options.h"

namespace stretto::experiment {

/// The parameters of the Transformer that these options make, by the names that patterns of
/// `optim.groups` and `optim.no_decay` see.
std::vector<optim::TensorName> tensors_of(const models::Seq2SeqOptions& model);

}  // namespace stretto::experiment
