#pragma once

#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// False when a file could not be read at all: what is left out of it is not the user's mistake,
/// and rules would only complain about its absence.
bool readable(const std::vector<config::Problem>& problems);

/// Whether the schedule decays to an end: schedule.total_steps, or without it train.max_steps.
bool schedule_ends(const Experiment& options);

/// Rules across keys and sections: heads divide d_model, a warm-up shorter than the run, at least
/// one stop that can be reached, data that belong together, and so on. Adds to `problems`; a rule
/// is left out when one of its keys has a problem already.
void check_rules(const Experiment& options, const config::Origins& origins,
                 std::vector<config::Problem>& problems);

/// A problem for each file that is named and does not exist; of a zip member the archive counts.
///
/// @param schema           of the experiment, with its values
/// @param problems         of reading the configuration: keys that they name are left out
/// @param only_overridden  only of keys that came from the command line
std::vector<config::Problem> missing_files(const config::Schema& schema,
                                           const config::Origins& origins,
                                           const std::vector<config::Problem>& problems,
                                           bool only_overridden = false);

}  // namespace stretto::experiment
