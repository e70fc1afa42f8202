#pragma once

#include <string>
#include <string_view>
#include <vector>

/// What counts as a word, or a character, of a transcript: jiwer's transformations.
namespace stretto::metrics {

/// What is made of a transcript before it is cut into words or characters.
using Normalization = std::u32string (*)(std::u32string text);

/// The text as it is.
std::u32string keep_transcript(std::u32string text);

/// jiwer's `wer_standardize`, but for its last step, which is words_of_transcript(): lower case;
/// English contractions in full ("can't" as "can not", "she's" as "she is"); what stands in <> or
/// [] left out; white space of ASCII as spaces, and two or more of any in a row as one.
std::u32string standardize_transcript(std::u32string text);

/// Throws Error(kUsage) for an unknown name; normalization_names() has them.
Normalization find_normalization(const std::string& name);
/// Whether all transcripts are compared as one, as jiwer's `wer_contiguous` does it, so that there
/// may be other numbers of them on both sides. Throws as find_normalization().
bool is_contiguous(const std::string& normalization);

/// What stands between spaces, where two or more of any white space in a row are one space. A
/// single tab between two words does not part them, in jiwer too.
std::vector<std::u32string> words_of_transcript(std::u32string_view text);

/// Each code point but for white space at both ends. Spaces within count.
std::vector<std::u32string> characters_of_transcript(std::u32string_view text);

}  // namespace stretto::metrics
