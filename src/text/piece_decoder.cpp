#include "text/piece_decoder.h"

#include <utility>

#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/code_points.h"

namespace stretto::text {
namespace {

/// BERT's spaces before punctuation and contractions, within one piece.
std::string cleaned_up(std::string piece) {
  constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplacements) {
    for (size_t at = piece.find(from); at != std::string::npos;
         at = piece.find(from, at + to.size())) {
      piece.replace(at, from.size(), to);
    }
  }
  return piece;
}

}  // namespace

void PieceDecoder::add(std::string_view piece) {
  const bool is_first = std::exchange(is_first_, false);
  if (spec_.decoder == TokenizerSpec::Decoder::kBytes) {
    text_ += bytes_of_piece(piece).value_or(std::string(piece));
    return;
  }
  const bool has_mark = spec_.decoder == TokenizerSpec::Decoder::kWordPiece;
  std::string next;
  if (has_mark && !is_first && piece.starts_with(spec_.decoder_prefix)) {
    next = piece.substr(spec_.decoder_prefix.size());
  } else {
    next = (is_first ? "" : " ") + std::string(piece);
  }
  text_ += has_mark && spec_.decoder_cleanup ? cleaned_up(std::move(next)) : next;
}

std::string PieceDecoder::text() const {
  return is_valid_utf8(text_) ? text_ : repaired_utf8(text_, Repair::kEachSequence);
}

}  // namespace stretto::text
