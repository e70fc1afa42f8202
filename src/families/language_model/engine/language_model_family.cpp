#include "families/language_model/engine/language_model_family.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "families/language_model/engine/commands.h"
#include "families/language_model/engine/language_model.h"
#include "families/language_model/engine/language_run.h"
#include "families/text/engine/text_family.h"
#include "families/text/requests.h"

namespace stretto::tasks {
namespace {

/// A model without memory. Who asks for names alone has no vocabulary: it has as many tokens as the
/// model needs.
std::shared_ptr<models::CausalModel> described_model(const experiment::Experiment& experiment,
                                                     int64_t num_ids) {
  const auto& groups = models::adaptive_softmax_of(language_model_of(experiment).model);
  const int64_t ids = std::max(num_ids, groups.least_tokens());
  return models::make_causal_model(causal_model_setup(experiment, ids, {}, at::kMeta), {});
}

/// Tokens of a sequence, about.
double usual_length(const experiment::LanguageModelOptions& options) {
  const auto& data = options.data;
  return static_cast<double>(models::carries_state(options.model) ? data.bptt
                                                                  : data.max_text_tokens);
}

class LanguageModelFamily final : public TextFamily {
 public:
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<LanguageModelTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_language_model(request, context);
  }
  int infer(const InferRequest& request, const CommandContext& context) const override {
    return infer_language_model(request, context);
  }
  std::string export_model(const ExportedRun& run, const ExportRequest& request) const override {
    return export_language_model(run, request);
  }

  std::string memory_advice(MemoryUse use) const override {
    if (use == MemoryUse::kInfer) return "lower decode.max_tokens";
    if (use == MemoryUse::kEval) return "lower eval.max_tokens, to 256, say";
    return "halve data.max_tokens and double train.update_freq: the batch of an update stays the "
           "same; of a recurrent model double train.update_freq, which cuts its lanes; where "
           "validation was at work, lower eval.max_tokens, to 256, say";
  }

  models::ModelCost model_cost(const CostRequest& request) const override {
    const auto& sizes = request.sizes.as<TextSizes>();
    const auto model = described_model(request.experiment, sizes.rows);
    return models::cost_of(*model, usual_length(language_model_of(request.experiment)));
  }

  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    return make_language_model(experiment, *load_tokenizer(experiment, assets).tokenizer,
                               draws_weights ? at::kCPU : at::kMeta,
                               draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset);
  }

  void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                    const experiment::Experiment& own) const override {
    const int64_t positions = models::max_length_of(language_model_of(other).model);
    const int64_t longest = language_model_of(own).data.max_text_tokens;
    if (positions >= longest) return;
    throw Error(ExitCode::kBadData,
                place.string() + ": its model has " + counted(positions, "learned position") +
                    ", and sequences may have " + counted(longest, "token") +
                    " (data.max_text_tokens)",
                "make the run with the fewest positions the first one");
  }

 protected:
  PlannedModel planned_model(const experiment::Experiment& experiment,
                             int64_t num_ids) const override {
    auto model = described_model(experiment, num_ids);
    auto tied = model->tied_names();
    auto tables = model->vocabulary_tables();
    return {.module = std::move(model), .tied = std::move(tied), .tables = std::move(tables)};
  }
};

}  // namespace

const Family& language_model_family() {
  static const LanguageModelFamily family;
  return family;
}

}  // namespace stretto::tasks
