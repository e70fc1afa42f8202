#include "models/registry.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "tasks/translation/commands.h"
#include "tasks/translation/translation.h"

/// What is asked about a model before it is made: a model without memory answers.
namespace stretto::tasks {

std::vector<optim::TensorName> tensor_names(const experiment::Experiment& experiment) {
  constexpr int64_t kAnyIds = 8;  // no name depends on the vocabulary
  const auto model = models::make_model(
      experiment.model, tasks::model_setup(experiment, kAnyIds, kAnyIds, at::kMeta), nullptr);
  auto names = optim::names_of(optim::Arena(*model, optim::Arena::Gradients::kNone));
  optim::add_tied_names(model->tied_names(), names);
  return names;
}

models::ModelCost model_cost(const CostRequest& request) {
  const models::ModelSetup setup{.src_rows = request.src_rows,
                                 .tgt_rows = request.tgt_rows,
                                 .num_tgt_classes = request.tgt_rows,
                                 .device = at::kMeta};
  models::ModelCost cost = models::cost_of(
      *models::make_model(request.experiment.model, setup, nullptr), request.lengths);
  if (request.experiment.loss.has_r_drop()) cost.training_flops *= 2;  // two passes
  return cost;
}

}  // namespace stretto::tasks
