#include "text/spec_parts.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::text {
namespace {

constexpr uint64_t kBytesOfPiece = 256, kBytesOfMerge = 320;
constexpr uint64_t kCopies = 8;  // of the text of a piece

void require_short(std::string_view piece, const std::string& place) {
  if (piece.size() <= kMaxSpecPieceBytes) return;
  throw Error(ExitCode::kBadData,
              place + ": a piece of " + with_thousands(std::ssize(piece)) + " bytes (`" +
                  printable(piece, 20) + "`), at most 65,536 are allowed",
              "give the vocabulary of a tokenizer: a piece is a part of a word");
}

}  // namespace

void take_piece(std::string_view piece, const std::string& place, Allowance& allowance) {
  require_short(piece, place);
  allowance.take(kBytesOfPiece + kCopies * piece.size(), "its pieces");
}

void take_merge(const std::pair<std::string, std::string>& merge, const std::string& place,
                Allowance& allowance) {
  require_short(merge.first, place);
  require_short(merge.second, place);
  allowance.take(kBytesOfMerge + kCopies * (merge.first.size() + merge.second.size()),
                 "its merges");
}

void require_dense(const PieceIds& pieces, const std::string& place) {
  constexpr int64_t kSpare = 1000;
  if (pieces.empty() || pieces.back().second < 2 * std::ssize(pieces) + kSpare) return;
  throw Error(ExitCode::kBadData,
              place + ": " + counted(std::ssize(pieces), "piece") + ", but ids up to " +
                  std::to_string(pieces.back().second),
              "number the pieces from 0 on");
}

PieceIds read_piece_ids(const JsonValue& value, Allowance& allowance) {
  const JsonFields fields(value);
  PieceIds pieces;
  pieces.reserve(value.json().size());
  for (const auto& [piece, number] : value.json().items()) {
    take_piece(piece, value.place(), allowance);
    const JsonValue id(number, value.place() + "[\"" + printable(piece, 60) + "\"]");
    pieces.emplace_back(piece, id.number(kMaxPieceId));
  }
  if (pieces.empty()) value.refuse("the vocabulary is empty", kSaveAgain);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].second != pieces[i - 1].second) continue;
    value.refuse("`" + printable(pieces[i - 1].first, 60) + "` and `" +
                     printable(pieces[i].first, 60) + "` both have id " +
                     std::to_string(pieces[i].second),
                 "give each token an id of its own");
  }
  require_dense(pieces, value.place());
  return pieces;
}

std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& place) {
  const size_t gap = line.find(' ');
  if (gap == std::string_view::npos || line.find(' ', gap + 1) != std::string_view::npos) {
    throw Error(
        ExitCode::kBadData,
        place + ": `" + printable(line, 60) + "` is not two pieces with a space between them",
        kSaveAgain);
  }
  return {std::string(line.substr(0, gap)), std::string(line.substr(gap + 1))};
}

}  // namespace stretto::text
