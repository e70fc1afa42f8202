#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/documents/documents.h"
#include "tests/base/temp_dir.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace stretto::testing {

/// A WordPiece tokenizer of made-up words: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then w0 to
/// w19 (5 to 24), then ##a to ##e (25 to 29).
inline std::shared_ptr<const text::Tokenizer> documents_tokenizer() {
  std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < 20; ++i) pieces += "w" + std::to_string(i) + "\n";
  for (const char c : std::string("abcde")) pieces += std::string("##") + c + "\n";
  return text::make_spec_tokenizer(text::parse_vocab_txt(pieces, "vocab.txt"), "vocab.txt", 17);
}

/// A folder of its own for each test, and documents of made-up words.
class DocumentsFixture : public ::testing::Test {
 protected:
  static constexpr int64_t kSep = 3;

  /// Documents of 1 to `longest` lines, with a blank line between them.
  static std::string documents_text(int64_t count, uint64_t seed, uint64_t longest = 4) {
    RandomStream random(seed);
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      for (uint64_t line = 1 + random.below(longest); line > 0; --line) {
        for (uint64_t words = 1 + random.below(9); words > 0; --words) {
          text += std::string("w") + std::to_string(random.below(20));
          if (random.below(3) == 0) text += static_cast<char>('a' + random.below(5));
          text += words > 1 ? " " : "\n";
        }
      }
      text += "\n";
    }
    return text;
  }

  std::shared_ptr<const data::Documents> open(const std::vector<std::string>& paths,
                                              data::DocumentEnd end = data::DocumentEnd::kBlankLine,
                                              int64_t threads = 2) const {
    return data::open_documents({.paths = paths,
                                 .end = end,
                                 .cache_dir = (folder_ / "cache").string(),
                                 .threads = threads,
                                 .key = "data.train"},
                                *tokenizer_);
  }

  static std::vector<int64_t> all_ids(const data::Documents& documents) {
    std::vector<int64_t> ids;
    documents.append(0, documents.num_ids(), ids);
    return ids;
  }

  TempDir folder_;
  std::shared_ptr<const text::Tokenizer> tokenizer_ = documents_tokenizer();
};

}  // namespace stretto::testing
