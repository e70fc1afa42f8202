#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Text as characters, which are code points: a file of them, and how it is made. The tokenizer is
/// make_characters() (text/tokenizer.h).
namespace stretto::text {

/// Whether these bytes are a file of characters: a JSON list of strings. Other files of tokenizers
/// are a JSON object, lines, or binary.
bool is_character_file(std::string_view bytes);

/// A JSON list of the characters of a text, in the order of code points. Where there are more than
/// `most`, the most frequent of them, and of equal ones the first.
/// Throws Error(kBadData) for a text without a character.
std::string train_characters(const std::vector<std::string>& lines, int64_t most);

}  // namespace stretto::text
