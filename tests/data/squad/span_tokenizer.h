#pragma once

#include <memory>
#include <string>

#include "text/tokenizer_files.h"

namespace stretto::testing {

/// BERT's vocab.txt of a few words and all small letters: other words are spelt. `[CLS]` is 2,
/// `[SEP]` 3, "who" 5, "lives" 6, "in" 7, "oslo" 8, "anna" 9, "." 10, "?" 11.
inline std::string small_vocabulary() {
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwho\nlives\nin\noslo\nanna\n.\n?\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    vocab += std::string(1, letter) + "\n##" + std::string(1, letter) + "\n";
  }
  return vocab;
}

inline std::shared_ptr<const text::Tokenizer> small_tokenizer() {
  return text::make_model_tokenizer(text::model_bytes(small_vocabulary(), "vocab.txt"),
                                    "vocab.txt");
}

}  // namespace stretto::testing
