#pragma once

#include <memory>

#include "data/documents/documents.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// The lines of documents, on which a tokenizer is trained. Those of exact text have their line
/// ends, which are characters of it. Throws as open_documents() does.
std::unique_ptr<text::LineSource> open_tokenizer_lines(DocumentInput input);

}  // namespace stretto::data
