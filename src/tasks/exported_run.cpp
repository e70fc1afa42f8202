#include "tasks/exported_run.h"

#include <algorithm>
#include <utility>

#include "runs/choose_checkpoint.h"
#include "runs/provenance.h"
#include "store/quantised_file.h"
#include "tasks/checkpoint_experiment.h"

namespace stretto::tasks {

void ExportedRun::require_same_tokenizer(const Assets& files) const {
  runs::require_same_tokenizer(checkpoint, runs::tokenizer_hashes(files),
                               folder.directory() / "tokenizer");
}

bool ExportedRun::has_packed_weights() const {
  return store::is_packed(checkpoint.file("model"));
}

runs::MadeWeights ExportedRun::weights() const {
  return runs::merge_lora(checkpoint.file("model"),
                          (checkpoint.directory / "model.safetensors").string());
}

ExportedRun open_exported_run(const ExportRequest& request) {
  auto folder = runs::RunFolder::open(request.run_directory);
  auto assets = folder.read_assets();
  auto checkpoint = runs::open_checkpoint(folder.directory(), request.checkpoint);
  auto experiment = checkpoint_experiment(checkpoint, folder, request.experiment.options);
  return {std::move(folder), std::move(assets), std::move(checkpoint), std::move(experiment)};
}

}  // namespace stretto::tasks
