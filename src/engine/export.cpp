#include <algorithm>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "engine/commands.h"
#include "interchange/model_folders.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/exported_run.h"
#include "tasks/registry.h"
#include "tasks/safetensors_folder.h"

namespace stretto::engine {
namespace {

void require_format(const tasks::Family& family, const experiment::Experiment& experiment,
                    const std::string& format) {
  auto known = family.export_formats();
  known.emplace_back(tasks::kSafetensorsFormat);
  if (std::ranges::count(known, format) > 0) return;
  throw Error(
      ExitCode::kUsage,
      "--format " + format + ": a model of " + experiment.task.name() + " is not written so",
      "formats for it: " + join(known, ", "));
}

/// Formats that engines run; folders for training packages are fp32.
bool may_be_int8(const std::string& format) {
  return format == "ctranslate2" || format == "gguf" || format == "onnx";
}

void require_weights(const std::string& format, const std::string& weights) {
  if (may_be_int8(format) || std::ranges::count(tasks::safetensors_weights(), weights) > 0) return;
  throw Error(ExitCode::kUsage,
              "--weights " + weights + ": a model of --format " + format + " is fp32",
              "leave the option out");
}

/// What is stored wider than in the run is said.
void tell_wider_weights(const tasks::ExportedRun& run, const ExportRequest& request) {
  constexpr int64_t kInt8 = 8;
  const bool is_auto = request.weights == "auto";
  if (!run.has_packed_weights() || (request.format == tasks::kSafetensorsFormat && is_auto)) return;
  const bool has_int8 = may_be_int8(request.format);
  if (has_int8 && (is_auto || request.weights == "int8")) {
    if (run.fewest_bits() == kInt8) return;
    log::warn("weights of " + counted(run.fewest_bits(), "bit") +
              " are written as int8: --format " + request.format + " is not written with fewer");
    return;
  }
  const std::string type = request.weights == "float16" ? "fp16" : "fp32";
  log::warn("the packed weights of the run are written as " + type +
            (has_int8 ? ": --weights int8 is smaller"
                      : "; --format safetensors leaves them as they are"));
}

}  // namespace

int run_export(const ExportRequest& request) {
  const auto run = tasks::open_exported_run(request);
  const auto& family = tasks::family_of(run.experiment);
  require_format(family, run.experiment, request.format);
  require_weights(request.format, request.weights);
  interchange::require_kind_of_class(run.experiment, request.model_type);
  tell_wider_weights(run, request);
  const std::string model_class = request.format == tasks::kSafetensorsFormat
                                      ? tasks::export_safetensors(run, request)
                                      : family.export_model(run, request);
  std::cout << shown_on_stdout(request.folder + ": " + model_class + ", from " +
                               tasks::name_of(run.checkpoint.directory, run.folder))
            << std::endl;
  return 0;
}

}  // namespace stretto::engine
