#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "text/pretrained_kind.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// The tokenizer of a folder of `transformers`: `tokenizer.json`, `vocab.txt`, or `vocab.json` with
/// `merges.txt`; what `tokenizer_config.json` says of case, accents and spaces counts for the files
/// that do not say it. Files without a `tokenizer.json` get the tokens that `tokenizer_config.json`
/// or `added_tokens.json` adds. Truncation and padding of a tokenizer.json belong to calls and are
/// left out.
///
/// @param expected  the kind of tokenizers that the model is trained with: what a vocab.txt or a
///                  vocab.json does not say is that kind's
/// Throws Error(kUsage) when there is none, Error(kBadData) for one that is malformed or not
/// supported, and for two that disagree.
text::TokenizerSpec read_tokenizer_folder(const std::filesystem::path& folder,
                                          const text::PretrainedKind& expected);

/// `model_max_length` of tokenizer_config.json; 0 where it is missing or no whole number: of a
/// tokenizer without a bound it is 1e30. Throws Error(kBadData) for a file that is no JSON object.
int64_t stated_max_length(const std::filesystem::path& folder);

/// The same tokenizer with all tokens of segment 0.
text::TokenizerSpec without_segments(text::TokenizerSpec spec);

/// The tokenizer of a run as a folder can have it: the one of tokenizer.json.
/// @param assets  of the run folder
/// @param run     for messages
/// Throws Error(kUsage) for a run whose tokenizer is of another kind; Error(kBadData).
text::TokenizerSpec exported_tokenizer(const std::map<std::string, std::string>& assets,
                                       const std::string& run);

/// The files of a tokenizer as `transformers` reads them: name -> bytes.
/// @param max_tokens    longest sequence of the model
/// @param num_segments  of the model; with fewer than two all tokens are of segment 0, and the
///                      tokenizer gives no `token_type_ids`, which not every class takes
std::map<std::string, std::string> tokenizer_files(const text::TokenizerSpec& spec,
                                                   int64_t max_tokens, int64_t num_segments);

}  // namespace stretto::interchange
