#include <string>
#include <utility>

#include "base/error.h"
#include "families/language_model/engine/commands.h"
#include "families/language_model/engine/language_run.h"
#include "families/language_model/folders/export_causal.h"
#include "interchange/tokenizer_folder.h"
#include "tasks/exported_run.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

std::string export_language_model(const ExportedRun& run, const ExportRequest& request) {
  using Transformer = models::CausalTransformerOptions;
  const auto& model = language_model_of(run.experiment).model;
  if (!model.is<Transformer>()) {
    throw Error(
        ExitCode::kUsage,
        "no class of transformers is equal to this model: model.name = \"" + model.name() + "\"",
        "language models with model.name = \"transformer\" are exported");
  }
  const auto& its = interchange::choose_causal_class(model.as<Transformer>(), request.model_type);
  auto tokenizer = interchange::exported_tokenizer(run.assets, request.run_directory);
  run.require_same_tokenizer(run.assets);
  const auto own = text::make_spec_tokenizer(tokenizer, request.run_directory, 0);
  // What stands in front of a prompt here, transformers puts there too, and nothing behind it.
  if (const auto& options = language_model_of(run.experiment); !begins_as_tokenizer(options)) {
    tokenizer.sequences = {};
    tokenizer.sequences.set_front(tokens_before_text(options, *own));
  }
  const auto weights = run.weights();
  interchange::export_causal(
      {.description = {.its = &its, .model = model.as<Transformer>(), .vocab_size = own->size()},
       .tokenizer = std::move(tokenizer),
       .tensors = weights.file.tensors(),
       .end_tokens = language_model_of(run.experiment).decode.end_tokens},
      request.folder);
  return std::string(its.name);
}

}  // namespace stretto::tasks
