#pragma once

#include <optional>

#include "families/text/text_sections.h"
#include "models/bert_options.h"

namespace stretto::experiment {

/// What tasks on encoded texts have in common: those of texts, and the encoder.
struct EncoderSections : TextSections {
  const models::BertOptions* model = nullptr;
};

/// The view of a family's struct, of whose members these have the same types in every family.
template <class Options>
EncoderSections encoder_sections_of(const Options& options) {
  EncoderSections sections{sections_of(options)};
  sections.model = &options.model;
  return sections;
}

/// The sections that the family's rules give (EncoderRules::encoder_sections); nothing for other
/// families.
std::optional<EncoderSections> find_encoder_sections(const Experiment& experiment);

/// Throws std::bad_optional_access for other families.
EncoderSections encoder_sections(const Experiment& experiment);

}  // namespace stretto::experiment
