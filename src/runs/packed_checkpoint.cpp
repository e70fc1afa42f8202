#include "runs/packed_checkpoint.h"

#include <map>
#include <string>

#include "base/error.h"
#include "runs/provenance.h"
#include "runs/stored_masks.h"
#include "store/quantised_file.h"

namespace stretto::runs {

namespace fs = std::filesystem;

uint64_t packed_model_bytes(const store::QuantPlan& plan, const RunIdentity& identity,
                            int64_t step) {
  return plan.file_bytes({{"run_id", identity.run_id},
                          {"step", std::to_string(step)},
                          {std::string(store::kQuantisedKey), plan.metadata()}});
}

fs::path save_packed(const fs::path& run_directory, const store::LoadedCheckpoint& from,
                     const store::QuantPlan& plan, const compress::QuantisedModel& model,
                     const RunIdentity& identity, const compress::PackedMasks& masks) {
  store::CheckpointContent content;
  content.step = from.step;
  content.run_id = identity.run_id;
  content.config_hash = identity.config_hash;
  content.provenance = provenance_of(identity);
  content.provenance.world_size = from.provenance.world_size;
  content.provenance.tokenizer = from.provenance.tokenizer;
  content.files.emplace_back("model", model.tensors());
  if (!masks.empty()) content.files.emplace_back(kMasksFile, mask_views(masks));
  content.state_json = from.state_json;
  content.metadata["model"][std::string(store::kQuantisedKey)] = model.metadata();
  const fs::path saved = store::CheckpointStore(run_directory).save(content);
  const auto size = static_cast<uint64_t>(fs::file_size(saved / "model.safetensors"));
  const uint64_t predicted = packed_model_bytes(plan, identity, from.step);
  if (size != predicted) {
    throw Error(ExitCode::kInternal,
                saved.string() + ": model.safetensors has " + std::to_string(size) + " bytes, " +
                    std::to_string(predicted) + " were predicted",
                "please report this");
  }
  return saved;
}

}  // namespace stretto::runs
