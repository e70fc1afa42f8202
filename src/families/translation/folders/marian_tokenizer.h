#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "families/translation/folders/marian.h"
#include "text/tokenizer.h"

/// Marian's tokenizers: a SentencePiece model for each side, and vocabularies with the ids.
namespace stretto::interchange {

/// Under the names of a run's files: src.model, tgt.model, and vocab.json of both sides or
/// src.vocab.json and tgt.vocab.json.
using TokenizerAssets = std::map<std::string, std::string>;

/// Reads source.spm, target.spm, vocab.json and, where the sides have a vocabulary each,
/// target_vocab.json. @param shares_tables  as config.json says. Throws Error(kUsage) for a missing
/// file; Error(kBadData) for a damaged one, with its path, for special tokens of other names, and
/// where config.json and tokenizer_config.json disagree about the vocabularies.
TokenizerAssets read_marian_tokenizer(const std::filesystem::path& folder, bool shares_tables);

/// The files of MarianTokenizer, by name; none where it cannot be equal to the run's tokenizers,
/// which are not SentencePiece models then.
std::map<std::string, std::string> marian_tokenizer_files(const text::TokenizerPair& tokenizers,
                                                          int64_t max_tokens);

}  // namespace stretto::interchange
