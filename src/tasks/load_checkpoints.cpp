#include "tasks/load_checkpoints.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/provenance.h"
#include "store/manifest.h"
#include "tasks/checkpoint_experiment.h"

namespace stretto::tasks {

Assets assets_of(const runs::RunFolder& folder) {
  Assets assets = folder.read_assets();
  if (assets.empty()) {
    throw Error(ExitCode::kUsage, folder.directory().string() + " has no tokenizer yet",
                "run `stretto train` where training never came so far; of a trained run put its "
                "folder `tokenizer` back from a copy");
  }
  return assets;
}

std::vector<std::filesystem::path> load_checkpoints(const experiment::Experiment& experiment,
                                                    const runs::RunFolder& folder,
                                                    const std::string& checkpoints,
                                                    const Assets& tokenizer,
                                                    const CheckpointNetwork& network) {
  std::vector<std::filesystem::path> loaded;
  const auto hashes = runs::tokenizer_hashes(tokenizer);
  for (const auto& checkpoint : runs::open_checkpoints(folder.directory(), checkpoints)) {
    const auto described = checkpoint_experiment(checkpoint, folder, experiment);
    if (network.check) network.check(described);
    runs::require_same_tokenizer(checkpoint, hashes, folder.directory() / "tokenizer");
    torch::nn::Module& model = network.make(described);
    runs::load_weights(checkpoint, model, /*left_out=*/"",
                       runs::packed_as(experiment.run.packed_weights));
    model.eval();
    loaded.push_back(checkpoint.directory);
  }
  return loaded;
}

std::string checkpoint_names(const std::vector<std::filesystem::path>& checkpoints,
                             const runs::RunFolder& folder) {
  std::vector<std::string> names;
  for (const auto& path : checkpoints) names.push_back(name_of(path, folder));
  return join(names, ",");
}

std::string checkpoint_hash(const std::vector<std::filesystem::path>& checkpoints) {
  std::string manifests;  // each has the hash of every file of its checkpoint
  for (const auto& path : checkpoints) manifests += read_file(path / store::kManifestName);
  return hex64(xxh3_64(manifests));
}

}  // namespace stretto::tasks
