#include "interchange/special_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "text/encoded_text.h"
#include "text/tokenizer.h"

namespace stretto::interchange {
namespace {

using Tokens = std::vector<std::string>;

/// Special tokens before a text, and behind it.
std::pair<Tokens, Tokens> tokens_around(const text::Tokenizer& tokenizer) {
  std::pair<Tokens, Tokens> found;
  bool is_behind = false;
  const text::SequenceTemplate sequences = text::template_of(tokenizer);
  for (const auto& slot : sequences.single) {
    if (slot.part == text::SequenceTemplate::Part::kSpecial) {
      (is_behind ? found.second : found.first).push_back(tokenizer.piece(slot.id));
    } else {
      is_behind = true;
    }
  }
  return found;
}

Tokens token_of(const text::Tokenizer& tokenizer, int64_t id) {
  return id < 0 ? Tokens() : Tokens{tokenizer.piece(id)};
}

}  // namespace

std::string named_token(const ConfigReader& names, const char* key) {
  if (!names.has(key)) return "";
  const nlohmann::json* token = &names.json().at(key);
  if (token->is_object()) {
    const auto content = token->find("content");
    if (content != token->end()) token = &*content;
  }
  if (!token->is_string()) {
    names.refuse(key, "is no token: neither a string nor an object with a string as `content`",
                 "name the token that the weights were trained with, or remove the key");
  }
  return token->get<std::string>();
}

std::optional<int64_t> id_of_token(const text::TokenizerSpec& spec, const std::string& token) {
  const auto added = std::ranges::find(spec.added, token, &text::AddedToken::content);
  if (added != spec.added.end()) return added->id;
  const auto known = std::ranges::find(spec.vocab, token, &text::PieceIds::value_type::first);
  if (known != spec.vocab.end()) return known->second;
  return std::nullopt;
}

SpecialTokens::SpecialTokens(const text::TokenizerSpec& spec, const std::filesystem::path& path)
    : file_(path.filename().string()), is_json_(file_ == "tokenizer.json") {
  const auto tokenizer = text::make_spec_tokenizer(spec, path.string(), 0);
  for (const auto& [piece, id] : spec.vocab) vocabulary_.insert(piece);
  for (const auto& token : spec.added) vocabulary_.insert(token.content);
  const bool is_bytes = spec.model != text::TokenizerSpec::Model::kWordPiece;
  auto [before, behind] = tokens_around(*tokenizer);
  const auto ids = tokenizer->specials();
  const auto add = [&](const char* key, Tokens own) {
    roles_.push_back(
        {.key = key, .instead = nullptr, .stands_around = false, .own = std::move(own)});
  };
  roles_.push_back({.key = "cls_token",
                    .instead = is_bytes ? "bos_token" : nullptr,
                    .stands_around = true,
                    .own = std::move(before)});
  roles_.push_back({.key = "sep_token",
                    .instead = is_bytes ? "eos_token" : nullptr,
                    .stands_around = true,
                    .own = std::move(behind)});
  add("pad_token", token_of(*tokenizer, ids.pad));
  add("mask_token", token_of(*tokenizer, ids.mask));
  // Bytes spell every text.
  if (!is_bytes) add("unk_token", token_of(*tokenizer, ids.unk));
}

void SpecialTokens::require_same(const ConfigReader& names) const {
  for (const Role& role : roles_) {
    const char* key = role.key;
    std::string token = named_token(names, key);
    // A class that has these alone may put nothing around a text.
    if (token.empty() && role.instead != nullptr && !role.own.empty()) {
      key = role.instead;
      token = named_token(names, key);
    }
    if (token.empty() || std::find(role.own.begin(), role.own.end(), token) != role.own.end())
      continue;
    // A tokenizer without such a token: a tokenizer.json may know it and not use it, and
    // transformers adds what older files lack behind the vocabulary, where no text has it. But
    // what the model is to see around each text would be missing.
    if (role.own.empty() && (is_json_ ? vocabulary_.contains(token) : !role.stands_around))
      continue;
    refuse(names, key, token, role);
  }
}

void SpecialTokens::refuse(const ConfigReader& names, const char* key, const std::string& token,
                           const Role& role) const {
  std::vector<std::string> own;
  for (const auto& piece : role.own) own.push_back("`" + printable(piece, 60) + "`");
  const bool is_known = vocabulary_.contains(token);
  names.refuse(key,
               "is `" + printable(token, 60) +
                   (is_known ? "`, and " : "`, which is not in the vocabulary; ") + file_ +
                   " has " + (own.empty() ? "no token" : join(own, ", ")) + " for it",
               is_json_ ? "correct the one of the two that the weights were not trained with"
                        : "correct the key, or add the tokenizer.json that was saved with the "
                          "weights");
}

}  // namespace stretto::interchange
