#include "families/language_model/folders/causal_begin.h"

#include <optional>
#include <string>

#include "base/text.h"
#include "interchange/config_reader.h"
#include "interchange/special_tokens.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBeginNotesBytes = size_t{32} << 20;

/// Whether `transformers` reads the tokenizer by a class of Llama's.
bool is_llamas(const std::optional<ConfigReader>& config, const CausalClass& its) {
  const std::string name = config ? config->text("tokenizer_class", "") : "";
  if (name.empty()) return &its == &kLlama || &its == &kMistral;
  return name.starts_with("Llama") || name.starts_with("CodeLlama");
}

}  // namespace

void set_causal_begin(const fs::path& folder, const CausalClass& its, text::TokenizerSpec& spec) {
  const fs::path path = folder / "tokenizer_config.json";
  std::optional<ConfigReader> config;
  if (fs::exists(path)) config = read_config_file(path, kMaxBeginNotesBytes);
  if (!is_llamas(config, its)) return;
  if (config && !config->flag("add_bos_token", true)) {
    spec.sequences.set_front({});
    return;
  }
  const std::string named = config ? named_token(*config, "bos_token") : "";
  const auto id = id_of_token(spec, named.empty() ? "<s>" : named);
  if (id) {
    spec.sequences.set_front({*id});
  } else if (!named.empty()) {
    config->refuse("bos_token", "is `" + printable(named, 60) + "`, which is not in the vocabulary",
                   "name the token that stands in front of a text, or set add_bos_token to false");
  }
}

}  // namespace stretto::interchange
