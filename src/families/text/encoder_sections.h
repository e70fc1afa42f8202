#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "families/text/text_sections.h"
#include "models/bert_options.h"
#include "models/label_model_options.h"
#include "nn/adapter_options.h"
#include "nn/lora_options.h"

namespace stretto::experiment {

/// What tasks on encoded texts have in common: those of texts, and the model. It is an encoder, or
/// of text_classification a causal stack (models/text_stack.h): one of the two pointers is null.
struct EncoderSections : TextSections {
  const models::BertOptions* model = nullptr;
  const models::LabelModelOptions* causal = nullptr;

  void set_model(const models::BertOptions& options) { model = &options; }
  void set_model(const models::LabelModelOptions& options) {
    if (options.is<models::BertOptions>()) {
      model = &options.as<models::BertOptions>();
    } else {
      causal = &options;
    }
  }

  /// Whether something is read from the rows (`model.head`).
  bool has_head() const { return causal != nullptr || model->head != "none"; }
  /// Texts of a sequence that have vectors of their own; 0 = none has.
  int64_t num_segments() const { return causal != nullptr ? 0 : model->num_segments; }
  int64_t max_length() const;  ///< tokens that there are positions for
  int64_t d_model() const;     ///< width of token vectors
  const std::vector<std::string>& init() const;
  const nn::LoraOptions& lora() const;
  const nn::AdapterOptions& adapter() const;
};

/// The view of a family's struct, of whose members these have the same types in every family.
template <class Options>
EncoderSections encoder_sections_of(const Options& options) {
  EncoderSections sections{sections_of(options)};
  sections.set_model(options.model);
  return sections;
}

/// The sections that the family's rules give (EncoderRules::encoder_sections); nothing for other
/// families.
std::optional<EncoderSections> find_encoder_sections(const Experiment& experiment);

/// Throws std::bad_optional_access for other families.
EncoderSections encoder_sections(const Experiment& experiment);

/// As EncoderRules::reads_pooled_rows says of the experiment's family. Throws std::bad_cast for
/// other families.
bool reads_pooled_rows(const Experiment& experiment);

}  // namespace stretto::experiment
