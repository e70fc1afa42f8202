#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "interchange/config_reader.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// The files of a tokenizer without tokenizer.json, beside its vocabulary; null where there are
/// none.
struct TokenizerNotes {
  std::optional<ConfigReader> config;  ///< tokenizer_config.json
  std::optional<ConfigReader> map;     ///< special_tokens_map.json
  std::optional<ConfigReader> added;   ///< added_tokens.json
};

/// The largest of these files.
inline constexpr size_t kMaxNotesBytes = size_t{32} << 20;

/// The files of a folder. Throws Error(kBadData) for one that is larger, or no JSON object.
/// @param with_added  whether added_tokens.json is read: a tokenizer.json has all tokens itself
TokenizerNotes read_tokenizer_notes(const std::filesystem::path& folder, bool with_added,
                                    Allowance& allowance);

/// Gives a tokenizer the tokens that these files add to its vocabulary: those of
/// `added_tokens_decoder` in tokenizer_config.json, else those of added_tokens.json, which are
/// plain text unless a file names them as special. A token of the vocabulary is then looked for in
/// the text too, and another one has the next id behind it.
///
/// @param vocabulary  the file that the tokenizer was read from
/// @param allowance  of the folder's reading, from which the tokens are taken
/// Throws Error(kBadData) with file and key for entries that are malformed, for an id that the
/// vocabulary or the other file contradicts, for one that leaves a gap, and for a token of more
/// than 64 KiB.
void take_added_tokens(const TokenizerNotes& notes, const std::filesystem::path& vocabulary,
                       text::TokenizerSpec& spec, Allowance& allowance);

}  // namespace stretto::interchange
