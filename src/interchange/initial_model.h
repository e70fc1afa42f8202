#pragma once

#include <filesystem>
#include <optional>

#include "experiment/experiment.h"
#include "experiment/other_model.h"
#include "interchange/imported_run.h"

/// `train.init_from = "FOLDER"` of `transformers`: a run begins with its weights, without a run in
/// between.
namespace stretto::interchange {

/// Whether a folder has a config.json, and nothing of a run or of a checkpoint of Stretto; or a
/// file of weights stands in its place.
bool is_model_folder(const std::filesystem::path& folder);

/// What the folder describes to a run of `own`: for experiment::ReadContext. The head counts if the
/// task of `own` trains it (ModelFolders::trains); without one, the encoder stands alone, as after
/// `stretto import --encoder-only`. Nothing for other folders. Throws as import_folder() does, for
/// what ModelFolders::describe() reads.
std::optional<experiment::OtherModel> describe_initial_model(const std::filesystem::path& folder,
                                                             const experiment::Experiment& own);

/// Imports the folder for a run of `own`, with a head as above. Writes nothing. Throws as
/// import_folder() does, with `train.init_from` in front; Error(kUsage) for a model of another kind
/// than the task of `own` has, unless `train.init_only` chooses parts.
ImportedRun import_initial_model(const std::filesystem::path& folder,
                                 const experiment::Experiment& own);

}  // namespace stretto::interchange
