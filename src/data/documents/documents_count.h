#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/documents/document_sequences.h"
#include "data/documents/documents.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// Tokens of documents.
struct TokenTotals {
  int64_t documents = 0;
  int64_t tokens = 0;   ///< without separators
  int64_t unknown = 0;  ///< of them
  std::string unread;   ///< "a.txt from line 1,234 on"; empty = all was read
};

/// Tokenises documents as open_documents() does, and keeps nothing of them.
///
/// @param still_time  asked for each line; once it says no, only `unread` counts
/// @param add         called with the tokens of each document, without the separator
/// Throws as open_documents() does for files that cannot be opened, bad lines and a text without a
/// document.
TokenTotals count_tokens_of_documents(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                      const std::function<bool()>& still_time,
                                      const std::function<void(int64_t tokens)>& add);

/// What a tokenizer makes of a text.
struct DocumentTokens {
  int64_t sequences = 0, rows = 0;  ///< as SequenceRows counts them; rows of all sequences
  int64_t unknown = 0;              ///< of the documents' tokens
  std::string unread;               ///< "a.txt from line 1,234 on"; empty = all was read
};

/// The same of documents that become sequences. @param rows  of no document so far
DocumentTokens count_document_tokens(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                     SequenceRows rows, const std::function<bool()>& still_time);

}  // namespace stretto::data
