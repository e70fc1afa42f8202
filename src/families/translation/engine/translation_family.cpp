#include "families/translation/engine/translation_family.h"

#include "base/error.h"
#include "base/text.h"
#include "families/translation/engine/commands.h"
#include "families/translation/engine/initial_run.h"
#include "families/translation/engine/translation.h"
#include "families/translation/translation_options.h"
#include "models/seq2seq_options.h"

namespace stretto::tasks {
namespace {

class TranslationFamily : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    return first_tokenizers(experiment).assets;
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    auto model = make_translation_model(
        experiment, text::load_tokenizers(translation_of(experiment).tokenizer, assets),
        context.device);
    return std::make_unique<TranslationTask>(experiment, std::move(model), context.group);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_translation(request, context);
  }

  int infer(const InferRequest& request, const CommandContext& context) const override {
    return translate_lines(request, context);
  }

  std::string memory_advice(MemoryUse use) const override {
    switch (use) {
      case MemoryUse::kEval:
        return "halve eval.max_tokens and decode.max_tokens";
      case MemoryUse::kInfer:
        return "halve decode.max_tokens";
      case MemoryUse::kTrain:
        break;
    }
    return "halve data.max_tokens and double train.update_freq: the batch of an update stays the "
           "same; where validation was at work, halve eval.max_tokens and decode.max_tokens";
  }

  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    return tasks::tensor_names(experiment);
  }

  models::ModelCost model_cost(const CostRequest& request) const override {
    return tasks::model_cost(request);
  }

  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    auto tokenizers = text::load_tokenizers(translation_of(experiment).tokenizer, assets);
    return make_translation_model(experiment, std::move(tokenizers),
                                  draws_weights ? at::kCPU : at::kMeta,
                                  draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset)
        .model;
  }

  std::string export_model(const ExportedRun& run, const ExportRequest& request) const override {
    return export_translation(run, request);
  }

  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override {
    check_translation_weights(request, found);
  }

  void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                    const experiment::Experiment& own) const override {
    if (models::has_two_encoders(translation_of(other).model) !=
        models::has_two_encoders(translation_of(own).model)) {
      const bool two = models::has_two_encoders(translation_of(other).model);
      throw Error(ExitCode::kBadData,
                  place.string() + ": its model reads " + (two ? "two sources" : "one source") +
                      ", and that of the run " + (two ? "one" : "two"),
                  "models that decode together need the same input: give checkpoints of runs with "
                  "as many sources");
    }
    const auto learned = models::learned_positions(translation_of(other).model);
    if (learned.tokens >= translation_of(own).data.max_src_tokens) return;
    throw Error(ExitCode::kBadData,
                place.string() + ": its model has " + counted(learned.tokens, "learned position") +
                    ", and sentences may have " +
                    counted(translation_of(own).data.max_src_tokens, "token") +
                    " (data.max_src_tokens)",
                "make the run with the fewest positions the first one: stretto infer " +
                    place.string() + " --checkpoint …");
  }
};

}  // namespace

const Family& translation_family() {
  static const TranslationFamily family;
  return family;
}

}  // namespace stretto::tasks
