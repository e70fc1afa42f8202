#include "cli/command.h"
#include "cli/engine.h"

namespace stretto::cli {

std::function<int()> declare_import(CLI::App& app) {
  auto request = std::make_shared<engine::ImportRequest>();
  app.add_option("DIR", request->folder,
                 "folder with config.json, weights and tokenizer, as transformers writes it")
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
  return [request] { return engine().import_model(*request); };
}

}  // namespace stretto::cli
