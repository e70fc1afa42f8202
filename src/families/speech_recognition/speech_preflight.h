#pragma once

#include <vector>

#include "experiment/preflight.h"

namespace stretto::experiment {

/// What training would stop at in its sounds and texts, as TaskRules::look_at_data() gives it.
/// Headers of sounds are read, and nothing is decoded; texts are made into targets where that takes
/// no training of a tokenizer, or with `how.full`.
Preflight look_at_speech(const Experiment& experiment, const std::vector<config::Problem>& known,
                         const PreflightOptions& how);

/// The part of it that sounds and manifests alone show.
Preflight look_at_speech_files(const Experiment& experiment,
                               const std::vector<config::Problem>& known,
                               const PreflightOptions& how);

/// Looks at the sounds of a new run that are quickly looked at, so that training finds them in the
/// cache. Throws as data::open_speech().
void prepare_speech(const Experiment& experiment);

}  // namespace stretto::experiment
