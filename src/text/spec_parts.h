#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "text/json_fields.h"
#include "text/wordpiece.h"

/// For the readers of tokenizer.json, vocab.json and merges.txt alone.
namespace stretto::text {

inline constexpr size_t kMaxTokenizerBytes = size_t{128} << 20;
inline constexpr int64_t kMaxPieceId = 10'000'000;
inline constexpr const char* kSaveAgain = "give a file as Hugging Face's `tokenizers` saves it";

/// Throws Error(kBadData) where most ids have no piece: an embedding would have a row for each of
/// them.
/// @param pieces  by ascending id
void require_dense(const PieceIds& pieces, const std::string& place);

/// An object of pieces with ids, no two of them equal, by ascending id.
PieceIds read_piece_ids(const JsonValue& value);

/// "left right"
std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& place);

}  // namespace stretto::text
