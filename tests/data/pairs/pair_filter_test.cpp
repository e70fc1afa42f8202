#include "data/pairs/pair_filter.h"

#include "base/text.h"
#include "tests/data/pairs/corpus_fixture.h"

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
  EXPECT_EQ(pair_.src, (std::vector<int64_t>{4, 5, 6, kEos}));
  EXPECT_EQ(pair_.tgt, (std::vector<int64_t>{7, kEos}));
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
  EXPECT_EQ(pair_.tgt, (std::vector<int64_t>{4, 5, 6, kEos}));
  EXPECT_EQ(counts_.truncated, 1);
  EXPECT_EQ(counts_.kept, 1);
  rules_.too_long = TooLong::kError;
  const std::string said =
      failure(ExitCode::kBadData, [&] { keep(rules_, "w0", "w0 w1 w2 w3 w4"); });
  EXPECT_TRUE(contains(said, "a.fr:7")) << said;
  EXPECT_TRUE(contains(said, "data.max_tgt_tokens")) << said;
}

TEST_F(PairFilter, CountsTheTokensThatItCutsOffEachSide) {
  rules_.too_long = TooLong::kTruncate;  // four tokens are let in, end-of-sentence included
  TextCounts src, tgt;
  EXPECT_EQ(cut_text(src, tgt), "");
  ASSERT_TRUE(keep(rules_, "w0 w1 w2 w3 w4 w5", "w0 w1 w2 w3 w4"));
  EXPECT_EQ(pair_.src_cut, 3);
  EXPECT_EQ(pair_.tgt_cut, 2);
  count_pair(tokenizers_, pair_, src, tgt);
  EXPECT_EQ(src.pieces, 3);
  EXPECT_EQ(src.cut, 3);
  EXPECT_EQ(tgt.pieces, 3);
  EXPECT_EQ(tgt.cut, 2);
  EXPECT_EQ(cut_text(src, tgt), "50.0 % of the source's tokens, 40.0 % of the target's");
  ASSERT_TRUE(keep(rules_, "w0 w1 w2", "w0 w1 w2"));
  EXPECT_EQ(pair_.src_cut, 0);
  count_pair(tokenizers_, pair_, src, tgt);
  EXPECT_EQ(cut_text(src, tgt), "33.3 % of the source's tokens, 25.0 % of the target's");
  EXPECT_EQ(cut_text(TextCounts{}, tgt), "0 % of the source's tokens, 25.0 % of the target's");
}

TEST_F(PairFilter, CountsPiecesAWordAsBeforeTheCut) {
  rules_.too_long = TooLong::kTruncate;
  TextCounts src, tgt;
  ASSERT_TRUE(keep(rules_, "w0 w1 w2 w3 w4 w5", "w0 w1"));
  count_pair(tokenizers_, pair_, src, tgt);
  EXPECT_DOUBLE_EQ(src.pieces_per_word(), 1);
  rules_.two_sources = true;  // two ends of sentences, which are no pieces
  ASSERT_TRUE(keep(rules_, "w0 w1 w2\tw3 w4", "w0 w1 w2 w3"));
  count_pair(tokenizers_, pair_, src, tgt);
  EXPECT_EQ(src.cut, 3 + 3);
  EXPECT_DOUBLE_EQ(src.pieces_per_word(), 1);
  EXPECT_DOUBLE_EQ(tgt.pieces_per_word(), 1);
}

TEST_F(PairFilter, CountsUnknownPiecesWhereverTheyStand) {
  TextCounts src, tgt;
  ASSERT_TRUE(keep(rules_, "w0 w1 never", "never w1 never"));
  count_pair(tokenizers_, pair_, src, tgt);
  EXPECT_EQ(src.unknown, 1);
  EXPECT_EQ(tgt.unknown, 2);
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

TEST_F(PairFilter, ListsTheFirstLinesOfEachKindWithTheSideAtFault) {
  rules_.max_ratio = 1.5;
  rules_.max_src_tokens = rules_.max_tgt_tokens = 5;
  PairPlace place{.src_name = "a", .tgt_name = "b", .line = 0, .input = 2};
  FilterCounts counts;
  for (int turn = 0; turn < 4; ++turn) {
    for (const auto& [src, tgt] :
         std::initializer_list<std::pair<const char*, const char*>>{{"", "w0"},
                                                                    {"w0", " "},
                                                                    {"w0", "\xFF"},
                                                                    {"w0", "w0 w1 w2 w3 w4"},
                                                                    {"w0", "w0 w1 w2"}}) {
      ++place.line;
      EXPECT_FALSE(encode_pair(rules_, tokenizers_, src, tgt, place, pair_, counts));
    }
  }
  using Lines = std::vector<std::pair<int64_t, bool>>;
  const auto listed = [&](const FirstLines& lines) {
    Lines found;
    for (const FilteredLine& line : lines) {
      EXPECT_EQ(line.input, 2);
      found.emplace_back(line.line, line.side == Side::kTarget);
    }
    return found;
  };
  EXPECT_EQ(counts.empty, 8);
  EXPECT_EQ(listed(counts.first_empty), (Lines{{1, false}, {2, true}, {6, false}}));
  EXPECT_EQ(listed(counts.first_invalid_utf8), (Lines{{3, true}, {8, true}, {13, true}}));
  EXPECT_EQ(listed(counts.first_too_long), (Lines{{4, true}, {9, true}, {14, true}}));
  EXPECT_EQ(listed(counts.first_ratio), (Lines{{5, true}, {10, true}, {15, true}}));
  EXPECT_EQ(counts.first_truncated[0].line, 0);
}

TEST_F(PairFilter, CountsOfLaterLinesComeBehind) {
  FilterCounts all, more;
  all.empty = 2;
  all.first_empty = {FilteredLine{.line = 4}, FilteredLine{.line = 9}};
  more.kept = 7;
  more.empty = 5;
  more.first_empty = {FilteredLine{.line = 11}, FilteredLine{.line = 12}, FilteredLine{.line = 13}};
  more.replaced = 1;
  more.first_replaced = {FilteredLine{.input = 1, .line = 15, .side = Side::kTarget}};
  add_counts(more, all);
  EXPECT_EQ(all.kept, 7);
  EXPECT_EQ(all.empty, 7);
  EXPECT_EQ(all.first_empty[1].line, 9);
  EXPECT_EQ(all.first_empty[2].line, 11);
  EXPECT_EQ(all.replaced, 1);
  EXPECT_EQ(all.first_replaced[0].side, Side::kTarget);
  EXPECT_EQ(all.first_replaced[1].line, 0);
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
