#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "interchange/config_reader.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// The token that a key of such a file names, as a string or as the `content` of an object; empty
/// where it names none. Throws Error(kBadData) for anything else.
std::string named_token(const ConfigReader& names, const char* key);

/// The id of an added token or of a piece; nothing where the tokenizer has neither.
std::optional<int64_t> id_of_token(const text::TokenizerSpec& spec, const std::string& token);

/// The special tokens of a tokenizer that was read, against those that tokenizer_config.json and
/// special_tokens_map.json name.
///
/// Compared are the keys that its model has a use for: `cls_token` and `sep_token`, which stand
/// around a text, `pad_token`, `mask_token`, and of WordPiece `unk_token`. `bos_token` and
/// `eos_token` count for byte-level BPE where the file has no `cls_token` or `sep_token`.
class SpecialTokens {
 public:
  /// @param path  the file that was read. A tokenizer.json says itself what stands around a text;
  ///              of other files the tokens with the names of BERT and RoBERTa do
  /// Throws Error(kBadData) as text::make_spec_tokenizer() does.
  SpecialTokens(const text::TokenizerSpec& spec, const std::filesystem::path& path);

  /// Missing and empty keys are passed over. Throws Error(kBadData) that names file, key and both
  /// tokens for one that is not in the vocabulary, or is another than the tokenizer's.
  void require_same(const ConfigReader& names) const;

 private:
  struct Role {
    const char* key;
    const char* instead;           ///< counts where there is no `key`; null = nothing does
    bool stands_around;            ///< around every text
    std::vector<std::string> own;  ///< the tokenizer's; several may stand around a text
  };

  [[noreturn]] void refuse(const ConfigReader& names, const char* key, const std::string& token,
                           const Role& role) const;

  std::string file_;  ///< without its folder
  bool is_json_;
  std::unordered_set<std::string> vocabulary_;
  std::vector<Role> roles_;
};

}  // namespace stretto::interchange
