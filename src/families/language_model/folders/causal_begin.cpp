#include "families/language_model/folders/causal_begin.h"

#include <algorithm>
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

/// Classes that put `<s>` in front unless add_bos_token is false; what reads a tokenizer.model
/// alone is one of them.
bool begins_by_itself(const fs::path& folder, const std::optional<ConfigReader>& config) {
  const std::string name = config ? config->text("tokenizer_class", "") : "";
  if (name.empty()) {
    return fs::exists(folder / "tokenizer.model") && !fs::exists(folder / "tokenizer.json");
  }
  return name.starts_with("Llama") || name.starts_with("CodeLlama");
}

}  // namespace

void set_causal_begin(const fs::path& folder, text::TokenizerSpec& spec) {
  const fs::path path = folder / "tokenizer_config.json";
  std::optional<ConfigReader> config;
  if (fs::exists(path)) config = read_config_file(path, kMaxBeginNotesBytes);
  const bool is_said = config && config->has("add_bos_token");
  if (!is_said && (!spec.sequences.front().empty() || !begins_by_itself(folder, config))) return;
  if (is_said && !config->flag("add_bos_token", false)) {
    spec.sequences.set_front({});
    return;
  }
  std::string token = config ? begin_token_of(*config) : "";
  if (token.empty() && !is_said) token = "<s>";
  const auto id = id_of_piece(spec, token);
  if (id) {
    spec.sequences.set_front({*id});
  } else if (is_said) {
    config->refuse(
        "add_bos_token",
        "is true, and " + (token.empty() ? "no bos_token is named"
                                         : "the tokenizer has no `" + printable(token, 60) + "`"),
        "name the token that stands in front of a text, or set the key to false");
  }
}

}  // namespace stretto::interchange
