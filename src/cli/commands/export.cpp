#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "interchange/model_folders.h"
#include "interchange/new_folder.h"
#include "interchange/stored_weights.h"

namespace stretto::cli {
namespace {

struct ExportArguments {
  std::string run, format, folder, checkpoint, model_type = "auto", weights = "auto";
};

/// Formats of other programs have no classes to choose from.
void require_class_goes_with(const ExportArguments& arguments) {
  const auto& format = arguments.format;
  const bool has_classes = format == "hf" || format == "timm" || format == "torchvision";
  if (arguments.model_type == "auto" || has_classes) return;
  throw Error(
      ExitCode::kUsage,
      "--model-type " + arguments.model_type + ": --format " + format + " has no such types",
      "leave --model-type out, or take --format hf");
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
  app.add_option("DIR", arguments->folder,
                 "folder to write, new or empty; of the format gguf a new file")
      ->required()
      ->type_name("");
  app.add_option(
         "--format", arguments->format,
         "hf: config.json, model.safetensors and tokenizer, for transformers; models of "
         "pictures also timm, torchvision; Transformers of two stacks and language models "
         "ctranslate2; encoders of text onnx; language models of Llama's form gguf; all models "
         "safetensors, with packed weights as they are")
      ->required()
      ->check(one_of({"hf", "timm", "torchvision", "ctranslate2", "onnx", "gguf", "safetensors"}))
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
  app.add_option(
         "--weights", arguments->weights,
         "how ctranslate2, onnx and gguf store matrices: auto (int8 of a run with packed weights, "
         "else float32), float32, int8, of gguf float16; of safetensors auto (as they are) and "
         "float32")
      ->check(one_of(interchange::stored_weights_names()))
      ->type_name("TYPE");
  return [arguments] { return run_export(*arguments); };
}

}  // namespace stretto::cli
