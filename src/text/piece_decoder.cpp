#include "text/piece_decoder.h"

#include <utility>

#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/code_points.h"
#include "text/subwords.h"

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

/// Bytes that are UTF-8 together, or else U+FFFD for each.
std::string spelt_by_bytes(const std::string& bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) append_utf8(text, 0xFFFD);
  return text;
}

std::string with_spaces(std::string_view piece) {
  std::string text(piece);
  for (size_t at = text.find(kWordStart); at != std::string::npos; at = text.find(kWordStart, at)) {
    text.replace(at, kWordStart.size(), " ");
  }
  return text;
}

}  // namespace

void PieceDecoder::add(std::string_view piece) {
  const bool is_first = std::exchange(is_first_, false);
  if (spec_.decoder == TokenizerSpec::Decoder::kMarks) return add_marked(piece);
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

void PieceDecoder::add_marked(std::string_view piece) {
  if (const auto byte = byte_of_fallback(piece)) {
    bytes_ += *byte;
    return;
  }
  text_ += spelt_by_bytes(std::exchange(bytes_, {}));
  text_ += with_spaces(piece);
}

std::string PieceDecoder::text() const {
  if (spec_.decoder == TokenizerSpec::Decoder::kMarks) {
    const std::string text = text_ + spelt_by_bytes(bytes_);
    return text.substr(spec_.decoder_strips && text.starts_with(' ') ? 1 : 0);
  }
  return is_valid_utf8(text_) ? text_ : repaired_utf8(text_, Repair::kEachSequence);
}

}  // namespace stretto::text
