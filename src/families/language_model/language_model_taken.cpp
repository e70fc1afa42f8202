#include "families/language_model/language_model_taken.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/model_comparison.h"
#include "experiment/taken_parts.h"
#include "families/language_model/language_model_options.h"

namespace stretto::experiment {
namespace {

constexpr std::array<std::string_view, 4> kPresetSizes{"model.num_layers", "model.d_model",
                                                       "model.num_heads", "model.ffn_dim"};
constexpr const char *kTensors = "decoder.", *kHeadTensors = "output.";

bool is_language_model(const Experiment& experiment) {
  return experiment.task.is<LanguageModelOptions>();
}

const models::CausalModelOptions& model_of(const Experiment& experiment) {
  return experiment.task.as<LanguageModelOptions>().model;
}

// First weights are drawn anew, and LoRA is merged into weights.
bool is_own_key(const std::string& key) {
  return key == "model.init" || key.starts_with("model.lora.");
}

// A preset that is given says the sizes that are not.
bool is_preset_size(const std::string& key, const Experiment& own, const config::Origins& given) {
  const auto& model = model_of(own);
  if (!given.given("model.preset") || !model.is<models::CausalTransformerOptions>()) return false;
  return model.as<models::CausalTransformerOptions>().preset != "none" &&
         std::ranges::find(kPresetSizes, key) != kPresetSizes.end();
}

}  // namespace

std::vector<TakenValue> language_model_values_of(const OtherModel& other, const Experiment& own,
                                                 const config::Origins& given) {
  if (!is_language_model(other.options)) return {};
  const bool same_kind =
      !given.given("model.name") || model_of(other.options).name() == model_of(own).name();
  const TakenParts taken(other.is_own ? std::vector<std::string>() : own.train.init_only,
                         other.tensors);
  Experiment theirs = other.options;
  const auto schema = experiment_schema(theirs);
  std::vector<TakenValue> values;
  const auto add = [&](const config::Key& key) {
    values.push_back({key.path, config::value_text(key.value)});
  };
  if (same_kind && taken.takes_layers(kTensors, kTensors)) {
    for (const auto& key : schema.keys) {
      if (!key.path.starts_with("model.") || is_own_key(key.path)) continue;
      if (!is_preset_size(key.path, own, given)) add(key);
    }
  }
  // So many rows have the tables.
  if (own.train.init_vocabulary == "same") add(*schema.find("tokenizer.vocab_multiple"));
  return values;
}

std::vector<ModelDifference> language_model_differences(const Experiment& theirs,
                                                        const Experiment& own,
                                                        const std::vector<std::string>& stored) {
  if (!is_language_model(theirs)) return {};
  const TakenParts taken(own.train.init_only, stored);
  if (!taken.takes_layers(kTensors, kTensors)) return {};
  const bool adapters =
      models::adapter_of(model_of(theirs)).is_on() && models::adapter_of(model_of(own)).is_on();
  const bool head = taken.takes(kHeadTensors, kHeadTensors);
  ModelComparison pair(theirs, own);
  pair.compare("model.name");
  for (const auto& key : pair.hidden_keys()) {
    const bool is_left_out = (key.starts_with("model.adapter.") && !adapters) ||
                             (key.starts_with("model.adaptive_softmax.") && !head);
    if (!is_left_out) pair.compare(key);
  }
  return pair.found();
}

}  // namespace stretto::experiment
