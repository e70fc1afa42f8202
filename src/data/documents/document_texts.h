#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "data/bad_samples.h"
#include "data/documents/document_lines.h"
#include "data/documents/documents.h"
#include "data/documents/exact_text.h"
#include "data/documents/json_documents.h"

namespace stretto::data {

/// The documents of a file as texts that are tokenised one by one: lines, pieces of exact text, or
/// strings of JSON lines.
class DocumentTexts {
 public:
  /// Opens a path of an input. Throws as open_bytes() does, and std::invalid_argument where lines
  /// are joined and documents end at neither blank lines nor line ends, or the other way round.
  DocumentTexts(const std::string& path, const DocumentInput& input, BadSamples* bad);

  /// As DocumentLines::next() or ExactText::next().
  bool next(std::string_view& text, bool& begins_document);
  int64_t line_number() const;  ///< in which the last text begins, from 1

 private:
  std::variant<DocumentLines, ExactText, JsonDocuments> texts_;
};

/// What the key of a cache has of how an input is read: the same text read otherwise is another
/// cache.
std::string reading_key(const DocumentInput& input);

/// Whether a text is tokenised as it stands there, without the space that joins lines.
inline bool stands_alone(const DocumentInput& input, bool begins_document) {
  return begins_document || input.text == DocumentText::kExact;
}

/// Lines of a text, the last one with or without its end.
int64_t lines_in(std::string_view text);

/// The lines of a text that are not UTF-8.
struct InvalidLines {
  int64_t count = 0;
  int64_t first = 0;  ///< line number; 0 = none
};
/// @param line  number of the text's first line
InvalidLines invalid_lines(std::string_view text, int64_t line);

}  // namespace stretto::data
