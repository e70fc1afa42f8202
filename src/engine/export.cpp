#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "engine/commands.h"
#include "experiment/export_formats.h"
#include "interchange/model_folders.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/exported_run.h"
#include "tasks/registry.h"
#include "tasks/safetensors_folder.h"

namespace stretto::engine {
namespace {

using experiment::ExportFormat, experiment::StoredWeights;

/// A format that has one kind of weights alone. Others are chosen by tasks::stored_weights().
void require_weights(const ExportFormat& format, const std::string& weights) {
  const std::vector<StoredWeights> fp32{StoredWeights::kFloat32};
  const bool is_known = weights == "auto" || weights == name_of_weights(StoredWeights::kFloat32);
  if (is_known || format.weights != fp32) return;
  throw Error(ExitCode::kUsage,
              "--weights " + weights + ": a model of --format " + format.name + " is fp32",
              "leave the option out");
}

/// What is stored wider than in the run is said.
void tell_wider_weights(const tasks::ExportedRun& run, const ExportRequest& request,
                        const ExportFormat& format) {
  constexpr int64_t kInt8 = 8;
  const bool is_auto = request.weights == "auto";
  const bool stays = format.name == experiment::kSafetensorsFormat && is_auto;
  if (!run.has_packed_weights() || stays) return;
  const bool has_int8 = format.stores(StoredWeights::kInt8);
  if (has_int8 && (is_auto || request.weights == name_of_weights(StoredWeights::kInt8))) {
    if (run.fewest_bits() == kInt8) return;
    log::warn("weights of " + counted(run.fewest_bits(), "bit") +
              " are written as int8: --format " + format.name + " is not written with fewer");
    return;
  }
  const bool is_half = request.weights == name_of_weights(StoredWeights::kFloat16);
  log::warn("the packed weights of the run are written as " +
            std::string(is_half ? "fp16" : "fp32") +
            (has_int8 ? ": --weights int8 is smaller"
                      : "; --format safetensors with --weights auto leaves them as they are"));
}

}  // namespace

int run_export(const ExportRequest& request) {
  const auto run = tasks::open_exported_run(request);
  const auto& family = tasks::family_of(run.experiment);
  const auto format = experiment::export_format_of(run.experiment, request.format);
  require_weights(format, request.weights);
  interchange::require_kind_of_class(run.experiment, request.model_type);
  tell_wider_weights(run, request, format);
  const std::string model_class = format.name == experiment::kSafetensorsFormat
                                      ? tasks::export_safetensors(run, request)
                                      : family.export_model(run, request);
  std::cout << shown_on_stdout(request.folder + ": " + model_class + ", from " +
                               tasks::name_of(run.checkpoint.directory, run.folder))
            << std::endl;
  return 0;
}

}  // namespace stretto::engine
