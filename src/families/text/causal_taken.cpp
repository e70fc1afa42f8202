#include "families/text/causal_taken.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/taken_parts.h"
#include "families/text/text_rules.h"

namespace stretto::experiment {
namespace {

constexpr std::array<std::string_view, 4> kStackSizes{"model.num_layers", "model.d_model",
                                                      "model.num_heads", "model.ffn_dim"};
constexpr std::array<std::string_view, 5> kCausalHeadKeys{"model.pooling", "model.head_dropout",
                                                          "model.head_units", "model.head_norm",
                                                          "model.head_units_dropout"};
constexpr const char* kStackTensors = "decoder.";
constexpr const char* kStackName = "model.name";

bool is_among(const std::string& key, const auto& keys) {
  return std::ranges::find(keys, key) != keys.end();
}

// First weights are drawn anew, and LoRA is merged into weights.
bool is_new_here(const std::string& key) {
  return key == "model.init" || key.starts_with("model.lora.");
}

std::string stated_value(const config::Schema& schema, const std::string& key) {
  const auto* found = schema.find(key);
  return found == nullptr ? "" : config::value_text(found->value);
}

}  // namespace

std::vector<TakenValue> causal_values_of(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given) {
  const TakenParts taken(other.is_own ? std::vector<std::string>() : own.train.init_only,
                         other.tensors);
  Experiment theirs = other.options, here = own;
  const auto schema = experiment_schema(theirs), own_schema = experiment_schema(here);
  const bool same_kind = !given.given(kStackName) ||
                         stated_value(schema, kStackName) == stated_value(own_schema, kStackName);
  // A preset that is given says the sizes that are not.
  const bool keeps_sizes =
      given.given("model.preset") && stated_value(own_schema, "model.preset") != "\"none\"";
  std::vector<TakenValue> values;
  const auto add = [&](const config::Key& key) {
    values.push_back({key.path, config::value_text(key.value)});
  };
  for (const auto& key : schema.keys) {
    if (!key.path.starts_with("model.") || is_new_here(key.path) || !same_kind) continue;
    if (is_among(key.path, kCausalHeadKeys)) {
      if (taken.takes("head.", "head.")) add(key);
    } else if (taken.takes_layers(kStackTensors, kStackTensors)) {
      if (!keeps_sizes || !is_among(key.path, kStackSizes)) add(key);
    }
  }
  // So many rows have the tables.
  if (own.train.init_vocabulary == "same") add(*schema.find("tokenizer.vocab_multiple"));
  return values;
}

void compare_stacks(const models::CausalModelOptions& theirs, const models::CausalModelOptions& own,
                    bool takes_output, ModelComparison& pair) {
  const bool adapters = models::adapter_of(theirs).is_on() && models::adapter_of(own).is_on();
  pair.compare(kStackName);
  for (const auto& key : pair.hidden_keys()) {
    const bool is_left_out = (key.starts_with("model.adapter.") && !adapters) ||
                             (key.starts_with("model.adaptive_softmax.") && !takes_output);
    if (!is_left_out) pair.compare(key);
  }
}

std::vector<ModelDifference> causal_differences(const Experiment& theirs, const Experiment& own,
                                                const std::vector<std::string>& stored) {
  const auto before = find_causal_stack(theirs), now = find_causal_stack(own);
  const TakenParts taken(own.train.init_only, stored);
  ModelComparison pair(theirs, own);
  if (!before || !now) {
    pair.compare(kStackName);
    return pair.found();
  }
  if (taken.takes_layers(kStackTensors, kStackTensors)) {
    compare_stacks(*before, *now, /*takes_output=*/true, pair);
  }
  if (taken.takes("head.", "head.")) {
    pair.compare("model.pooling");
    pair.compare("model.head_norm");
  }
  return pair.found();
}

}  // namespace stretto::experiment
