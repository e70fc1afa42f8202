#include <utility>

#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "interchange/model_folders.h"
#include "interchange/new_folder.h"

namespace stretto::cli {
namespace {

struct ExportArguments {
  std::string run, format, folder, checkpoint, model_type = "auto";
};

int run_export(const ExportArguments& arguments) {
  interchange::require_free_place(arguments.folder);  // before anything is read or converted
  const engine::ExportRequest request{.experiment = load_run_config(arguments.run, {}),
                                      .run_directory = arguments.run,
                                      .checkpoint = arguments.checkpoint,
                                      .format = arguments.format,
                                      .model_type = arguments.model_type,
                                      .folder = arguments.folder};
  tell_notes(request.experiment.origins);
  return engine().export_model(request);
}

}  // namespace

std::function<int()> declare_export(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  app.add_option("RUN", arguments->run, "run folder")->required()->type_name("");
  app.add_option("DIR", arguments->folder, "folder to write; new or empty")
      ->required()
      ->type_name("");
  app.add_option("--format", arguments->format,
                 "hf: config.json, model.safetensors and tokenizer, for transformers; models of "
                 "pictures also timm, torchvision")
      ->required()
      ->check(one_of({"hf", "timm", "torchvision"}))
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
  return [arguments] { return run_export(*arguments); };
}

}  // namespace stretto::cli
