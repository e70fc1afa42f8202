#include "families/text/engine/encoder_family.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "families/text/encoder_sections.h"
#include "families/text/engine/embed.h"
#include "families/text/export_formats.h"
#include "families/text/folders/export_model.h"
#include "families/text/folders/onnx_encoder.h"
#include "families/text/folders/text_folders.h"
#include "families/text/requests.h"
#include "interchange/tokenizer_folder.h"
#include "tasks/exported_run.h"

namespace stretto::tasks {

int EncoderFamily::embed(const EmbedRequest& request, const CommandContext& context) const {
  return embed_lines(request, context);
}

models::ModelCost EncoderFamily::model_cost(const CostRequest& request) const {
  const auto& sizes = request.sizes.as<TextSizes>();
  auto setup = text_model_setup(request.experiment, sizes.rows, head(request.experiment, nullptr),
                                at::kMeta);
  return models::cost_of(
      *models::make_text_model(setup),
      {.tokens = sizes.tokens, .head_rows = head_rows(request.experiment, sizes.tokens)});
}

std::shared_ptr<torch::nn::Module> EncoderFamily::make_network(
    const experiment::Experiment& experiment, const Assets& assets, bool draws_weights) const {
  const bool has_head = experiment::encoder_sections(experiment).has_head;
  return make_run_model(experiment, *load_tokenizer(experiment, assets).tokenizer,
                        has_head ? head(experiment, &assets) : TextHead{},
                        draws_weights ? at::kCPU : at::kMeta,
                        draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset);
}

std::string EncoderFamily::export_model(const ExportedRun& run,
                                        const ExportRequest& request) const {
  if (experiment::encoder_sections(run.experiment).causal != nullptr) {
    throw Error(ExitCode::kUsage,
                "model.name: a classifier on the stack of a language model is no class of "
                "transformers that is known, and no encoder",
                "export the language model, or train an encoder (model.name = \"bert\")");
  }
  const bool is_onnx = request.format == experiment::kOnnxFormat;
  const auto stored = stored_weights(run, request);
  const auto names = output_names(run.assets);
  auto tokenizer = interchange::exported_tokenizer(run.assets, request.run_directory);
  run.require_same_tokenizer(run.assets);
  const auto made = text::make_spec_tokenizer(tokenizer, request.run_directory, 0);
  const auto description =
      interchange::description_of_run(run.experiment, made->size(), made->specials().pad, names);
  const bool byte_bpe = tokenizer.model == text::TokenizerSpec::Model::kByteBpe;
  const auto* architecture =
      is_onnx ? nullptr
              : &interchange::choose_architecture(description, byte_bpe, request.model_type);
  const auto weights = run.weights();
  const interchange::ExportedModel exported{
      .description = description,
      .tokenizer = std::move(tokenizer),
      .max_text_tokens = experiment::text_sections(run.experiment).max_text_tokens,
      .tensors = weights.file.tensors()};
  if (is_onnx) {
    interchange::export_onnx_encoder(exported, stored, request.folder);
    return "a graph of ONNX";
  }
  interchange::export_model(exported, *architecture, request.folder);
  return interchange::class_name(*architecture, description.head);
}

void EncoderFamily::require_room(const std::filesystem::path& place,
                                 const experiment::Experiment& other,
                                 const experiment::Experiment& own) const {
  const int64_t positions = experiment::encoder_sections(other).max_length;
  const int64_t longest = experiment::text_sections(own).max_text_tokens;
  if (positions >= longest) return;
  throw Error(ExitCode::kBadData,
              place.string() + ": its model has " + counted(positions, "learned position") +
                  ", and texts may have " + counted(longest, "token") + " (data.max_text_tokens)",
              "make the run with the fewest positions the first one");
}

void EncoderFamily::require_trainable(const experiment::Experiment& experiment) const {
  require_head(experiment);
}

PlannedModel EncoderFamily::planned_model(const experiment::Experiment& experiment,
                                          int64_t num_ids) const {
  auto model = models::make_text_model(
      text_model_setup(experiment, num_ids, head(experiment, nullptr), at::kMeta));
  auto tied = model->tied_names();
  auto tables = model->vocabulary_tables();
  return {.module = std::move(model), .tied = std::move(tied), .tables = std::move(tables)};
}

}  // namespace stretto::tasks
