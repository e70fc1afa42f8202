#include "tasks/smaller_run.h"

#include <torch/torch.h>

#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "compress/masks.h"
#include "compress/stack_parts.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/smaller_model.h"
#include "interchange/new_folder.h"
#include "optim/arena.h"
#include "runs/checkpoint_tensors.h"
#include "runs/choose_checkpoint.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "runs/stored_masks.h"
#include "runs/train_state.h"
#include "runs/unpacked_weights.h"
#include "store/checkpoint.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/family.h"
#include "tasks/load_checkpoints.h"
#include "tasks/registry.h"
#include "train/measure_importance.h"

namespace stretto::tasks {
namespace {

using compress::NamedTensors;

/// The run that is made smaller, opened.
struct OpenedRun {
  runs::RunFolder folder;
  Assets assets;
  store::LoadedCheckpoint checkpoint;
  experiment::Experiment experiment;  ///< describes the checkpoint's model

  std::string weights_file() const { return (checkpoint.directory / "model.safetensors").string(); }
};

OpenedRun open_run(const SmallerRunRequest& request) {
  auto folder = runs::RunFolder::open(request.run_directory);
  auto assets = assets_of(folder);
  auto checkpoint = runs::open_checkpoint(folder.directory(), request.checkpoint);
  const std::string toml = experiment::read_run_config(folder.directory());
  const std::string where = (folder.directory() / "config.toml").string();
  const auto own =
      request.own ? *request.own : experiment::load_stored_experiment(toml, where, {}).options;
  auto described = checkpoint_experiment(checkpoint, folder, own);
  return {std::move(folder), std::move(assets), std::move(checkpoint), std::move(described)};
}

NamedTensors tensors_of(const store::SafetensorsFile& file, const std::string& where) {
  NamedTensors tensors;
  for (const auto& stored : file.tensors()) {
    if (stored.dtype != store::DType::kF32) {
      throw Error(ExitCode::kBadData,
                  where + ": `" + stored.name + "` is " +
                      std::string(store::name_of(stored.dtype)) + ", expected F32",
                  "name a checkpoint that training has written");
    }
    // from_blob wants a mutable pointer; the tensor is only read.
    tensors[stored.name] =
        torch::from_blob(const_cast<char*>(stored.bytes.data()), stored.shape, torch::kFloat)
            .clone();
  }
  return tensors;
}

// The gradients of training data, with the weights of the checkpoint.
void add_gradients(const OpenedRun& run, const store::SafetensorsFile& weights,
                   int64_t micro_batches, compress::PartImportance& importance) {
  const auto task = family_of(run.experiment).make_task(run.experiment, run.assets, {});
  optim::Arena arena(task->model());
  runs::load_weights(weights, run.weights_file(), arena);
  train::measure_importance(*task, arena, micro_batches, importance);
}

std::vector<store::TensorView> views_of(const NamedTensors& tensors) {
  std::vector<store::TensorView> views;
  for (const auto& [name, values] : tensors) {
    views.push_back({name,
                     store::DType::kF32,
                     values.sizes().vec(),
                     {static_cast<const char*>(values.const_data_ptr()), values.nbytes()}});
  }
  return views;
}

// Masks as tensors in the shapes of their weights, which lose the same parts.
NamedTensors unpacked(const compress::PackedMasks& masks, const NamedTensors& weights) {
  NamedTensors tensors;
  for (const auto& [name, bits] : masks) {
    const auto found = weights.find(name);
    if (found == weights.end() ||
        compress::mask_bytes(found->second.numel()) != static_cast<int64_t>(bits.size())) {
      continue;
    }
    auto marks = compress::unpack_mask(bits, found->second.numel());
    tensors[name] = torch::from_blob(marks.data(), found->second.sizes(), torch::kByte).clone();
  }
  return tensors;
}

compress::PackedMasks packed(const NamedTensors& masks) {
  compress::PackedMasks bits;
  for (const auto& [name, marks] : masks) {
    const torch::Tensor dense = marks.contiguous();
    bits[name] =
        compress::pack_mask({dense.const_data_ptr<uint8_t>(), static_cast<size_t>(dense.numel())});
  }
  return bits;
}

/// What is written.
struct SmallerModel {
  NamedTensors tensors, masks;
  experiment::Experiment experiment;
};

void write_run(const SmallerRunRequest& request, const OpenedRun& run, const SmallerModel& model,
               const std::vector<SmallerStack>& stacks) {
  const std::filesystem::path& place = request.output;
  experiment::Experiment options = model.experiment;
  const auto loaded = experiment::load_stored_experiment(
      config::to_toml(experiment::experiment_schema(options)), place.string(), {});
  interchange::NewFolder target(place);
  {
    auto folder = runs::RunFolder::open_for_training(target.path());
    folder.write_assets(run.assets);
    folder.write_config(loaded.resolved_toml, loaded.config_hash);
    const runs::RunIdentity identity{.run_id = folder.run_id(),
                                     .config_hash = loaded.config_hash,
                                     .tokenizer = runs::tokenizer_hashes(run.assets)};
    const auto masks = packed(model.masks);
    store::CheckpointContent content;
    content.run_id = identity.run_id;
    content.config_hash = identity.config_hash;
    content.provenance = runs::provenance_of(identity);
    content.files.emplace_back("model", views_of(model.tensors));
    if (!masks.empty()) content.files.emplace_back(runs::kMasksFile, runs::mask_views(masks));
    content.state_json = runs::TrainState{}.to_json();
    store::CheckpointStore(target.path()).save(content);
  }
  if (request.add_files) request.add_files(target.path(), stacks);
  target.publish();
}

}  // namespace

std::vector<SmallerStack> write_smaller_run(const SmallerRunRequest& request) {
  interchange::require_free_place(request.output);
  const OpenedRun run = open_run(request);
  const auto weights = runs::unpack_weights(run.checkpoint.file("model"), run.weights_file());
  SmallerModel model{.tensors = tensors_of(weights.file, run.weights_file()),
                     .masks = {},
                     .experiment = run.experiment};
  model.masks = unpacked(runs::stored_masks(run.checkpoint), model.tensors);
  const auto network =
      family_of(run.experiment).make_network(run.experiment, run.assets, /*draws_weights=*/false);
  const auto stacks = compress::find_stacks(model.tensors, compress::heads_of(*network));
  if (stacks.empty()) {
    throw Error(ExitCode::kUsage,
                request.run_directory + ": the model has no stack of Transformer layers",
                "prune single weights: [compress.prune]");
  }
  compress::PartImportance importance(stacks);
  if (request.micro_batches > 0) {
    add_gradients(run, weights.file, request.micro_batches, importance);
  } else {
    importance.add_magnitudes(model.tensors);
  }
  std::vector<SmallerStack> report;
  for (size_t i = 0; i < stacks.size(); ++i) {
    const auto& shape = stacks[i];
    const auto choice = compress::choose_parts(shape, importance.stacks()[i],
                                               compress::target_of(shape, request.removal));
    const auto left = compress::shape_of(shape, choice);
    model.experiment = experiment::with_sizes(
        model.experiment, experiment::smaller_model_settings(run.experiment, shape, left));
    model.tensors = compress::without_parts(model.tensors, shape, choice);
    model.masks = compress::without_parts(model.masks, shape, choice);
    report.push_back({.before = shape, .after = left});
  }
  write_run(request, run, model, report);
  return report;
}

}  // namespace stretto::tasks
