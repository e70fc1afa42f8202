#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"

namespace stretto::cli {
namespace {

// Names that the message has no room for stand above it: no other command lists them.
int import_folder(const engine::ImportRequest& request) {
  try {
    return engine().import_model(request);
  } catch (const Error& error) {
    if (!error.details().empty()) log::info(request.folder + ", in full:");
    for (const auto& line : error.details()) log::info("  " + printable(line, 1000));
    throw;
  }
}

}  // namespace

std::function<int()> declare_import(CLI::App& app) {
  auto request = std::make_shared<engine::ImportRequest>();
  app.add_option("DIR", request->folder,
                 "folder with config.json and weights, as transformers writes it, or a file of "
                 "weights of torchvision or timm")
      ->required()
      ->type_name("");
  app.add_option("--run", request->run_directory, "run folder to make; new or empty")
      ->required()
      ->type_name("DIR");
  app.add_flag("--encoder-only", request->options.encoder_only,
               "leave out the head: for `stretto embed`, and for train.init_from");
  app.add_flag("--allow-missing", request->options.allow_missing,
               "give tensors that the folder lacks their first weights");
  app.add_flag("--ignore-extra", request->options.ignore_extra,
               "leave out tensors that the model does not have");
  app.add_option("--labels", request->options.labels,
                 "names of the classes, a line each, where the model's files do not name them")
      ->type_name("FILE");
  return [request] { return import_folder(*request); };
}

}  // namespace stretto::cli
