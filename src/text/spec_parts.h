#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/allowance.h"
#include "text/json_fields.h"
#include "text/wordpiece.h"

/// For the readers of tokenizer.json, vocab.json and merges.txt alone.
namespace stretto::text {

inline constexpr size_t kMaxTokenizerBytes = size_t{128} << 20;
inline constexpr int64_t kMaxPieceId = 10'000'000;
inline constexpr size_t kMaxSpecPieceBytes = size_t{64} << 10;
inline constexpr const char* kSaveAgain = "give a file as Hugging Face's `tokenizers` saves it";

/// Takes what a piece, a merge or an added token needs: in a spec, in the tokenizer that is made of
/// it, and in the tokenizer.json of a run, which stand side by side during an import.
/// Throws Error(kBadData) for a piece of more than 64 KiB, and as Allowance::take() does.
void take_piece(std::string_view piece, const std::string& place, Allowance& allowance);
void take_merge(const std::pair<std::string, std::string>& merge, const std::string& place,
                Allowance& allowance);

/// Throws Error(kBadData) where most ids have no piece: an embedding would have a row for each of
/// them.
/// @param pieces  by ascending id
void require_dense(const PieceIds& pieces, const std::string& place);

/// An object of pieces with ids, no two of them equal, by ascending id.
PieceIds read_piece_ids(const JsonValue& value, Allowance& allowance);

/// "left right"
std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& place);

}  // namespace stretto::text
