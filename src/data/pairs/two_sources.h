#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

/// Two sources of one target in one column: the text of both is "FIRST<TAB>SECOND", their ids are
/// `ids(first) eos ids(second) eos`. The first end-of-sentence is the boundary.
namespace stretto::data {

/// Ids that a column of two sources needs at least: one of each source, and two end-of-sentences.
inline constexpr int64_t kLeastTokensOfTwoSources = 4;

/// "FIRST<TAB>SECOND" of two lines, without line ends; a tab inside a line becomes a space.
void join_sources(std::string_view first, std::string_view second, std::string& joined);

struct SourceTexts {
  std::string_view first, second;
};
/// The two lines of a joined one, cut at its first tab; nullopt where there is none.
std::optional<SourceTexts> split_sources(std::string_view joined);

/// Appends `ids(first) eos ids(second)`, without the last end-of-sentence. Neither part has another
/// end-of-sentence inside.
/// @return false, and nothing is appended, where a part has no tokens
bool encode_sources(const text::Tokenizer& tokenizer, std::string_view joined,
                    std::vector<int64_t>& ids);

/// Cuts `ids(first) eos ids(second)` to at most `most` ids. Each source loses the end of its part;
/// of what is left each has the share that it had before, rounded down for the first, and at least
/// one token.
/// @param most  at least kLeastTokensOfTwoSources - 1
/// @param eos   end-of-sentence of their tokenizer
/// @return how many ids are gone
int64_t cut_sources(std::vector<int64_t>& ids, int64_t most, int64_t eos);

/// Tokens of the first source in ids of both: where the first end-of-sentence is, or their number.
size_t end_of_first_source(std::span<const int64_t> ids, int64_t eos);

/// Text of both, "FIRST<TAB>SECOND". @param ids  with or without the last end-of-sentence
std::string decode_sources(const text::Tokenizer& tokenizer, const std::vector<int64_t>& ids);

/// Tokenizer::readable() of each part.
std::string readable_sources(const text::Tokenizer& tokenizer, std::string_view joined);

}  // namespace stretto::data
