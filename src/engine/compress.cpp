#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "compress/held_zeros.h"
#include "compress/magnitude.h"
#include "compress/pruned_file.h"
#include "compress/quantise.h"
#include "config/resolved.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "experiment/experiment_schema.h"
#include "experiment/folder_files.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/task_rules.h"
#include "interchange/new_folder.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/packed_checkpoint.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "runs/stored_masks.h"
#include "store/checkpoint.h"
#include "store/quantised_file.h"
#include "store/quantised_plan.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/exported_run.h"
#include "tasks/family.h"
#include "tasks/registry.h"
#include "tasks/smaller_run.h"
#include "train/calibration.h"

namespace stretto::engine {
namespace {

namespace fs = std::filesystem;
using RecordJson = nlohmann::json;

/// What a compressed run keeps of its making; it shows too that the folder is this command's.
constexpr const char* kRecord = "compress.json";

// ---------------------------------------------------------------------------------------------
// What was asked for, and what is there already.

const char* name_of(store::QuantScope scope) {
  switch (scope) {
    case store::QuantScope::kTensor:
      return "tensor";
    case store::QuantScope::kGroup:
      return "group";
    case store::QuantScope::kRow:
      break;
  }
  return "row";
}

RecordJson format_json(const store::QuantFormat& format) {
  return {{"bits", format.bits},
          {"group", format.group_size},
          {"symmetric", format.symmetric},
          {"scope", name_of(format.scope)}};
}

bool takes_parts_out(const CompressRequest& request) {
  return request.removal.layers > 0 || request.removal.units > 0 || request.removal.heads > 0;
}

RecordJson request_json(const CompressRequest& request) {
  RecordJson asked = RecordJson::object();
  if (takes_parts_out(request)) {
    asked["layers"] = request.removal.layers;
    asked["units"] = request.removal.units;
    asked["heads"] = request.removal.heads;
    asked["micro_batches"] = request.micro_batches;
    return asked;
  }
  asked["sparsity"] = request.sparsity;
  if (request.sparsity > 0) asked["scope"] = request.scope;
  asked["kept"] = request.quantised.kept;  // they are not pruned either
  if (!request.packs) return asked;
  asked["format"] = format_json(request.quantised.format);
  asked["rounding"] = request.rounding;
  if (!request.calibration_keys.empty()) asked["calibrate"] = request.calibration_keys;
  asked["others"] = RecordJson::array();
  for (const auto& [pattern, format] : request.quantised.others) {
    asked["others"].push_back({pattern, format_json(format)});
  }
  return asked;
}

RecordJson made_of_json(const tasks::ExportedRun& run) {
  return {{"run_id", run.checkpoint.run_id},
          {"checkpoint", run.checkpoint.directory.filename().string()},
          {"step", run.checkpoint.step}};
}

bool has_numbers(const RecordJson& json, std::initializer_list<const char*> names) {
  return std::ranges::all_of(
      names, [&](const char* name) { return !json.contains(name) || json[name].is_number(); });
}

/// Whether write_record() wrote it.
bool is_record(const RecordJson& stored) {
  if (!is_intact(stored) || !stored.contains("made_of") || !stored.contains("result")) return false;
  const RecordJson& result = stored["result"];
  if (!result.is_object() || !has_numbers(result, {"model_bytes", "bits_per_weight", "sparsity"})) {
    return false;
  }
  if (!result.contains("errors")) return true;
  const RecordJson& errors = result["errors"];
  return errors.is_object() && has_numbers(errors, {"mean", "worst"}) &&
         errors.contains("worst_tensor") && errors["worst_tensor"].is_string();
}

/// Throws as the readers of a run's checkpoint, configuration and tokenizer do.
void require_whole_run(const fs::path& target) {
  const auto folder = runs::RunFolder::open(target);
  experiment::read_run_config(target);
  runs::require_same_tokenizer(runs::open_checkpoint(target, ""),
                               runs::tokenizer_hashes(folder.read_assets()), target / "tokenizer");
}

/// What one of them has otherwise: "bits is 8 there, now 4".
std::string differences(const RecordJson& there, const RecordJson& now) {
  RecordJson all = there.is_object() ? there : RecordJson::object();
  all.update(now);
  std::string text;
  for (const auto& [key, ignored] : all.items()) {
    const RecordJson was = there.is_object() ? there.value(key, RecordJson()) : RecordJson();
    const RecordJson is = now.value(key, RecordJson());
    if (was == is) continue;
    text += (text.empty() ? "" : "; ") + printable(key) + " is " + printable(was.dump()) +
            " there, now " + is.dump();
  }
  return text;
}

/// The record of a folder in which the same was done before. Throws Error(kUsage) where something
/// else was, and as require_whole_run() does for a damaged one.
std::optional<RecordJson> record_of_same(const fs::path& target, const RecordJson& asked) {
  const fs::path path = target / kRecord;
  if (!fs::exists(path)) return std::nullopt;
  RecordJson stored =
      parse_json(read_file(path, kMaxSmallTextBytes), path.string(), kMaxSmallTextBytes);
  if (!is_record(stored)) {
    throw Error(ExitCode::kBadData,
                path.string() + ": not a record of `stretto compress`, or a damaged one",
                "remove the folder, or give another one with --run");
  }
  stored.erase("checksum");
  for (const char* part : {"made_of", "request"}) {
    if (stored.value(part, RecordJson()) == asked[part]) continue;
    throw Error(ExitCode::kUsage,
                target.string() + " holds a compressed run of another " +
                    (std::string(part) == "made_of" ? "checkpoint: " : "request: ") +
                    differences(stored.value(part, RecordJson()), asked[part]),
                "give a new folder with --run, or remove this one");
  }
  try {
    require_whole_run(target);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    throw Error(error.code(), error.what(),
                "remove " + target.string() + ", and give the same command again");
  }
  return stored;
}

void require_own_checkpoint(const tasks::ExportedRun& run) {
  const auto& checkpoint = run.checkpoint;
  if (checkpoint.run_id != run.folder.run_id()) {
    throw Error(ExitCode::kUsage,
                checkpoint.directory.string() + " is a checkpoint of another run than " +
                    run.folder.directory().string(),
                "compress that run");
  }
  if (!run.has_packed_weights()) return;
  throw Error(ExitCode::kUsage, run.folder.directory().string() + " is compressed already",
              "compress the run that it was made from, whose weights have not been rounded yet");
}

// ---------------------------------------------------------------------------------------------
// Weights.

compress::Rounding rounding_of(const std::string& name) {
  if (name == "nearest") return compress::Rounding::kNearest;
  return name == "calibrated" ? compress::Rounding::kCalibrated : compress::Rounding::kLeastError;
}

/// Of a run that only prunes it says which tensors are matrices: any of them can have 8 bits.
store::QuantPlan packing_plan(const CompressRequest& request, const store::SafetensorsFile& file,
                              const std::string& where) {
  if (request.packs) return store::plan_quantised(file.tensors(), request.quantised, where);
  return store::plan_quantised(file.tensors(), {.kept = request.quantised.kept}, where);
}

std::set<std::string> matrices_of(const store::QuantPlan& plan) {
  std::set<std::string> names;
  for (const auto& tensor : plan.tensors) {
    if (tensor.format) names.insert(tensor.name);
  }
  return names;
}

struct Weights {
  compress::PrunedFile pruned;  ///< without pruning the checkpoint's tensors
  compress::PackedMasks masks;  ///< of the checkpoint, and of what was pruned now
};

Weights weights_of(const CompressRequest& request, const store::LoadedCheckpoint& checkpoint,
                   const store::QuantPlan& plan) {
  const auto& file = checkpoint.file("model");
  auto masks = runs::stored_masks(checkpoint);
  if (request.sparsity <= 0) {
    compress::PrunedFile as_it_is{.file = store::SafetensorsFile(file.tensors(), file.metadata())};
    return Weights{std::move(as_it_is), std::move(masks)};
  }
  auto pruned = compress::prune_file(file, matrices_of(plan), request.sparsity, request.scope);
  auto all = compress::joined(std::move(masks), pruned.masks);
  return Weights{std::move(pruned), std::move(all)};
}

using Inputs = std::map<std::string, std::vector<compress::RowInputs>>;

/// Its vocabulary stays: what is to be done about text that it does not know is to give other text.
void require_known_data(const tasks::FamilyTask& task) {
  try {
    task.require_known_data(/*warn=*/true);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("calibration: ") + error.what(),
                "calibrate with text like that of the training (--calibrate), or round without "
                "calibration");
  }
}

/// What the linear maps see of the validation data with these weights.
Inputs calibration_inputs(const experiment::Experiment& own, const tasks::ExportedRun& run,
                          const store::SafetensorsFile& file) {
  const auto& family = tasks::family_of(own);
  const auto task = family.make_task(own, run.assets, {.group = {}, .device = at::kCPU});
  require_known_data(*task);
  const std::string where = (run.checkpoint.directory / "model.safetensors").string();
  runs::load_weights(file, where, task->model());
  log::info("calibrating with the validation data");
  return train::calibrate(*task);
}

/// Rounded, and zero where a mask says so.
compress::QuantisedModel rounded(const CompressRequest& request, const tasks::ExportedRun& run,
                                 const store::QuantPlan& plan, const Weights& weights) {
  const auto rounding = rounding_of(request.rounding);
  Inputs inputs;
  if (rounding == compress::Rounding::kCalibrated) {
    const auto& own = request.calibration ? *request.calibration : request.experiment;
    inputs = calibration_inputs(experiment::without_teacher(own.options), run, weights.pruned.file);
  }
  auto model = compress::quantise_model(weights.pruned.file, plan, rounding, inputs);
  for (auto& [name, packed] : model.packed) {
    const auto mask = weights.masks.find(name);
    if (mask != weights.masks.end()) compress::hold_zeros(packed, mask->second);
  }
  return model;
}

// ---------------------------------------------------------------------------------------------
// The run that is written.

/// The configuration as it is written, without files that somebody else named
/// (cli/foreign_paths.h): from here on this user answers for it.
experiment::LoadedExperiment stored_experiment(const experiment::Experiment& own,
                                               const std::string& where) {
  experiment::Experiment options = own;
  const std::string toml = config::to_toml(experiment::experiment_schema(options));
  return experiment::load_stored_experiment(toml, where, {});
}

/// What decoding reads from the run folder goes along.
void copy_files(const experiment::Experiment& own, const fs::path& from, const fs::path& to) {
  for (const auto& file : experiment::files_of_folder(own, from)) {
    write_file_atomic(to / file.filename(), read_file(file));
  }
}

runs::RunIdentity begin_compressed_run(runs::RunFolder& folder, const tasks::ExportedRun& run,
                                       const experiment::Experiment& own) {
  const auto stored = stored_experiment(own, run.folder.directory().string());
  if (!run.assets.empty()) folder.write_assets(run.assets);
  copy_files(own, run.folder.directory(), folder.directory());
  folder.write_config(stored.resolved_toml, stored.config_hash);
  runs::RunIdentity identity;
  identity.run_id = folder.run_id();
  identity.config_hash = stored.config_hash;
  identity.tokenizer = runs::tokenizer_hashes(run.assets);
  return identity;
}

/// Pruned weights in the types that they have.
fs::path save_unpacked(const fs::path& directory, const store::LoadedCheckpoint& from,
                       const Weights& weights, const runs::RunIdentity& identity) {
  store::CheckpointContent content;
  content.step = from.step;
  content.run_id = identity.run_id;
  content.config_hash = identity.config_hash;
  content.provenance = runs::provenance_of(identity);
  content.provenance.world_size = from.provenance.world_size;
  content.provenance.tokenizer = from.provenance.tokenizer;
  content.files.emplace_back("model", weights.pruned.file.tensors());
  content.files.emplace_back(std::string(runs::kMasksFile), runs::mask_views(weights.masks));
  content.state_json = from.state_json;
  return store::CheckpointStore(directory).save(content);
}

/// Of tensors that are not packed, counted as a plan does: without the header of the file.
double stored_bits_per_weight(const store::SafetensorsFile& file) {
  double bytes = 0, weights = 0;
  for (const auto& tensor : file.tensors()) {
    bytes += static_cast<double>(tensor.bytes.size());
    weights += static_cast<double>(tensor.num_elements());
  }
  return weights > 0 ? 8 * bytes / weights : 0;
}

double share_of_zeros(const compress::PackedMasks& masks, const store::QuantPlan& plan) {
  int64_t pruned = 0, weights = 0;
  for (const auto& tensor : plan.tensors) {
    if (!tensor.format) continue;
    weights += tensor.num_weights();
    const auto mask = masks.find(tensor.name);
    if (mask == masks.end()) continue;
    pruned += compress::count_pruned(compress::unpack_mask(mask->second, tensor.num_weights()));
  }
  return weights == 0 ? 0 : static_cast<double>(pruned) / static_cast<double>(weights);
}

/// The relative errors of all rounded tensors: their mean, and the tensor that changed most.
RecordJson errors_json(const compress::QuantisedModel& model) {
  RecordJson errors{{"mean", 0.0}, {"worst", 0.0}, {"worst_tensor", ""}};
  double sum = 0, worst = -1;
  for (const auto& [name, error] : model.errors) {
    sum += error;
    if (error <= worst) continue;
    worst = error;
    errors["worst"] = error;
    errors["worst_tensor"] = name;
  }
  if (!model.errors.empty()) errors["mean"] = sum / static_cast<double>(model.errors.size());
  return errors;
}

void require_other_folder(const CompressRequest& request) {
  std::error_code missing;
  if (!fs::equivalent(request.run_directory, request.target, missing)) return;
  throw Error(ExitCode::kUsage, "--run " + request.target + " is the run that is compressed",
              "give a new folder: compression leaves the run as it is");
}

/// What is known before a weight is rounded.
void tell_size(const CompressRequest& request, const store::QuantPlan& plan,
               const runs::RunIdentity& identity, int64_t step) {
  if (request.json || !request.packs) return;
  std::cout << "model.safetensors will have "
            << with_thousands(static_cast<int64_t>(runs::packed_model_bytes(plan, identity, step)))
            << " bytes" << std::endl;
}

RecordJson write_compressed_run(const CompressRequest& request, const tasks::ExportedRun& run,
                                const store::QuantPlan& plan, const fs::path& place) {
  auto folder = runs::RunFolder::open_for_training(place);
  const auto identity = begin_compressed_run(folder, run, request.experiment.options);
  tell_size(request, plan, identity, run.checkpoint.step);
  const Weights weights = weights_of(request, run.checkpoint, plan);
  RecordJson result{{"weights", plan.num_weights()},
                    {"fp32_bytes", plan.fp32_bytes()},
                    {"sparsity", share_of_zeros(weights.masks, plan)}};
  fs::path saved;
  if (request.packs) {
    const auto model = rounded(request, run, plan, weights);
    saved = runs::save_packed(place, run.checkpoint, plan, model, identity, weights.masks);
    result["errors"] = errors_json(model);
  } else {
    saved = save_unpacked(place, run.checkpoint, weights, identity);
  }
  store::CheckpointStore::load(saved);
  const auto bytes = static_cast<uint64_t>(fs::file_size(saved / "model.safetensors"));
  result["model_bytes"] = bytes;
  result["bits_per_weight"] =
      request.packs ? plan.bits_per_weight() : stored_bits_per_weight(weights.pruned.file);
  return result;
}

std::string stack_text(const tasks::SmallerStack& stack) {
  const auto& was = stack.before;
  const auto& is = stack.after;
  return printable(was.prefix) + "layers: " + std::to_string(was.num_layers) + " to " +
         counted(is.num_layers, "layer") + ", " + std::to_string(was.ffn_dim) + " to " +
         counted(is.ffn_dim, "unit") + ", " + std::to_string(was.num_heads) + " to " +
         counted(is.num_heads, "head");
}

RecordJson result_of_smaller(const fs::path& folder,
                             const std::vector<tasks::SmallerStack>& stacks) {
  RecordJson result = RecordJson::object();
  result["stacks"] = RecordJson::array();
  for (const auto& stack : stacks) {
    RecordJson one = RecordJson::object();
    one["prefix"] = stack.after.prefix;
    one["layers"] = stack.after.num_layers;
    one["units"] = stack.after.ffn_dim;
    one["heads"] = stack.after.num_heads;
    result["stacks"].push_back(std::move(one));
  }
  const fs::path model = runs::find_checkpoint(folder, "") / "model.safetensors";
  const store::SafetensorsFile file(model);
  int64_t weights = 0;
  for (const auto& tensor : file.tensors()) weights += tensor.num_elements();
  result["weights"] = weights;
  result["model_bytes"] = static_cast<uint64_t>(fs::file_size(model));
  result["bits_per_weight"] = stored_bits_per_weight(file);
  return result;
}

void write_record(const fs::path& folder, std::chrono::steady_clock::time_point began,
                  RecordJson& record) {
  record["result"]["seconds"] = seconds_since(began);
  write_file_atomic(folder / kRecord, sealed_json(record));
}

/// Without parts of its layers: a model that is trained on.
void write_smaller(const CompressRequest& request, std::chrono::steady_clock::time_point began,
                   RecordJson& record) {
  tasks::SmallerRunRequest asked;
  asked.run_directory = request.run_directory;
  asked.checkpoint = request.checkpoint;
  asked.removal = request.removal;
  asked.micro_batches = request.micro_batches;
  asked.own = request.experiment.options;
  asked.output = request.target;
  asked.add_files = [&](const fs::path& folder, const std::vector<tasks::SmallerStack>& stacks) {
    copy_files(request.experiment.options, request.run_directory, folder);
    record["result"] = result_of_smaller(folder, stacks);
    write_record(folder, began, record);
  };
  for (const auto& stack : tasks::write_smaller_run(asked)) {
    if (!request.json) std::cout << stack_text(stack) << "\n";
  }
}

void tell_compressed(const CompressRequest& request, const RecordJson& record) {
  const RecordJson& result = record["result"];
  if (request.json) {
    RecordJson shown = record;
    shown["run"] = request.target;
    std::cout << as_stored(shown).dump() << std::endl;
    return;
  }
  const auto bytes = result.value("model_bytes", uint64_t{0});
  std::cout << shown_on_stdout(request.target) << ": " << human_bytes(bytes) << ", "
            << fixed(result.value("bits_per_weight", 0.0), 2) << " bits a weight";
  const double sparsity = result.value("sparsity", 0.0);
  if (sparsity > 0) std::cout << ", " << percent_text(sparsity) << " of the matrices zero";
  if (result.contains("errors")) {
    const RecordJson& errors = result["errors"];
    std::cout << "; relative error " << fixed(errors.value("mean", 0.0), 4) << " in the mean, "
              << fixed(errors.value("worst", 0.0), 4) << " of "
              << shown_on_stdout(errors.value("worst_tensor", std::string()));
  }
  std::cout << std::endl;
}

}  // namespace

int run_compress(const CompressRequest& request) {
  require_other_folder(request);
  prepare_process(request.experiment.options);
  tasks::ExportRequest opened;
  opened.experiment = request.experiment;
  opened.run_directory = request.run_directory;
  opened.checkpoint = request.checkpoint;
  const auto run = tasks::open_exported_run(opened);
  require_own_checkpoint(run);
  RecordJson record = as_stored(
      {{"format", 1}, {"made_of", made_of_json(run)}, {"request", request_json(request)}});
  if (const auto there = record_of_same(request.target, record)) {
    log::info(request.target + " is there already");
    tell_compressed(request, *there);
    return 0;
  }
  const auto began = std::chrono::steady_clock::now();
  if (takes_parts_out(request)) {
    write_smaller(request, began, record);
    tell_compressed(request, record);
    return 0;
  }
  const std::string where = (run.checkpoint.directory / "model.safetensors").string();
  const auto plan = packing_plan(request, run.checkpoint.file("model"), where);
  if (!request.json && request.packs) std::cout << plan.table() << std::flush;
  interchange::NewFolder target(request.target);
  record["result"] = write_compressed_run(request, run, plan, target.path());
  write_record(target.path(), began, record);
  target.publish();
  tell_compressed(request, record);
  return 0;
}

}  // namespace stretto::engine
