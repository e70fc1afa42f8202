#include "families/speech_recognition/speech_recognition_taken.h"

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/model_comparison.h"
#include "families/speech_recognition/speech_recognition_options.h"

namespace stretto::experiment {
namespace {

bool is_recogniser(const Experiment& experiment) {
  return experiment.task.is<SpeechRecognitionOptions>();
}

// First weights are drawn anew, LoRA is merged into weights, and dropout is the run's own matter.
bool is_drawn_by_recogniser(const std::string& key) {
  return key == "model.init" || key.starts_with("model.lora.");
}

// Keys of [features] that change no number in evaluation.
bool is_of_training_sounds(const std::string& key) {
  return key == "features.dither";
}

std::string speech_key_value(const config::Schema& schema, const std::string& key) {
  const auto* found = schema.find(key);
  return found == nullptr ? "" : config::value_text(found->value);
}

bool is_of_speech_dropout(const std::string& key) {
  return key.ends_with("dropout") || key.ends_with("dropout_scale") ||
         key.ends_with("label_smoothing") || key.ends_with("norm_momentum");
}

}  // namespace

std::vector<TakenValue> speech_values_of(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given) {
  if (!is_recogniser(other.options) || !is_recogniser(own)) return {};
  Experiment theirs = other.options, here = own;
  const auto schema = experiment_schema(theirs), own_schema = experiment_schema(here);
  for (const char* key : {"model.name", "model.preset"}) {
    const bool differs = speech_key_value(schema, key) != speech_key_value(own_schema, key);
    if (given.given(key) && differs) return {};
  }
  std::vector<TakenValue> values;
  for (const auto& key : schema.keys) {
    const bool is_of_model = key.path.starts_with("model.") && !is_drawn_by_recogniser(key.path);
    const bool is_of_features =
        key.path.starts_with("features.") && !is_of_training_sounds(key.path);
    if (!is_of_model && !is_of_features) continue;
    values.push_back({key.path, config::value_text(key.value)});
  }
  return values;
}

std::vector<ModelDifference> speech_differences(const Experiment& theirs, const Experiment& own) {
  if (!is_recogniser(theirs) || !is_recogniser(own)) return {};
  ModelComparison pair(theirs, own);
  pair.compare("model.name");
  for (const auto& key : pair.hidden_keys()) {
    if (!key.starts_with("model.adapter.") && !is_of_speech_dropout(key)) pair.compare(key);
  }
  return pair.found();
}

}  // namespace stretto::experiment
