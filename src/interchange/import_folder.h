#pragma once

#include <filesystem>

#include "interchange/import_options.h"
#include "interchange/imported_run.h"

namespace stretto::interchange {

/// Reads a folder with config.json and weights, by the family that its `model_type` and its class
/// are of (interchange/model_folders.h), or a file of weights alone. Writes nothing.
///
/// Throws Error(kUsage) for a folder that lacks one of them, Error(kBadData) that names file, key
/// or tensors: for whatever the readers refuse, for missing and extra tensors (all of them listed)
/// unless the options allow them, and for a vocabulary that does not fit the weights.
ImportedRun import_folder(const std::filesystem::path& folder, const ImportOptions& options = {});

}  // namespace stretto::interchange
