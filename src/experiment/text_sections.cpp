#include "experiment/text_sections.h"

#include <concepts>
#include <type_traits>

namespace stretto::experiment {
namespace {

template <class Options>
concept HasTextSections = requires(const Options& options) {
  { options.model } -> std::same_as<const models::BertOptions&>;
  { options.tokenizer } -> std::same_as<const text::TextTokenizerOptions&>;
  { options.eval } -> std::convertible_to<const TextEvalOptions&>;
  options.data.max_text_tokens;
};

}  // namespace

std::optional<TextSections> find_text_sections(const Experiment& experiment) {
  return experiment.task.visit([](const auto& options) -> std::optional<TextSections> {
    if constexpr (HasTextSections<std::decay_t<decltype(options)>>) {
      const auto& data = options.data;
      TextSections sections{.model = &options.model,
                            .tokenizer = &options.tokenizer,
                            .eval = &options.eval,
                            .train = &data.train,
                            .valid = &data.valid,
                            .test = &data.test,
                            .max_tokens = data.max_tokens,
                            .max_samples = data.max_samples,
                            .max_text_tokens = data.max_text_tokens,
                            .prefetch = data.prefetch};
      if constexpr (requires { data.max_unknown; }) sections.max_unknown = data.max_unknown;
      if constexpr (requires { data.truncation; }) sections.cuts_start = data.truncation == "start";
      return sections;
    } else {
      return std::nullopt;
    }
  });
}

TextSections text_sections(const Experiment& experiment) {
  return find_text_sections(experiment).value();
}

}  // namespace stretto::experiment
