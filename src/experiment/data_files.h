#pragma once

#include <vector>

#include "data/data_record.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// What the keys of `[data]` name that are paths, as files of text, without the cache folder. A
/// family whose keys name folders or manifests starts with these, and says which are
/// (FamilySpec::data_files).
std::vector<data::DataFile> files_of_path_keys(const Experiment& experiment);

/// All data of an experiment, by what its family says: for training, validation and tests.
std::vector<data::DataFile> all_data_files_of(const Experiment& experiment);

/// The data that training and validation read: those of keys that are fixed for a run. Test data
/// are not among them, since no update and no `best` depends on these. So a family of tasks that
/// declares its keys as paths has its files here.
std::vector<data::DataFile> data_files_of(const Experiment& experiment);

/// Where digests of these files are remembered: beside the token caches, where the family has any.
data::DigestSetting digest_setting_of(const Experiment& experiment);

}  // namespace stretto::experiment
