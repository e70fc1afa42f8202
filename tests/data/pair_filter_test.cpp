#include "data/pair_filter.h"

#include "base/text.h"
#include "tests/data/corpus_fixture.h"

namespace stretto::data {
namespace {

class PairFilter : public CorpusFixture {
 protected:
  bool keep(const PairRules& rules, const std::string& src, const std::string& tgt) {
    counts_ = {};
    const PairPlace place{.src_name = "a.en", .tgt_name = "a.fr", .line = 7};
    return encode_pair(rules, tokenizers_, src, tgt, place, pair_, counts_);
  }
  PairRules rules_{.max_src_tokens = 4, .max_tgt_tokens = 4};
  EncodedPair pair_;
  FilterCounts counts_;
};

TEST_F(PairFilter, EndsBothSidesWithEndOfSentence) {
  ASSERT_TRUE(keep(rules_, "w0 w1 w2", "w3"));
  EXPECT_EQ(pair_.src, (std::vector<int64_t>{4, 5, 6, text::kEos}));
  EXPECT_EQ(pair_.tgt, (std::vector<int64_t>{7, text::kEos}));
  EXPECT_EQ(counts_.kept, 1);
}

TEST_F(PairFilter, LeavesOutPairsWithAnEmptySide) {
  for (const auto& [src, tgt] : {std::pair{"", "w0"}, {"w0", " \t "}, {"", ""}}) {
    EXPECT_FALSE(keep(rules_, src, tgt));
    EXPECT_EQ(counts_.empty, 1);
    EXPECT_EQ(counts_.kept, 0);
  }
}

TEST_F(PairFilter, TreatsLongSentencesAsTold) {
  EXPECT_FALSE(keep(rules_, "w0 w1 w2 w3", "w0"));
  EXPECT_EQ(counts_.too_long, 1);
  rules_.too_long = TooLong::kTruncate;
  ASSERT_TRUE(keep(rules_, "w0", "w0 w1 w2 w3 w4"));
  EXPECT_EQ(pair_.tgt, (std::vector<int64_t>{4, 5, 6, text::kEos}));
  EXPECT_EQ(counts_.truncated, 1);
  EXPECT_EQ(counts_.kept, 1);
  rules_.too_long = TooLong::kError;
  const std::string said =
      failure(ExitCode::kBadData, [&] { keep(rules_, "w0", "w0 w1 w2 w3 w4"); });
  EXPECT_TRUE(contains(said, "a.fr:7")) << said;
  EXPECT_TRUE(contains(said, "data.max_tgt_tokens")) << said;
}

TEST_F(PairFilter, LeavesOutPairsOfUnequalLength) {
  rules_.max_ratio = 1.5;  // end-of-sentence counts: 3 against 2 is 1.5, 4 against 2 is more
  EXPECT_TRUE(keep(rules_, "w0 w1", "w0"));
  EXPECT_FALSE(keep(rules_, "w0", "w0 w1 w2"));
  EXPECT_EQ(counts_.ratio, 1);
}

TEST_F(PairFilter, TreatsInvalidUtf8AsTold) {
  EXPECT_FALSE(keep(rules_, "w0 \xFF", "w0"));
  EXPECT_EQ(counts_.invalid_utf8, 1);
  rules_.invalid_utf8 = InvalidUtf8::kReplace;
  ASSERT_TRUE(keep(rules_, "w0 \xFF", "w0"));
  EXPECT_EQ(pair_.src_text, "w0 \xEF\xBF\xBD");
  EXPECT_EQ(counts_.replaced, 1);
  rules_.invalid_utf8 = InvalidUtf8::kError;
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { keep(rules_, "w0", "\xC0\x80"); }),
                       "a.fr:7: this line is not valid UTF-8"));
}

TEST_F(PairFilter, ReplacesMaximalIllFormedParts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("a\xF0\x9F\x98\x80z"), "a\xF0\x9F\x98\x80z");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), r);  // cut off: one part
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82x"), r + "x");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
}

TEST_F(PairFilter, WhatIsReplacedIsWellFormed) {
  RandomStream random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    for (uint64_t n = random.below(9); n > 0; --n)
      bytes += static_cast<char>(0x70 + random.below(0x90));
    const std::string fixed = replace_invalid_utf8(bytes);
    EXPECT_TRUE(is_valid_utf8(fixed));
    if (is_valid_utf8(bytes)) {
      EXPECT_EQ(fixed, bytes);
    }
  }
}

TEST_F(PairFilter, EvaluationKeepsAndRepairsPairs) {
  DataOptions options;
  options.max_ratio = 1.1;
  options.too_long = "error";
  const PairRules rules = rules_for(options, Split::kValid);
  EXPECT_EQ(rules.max_ratio, 0);
  EXPECT_EQ(rules.too_long, TooLong::kTruncate);
  EXPECT_EQ(rules.invalid_utf8, InvalidUtf8::kReplace);
  EXPECT_EQ(rules_for(options, Split::kTrain).too_long, TooLong::kError);
}

}  // namespace
}  // namespace stretto::data
