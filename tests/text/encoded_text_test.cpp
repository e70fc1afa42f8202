#include "text/encoded_text.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/data/squad/span_tokenizer.h"

namespace stretto::text {
namespace {

using Bound = TextBound;
using Ids = std::vector<int64_t>;

// [CLS] 2, [SEP] 3, who 5, lives 6, in 7, oslo 8, anna 9.
const Tokenizer& bert() {
  static const auto tokenizer = testing::small_tokenizer();
  return *tokenizer;
}

Ids cut_pair(const Bound& bound, Ids first, Ids second) {
  return TextEncoder(bert(), bound).place(std::move(first), std::move(second)).ids;
}

TEST(EncodedText, HasWhatTheTokenizerPutsAroundATextAndAPair) {
  const TextEncoder encoder(bert(), {.max_tokens = 10});
  const auto one = encoder.encode("Anna lives");
  EXPECT_EQ(one.ids, (Ids{2, 9, 6, 3}));
  EXPECT_EQ(one.segments, (Ids{0, 0, 0, 0}));
  const auto two = encoder.encode("who", "Anna lives");
  EXPECT_EQ(two.ids, (Ids{2, 5, 3, 9, 6, 3}));
  EXPECT_EQ(two.segments, (Ids{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(one.num_cut + two.num_cut, 0);
  EXPECT_EQ(encoder.num_specials(), 2);
  EXPECT_EQ(encoder.num_pair_specials(), 3);
}

TEST(EncodedText, IsCutAtTheStatedSideAndCounted) {
  const auto end = TextEncoder(bert(), {.max_tokens = 5}).encode("who lives in oslo");
  EXPECT_EQ(end.ids, (Ids{2, 5, 6, 7, 3}));
  EXPECT_EQ(end.num_cut, 1);
  const auto start = TextEncoder(bert(), {.max_tokens = 5, .side = Bound::Side::kStart})
                         .encode("who lives in oslo");
  EXPECT_EQ(start.ids, (Ids{2, 6, 7, 8, 3}));
  EXPECT_EQ(TextEncoder(bert(), {.max_tokens = 6}).encode("who lives in oslo").num_cut, 0);
}

TEST(EncodedText, OfAPairTheLongerOneIsCutTokenByToken) {
  const Bound bound{.max_tokens = 9};  // six tokens of text
  EXPECT_EQ(cut_pair(bound, {5, 5, 5, 5, 5, 5, 5}, {6, 6}), (Ids{2, 5, 5, 5, 5, 3, 6, 6, 3}));
  EXPECT_EQ(cut_pair(bound, {5, 5}, {6, 6, 6, 6, 6, 6, 6}), (Ids{2, 5, 5, 3, 6, 6, 6, 6, 3}));
  EXPECT_EQ(cut_pair(bound, Ids(9, 5), Ids(9, 6)), (Ids{2, 5, 5, 5, 3, 6, 6, 6, 3}));
  const Bound odd{.max_tokens = 8};  // five: of two equally long texts the second has the odd token
  EXPECT_EQ(cut_pair(odd, Ids(9, 5), Ids(9, 6)), (Ids{2, 5, 5, 3, 6, 6, 6, 3}));
  for (size_t a = 0; a < 12; ++a) {
    for (size_t b = 0; b < 12; ++b) {
      const auto placed = TextEncoder(bert(), bound).place(Ids(a, 5), Ids(b, 6));
      EXPECT_EQ(placed.ids.size(), std::min<size_t>(a + b + 3, 9)) << a << " " << b;
      EXPECT_EQ(placed.num_cut, static_cast<int64_t>(a + b + 3 - placed.ids.size()));
    }
  }
}

TEST(EncodedText, OfAPairOneTextAloneMayBeCut) {
  const Bound first{.max_tokens = 8, .which = Bound::Which::kFirst};
  EXPECT_EQ(cut_pair(first, Ids(9, 5), {6, 6}), (Ids{2, 5, 5, 5, 3, 6, 6, 3}));
  const Bound second{.max_tokens = 8, .which = Bound::Which::kSecond};
  EXPECT_EQ(cut_pair(second, {5, 5}, Ids(9, 6)), (Ids{2, 5, 5, 3, 6, 6, 6, 3}));
  const Error error = testing::failure(ExitCode::kBadData, [&] {
    cut_pair(second, Ids(5, 5), {6, 6});
  });
  EXPECT_NE(std::string(error.what()).find("the first text"), std::string::npos) << error.what();
}

TEST(EncodedText, ABoundWithoutRoomIsRefused) {
  TextEncoder(bert(), {.max_tokens = 5});
  const auto error =
      testing::failure(ExitCode::kUsage, [] { TextEncoder(bert(), {.max_tokens = 4}); });
  EXPECT_EQ(std::string(error.what()),
            "a bound of 4 tokens leaves no room for text: 3 special tokens around a pair");
  EXPECT_EQ(error.advice(), "raise it to at least 5");
}

TEST(EncodedText, WithoutPairsTheSpecialsOfOneTextNeedRoom) {
  const TextEncoder encoder(bert(), {.max_tokens = 3, .pairs = false});
  EXPECT_EQ(encoder.encode("anna lives").ids, (Ids{2, 9, 3}));
  EXPECT_THROW(encoder.encode("anna", "lives"), std::logic_error);
  const auto error = testing::failure(
      ExitCode::kUsage, [] { TextEncoder(bert(), {.max_tokens = 2, .pairs = false}); });
  EXPECT_EQ(std::string(error.what()),
            "a bound of 2 tokens leaves no room for text: 2 special tokens around a text");
  EXPECT_EQ(error.advice(), "raise it to at least 3");
}

/// Has bos 1 and eos 2, and no template.
class PlainTokenizer : public Tokenizer {
 public:
  SpecialIds specials() const override { return {.pad = 0, .bos = 1, .eos = 2}; }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    for (const char c : line) ids.push_back(c);
  }
  std::string decode(const std::vector<int64_t>&) const override { return ""; }
  std::string piece(int64_t) const override { return ""; }
  int64_t size() const override { return 256; }
  uint64_t fingerprint() const override { return 0; }
};

TEST(EncodedText, WithoutATemplateBeginningAndEndStandAround) {
  const PlainTokenizer tokenizer;
  const TextEncoder encoder(tokenizer, {.max_tokens = 10});
  EXPECT_EQ(encoder.encode("a").ids, (Ids{1, 'a', 2}));
  const auto pair = encoder.encode("a", "b");
  EXPECT_EQ(pair.ids, (Ids{1, 'a', 2, 'b', 2}));
  EXPECT_EQ(pair.segments, (Ids{0, 0, 0, 1, 1}));
}

}  // namespace
}  // namespace stretto::text
