#include "runs/average.h"

#include <iostream>

#include "base/stdout.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "runs/choose_checkpoint.h"
#include "runs/run_folder.h"
#include "tasks/checkpoint_experiment.h"

namespace stretto::engine {
namespace {

// Weights of other runs may be among them.
void require_one_model(const std::vector<std::filesystem::path>& checkpoints,
                       const runs::RunFolder& folder) {
  const auto own =
      experiment::load_stored_experiment(experiment::read_run_config(folder.directory()),
                                         (folder.directory() / "config.toml").string(), {})
          .options;
  for (const auto& path : checkpoints) {
    const auto checkpoint = store::CheckpointStore::load(path, store::CheckpointPart::kModel);
    tasks::require_same_model(checkpoint, tasks::checkpoint_experiment(checkpoint, folder, own),
                              own);
  }
}

}  // namespace

int run_average(const AverageRequest& request) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  const runs::RunIdentity identity{folder.run_id(), ""};
  std::filesystem::path path;
  if (request.checkpoints.empty()) {
    path = runs::average_last_checkpoints(folder.directory(), request.last, identity, request.name);
  } else {
    const auto chosen = runs::find_checkpoints(folder.directory(), request.checkpoints);
    require_one_model(chosen, folder);
    path = runs::average_checkpoints(folder.directory(), chosen, identity, request.name);
  }
  std::cout << shown_on_stdout(path.string()) << std::endl;
  return 0;
}

}  // namespace stretto::engine
