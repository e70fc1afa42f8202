#pragma once

#include "data/batch_source.h"
#include "experiment/experiment.h"

/// A micro-batch of one picture, which batch norm cannot normalise; no libtorch.
namespace stretto::experiment {

/// Whether batch norms take the statistics of single micro-batches. With frozen norms, which
/// patterns may name, one picture is as good as many.
bool normalises_micro_batches(const Experiment& experiment);

/// Throws Error(kUsage) where the last micro-batch of an epoch has one picture, and
/// normalises_micro_batches().
void require_no_lone_picture(const Experiment& experiment, const data::BatchSource& batches,
                             int64_t pictures);

}  // namespace stretto::experiment
