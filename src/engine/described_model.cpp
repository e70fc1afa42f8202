#include "engine/commands.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "tasks/translation/translation.h"

/// What is asked about a model before it is made: a model without memory answers.
namespace stretto::engine {

std::vector<optim::TensorName> tensor_names(const experiment::Experiment& experiment) {
  constexpr int64_t kAnyIds = 8;  // no name depends on the vocabulary
  const auto model = models::make_model(
      experiment.model, tasks::model_setup(experiment, kAnyIds, kAnyIds, at::kMeta), nullptr);
  return optim::names_of(optim::Arena(*model, optim::Arena::Gradients::kNone));
}

}  // namespace stretto::engine
