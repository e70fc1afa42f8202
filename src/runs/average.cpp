#include "runs/average.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "compress/masks.h"
#include "runs/provenance.h"
#include "runs/stored_masks.h"
#include "runs/unpacked_weights.h"

namespace stretto::runs {

namespace fs = std::filesystem;

namespace {

using Loaded = store::LoadedCheckpoint;

void require_mask_of(const torch::Tensor& weights, std::string_view bits, const std::string& name,
                     const fs::path& checkpoint) {
  if (compress::mask_bytes(weights.numel()) == static_cast<int64_t>(bits.size())) return;
  throw Error(ExitCode::kBadData,
              checkpoint.string() + ": the mask of `" + printable(name) + "` is not of its weights",
              "average checkpoints of another step");
}

// The mean of these, in their order, as the checkpoint `name`.
fs::path write_average(const fs::path& run_directory, const std::vector<Loaded>& loaded,
                       const RunIdentity& identity, const std::string& name) {
  for (const auto& checkpoint : loaded) {
    require_unpacked(checkpoint.file("model"), checkpoint.directory.string(),
                     "they have no mean of few bits", "average first, and compress the average");
  }
  const auto& first = loaded.front().file("model");
  std::vector<torch::Tensor> sums;
  for (const auto& tensor : first.tensors()) {
    torch::Tensor sum = torch::zeros(torch::IntArrayRef(tensor.shape), torch::kFloat32);
    bool stayed = true;  // as what is frozen does: dividing its sum would round
    for (const auto& checkpoint : loaded) {
      const auto* part = checkpoint.file("model").find(tensor.name);
      if (part == nullptr || part->shape != tensor.shape || part->dtype != store::DType::kF32) {
        throw Error(ExitCode::kBadData,
                    checkpoint.directory.string() + ": `" + tensor.name + "` does not match " +
                        loaded.front().directory.string(),
                    "only checkpoints of one architecture can be averaged");
      }
      sum.add_(torch::from_blob(const_cast<char*>(part->bytes.data()), sum.sizes()));
      stayed = stayed && part->bytes == tensor.bytes;
    }
    if (stayed) {
      sum.copy_(torch::from_blob(const_cast<char*>(tensor.bytes.data()), sum.sizes()));
    } else {
      sum.div_(static_cast<double>(loaded.size()));
    }
    sums.push_back(sum);
  }
  const auto& newest = *std::max_element(
      loaded.begin(), loaded.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  // Older ones may have fewer zeros.
  const compress::PackedMasks masks = stored_masks(newest);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (const auto mask = masks.find(first.tensors()[i].name); mask != masks.end()) {
      require_mask_of(sums[i], mask->second, mask->first, newest.directory);
      compress::apply_mask(mask->second,
                           {sums[i].data_ptr<float>(), static_cast<size_t>(sums[i].numel())});
    }
  }
  std::vector<store::TensorView> views;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto& tensor = first.tensors()[i];
    views.push_back({tensor.name,
                     store::DType::kF32,
                     tensor.shape,
                     {static_cast<const char*>(sums[i].const_data_ptr()), sums[i].nbytes()}});
  }
  for (const auto& checkpoint : loaded) {
    require_same_tokenizer(checkpoint, newest.provenance.tokenizer, newest.directory);
  }
  store::Provenance provenance = provenance_of(identity);
  provenance.world_size = newest.provenance.world_size;
  provenance.tokenizer = newest.provenance.tokenizer;
  std::vector<std::pair<std::string, std::vector<store::TensorView>>> files;
  files.emplace_back("model", std::move(views));
  if (!masks.empty()) files.emplace_back(kMasksFile, mask_views(masks));
  store::CheckpointStore store(run_directory);
  const FileLock beside = store.save_beside_training();
  return store.save({.step = newest.step,
                     .run_id = identity.run_id,
                     .config_hash = identity.config_hash,
                     .provenance = provenance,
                     .files = std::move(files),
                     .state_json = newest.state_json},
                    name);
}

}  // namespace

fs::path average_checkpoints(const fs::path& run_directory, const std::vector<fs::path>& paths,
                             const RunIdentity& identity, const std::string& name) {
  if (paths.empty())
    throw Error(ExitCode::kUsage, "no checkpoints to average",
                "train first, or name checkpoints with --checkpoints");
  std::vector<Loaded> loaded;
  for (const auto& path : paths) {
    loaded.push_back(store::CheckpointStore::load(path, store::CheckpointPart::kModel));
    require_own_run(loaded.back());
  }
  return write_average(run_directory, loaded, identity, name);
}

fs::path average_last_checkpoints(const fs::path& run_directory, int64_t count,
                                  const RunIdentity& identity, const std::string& name) {
  std::vector<std::string> broken;
  auto loaded = newest_checkpoints(run_directory, count, broken);
  if (loaded.empty()) throw_no_whole_checkpoint(run_directory, broken);
  if (static_cast<int64_t>(loaded.size()) < count) {
    log::warn("only " + counted(static_cast<int64_t>(loaded.size()), "checkpoint") +
              (loaded.size() == 1 ? " is" : " are") + " there to average, " +
              std::to_string(count) + " were asked for (train.keep_last keeps more)");
  }
  std::reverse(loaded.begin(), loaded.end());
  if (!broken.empty()) {
    std::vector<std::string> names;
    for (const auto& one : loaded) names.push_back(one.directory.filename().string());
    log::warn("averaged without " + std::string(broken.size() == 1 ? "it" : "them") + ": " +
              join(names, ", "));
  }
  return write_average(run_directory, loaded, identity, name);
}

}  // namespace stretto::runs
