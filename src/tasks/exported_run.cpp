#include "tasks/exported_run.h"

#include <algorithm>
#include <utility>

#include "experiment/export_formats.h"
#include "interchange/incompatibility.h"
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

int64_t ExportedRun::fewest_bits() const {
  const auto& file = checkpoint.file("model");
  const store::QuantisedTensors packed(file, (checkpoint.directory / "model.safetensors").string());
  int64_t bits = 32;
  for (const auto& [name, tensor] : packed.tensors()) bits = std::min(bits, tensor.format.bits);
  return bits;
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

experiment::StoredWeights stored_weights(const ExportedRun& run, const ExportRequest& request) {
  return experiment::choose_stored_weights(
      request.weights, run.has_packed_weights(),
      experiment::export_format_of(run.experiment, request.format));
}

void require_expressed(const ExportRequest& request, const std::string& problem) {
  interchange::require_expressed("--format " + request.format + " cannot express the model",
                                 problem);
}

}  // namespace stretto::tasks
