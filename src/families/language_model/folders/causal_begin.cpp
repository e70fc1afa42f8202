#include "families/language_model/folders/causal_begin.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBeginNotesBytes = size_t{32} << 20;

/// A key has a token, or an object of which `content` is one. Empty where none is named.
std::string begin_token_of(const ConfigReader& config) {
  if (!config.has("bos_token")) return "";
  const nlohmann::json* token = &config.json().at("bos_token");
  if (token->is_object() && token->contains("content")) token = &token->at("content");
  if (!token->is_string()) config.refuse("bos_token", "is no token");
  return token->get<std::string>();
}

std::optional<int64_t> id_of_piece(const text::TokenizerSpec& spec, const std::string& piece) {
  const auto added = std::ranges::find(spec.added, piece, &text::AddedToken::content);
  if (added != spec.added.end()) return added->id;
  const auto known = std::ranges::find(spec.vocab, piece, &text::PieceIds::value_type::first);
  if (known != spec.vocab.end()) return known->second;
  return std::nullopt;
}

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
  const std::string named = config ? begin_token_of(*config) : "";
  const auto id = id_of_piece(spec, named.empty() ? "<s>" : named);
  if (id) {
    spec.sequences.set_front({*id});
  } else if (!named.empty()) {
    config->refuse("bos_token", "is `" + printable(named, 60) + "`, which is not in the vocabulary",
                   "name the token that stands in front of a text, or set add_bos_token to false");
  }
}

}  // namespace stretto::interchange
