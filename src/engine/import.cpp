#include <torch/nn/module.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/allowance.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "interchange/described_experiment.h"
#include "interchange/folder_tensors.h"
#include "interchange/import_folder.h"
#include "interchange/new_folder.h"
#include "models/registry.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "runs/train_state.h"
#include "store/checkpoint.h"
#include "tasks/registry.h"

namespace stretto::engine {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

store::TensorView view_of(const std::string& name, const at::Tensor& tensor) {
  return {name,
          store::DType::kF32,
          tensor.sizes().vec(),
          {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

using NamedTensor = std::pair<std::string, at::Tensor>;

/// The parameters and the buffers of a network, such as the running statistics of a batch norm:
/// what a checkpoint holds.
std::vector<NamedTensor> tensors_of(const torch::nn::Module& network) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : network.named_parameters())
    tensors.emplace_back(item.key(), item.value());
  for (const auto& item : network.named_buffers()) {
    if (item.value().defined()) tensors.emplace_back(item.key(), item.value());
  }
  return tensors;
}

/// Throws where tensors with first weights would dwarf those of the folder: then config.json is
/// that of another model, or made to exhaust memory.
/// @param network  without memory
void require_few_first_weights(const std::vector<store::TensorView>& imported,
                               const torch::nn::Module& network, const std::string& where) {
  std::unordered_set<std::string_view> names;
  Allowance allowance(where);
  for (const auto& tensor : imported) {
    names.insert(tensor.name);
    allowance.add_read(tensor.bytes.size());
  }
  uint64_t missing = 0;
  for (const auto& own : tensors_of(network)) {
    if (!names.contains(own.first)) missing += own.second.nbytes();
  }
  if (missing <= allowance.limit()) return;
  throw Error(ExitCode::kBadData,
              where + ": config.json describes tensors of " + human_bytes(missing) +
                  " that the weights do not have, and the weights have " +
                  human_bytes(allowance.num_read()) +
                  "; --allow-missing makes at most 8 times as much and 256 MiB",
              "correct the sizes in config.json (hidden_size, num_hidden_layers, …), or copy the "
              "weights that belong to it");
}

/// Every tensor of the network that the configuration describes: the folder's, or the network's own
/// where the folder has none.
std::vector<store::TensorView> complete(const interchange::ReadTensors& read,
                                        const torch::nn::Module& network,
                                        const std::string& where) {
  const auto& imported = read.ours;
  std::vector<store::TensorView> tensors;
  std::vector<std::string> mismatches;
  for (const auto& own : tensors_of(network)) {
    const auto& [name, values] = own;
    const auto found = std::ranges::find(imported, name, &store::TensorView::name);
    if (found == imported.end()) {
      if (values.is_meta()) {
        throw Error(ExitCode::kInternal, where + ": nothing was imported for `" + name + "`");
      }
      tensors.push_back(view_of(name, values));
    } else if (found->shape != values.sizes().vec()) {
      mismatches.push_back(interchange::name_in_folder(read.names, name) + " is " +
                           shape_text(found->shape) + ", the model has " +
                           shape_text(values.sizes().vec()));
    } else {
      tensors.push_back(*found);
    }
  }
  if (mismatches.empty()) return tensors;
  throw Error(ExitCode::kBadData, where + ": " + join(mismatches, "; "),
              "the weights are not those of the model that config.json describes");
}

using Assets = std::map<std::string, std::string>;

void write_run(const Assets& assets, const experiment::LoadedExperiment& loaded,
               const std::vector<store::TensorView>& tensors, const std::filesystem::path& place) {
  auto folder = runs::RunFolder::open_for_training(place);
  folder.write_assets(assets);
  folder.write_config(loaded.resolved_toml, loaded.config_hash);
  const runs::RunIdentity identity{.run_id = folder.run_id(),
                                   .config_hash = loaded.config_hash,
                                   .tokenizer = runs::tokenizer_hashes(assets)};
  store::CheckpointStore(place).save({.step = 0,
                                      .run_id = identity.run_id,
                                      .config_hash = identity.config_hash,
                                      .provenance = runs::provenance_of(identity),
                                      .files = {{"model", tensors}},
                                      .state_json = runs::TrainState{}.to_json()});
  store::CheckpointStore::load(store::CheckpointStore(place).path_of(0));
}

void tell_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::vector<std::string> shown;
  for (const auto& name : names) shown.push_back(printable(name));
  log::info(std::string(what) + ": " + join(shown, ", "));
}

/// What was not taken as it is.
void tell_differences(const std::vector<std::string>& missing,
                      const std::vector<std::string>& left_out, int64_t rows_left_out) {
  tell_names("not in the folder, with their first weights", missing);
  tell_names("left out", left_out);
  if (rows_left_out == 0) return;
  log::info("left out: " + counted(rows_left_out, "row") +
            " of the table of tokens, behind the last id of the tokenizer");
}

void tell_not_finite(const std::vector<std::string>& names) {
  if (names.empty()) return;
  log::warn(
      interchange::not_finite_text(names) +
      "; answers of this model will be refused; copy the folder again, or take other weights");
}

void tell_vectors(const interchange::EmbedRecipe& vectors, const std::string& run) {
  if (!vectors.problem.empty()) log::warn(vectors.problem);
  if (vectors.options.empty()) return;
  log::info("modules.json asks for the vectors of `stretto embed " + run + " " + vectors.options +
            "`");
}

void tell_result(const ImportRequest& request, const std::string& model_class,
                 const torch::nn::Module& network, int64_t pieces) {
  std::cout << shown_on_stdout(request.run_directory) << ": " << model_class << ", "
            << with_thousands(models::num_parameters(network)) << " parameters"
            << (pieces > 0 ? ", " + counted(pieces, "piece") : "") << std::endl;
}

}  // namespace

int run_import(const ImportRequest& request) {
  // Before anything is read: the place must be free.
  interchange::NewFolder target(request.run_directory);
  const auto model = interchange::import_folder(request.folder, request.options);
  const auto loaded = interchange::load_described(model.experiment, request.folder);
  // What config.json says is compared with the weights before a network takes memory. It does so
  // only where some tensors are to have first weights.
  const auto& family = tasks::family_of(loaded.options);
  auto network = family.make_network(loaded.options, model.assets, false);
  if (!model.missing.empty()) {
    require_few_first_weights(model.tensors, *network, request.folder);
    network = family.make_network(loaded.options, model.assets, true);
  }
  const interchange::ReadTensors read{.ours = model.tensors, .names = model.names};
  const auto tensors = complete(read, *network, request.folder);
  write_run(model.assets, loaded, tensors, target.path());
  target.publish();
  tell_differences(model.missing, model.left_out, model.rows_left_out);
  for (const auto& note : model.notes) log::info(note);
  tell_not_finite(interchange::not_finite(read));
  tell_result(request, model.model_class, *network, model.num_pieces);
  tell_vectors(model.vectors, request.run_directory);
  return 0;
}

}  // namespace stretto::engine
