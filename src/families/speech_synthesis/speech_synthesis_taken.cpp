#include "families/speech_synthesis/speech_synthesis_taken.h"

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/model_comparison.h"
#include "families/speech_synthesis/speech_synthesis_options.h"

namespace stretto::experiment {
namespace {

bool speaks(const Experiment& experiment) {
  return experiment.task.is<SpeechSynthesisOptions>();
}

// What a model learned to write. How clips were trimmed is the business of each run.
bool is_of_frames(const std::string& key) {
  return key.starts_with("features.") && !key.starts_with("features.trim_");
}

std::string text_of_key(const config::Schema& schema, const std::string& key) {
  const auto* found = schema.find(key);
  return found == nullptr ? "" : config::value_text(found->value);
}

}  // namespace

std::vector<TakenValue> synthesis_values_of(const OtherModel& other, const Experiment& own,
                                            const config::Origins& given) {
  if (!speaks(other.options) || !speaks(own)) return {};
  Experiment theirs = other.options, here = own;
  const auto schema = experiment_schema(theirs), own_schema = experiment_schema(here);
  const std::string name = "model.name";
  const bool differs = text_of_key(schema, name) != text_of_key(own_schema, name);
  if (given.given(name) && differs) return {};
  std::vector<TakenValue> values;
  for (const auto& key : schema.keys) {
    const bool is_of_model = key.path.starts_with("model.") && key.path != "model.init";
    const bool is_of_rows = key.path == "tokenizer.vocab_multiple";
    if (!is_of_model && !is_of_rows && !is_of_frames(key.path)) continue;
    values.push_back({key.path, config::value_text(key.value)});
  }
  return values;
}

std::vector<ModelDifference> synthesis_differences(const Experiment& theirs,
                                                   const Experiment& own) {
  if (!speaks(theirs) || !speaks(own)) return {};
  ModelComparison pair(theirs, own);
  pair.compare("model.name");
  for (const auto& key : pair.hidden_keys()) pair.compare(key);
  return pair.found();
}

}  // namespace stretto::experiment
