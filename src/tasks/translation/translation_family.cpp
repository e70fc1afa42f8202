#include "tasks/translation/translation_family.h"

#include "base/error.h"
#include "models/seq2seq_options.h"
#include "tasks/translation/commands.h"
#include "tasks/translation/initial_run.h"
#include "tasks/translation/translation.h"

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
        experiment, text::load_tokenizers(experiment.tokenizer, assets), context.device);
    return std::make_unique<TranslationTask>(experiment, std::move(model), context.group);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_translation(request, context);
  }

  int infer(const InferRequest& request, const CommandContext& context) const override {
    return translate_lines(request, context);
  }

  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override {
    check_translation_weights(request, found);
  }

  void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                    const experiment::Experiment& own) const override {
    const auto learned = models::learned_positions(other.model);
    if (learned.tokens >= own.data.max_src_tokens) return;
    throw Error(ExitCode::kBadData,
                place.string() + ": its model has " + std::to_string(learned.tokens) +
                    " learned positions, and sentences may have " +
                    std::to_string(own.data.max_src_tokens) + " tokens (data.max_src_tokens)",
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
