#include "text/tokenizer.h"

#include "base/error.h"

namespace stretto::text {

void Tokenizer::encode_with_spans(std::string_view, std::vector<int64_t>&,
                                  std::vector<CodePointSpan>&) const {
  throw Error(ExitCode::kUsage, "this tokenizer does not tell where its pieces stand in the text",
              "take a tokenizer.json, BERT's vocab.txt, a SentencePiece model, or a vocabulary");
}

}  // namespace stretto::text
