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
  /// Facts of the one that is there.
  bool has_head = true;      ///< whether something is read from the rows (`model.head`)
  int64_t num_segments = 0;  ///< texts of a sequence that have vectors of their own; 0 = none has
  int64_t max_length = 0;    ///< tokens that there are positions for
  int64_t d_model = 0;       ///< width of token vectors
  const std::vector<std::string>* init = nullptr;
  const nn::LoraOptions* lora = nullptr;
  const nn::AdapterOptions* adapter = nullptr;

  void set_model(const models::BertOptions& options);
  void set_model(const models::LabelModelOptions& options);
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

/// As EncoderRules::reads_pooled_rows says of the experiment's family; false for other families.
bool reads_pooled_rows(const Experiment& experiment);

}  // namespace stretto::experiment
