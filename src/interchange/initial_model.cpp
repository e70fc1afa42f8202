#include "interchange/initial_model.h"

#include "base/error.h"
#include "interchange/config_reader.h"
#include "interchange/model_folders.h"
#include "store/weight_files.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using experiment::Experiment;
using experiment::OtherModel;

/// The family that reads a folder for a run, and how.
struct ReaderForRun {
  const ModelFolders& folders;
  ImportOptions options = {};
  bool is_own_kind = false;  ///< whether it is a model of the kind that the run has
};

// A head counts if the run's own task trains it; without one, the encoder stands alone.
ReaderForRun reader_for(const fs::path& folder, const Experiment& own) {
  const ModelFolders* own_folders = find_folders(own);
  if (fs::is_regular_file(folder)) {
    const ModelFolders& folders = reader_of_file(folder);
    return {.folders = folders, .is_own_kind = &folders == own_folders};
  }
  const ConfigReader config = read_folder_config(folder);
  const bool is_own_kind = reads_folders_of(own_folders, config);
  if (is_own_kind && own_folders->trains(config)) {
    return {.folders = *own_folders, .is_own_kind = true};
  }
  const ImportOptions alone{.encoder_only = true};
  const ModelFolders& folders = reader_of(config, alone);
  return {.folders = folders,
          .options = folders.reads_encoders_alone() ? alone : ImportOptions(),
          .is_own_kind = is_own_kind};
}

void require_kind_of_task(const ReaderForRun& reader, const ImportedRun& model,
                          const fs::path& folder, const Experiment& own) {
  if (reader.is_own_kind || !own.train.init_only.empty()) return;
  const ModelFolders* own_folders = find_folders(own);
  if (own_folders != nullptr && own_folders->begins_with(model.experiment)) return;
  const std::string advice = "train.init_only takes parts of another model";
  throw Error(ExitCode::kUsage,
              folder.string() + " holds a " + model.model_class + ", " +
                  reader.folders.words().model + ", and task.name is \"" + own.task.name() + "\"",
              own_folders == nullptr
                  ? advice
                  : "give the folder of a " + own_folders->words().classes + "; " + advice);
}

}  // namespace

bool is_model_folder(const fs::path& folder) {
  if (store::is_weight_file(folder)) return true;
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  return has("config.json") && !has("run.json") && !has("manifest.json") && !has("checkpoints");
}

std::optional<OtherModel> describe_initial_model(const fs::path& folder, const Experiment& own) {
  if (!is_model_folder(folder)) return std::nullopt;
  const auto reader = reader_for(folder, own);
  return reader.folders.describe(folder, reader.options);
}

ImportedRun import_initial_model(const fs::path& folder, const Experiment& own) {
  try {
    const auto reader = reader_for(folder, own);
    auto model = reader.folders.read(folder, reader.options);
    require_kind_of_task(reader, model, folder, own);
    return model;
  } catch (const Error& error) {
    std::string advice = error.advice();
    if (advice.find("--") != std::string::npos) {
      advice += "; these are options of `stretto import`, and train.init_from takes its run";
    }
    throw Error(error.code(), std::string("train.init_from: ") + error.what(), advice,
                error.details());
  }
}

}  // namespace stretto::interchange
