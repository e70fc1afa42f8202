#pragma once

#include <memory>
#include <string>

#include "text/tokenizer_files.h"

namespace stretto::testing {

/// BERT's, of a few words and all small letters: other words are spelt. `[CLS]` is 2, `[SEP]` 3,
/// "who" 5, "lives" 6, "in" 7, "oslo" 8, "anna" 9, "." 10, "?" 11.
inline std::shared_ptr<const text::Tokenizer> small_tokenizer() {
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwho\nlives\nin\noslo\nanna\n.\n?\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    vocab += std::string(1, letter) + "\n##" + std::string(1, letter) + "\n";
  }
  return text::make_model_tokenizer(text::model_bytes(vocab, "vocab.txt"), "vocab.txt");
}

}  // namespace stretto::testing
