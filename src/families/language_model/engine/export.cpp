#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "families/language_model/engine/commands.h"
#include "families/language_model/engine/language_run.h"
#include "families/language_model/folders/ctranslate2_causal.h"
#include "families/language_model/folders/export_causal.h"
#include "families/language_model/folders/gguf_causal.h"
#include "families/language_model/language_model_formats.h"
#include "families/text/export_formats.h"
#include "interchange/tokenizer_folder.h"
#include "tasks/exported_run.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

namespace {

/// Writes the model in a format of another program than `transformers`.
/// Returns what the model is there, in words.
std::string write_other_format(const ExportedRun& run, const ExportRequest& request,
                               const interchange::ExportedCausal& model) {
  const auto weights = stored_weights(run, request);
  if (request.format == experiment::kCtranslate2Format) {
    interchange::export_ctranslate2_causal(model, weights, request.folder);
    return "a Generator of CTranslate2";
  }
  interchange::export_gguf_causal(model, weights, request.folder);
  return "GGUF, " + std::string(interchange::gguf_architecture(model.description.model));
}

/// Why another format than that of `transformers` cannot express the model; empty = it can.
std::string incompatibility(const models::CausalTransformerOptions& model,
                            const std::string& format) {
  return format == experiment::kGgufFormat ? interchange::gguf_incompatibility(model)
                                           : interchange::ctranslate2_incompatibility(model);
}

}  // namespace

std::string export_language_model(const ExportedRun& run, const ExportRequest& request) {
  using Transformer = models::CausalTransformerOptions;
  const auto& model = language_model_of(run.experiment).model;
  if (!model.is<Transformer>()) {
    throw Error(
        ExitCode::kUsage,
        "no class of transformers is equal to this model: model.name = \"" + model.name() + "\"",
        "language models with model.name = \"transformer\" are exported");
  }
  const bool is_hf = request.format == experiment::kTransformersFormat;
  const interchange::CausalClass* its = nullptr;
  if (is_hf) {
    its = &interchange::choose_causal_class(model.as<Transformer>(), request.model_type);
  } else {
    require_expressed(request, incompatibility(model.as<Transformer>(), request.format));
  }
  auto tokenizer = interchange::exported_tokenizer(run.assets, request.run_directory);
  run.require_same_tokenizer(run.assets);
  const auto own = text::make_spec_tokenizer(tokenizer, request.run_directory, 0);
  // What stands in front of a prompt here, transformers puts there too, and nothing behind it.
  if (const auto& options = language_model_of(run.experiment); !begins_as_tokenizer(options)) {
    tokenizer.sequences = {};
    tokenizer.sequences.set_front(tokens_before_text(options, *own));
  }
  const auto weights = run.weights();
  const interchange::ExportedCausal exported{
      .description = {.its = its, .model = model.as<Transformer>(), .vocab_size = own->size()},
      .tokenizer = std::move(tokenizer),
      .tensors = weights.file.tensors(),
      .end_tokens = language_model_of(run.experiment).decode.end_tokens};
  if (!is_hf) return write_other_format(run, request, exported);
  interchange::export_causal(exported, request.folder);
  return std::string(its->name);
}

}  // namespace stretto::tasks
