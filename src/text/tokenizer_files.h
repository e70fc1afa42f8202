#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace stretto::text {

/// What a file of a tokenizer is.
enum class TokenizerFile : uint8_t {
  kSentencePiece,  ///< a `.model`, or bytes that are no text
  kTokenizerJson,  ///< Hugging Face's `tokenizer.json`
  kVocabJson,      ///< GPT-2's `vocab.json`, which `merges.txt` belongs to
  kBertVocab,      ///< BERT's `vocab.txt`: has lines `[UNK]`, `[CLS]` and `[SEP]`
  kCharacters,     ///< a JSON list of characters (text/characters.h)
  kVocabulary,     ///< another list of tokens
};
TokenizerFile kind_of_file(std::string_view bytes, const std::filesystem::path& path);

struct TokenizerFileOptions {
  bool is_wordpiece = false;           ///< a list of tokens is a vocab.txt, whatever its lines are
  std::filesystem::path merges = {};   ///< of a vocab.json; empty = the `merges.txt` beside it
  std::optional<bool> lowercase = {};  ///< of a vocab.txt; not given = as it shows
};

/// The file's tokenizer as one file: BERT's vocab.txt and GPT-2's pair become the tokenizer.json
/// that says the same, everything else stays as it is. Throws Error(kUsage) where merges are
/// missing, Error(kBadData) for malformed files.
std::string model_bytes(std::string_view bytes, const std::filesystem::path& path,
                        const TokenizerFileOptions& options = {});

/// Whether a model in one file is a tokenizer.json; else it is a list of characters
/// (is_character_file()) or a SentencePiece model.
bool is_json_model(std::string_view bytes);

/// The tokenizer of a SentencePiece model, of a tokenizer.json or of a list of characters.
std::shared_ptr<const Tokenizer> make_model_tokenizer(const std::string& bytes,
                                                      std::string_view where);

}  // namespace stretto::text
