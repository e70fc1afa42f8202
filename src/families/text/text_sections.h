#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/loading.h"
#include "experiment/experiment.h"
#include "families/text/text_eval_options.h"
#include "text/text_tokenizer_options.h"

namespace stretto::experiment {

/// What tasks on texts with one tokenizer have in common, of one experiment, whatever their model
/// is. A view: valid as long as the experiment is, and unchanged.
struct TextSections {
  const text::TextTokenizerOptions* tokenizer = nullptr;
  const TextEvalOptions* eval = nullptr;
  const std::vector<std::string>*train = nullptr, *valid = nullptr, *test = nullptr;  ///< files
  /// Keys of `[data]`.
  int64_t max_tokens = 0, max_samples = 0, max_text_tokens = 0;
  data::Loading loading = {};  ///< as data.prefetch says
  double max_unknown = 0.2;
  bool cuts_start = false;  ///< whether a text that is too long loses its beginning
  std::string cache_dir = {};
};

/// The view of a family's struct, of whose members these have the same types in every family.
template <class Options>
TextSections sections_of(const Options& options) {
  const auto& data = options.data;
  TextSections sections{.tokenizer = &options.tokenizer,
                        .eval = &options.eval,
                        .train = &data.train,
                        .valid = &data.valid,
                        .test = &data.test,
                        .max_tokens = data.max_tokens,
                        .max_samples = data.max_samples,
                        .max_text_tokens = data.max_text_tokens,
                        .loading = {.depth = data.prefetch}};
  if constexpr (requires { data.max_unknown; }) sections.max_unknown = data.max_unknown;
  if constexpr (requires { data.cache_dir; }) sections.cache_dir = data.cache_dir;
  if constexpr (requires { data.truncation; }) sections.cuts_start = data.truncation == "start";
  return sections;
}

/// The sections that the family's rules give (TextRules::sections); nothing for other families.
std::optional<TextSections> find_text_sections(const Experiment& experiment);

/// Throws std::bad_optional_access for other families.
TextSections text_sections(const Experiment& experiment);

}  // namespace stretto::experiment
