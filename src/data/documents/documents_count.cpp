#include "data/documents/documents_count.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "data/documents/document_texts.h"
#include "data/documents/documents_build.h"

namespace stretto::data {

TokenTotals count_tokens_of_documents(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                      const std::function<bool()>& still_time,
                                      const std::function<void(int64_t tokens)>& add) {
  const int64_t unknown = tokenizer.specials().unk;
  const bool keeps_empty = input.end == DocumentEnd::kEachLine;
  TokenTotals found;
  int64_t length = 0;  // tokens of the document that is being read
  bool is_open = false;
  const auto end_document = [&] {
    if (length > 0 || (is_open && keeps_empty)) {
      add(length);
      ++found.documents;
      found.tokens += length;
    }
    length = 0;
  };
  std::string text;
  std::vector<int64_t> ids;
  BadSamples bad(input.bad_samples);
  for (const auto& path : input.paths) {
    DocumentTexts lines(path, input, &bad);
    std::string_view line;
    for (bool begins = false; lines.next(line, begins);) {
      if (!still_time()) {
        found.unread = path + " from line " + with_thousands(lines.line_number()) + " on";
        return found;
      }
      if (begins) end_document();
      is_open = true;
      set_document_line(line, stands_alone(input, begins), text);
      ids.clear();
      tokenizer.encode(text, ids);
      length += std::ssize(ids);
      if (unknown >= 0) found.unknown += std::count(ids.begin(), ids.end(), unknown);
    }
  }
  end_document();
  if (found.tokens == 0) throw_no_documents(input.key, input.paths, bad.left_out());
  return found;
}

DocumentTokens count_document_tokens(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                     SequenceRows rows, const std::function<bool()>& still_time) {
  auto found = count_tokens_of_documents(input, tokenizer, still_time,
                                         [&](int64_t tokens) { rows.add_document(tokens); });
  return {.sequences = rows.num_sequences(),
          .rows = rows.num_rows(),
          .unknown = found.unknown,
          .unread = std::move(found.unread)};
}

}  // namespace stretto::data
