#include "families/translation/causal_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/model_comparison.h"
#include "experiment/taken_parts.h"
#include "families/text/text_rules.h"
#include "families/translation/translation_options.h"
#include "models/causal_options.h"
#include "models/seq2seq_options.h"

namespace stretto::experiment {
namespace {

constexpr const char* kLanguageTensors = "decoder.";

std::string quoted_word(const std::string& word) {
  return "\"" + word + "\"";
}

// A recurrent decoder of translation reads more than the words: it takes no layers.
std::optional<models::CausalTransformerOptions> causal_transformer_of(
    const Experiment& experiment) {
  const auto stack = find_causal_stack(experiment);
  if (!stack || !stack->is<models::CausalTransformerOptions>()) return std::nullopt;
  return stack->as<models::CausalTransformerOptions>();
}

// An encoder or decoder.
struct TakingPart {
  std::string tensors, section;  // "encoders.0.", "model.encoders.0"
  bool is_transformer = false;
  bool scales = false;  // multiplies its token vectors
};

std::vector<TakingPart> taking_parts_of(const models::Seq2SeqOptions& model) {
  std::vector<TakingPart> parts;
  models::each_encoder(model, [&](const auto& encoder, const std::string& section) {
    parts.push_back({.tensors = section.substr(section.find('.') + 1) + ".",
                     .section = section,
                     .is_transformer = encoder.template is<models::StackOptions>()});
  });
  const auto decoders = models::decoders_of(model);
  for (size_t i = 0; i < decoders.size(); ++i) {
    const bool several = !model.heads.empty();
    parts.push_back({.tensors = several ? "decoders." + model.heads[i].name + "." : "decoder.",
                     .section = models::decoder_section(model, i),
                     .is_transformer = decoders[i]->is<models::StackOptions>()});
  }
  const auto kinds = models::embedding_kinds(model);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].scales = kinds[i].scales(model.embedding_scale);
  }
  return parts;
}

// Keys of their layers that layers of translation do not have, with the values that they compute
// by.
constexpr std::array<std::pair<const char*, const char*>, 5> kOtherForms{{
    {"model.qk_norm", "false"},
    {"model.sliding_window", "0"},
    {"model.attention_softcap", "0.0"},
    {"model.rope.base", "10000.0"},
    {"model.rope.scaling", "\"none\""},
}};

void compare_forms(const models::CausalTransformerOptions& stack, ModelComparison& models) {
  for (const auto& [key, value] : kOtherForms) {
    const auto* theirs = models.theirs().find(key);
    const bool is_turned = std::string(key).starts_with("model.rope.");
    if (theirs == nullptr || (is_turned && stack.positions != "rotary")) continue;
    models.compare_values(
        {.key = key, .theirs = config::value_text(theirs->value), .own = value, .key_there = key});
  }
  // As models/transformer_layers.cpp has it without a LayerForm.
  const double epsilon = stack.norm_layer == "rms_norm" ? 1e-6 : 1e-5;
  models.compare_values({.key = "model.norm_epsilon",
                         .theirs = config::number_text(stack.norm_epsilon),
                         .own = config::number_text(epsilon),
                         .key_there = "model.norm_epsilon"});
}

class LanguageModelValues {
 public:
  LanguageModelValues(const models::CausalTransformerOptions& stack, const Experiment& own,
                      const config::Origins& given)
      : stack_(stack), own_(own), given_(given), schema_(experiment_schema(own_)) {}

  // The part has Transformer layers, unless its section says another kind.
  void take_sizes(const std::string& section) {
    const std::string name = section + ".name";
    const auto* kind = schema_.find(name);
    const std::string transformer = quoted_word(models::StackOptions::kName);
    if (given_.given(name) && kind != nullptr && config::value_text(kind->value) != transformer) {
      return;
    }
    const auto sizes = models::sizes_of(stack_);
    add(name, transformer);
    add(section + ".num_layers", std::to_string(sizes.num_layers));
    add(section + ".num_heads", std::to_string(sizes.num_heads));
    add(section + ".ffn_dim", std::to_string(sizes.ffn_dim));
    add(section + ".num_kv_heads", std::to_string(stack_.num_kv_heads));
  }

  void take_style() {
    add("model.d_model", std::to_string(models::sizes_of(stack_).d_model));
    add_choice("model.norm", stack_.norm);
    add_choice("model.norm_layer", stack_.norm_layer);
    add("model.parallel_residual", stack_.parallel_residual ? "true" : "false");
    add_choice("model.activation", stack_.activation);
    add_choice("model.positions", stack_.positions);
    if (stack_.positions == "learned") {
      add("model.max_positions", std::to_string(stack_.max_positions));
    }
    add_choice("model.embedding_scale", stack_.embedding_scale);
  }

  void take_rows(int64_t vocab_multiple) {
    add("tokenizer.vocab_multiple", std::to_string(vocab_multiple));
  }

  std::vector<TakenValue> found() { return std::move(values_); }

 private:
  void add(const std::string& key, const std::string& value) { values_.push_back({key, value}); }

  // A value that the key does not know is left to differences_of_language_model() to tell.
  void add_choice(const std::string& key, const std::string& value) {
    const auto* own = schema_.find(key);
    if (own == nullptr) return;
    const auto& choices = own->range.choices;
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) {
      add(key, quoted_word(value));
    }
  }

  const models::CausalTransformerOptions& stack_;
  Experiment own_;  // the schema is bound to it
  const config::Origins& given_;
  config::Schema schema_;
  std::vector<TakenValue> values_;
};

}  // namespace

std::vector<TakenValue> values_of_language_model(const OtherModel& other, const Experiment& own,
                                                 const config::Origins& given) {
  const auto stack = causal_transformer_of(other.options);
  if (!stack || own.train.init_only.empty()) return {};
  const TakenParts taken(own.train.init_only, other.tensors);
  LanguageModelValues values(*stack, own, given);
  bool takes_layers = false;
  const auto take = [&](const char* list, const char* section, const char* tensors) {
    if (given.given(list) || !taken.takes_layers(tensors, kLanguageTensors)) return;
    takes_layers = true;
    values.take_sizes(section);
  };
  take("model.encoders", "model.encoder", "encoder.");
  take("model.heads", "model.decoder", "decoder.");
  if (takes_layers) values.take_style();
  if (own.train.init_vocabulary == "same") {
    values.take_rows(text_sections(other.options).tokenizer->vocab_multiple);
  }
  return values.found();
}

std::vector<ModelDifference> differences_of_language_model(const Experiment& theirs,
                                                           const Experiment& own,
                                                           const std::vector<std::string>& stored) {
  if (!find_causal_stack(theirs)) return {};
  ModelComparison models(theirs, own);
  if (own.train.init_only.empty()) {
    models.compare("task.name");
    return models.found();
  }
  const auto stack = causal_transformer_of(theirs);
  if (!stack) return {};
  const TakenParts taken(own.train.init_only, stored);
  bool takes_layers = false, compares_scale = true;
  for (const TakingPart& part : taking_parts_of(translation_of(own).model)) {
    if (!taken.takes(part.tensors, kLanguageTensors)) continue;
    const std::string scale = part.scales ? "sqrt" : "none";
    if (compares_scale && scale != stack->embedding_scale) {
      models.compare_values({.key = "model.embedding_scale",
                             .theirs = quoted_word(stack->embedding_scale),
                             .own = quoted_word(scale),
                             .key_there = "model.embedding_scale"});
      compares_scale = false;  // said once for all parts
    }
    if (!part.is_transformer || !taken.takes_layers(part.tensors, kLanguageTensors)) continue;
    takes_layers = true;
    const std::string heads = part.section + ".num_heads";
    models.compare_values({.key = heads,
                           .theirs = std::to_string(models::sizes_of(*stack).num_heads),
                           .own = config::value_text(models.own().find(heads)->value),
                           .key_there = "model.num_heads"});
  }
  if (!takes_layers) return models.found();
  for (const char* key : {"model.norm", "model.norm_layer", "model.parallel_residual",
                          "model.activation", "model.positions"}) {
    models.compare(key);
  }
  compare_forms(*stack, models);
  return models.found();
}

}  // namespace stretto::experiment
