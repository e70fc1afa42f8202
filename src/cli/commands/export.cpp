#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/first_names.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "experiment/export_formats.h"
#include "interchange/model_folders.h"
#include "interchange/new_folder.h"

namespace stretto::cli {
namespace {

struct ExportArguments {
  std::string run, format, folder, checkpoint, model_type = "auto", weights = "auto";
};

using experiment::ExportFormat, experiment::StoredWeights;

/// Formats of other programs have no classes to choose from.
void require_class_goes_with(const ExportArguments& arguments) {
  const auto known = experiment::known_export_formats();
  const auto format = std::ranges::find(known, arguments.format, &ExportFormat::name);
  if (arguments.model_type == "auto" || (format != known.end() && format->has_classes)) return;
  throw Error(
      ExitCode::kUsage,
      "--model-type " + arguments.model_type + ": --format " + arguments.format +
          " has no such types",
      std::string("leave --model-type out, or take --format ") + experiment::kTransformersFormat);
}

/// "ctranslate2, onnx and gguf": the names of formats that have something.
template <class Has>
std::string names_with(const std::vector<ExportFormat>& formats, Has has) {
  std::vector<std::string> names;
  for (const auto& format : formats) {
    if (std::invoke(has, format)) names.push_back(format.name);
  }
  return listed_names(names);
}

std::string help_of_folder(const std::vector<ExportFormat>& formats) {
  return "folder to write, new or empty; of the format " +
         names_with(formats, &ExportFormat::is_file) + " a new file";
}

/// Which formats there are for which models; safetensors is the last one.
std::string help_of_formats(const std::vector<ExportFormat>& formats) {
  std::string help, before;
  for (const auto& format : formats) {
    if (format.name == experiment::kTransformersFormat) {
      help += format.name + ": config.json, model.safetensors and tokenizer, for transformers";
    } else if (!format.models.empty() && format.models == before) {
      help += ", " + format.name;
    } else {
      help += "; " + format.models + (format.models.empty() ? "" : " ") + format.name;
    }
    before = format.models;
  }
  return help + ", with packed weights as they are";
}

std::string help_of_weights(const std::vector<ExportFormat>& formats) {
  const auto with = [&](StoredWeights weights) {
    return names_with(formats, [&](const ExportFormat& one) { return one.stores(weights); });
  };
  return "how " + with(StoredWeights::kInt8) +
         " store matrices: auto (int8 of a run with packed weights, else float32), float32, int8, "
         "of " +
         with(StoredWeights::kFloat16) + " float16; of " + experiment::kSafetensorsFormat +
         " auto (as they are) and float32";
}

std::vector<std::string> names_of(const std::vector<ExportFormat>& formats) {
  std::vector<std::string> names;
  for (const auto& format : formats) names.push_back(format.name);
  return names;
}

int run_export(const ExportArguments& arguments) {
  require_class_goes_with(arguments);
  interchange::require_free_place(arguments.folder);  // before anything is read or converted
  const engine::ExportRequest request{.experiment = load_run_config(arguments.run, {}),
                                      .run_directory = arguments.run,
                                      .checkpoint = arguments.checkpoint,
                                      .format = arguments.format,
                                      .model_type = arguments.model_type,
                                      .weights = arguments.weights,
                                      .folder = arguments.folder};
  tell_notes(request.experiment.origins);
  return engine().export_model(request);
}

}  // namespace

std::function<int()> declare_export(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  app.add_option("RUN", arguments->run, "run folder")->required()->type_name("");
  const auto formats = experiment::known_export_formats();
  app.add_option("DIR", arguments->folder, help_of_folder(formats))->required()->type_name("");
  app.add_option("--format", arguments->format, help_of_formats(formats))
      ->required()
      ->check(one_of(names_of(formats)))
      ->type_name("FORMAT");
  app.add_option("--checkpoint", arguments->checkpoint, "best, last, a step, a name or a path")
      ->type_name("NAME");
  auto types = interchange::known_model_types();
  const std::string known = join(types, ", ");
  types.insert(types.begin(), "auto");
  app.add_option("--model-type", arguments->model_type,
                 "which class writes it: auto (the nearest that is equal), " + known)
      ->check(one_of(std::move(types)))
      ->type_name("TYPE");
  app.add_option("--weights", arguments->weights, help_of_weights(formats))
      ->check(one_of(experiment::stored_weights_names()))
      ->type_name("TYPE");
  return [arguments] { return run_export(*arguments); };
}

}  // namespace stretto::cli
