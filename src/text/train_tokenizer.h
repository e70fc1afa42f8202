#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer_spec.h"

namespace stretto::text {

/// Trains a tokenizer of BERT's kind or GPT-2's as the classes BertWordPieceTokenizer and
/// ByteLevelBPETokenizer of Hugging Face's `tokenizers` do. The same lines give the same tokenizer.
struct SpecTraining {
  TokenizerSpec::Model model = TokenizerSpec::Model::kWordPiece;
  int64_t vocab_size = 30000;
  int64_t min_frequency = 2;
  int64_t limit_alphabet = 1000;  ///< of WordPiece: so many characters have a piece
  bool lowercase = true;          ///< of WordPiece; accents are stripped too
};

/// WordPiece has BERT's special tokens, byte-level BPE RoBERTa's. Throws Error(kUsage) where
/// `vocab_size` cannot hold the characters and special tokens, Error(kBadData) where there is no
/// text.
TokenizerSpec train_tokenizer(const std::vector<std::string>& lines, const SpecTraining& options);

}  // namespace stretto::text
