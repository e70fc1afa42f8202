#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"
#include "tests/add_a_task/labelling_options.h"

/// Takes the place of a line in experiment/experiment.h, whose list of families no test extends.
namespace stretto::experiment {

/// The sections of labelling, as translation_of() gives those of translation. They stand beside the
/// experiment: a process has those that it read last.
const LabellingOptions& labelling_of(const Experiment& experiment);
LabellingOptions& labelling_of(Experiment& experiment);

/// Reads and checks a recipe of labelling as load_experiment() does one of another family. Throws
/// Error(kUsage) with all problems of reading, or else with those of the rules.
LoadedExperiment load_label_experiment(const std::filesystem::path& path,
                                       const std::vector<std::string>& overrides);

}  // namespace stretto::experiment
