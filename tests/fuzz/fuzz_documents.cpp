// Fuzz target: plain text as documents, of joined lines, exact, and as JSON lines. Lines, pieces or
// an Error come out; documents begin where the header says, exact text is that of the file, and
// masking changes no token that it does not name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/documents/document_lines.h"
#include "data/documents/exact_text.h"
#include "data/documents/json_documents.h"
#include "data/documents/masking.h"
#include "tests/data/memory_stream.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace {

using namespace stretto;

void require(bool fact) {
  if (!fact) std::abort();
}

void mask_line(std::string_view line, uint64_t key) {
  static const auto tokenizer = text::make_spec_tokenizer(
      text::parse_vocab_txt("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\n.\n", "fuzz"),
      "fuzz", 1);
  static const data::Masker tokens(*tokenizer, {}), words(*tokenizer, {.whole_words = true});
  std::vector<int64_t> ids;
  tokenizer->encode(line, ids);
  for (const auto* masker : {&tokens, &words}) {
    std::vector<int64_t> masked = ids, positions, labels;
    masker->mask(masked, key, positions, labels);
    require(positions.size() == labels.size());
    for (size_t i = 0; i < positions.size(); ++i) {
      masked.at(static_cast<size_t>(positions[i])) = labels[i];
    }
    require(masked == ids);
  }
}

/// With `bad`, a line may be missing where another one begins no document.
void read_documents(std::string_view text, data::DocumentEnd end, data::BadSamples* bad) {
  data::DocumentLines lines(std::make_unique<testing::MemoryStream>(text), "fuzz", end, bad);
  std::string_view line;
  int64_t before = 0;
  for (bool begins = false; lines.next(line, begins);) {
    const bool is_blank = line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
    require(!is_blank || end == data::DocumentEnd::kEachLine);
    const bool after_blank = lines.line_number() > before + 1;
    const bool is_first = end != data::DocumentEnd::kBlankLine || before == 0;
    require(bad != nullptr ? begins || !is_first : begins == (is_first || after_blank));
    before = lines.line_number();
    if (line.size() < 2000) mask_line(line, static_cast<uint64_t>(before));
  }
}

/// Pieces are stretches of the text, in its order; of files all of it.
void read_exact(std::string_view text, const data::ExactDocuments& documents,
                data::BadSamples* bad) {
  data::ExactText pieces(std::make_unique<testing::MemoryStream>(text), "fuzz", documents, bad);
  std::string_view piece, rest = text;
  bool is_first = true;
  for (bool begins = false; pieces.next(piece, begins); is_first = false) {
    require(!piece.empty() && piece.size() <= data::kMaxPieceBytes && (begins || !is_first));
    if (bad != nullptr) continue;  // what is left out may stand within a piece
    const size_t at = rest.find(piece);
    require(at != std::string_view::npos);
    if (documents.end == data::DocumentEnd::kFile) require(at == 0 && begins == is_first);
    rest.remove_prefix(at + piece.size());
  }
  if (bad == nullptr && documents.end == data::DocumentEnd::kFile) require(rest.empty());
}

void read_json(std::string_view text, data::BadSamples* bad) {
  data::JsonDocuments documents(std::make_unique<testing::MemoryStream>(text), "fuzz", "a", bad);
  std::string_view found;
  for (bool begins = false; documents.next(found, begins);) require(begins && !found.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const auto end : {data::DocumentEnd::kBlankLine, data::DocumentEnd::kLine,
                         data::DocumentEnd::kFile, data::DocumentEnd::kMarker}) {
    data::BadSamples stop, skip({.skips = true, .most = 5});
    for (data::BadSamples* bad : {static_cast<data::BadSamples*>(nullptr), &stop, &skip}) {
      try {
        read_exact(text, {.end = end, .marker = "a"}, bad);
      } catch (const Error&) {
      }
    }
  }
  for (const auto end :
       {data::DocumentEnd::kBlankLine, data::DocumentEnd::kLine, data::DocumentEnd::kEachLine}) {
    data::BadSamples stop, skip({.skips = true, .most = 5});
    for (data::BadSamples* bad : {static_cast<data::BadSamples*>(nullptr), &stop, &skip}) {
      try {
        read_documents(text, end, bad);
      } catch (const Error&) {
      }
    }
    require(!stop.is_stopping() && stop.left_out().count == 0 && skip.left_out().count <= 6);
  }
  data::BadSamples skip({.skips = true, .most = 5});
  for (data::BadSamples* bad : {static_cast<data::BadSamples*>(nullptr), &skip}) {
    try {
      read_json(text, bad);
    } catch (const Error&) {
    }
  }
  return 0;
}
