#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/allowance.h"
#include "tests/base/failure.h"
#include "tests/fuzz/small_sentencepiece.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

using stretto::testing::failure;
using stretto::testing::small_sentencepiece;
using Merge = std::pair<std::string, std::string>;

TokenizerSpec parsed_model(const std::string& bytes) {
  Allowance allowance("tokenizer.model");
  return parse_sentencepiece_bpe(bytes, "tokenizer.model", allowance);
}

std::string refused_model(const std::string& bytes) {
  return failure(ExitCode::kBadData, [&] { parsed_model(bytes); }).message();
}

TEST(SentencePieceSpec, PiecesKeepTheirIdsAndMergesComeByScore) {
  const auto spec = parsed_model(small_sentencepiece());
  ASSERT_EQ(spec.vocab.size(), 16U);
  EXPECT_EQ(spec.vocab[3], (std::pair<std::string, int64_t>("ed", 3)));
  EXPECT_EQ(spec.vocab[9].first, "▁");
  EXPECT_EQ(spec.merges,
            (std::vector<Merge>{{"e", "d"}, {"h", "o"}, {"s", "e"}, {"▁", "r"}, {"ho", "u"}}));
  EXPECT_EQ(spec.unk_token, "<unk>");
  EXPECT_TRUE(spec.byte_fallback);
}

TEST(SentencePieceSpec, TextIsCutAsTheModelCutsIt) {
  const auto tokenizer = make_spec_tokenizer(parsed_model(small_sentencepiece()), "model", 0);
  std::vector<int64_t> ids;
  tokenizer->encode("red house", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{6, 3, 9, 7, 5}));
  EXPECT_EQ(tokenizer->decode(ids), "red house");
}

TEST(SentencePieceSpec, ControlPiecesAndThoseOfAUserAreFoundBeforeTextIsCut) {
  const std::string model = small_sentencepiece() + "\x0a\x07\x0a\x03<x>\x18\x04";
  const auto spec = parsed_model(model);
  ASSERT_EQ(spec.added.size(), 3U);
  EXPECT_EQ(spec.added[0].content, "<s>");
  EXPECT_TRUE(spec.added[0].special);
  EXPECT_EQ(spec.added[2], (AddedToken{.content = "<x>", .id = 16, .normalized = false}));
}

TEST(SentencePieceSpec, AnotherKindThanBpeIsRefused) {
  std::string unigram = small_sentencepiece();
  const std::string of_bpe("\x6d\x18\x02", 3);
  unigram.replace(unigram.find(of_bpe), of_bpe.size(), "\x6d\x18\x01");
  EXPECT_NE(refused_model(unigram).find("not of BPE"), std::string::npos);
}

TEST(SentencePieceSpec, PiecesThatTakeTooLongOrAreNoTextAreRefused) {
  const std::string head("\x0a\xdb\x04\x0a\xd8\x04", 6);
  EXPECT_NE(refused_model(small_sentencepiece() + head + std::string(600, 'a'))
                .find("has more than 512 bytes"),
            std::string::npos);
  EXPECT_NE(refused_model(small_sentencepiece() + "\x0a\x04\x0a\x02z\xff").find("is not UTF-8"),
            std::string::npos);
  refused_model("no model");
}

}  // namespace
}  // namespace stretto::text
