#pragma once

#include <vector>

#include "data/data_record.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// The files that training and validation read: of each key of `[data]` that names files and is
/// fixed for a run. Test data are not among them, since no update and no `best` depends on these.
/// So a family of tasks that declares its keys as paths has its files here.
std::vector<data::DataFile> data_files_of(const Experiment& experiment);

/// Where digests of these files are remembered: beside the token caches, where the family has any.
data::DigestSetting digest_setting_of(const Experiment& experiment);

}  // namespace stretto::experiment
