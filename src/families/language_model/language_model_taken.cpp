#include "families/language_model/language_model_taken.h"

#include "experiment/model_comparison.h"
#include "experiment/taken_parts.h"
#include "families/language_model/language_model_options.h"
#include "families/text/causal_taken.h"

namespace stretto::experiment {
namespace {

constexpr const char *kTensors = "decoder.", *kHeadTensors = "output.";

bool is_language_model(const Experiment& experiment) {
  return experiment.task.is<LanguageModelOptions>();
}

const models::CausalModelOptions& model_of(const Experiment& experiment) {
  return experiment.task.as<LanguageModelOptions>().model;
}

}  // namespace

std::vector<TakenValue> language_model_values_of(const OtherModel& other, const Experiment& own,
                                                 const config::Origins& given) {
  if (!is_language_model(other.options)) return {};
  return causal_values_of(other, own, given);
}

std::vector<ModelDifference> language_model_differences(const Experiment& theirs,
                                                        const Experiment& own,
                                                        const std::vector<std::string>& stored) {
  if (!is_language_model(theirs)) return {};
  const TakenParts taken(own.train.init_only, stored);
  if (!taken.takes_layers(kTensors, kTensors)) return {};
  ModelComparison pair(theirs, own);
  compare_stacks(model_of(theirs), model_of(own), taken.takes(kHeadTensors, kHeadTensors), pair);
  return pair.found();
}

}  // namespace stretto::experiment
