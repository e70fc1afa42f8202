#include "families/language_model/engine/language_run.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "text/byte_bpe.h"
#include "text/tokenizer_spec.h"

namespace stretto::tasks {
namespace {

using Ids = std::vector<int64_t>;

/// Bytes, an end, and a beginning that may stand in front of texts.
std::shared_ptr<const text::Tokenizer> beginning_tokenizer(const Ids& front) {
  text::TokenizerSpec spec;
  spec.model = text::TokenizerSpec::Model::kByteBpe;
  spec.decoder = text::TokenizerSpec::Decoder::kBytes;
  for (const std::string& piece : text::byte_alphabet()) {
    spec.vocab.emplace_back(piece, std::ssize(spec.vocab));
  }
  for (const char* piece : {"<s>", "</s>"}) {
    const auto id = std::ssize(spec.vocab);
    spec.vocab.emplace_back(piece, id);
    spec.added.push_back({.content = piece, .id = id, .normalized = false, .special = true});
  }
  spec.sequences.set_front(front);
  return text::make_spec_tokenizer(spec, "test", 0);
}

constexpr int64_t kBeginId = 256, kEndId = 257;

TEST(TokensBeforeText, AreTheSeparatorAsInTrainingByDefault) {
  const experiment::LanguageModelOptions options;
  for (const Ids& front : {Ids{}, Ids{kBeginId}}) {
    const auto tokenizer = beginning_tokenizer(front);
    EXPECT_EQ(tokens_before_text(options, *tokenizer), Ids{kEndId});
    EXPECT_EQ(text_begin_of(options, *tokenizer), kEndId);
  }
}

TEST(TokensBeforeText, OfAnImportedModelAreTheTokenizers) {
  experiment::LanguageModelOptions options;
  options.decode.text_begin = "tokenizer";
  const auto tokenizer = beginning_tokenizer({kBeginId});
  EXPECT_EQ(tokens_before_text(options, *tokenizer), Ids{kBeginId});
  EXPECT_EQ(text_begin_of(options, *tokenizer), kBeginId);
  const auto bare = beginning_tokenizer({});
  EXPECT_TRUE(tokens_before_text(options, *bare).empty());
  EXPECT_EQ(text_begin_of(options, *bare), kEndId) << "its first token is scored all the same";
}

}  // namespace
}  // namespace stretto::tasks
