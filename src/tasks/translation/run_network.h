#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "experiment/experiment.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// The network of a run of translation, on the CPU, or without values on the meta device.
/// @param assets  of the run folder: they say how many ids each side has
/// @param draws_weights  false: it has names and shapes alone
std::shared_ptr<torch::nn::Module> make_seq2seq_network(const experiment::Experiment& experiment,
                                                        const Assets& assets, bool draws_weights);

}  // namespace stretto::tasks
