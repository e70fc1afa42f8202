#include "families/translation/causal_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>

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

// "none": recurrent language models multiply by nothing.
std::string scale_of(const models::CausalModelOptions& stack) {
  return stack.is<models::CausalTransformerOptions>()
             ? stack.as<models::CausalTransformerOptions>().embedding_scale
             : "none";
}

// An encoder or decoder.
struct TakingPart {
  std::string tensors, section;  // "encoders.0.", "model.encoders.0"
  std::string kind;              // "transformer"
  bool is_decoder = false;
  bool scales = false;  // multiplies its token vectors
};

std::vector<TakingPart> taking_parts_of(const models::Seq2SeqOptions& model) {
  std::vector<TakingPart> parts;
  models::each_encoder(model, [&](const auto& encoder, const std::string& section) {
    parts.push_back({.tensors = section.substr(section.find('.') + 1) + ".",
                     .section = section,
                     .kind = encoder.name()});
  });
  const auto decoders = models::decoders_of(model);
  for (size_t i = 0; i < decoders.size(); ++i) {
    const bool several = !model.heads.empty();
    parts.push_back({.tensors = several ? "decoders." + model.heads[i].name + "." : "decoder.",
                     .section = models::decoder_section(model, i),
                     .kind = decoders[i]->name(),
                     .is_decoder = true});
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
  LanguageModelValues(const Experiment& own, const config::Origins& given)
      : own_(own), given_(given), schema_(experiment_schema(own_)) {}

  // The part has layers of this kind, unless its section says another.
  bool may_be(const std::string& kind, const std::string& section) const {
    const std::string name = section + ".name";
    const auto* stated = schema_.find(name);
    return !given_.given(name) || stated == nullptr ||
           config::value_text(stated->value) == quoted_word(kind);
  }

  void take_sizes(const models::CausalTransformerOptions& stack, const std::string& section) {
    const auto sizes = models::sizes_of(stack);
    add(section + ".name", quoted_word(models::StackOptions::kName));
    add(section + ".num_layers", std::to_string(sizes.num_layers));
    add(section + ".num_heads", std::to_string(sizes.num_heads));
    add(section + ".ffn_dim", std::to_string(sizes.ffn_dim));
    add(section + ".num_kv_heads", std::to_string(stack.num_kv_heads));
  }

  // Layers without residuals, all of the width of the first. In a decoder the first alone attends.
  void take_sizes(const models::CausalLstmModelOptions& stack, const std::string& section) {
    add(section + ".name", quoted_word(models::LstmDecoderOptions::kName));
    add(section + ".cell", quoted_word(stack.cell));
    add(section + ".num_layers", std::to_string(stack.num_layers));
    add(section + ".hidden_dim",
        std::to_string(stack.units(stack.d_model, /*layer=*/0, stack.rows_width())));
    add(section + ".residual_from", std::to_string(stack.num_layers));
    if (section == "model.decoder") add(section + ".context_to", quoted_word("first"));
    if (section == "model.encoder") add(section + ".bidirectional", "false");
  }

  void take_style(const models::CausalTransformerOptions& stack) {
    add("model.d_model", std::to_string(models::sizes_of(stack).d_model));
    add_choice("model.norm", stack.norm);
    add_choice("model.norm_layer", stack.norm_layer);
    add("model.parallel_residual", stack.parallel_residual ? "true" : "false");
    add_choice("model.activation", stack.activation);
    add_choice("model.positions", stack.positions);
    if (stack.positions == "learned") {
      add("model.max_positions", std::to_string(stack.max_positions));
    }
    add_choice("model.embedding_scale", stack.embedding_scale);
  }

  void take_style(const models::CausalLstmModelOptions& stack) {
    add("model.d_model", std::to_string(stack.d_model));
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

  Experiment own_;  // the schema is bound to it
  const config::Origins& given_;
  config::Schema schema_;
  std::vector<TakenValue> values_;
};

// How recurrent layers differ where their shapes may be the same, or say little.
void compare_recurrent(const models::CausalLstmModelOptions& stack, const TakingPart& part,
                       ModelComparison& models) {
  const auto own = [&](const std::string& leaf) -> const config::Key& {
    return *models.own().find(part.section + "." + leaf);
  };
  const auto compare = [&](const std::string& leaf, const std::string& theirs,
                           const std::string& key_there) {
    models.compare_values({.key = part.section + "." + leaf,
                           .theirs = theirs,
                           .own = config::value_text(own(leaf).value),
                           .key_there = key_there});
  };
  compare("cell", quoted_word(stack.cell), "model.cell");
  const int64_t layers = *std::get<int64_t*>(own("num_layers").value);
  const std::string residual_from = "residual_from";
  if (*std::get<int64_t*>(own(residual_from).value) < layers) {
    compare(residual_from, std::to_string(stack.num_layers), part.section + "." + residual_from);
  }
  if (part.is_decoder && layers > 1) {
    compare("context_to", quoted_word("first"), part.section + ".context_to");
  }
}

void compare_layers(const models::CausalTransformerOptions& stack, const TakingPart& part,
                    ModelComparison& models) {
  const std::string heads = part.section + ".num_heads";
  models.compare_values({.key = heads,
                         .theirs = std::to_string(models::sizes_of(stack).num_heads),
                         .own = config::value_text(models.own().find(heads)->value),
                         .key_there = "model.num_heads"});
}

void compare_style(const models::CausalTransformerOptions& stack, ModelComparison& models) {
  for (const char* key : {"model.norm", "model.norm_layer", "model.parallel_residual",
                          "model.activation", "model.positions"}) {
    models.compare(key);
  }
  compare_forms(stack, models);
}

}  // namespace

std::vector<TakenValue> values_of_language_model(const OtherModel& other, const Experiment& own,
                                                 const config::Origins& given) {
  const auto stack = find_causal_stack(other.options);
  if (!stack || own.train.init_only.empty()) return {};
  const TakenParts taken(own.train.init_only, other.tensors);
  LanguageModelValues values(own, given);
  bool takes_layers = false;
  const auto take = [&](const char* list, const char* section, const char* tensors) {
    if (given.given(list) || !taken.takes_layers(tensors, kLanguageTensors)) return;
    takes_layers = true;
    if (!values.may_be(stack->name(), section)) return;
    stack->visit([&](const auto& kind) { values.take_sizes(kind, section); });
  };
  take("model.encoders", "model.encoder", "encoder.");
  take("model.heads", "model.decoder", "decoder.");
  if (takes_layers) stack->visit([&](const auto& kind) { values.take_style(kind); });
  if (own.train.init_vocabulary == "same") {
    values.take_rows(text_sections(other.options).tokenizer->vocab_multiple);
  }
  return values.found();
}

std::vector<ModelDifference> differences_of_language_model(const Experiment& theirs,
                                                           const Experiment& own,
                                                           const std::vector<std::string>& stored) {
  const auto stack = find_causal_stack(theirs);
  if (!stack) return {};
  ModelComparison models(theirs, own);
  if (own.train.init_only.empty()) {
    models.compare("task.name");
    return models.found();
  }
  const TakenParts taken(own.train.init_only, stored);
  const bool is_recurrent = stack->is<models::CausalLstmModelOptions>();
  bool takes_layers = false, compares_scale = true;
  for (const TakingPart& part : taking_parts_of(translation_of(own).model)) {
    if (!taken.takes(part.tensors, kLanguageTensors)) continue;
    const std::string scale = part.scales ? "sqrt" : "none";
    if (compares_scale && scale != scale_of(*stack)) {
      models.compare_values({.key = "model.embedding_scale",
                             .theirs = quoted_word(scale_of(*stack)),
                             .own = quoted_word(scale),
                             .key_there = "model.embedding_scale"});
      compares_scale = false;  // said once for all parts
    }
    if (!taken.takes_layers(part.tensors, kLanguageTensors)) continue;
    if (part.kind != stack->name()) {
      models.compare_values({.key = part.section + ".name",
                             .theirs = quoted_word(stack->name()),
                             .own = quoted_word(part.kind),
                             .key_there = "model.name"});
    } else if (is_recurrent) {
      compare_recurrent(stack->as<models::CausalLstmModelOptions>(), part, models);
    } else {
      takes_layers = true;
      compare_layers(stack->as<models::CausalTransformerOptions>(), part, models);
    }
  }
  if (takes_layers) compare_style(stack->as<models::CausalTransformerOptions>(), models);
  return models.found();
}

}  // namespace stretto::experiment
