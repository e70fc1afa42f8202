#pragma once

#include <filesystem>
#include <utility>

#include "experiment/experiment.h"
#include "experiment/load_experiment.h"

namespace stretto::interchange {

/// Gives an experiment with sections of a family what else it needs: a length, and the first score
/// of its task as the best one.
void complete_described(experiment::Experiment& experiment);

/// The experiment of a model that was not trained here: the sections of its family, and all others
/// with their defaults, without data.
/// @param sections  the family's struct, one of the alternatives of Experiment::task
template <class Sections>
experiment::Experiment described_experiment(Sections sections) {
  experiment::Experiment experiment;
  experiment.task = std::move(sections);
  complete_described(experiment);
  return experiment;
}

/// Such an experiment as its run keeps it. Throws Error(kBadData) that names the config.json of
/// `folder`, or the file of weights in its place, if a range or a rule refuses what it describes.
experiment::LoadedExperiment load_described(const experiment::Experiment& described,
                                            const std::filesystem::path& folder);

}  // namespace stretto::interchange
