#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace stretto::experiment {

/// What tasks on encoded texts have in common, of one experiment: text_classification,
/// question_answering, masked_lm. A view: valid as long as the experiment is, and unchanged.
struct TextSections {
  const models::BertOptions* model = nullptr;
  const text::TextTokenizerOptions* tokenizer = nullptr;
  const TextEvalOptions* eval = nullptr;
  const std::vector<std::string>*train = nullptr, *valid = nullptr, *test = nullptr;  ///< files
  /// Of `[data]`.
  int64_t max_tokens = 0, max_samples = 0, max_text_tokens = 0, prefetch = 0;
  double max_unknown = 0.2;
  bool cuts_start = false;  ///< whether a text that is too long loses its beginning
};

/// Nothing of other families. A family has these sections if its struct has members of these types.
std::optional<TextSections> find_text_sections(const Experiment& experiment);

/// Throws std::bad_optional_access for other families.
TextSections text_sections(const Experiment& experiment);

}  // namespace stretto::experiment
