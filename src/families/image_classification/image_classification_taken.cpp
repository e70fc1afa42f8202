#include "families/image_classification/image_classification_taken.h"

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/model_comparison.h"
#include "families/image_classification/image_classification_options.h"

namespace stretto::experiment {
namespace {

bool is_of_images(const Experiment& experiment) {
  return experiment.task.is<ImageClassificationOptions>();
}

// First weights are drawn anew, and LoRA is merged into weights.
bool is_drawn_anew(const std::string& key) {
  return key == "model.init" || key.starts_with("model.lora.");
}

// What a model was trained to see.
bool is_of_pixels(const std::string& key) {
  return key == "augment.mean" || key == "augment.std";
}

std::string version_text(const models::ResNetShape& shape) {
  if (shape.version == models::ResNetVersion::kV2) return "\"v2\"";
  // A block of two convolutions is the same in v1 and v1.5.
  const bool strides_first = shape.bottleneck && shape.version == models::ResNetVersion::kV1;
  return strides_first ? "\"v1\"" : "\"v1.5\"";
}

// What a key comes to whose value a preset may give, as TOML writes it; empty for other keys and
// kinds of models.
std::string value_that_counts(const Experiment& experiment, const std::string& key) {
  const auto& model = images_of(experiment).model;
  if (key == "model.version" && model.is<models::ResNetOptions>()) {
    return version_text(models::shape_of(model.as<models::ResNetOptions>()));
  }
  if (key == "model.num_heads" && model.is<models::VitOptions>()) {
    return std::to_string(models::sizes_of(model.as<models::VitOptions>()).num_heads);
  }
  return "";
}

std::string value_of_key(const config::Schema& schema, const std::string& key) {
  const auto* found = schema.find(key);
  return found == nullptr ? "" : config::value_text(found->value);
}

}  // namespace

std::vector<TakenValue> image_values_of(const OtherModel& other, const Experiment& own,
                                        const config::Origins& given) {
  if (!is_of_images(other.options) || !is_of_images(own)) return {};
  Experiment theirs = other.options, here = own;
  const auto schema = experiment_schema(theirs), own_schema = experiment_schema(here);
  for (const char* key : {"model.name", "model.preset"}) {
    const bool differs = value_of_key(schema, key) != value_of_key(own_schema, key);
    if (given.given(key) && differs) return {};
  }
  std::vector<TakenValue> values;
  for (const auto& key : schema.keys) {
    const bool is_of_model = key.path.starts_with("model.") && !is_drawn_anew(key.path);
    if (!is_of_model && !is_of_pixels(key.path)) continue;
    values.push_back({key.path, config::value_text(key.value)});
  }
  return values;
}

std::vector<ModelDifference> image_differences(const Experiment& theirs, const Experiment& own) {
  if (!is_of_images(theirs) || !is_of_images(own)) return {};
  ModelComparison pair(theirs, own);
  pair.compare("model.name");
  for (const auto& key : pair.hidden_keys()) {
    const bool is_shape_of_adapters = key.starts_with("model.adapter.");
    if (is_shape_of_adapters) continue;
    const std::string there = value_that_counts(theirs, key), here = value_that_counts(own, key);
    if (there.empty() || here.empty()) {
      pair.compare(key);
    } else {
      pair.compare_values({.key = key, .theirs = there, .own = here, .key_there = key});
    }
  }
  return pair.found();
}

}  // namespace stretto::experiment
