#include "families/text/encoder_taken.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/taken_parts.h"
#include "families/text/encoder_sections.h"

namespace stretto::experiment {
namespace {

constexpr std::array<std::string_view, 5> kSizes{
    "model.num_layers", "model.d_model", "model.num_heads", "model.head_dim", "model.ffn_dim"};

// The head is the task's, first weights are drawn anew, and LoRA is merged into weights. Not every
// family chooses its stack by a name.
bool stays_own(const std::string& key) {
  return key == "model.head" || key == "model.pooling" || key == "model.init" ||
         key == "model.name" || key.starts_with("model.lora.");
}

// A preset that is given says the sizes that are not.
bool is_size_of_preset(const std::string& key, const Experiment& own,
                       const config::Origins& given) {
  return given.given("model.preset") && encoder_sections(own).model->preset != "none" &&
         std::find(kSizes.begin(), kSizes.end(), key) != kSizes.end();
}

std::string in_quotes(const std::string& word) {
  return "\"" + word + "\"";
}

// Encoders without a head come from folders of `transformers`. DistilBERT's have neither a pooler
// nor segments, and its labels are read behind a relu.
std::optional<std::string> pooling_of(const OtherModel& other, const Experiment& own) {
  if (!reads_pooled_rows(own)) return std::nullopt;
  const auto& model = *encoder_sections(other.options).model;
  const bool pools =
      model.head == "none" ? models::has_pooler(model) : reads_pooled_rows(other.options);
  if (pools) return in_quotes(model.pooling);
  if (model.head == "none" && model.num_segments == 0) return in_quotes("cls_relu");
  return std::nullopt;
}

}  // namespace

std::vector<TakenValue> encoder_values_of(const OtherModel& other, const Experiment& own,
                                          const config::Origins& given) {
  if (!find_encoder_sections(other.options) || encoder_sections(own).causal != nullptr) return {};
  const TakenParts taken(other.is_own ? std::vector<std::string>() : own.train.init_only,
                         other.tensors);
  Experiment theirs = other.options;
  const auto schema = experiment_schema(theirs);
  std::vector<TakenValue> values;
  const auto add = [&](const config::Key& key) {
    values.push_back({key.path, config::value_text(key.value)});
  };
  for (const auto& key : schema.keys) {
    if (!key.path.starts_with("model.") || !taken.takes_layers("encoder.", "encoder.")) continue;
    if (!stays_own(key.path) && !is_size_of_preset(key.path, own, given)) add(key);
  }
  if (taken.takes("head.", "head.")) {
    if (const auto pooling = pooling_of(other, own)) values.push_back({"model.pooling", *pooling});
  }
  // So many rows have the tables.
  if (own.train.init_vocabulary == "same") add(*schema.find("tokenizer.vocab_multiple"));
  return values;
}

}  // namespace stretto::experiment
