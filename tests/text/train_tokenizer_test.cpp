#include "text/train_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

const std::vector<std::string> kCats{"The cat sees the cats.", "the dog sees the cat",
                                     "cats see dogs, été"};

std::shared_ptr<const Tokenizer> tokenizer_of(const SpecTraining& options) {
  return make_spec_tokenizer(train_tokenizer(kCats, options), "t.json", 1);
}

std::string round_trip(const Tokenizer& tokenizer, const std::string& line) {
  std::vector<int64_t> ids;
  tokenizer.encode(line, ids);
  return tokenizer.decode(ids);
}

TEST(TrainTokenizer, MakesWordPiecesOfBert) {
  const auto tokenizer = tokenizer_of({.vocab_size = 60});
  EXPECT_EQ(tokenizer->specials(), (SpecialIds{.pad = 0, .unk = 1, .bos = 2, .eos = 3, .mask = 4}));
  EXPECT_EQ(round_trip(*tokenizer, "The CAT sees dogs."), "the cat sees dogs.");
  EXPECT_EQ(tokenizer->sequences().single.size(), 3U);
}

TEST(TrainTokenizer, MayKeepCapitals) {
  const auto tokenizer = tokenizer_of({.vocab_size = 60, .lowercase = false});
  EXPECT_EQ(round_trip(*tokenizer, "The cat été"), "The cat été");
}

TEST(TrainTokenizer, MakesBytePairsOfAnyText) {
  const auto tokenizer = tokenizer_of({.model = TokenizerSpec::Model::kByteBpe, .vocab_size = 280});
  EXPECT_EQ(tokenizer->specials(), (SpecialIds{.pad = 1, .unk = 3, .bos = 0, .eos = 2, .mask = 4}));
  for (const std::string line : {"The cat sees  dogs.", "中文 \x01 😀", " "}) {
    EXPECT_EQ(round_trip(*tokenizer, line), line);
  }
}

TEST(TrainTokenizer, TheSameLinesGiveTheSameTokenizer) {
  for (const auto model : {TokenizerSpec::Model::kWordPiece, TokenizerSpec::Model::kByteBpe}) {
    const SpecTraining options{.model = model, .vocab_size = 290};
    EXPECT_EQ(write_tokenizer_json(train_tokenizer(kCats, options)),
              write_tokenizer_json(train_tokenizer(kCats, options)));
  }
}

TEST(TrainTokenizer, SaysHowManyPiecesAreNeeded) {
  const auto failure =
      testing::failure(ExitCode::kUsage, [] { train_tokenizer(kCats, {.vocab_size = 20}); });
  EXPECT_NE(std::string(failure.what()).find("tokenizer.vocab_size: 20 pieces cannot hold the "),
            std::string::npos);
  const auto empty = testing::failure(ExitCode::kBadData, [] { train_tokenizer({}, {}); });
  EXPECT_EQ(empty.advice().find("train_src"), std::string::npos);  // a key of one family
}

}  // namespace
}  // namespace stretto::text
