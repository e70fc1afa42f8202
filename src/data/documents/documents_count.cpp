#include "data/documents/documents_count.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "data/documents/document_texts.h"
#include "data/documents/documents_build.h"

namespace stretto::data {

DocumentTokens count_document_tokens(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                     SequenceRows rows, const std::function<bool()>& still_time) {
  const int64_t unknown = tokenizer.specials().unk;
  DocumentTokens found;
  int64_t length = 0;  // tokens of the document that is being read
  const auto end_document = [&] {
    if (length > 0) rows.add_document(length);
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
      set_document_line(line, stands_alone(input, begins), text);
      ids.clear();
      tokenizer.encode(text, ids);
      length += std::ssize(ids);
      if (unknown >= 0) found.unknown += std::count(ids.begin(), ids.end(), unknown);
    }
  }
  end_document();
  if (rows.num_documents() == 0) throw_no_documents(input.key, input.paths);
  found.sequences = rows.num_sequences();
  found.rows = rows.num_rows();
  return found;
}

}  // namespace stretto::data
