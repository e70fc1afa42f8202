#include "tasks/open_initial_run.h"

#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "interchange/described_experiment.h"
#include "interchange/folder_tensors.h"
#include "interchange/initial_model.h"
#include "runs/provenance.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const interchange::ImportedRun> import_for(
    const experiment::Experiment& experiment) {
  return std::make_shared<const interchange::ImportedRun>(
      interchange::import_initial_model(experiment.train.init_from, experiment));
}

// As a run of the folder would be, at step 0.
runs::InitialRun as_run(std::shared_ptr<const interchange::ImportedRun> model,
                        const fs::path& folder) {
  const auto loaded = interchange::load_described(model->experiment, folder);
  runs::InitialRun run{.checkpoint = {.directory = folder,
                                      .step = 0,
                                      .run_id = {},
                                      .config_hash = loaded.config_hash,
                                      .provenance = {},
                                      .state_json = {},
                                      .files = {}},
                       .folder = folder,
                       .tokenizer = model->assets,
                       .config = loaded.resolved_toml};
  run.checkpoint.files.emplace_back("model", store::SafetensorsFile(model->tensors));
  run.checkpoint.provenance.tokenizer = runs::tokenizer_hashes(model->assets);
  run.owner = std::move(model);
  return run;
}

void tell_import(const interchange::ImportedRun& model, const fs::path& folder) {
  log::info("train.init_from: imported " + model.model_class + " of " + folder.string());
  std::vector<std::string> names;
  for (const auto& name : model.left_out) names.push_back(printable(name));
  if (!names.empty()) log::info("  left out: " + join(names, ", "));
  if (model.rows_left_out > 0) {
    log::info("  left out: " + counted(model.rows_left_out, "row") +
              " of the table of tokens, behind the last id of the tokenizer");
  }
  const auto broken = interchange::not_finite({.ours = model.tensors, .names = model.names});
  if (broken.empty()) return;
  log::warn("train.init_from: " + interchange::not_finite_text(broken) +
            "; copy the folder again, or take other weights");
}

}  // namespace

runs::InitialRun open_initial_run(const experiment::Experiment& experiment, runs::Reading reading) {
  const fs::path place = experiment.train.init_from;
  if (!interchange::is_model_folder(place)) return runs::open_initial_run(place, reading);
  return as_run(import_for(experiment), place);
}

runs::InitialRun open_and_tell_initial_run(const experiment::Experiment& experiment) {
  const fs::path place = experiment.train.init_from;
  if (!interchange::is_model_folder(place)) return runs::open_initial_run(place);
  auto model = import_for(experiment);
  tell_import(*model, place);
  return as_run(std::move(model), place);
}

}  // namespace stretto::tasks
