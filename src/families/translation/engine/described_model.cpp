#include "families/translation/engine/commands.h"
#include "families/translation/engine/translation.h"
#include "families/translation/requests.h"
#include "families/translation/translation_options.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "optim/groups.h"

/// What is asked about a model before it is made: a model without memory answers.
namespace stretto::tasks {

std::vector<optim::TensorName> tensor_names(const experiment::Experiment& experiment) {
  constexpr int64_t kAnyIds = 8;  // no name depends on the vocabulary
  const auto model =
      models::make_model(translation_of(experiment).model,
                         tasks::model_setup(experiment, kAnyIds, kAnyIds, at::kMeta), nullptr);
  auto names = optim::names_of(optim::Arena(*model, optim::Arena::Gradients::kNone));
  optim::add_tied_names(model->tied_names(), names);
  return names;
}

models::ModelCost model_cost(const CostRequest& request) {
  const auto& sizes = request.sizes.as<TranslationSizes>();
  const models::ModelSetup setup{.src_rows = sizes.src_rows,
                                 .tgt_rows = sizes.tgt_rows,
                                 .num_tgt_classes = sizes.tgt_rows,
                                 .device = at::kMeta};
  models::ModelCost cost = models::cost_of(
      *models::make_model(translation_of(request.experiment).model, setup, nullptr), sizes.lengths);
  if (translation_of(request.experiment).loss.has_r_drop()) cost.training_flops *= 2;  // two passes
  return cost;
}

}  // namespace stretto::tasks
