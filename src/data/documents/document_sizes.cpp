#include "data/documents/document_sizes.h"

#include <string_view>

#include "data/documents/document_texts.h"
#include "data/documents/documents_build.h"

namespace stretto::data {

TextSizes sizes_of_documents(const DocumentInput& input) {
  TextSizes sizes;
  BadSamples bad(input.bad_samples);
  for (const auto& path : input.paths) {
    DocumentTexts texts(path, input, &bad);
    std::string_view text;
    for (bool begins = false; texts.next(text, begins);) {
      const int64_t words = words_in(text);
      if (begins || sizes.words_of_documents.empty()) sizes.words_of_documents.push_back(0);
      sizes.words_of_documents.back() += words;
      sizes.words += words;
      sizes.bytes += std::ssize(text);
    }
  }
  return sizes;
}

}  // namespace stretto::data
