#pragma once

#include <cstdint>
#include <vector>

#include "data/documents/documents.h"

namespace stretto::data {

/// Sizes of a text that do not depend on a tokenizer.
struct TextSizes {
  int64_t bytes = 0;  ///< as they stand in the files, without line ends that end a document
  int64_t words = 0;  ///< what ASCII white space separates
  std::vector<int64_t> words_of_documents;  ///< [documents], in the order of the text
};

/// Reads the texts of an input once more. Documents without a token count too. Throws as
/// open_documents() does.
TextSizes sizes_of_documents(const DocumentInput& input);

}  // namespace stretto::data
