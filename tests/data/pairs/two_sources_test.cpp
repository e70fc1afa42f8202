// Two sources in one column: their lines, ids, filters, truncation, cache and segmentations.
#include "data/pairs/two_sources.h"

#include <algorithm>
#include <set>

#include "data/pairs/corpus_check.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/pair_filter.h"
#include "data/pairs/parallel_input.h"
#include "tests/data/pairs/corpus_fixture.h"
#include "text/subword_sampling.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;

class TwoSources : public CorpusFixture {
 protected:
  /// Three pairs; the words w0, w1, … have the ids 4, 5, …
  DataOptions two_sources() const {
    DataOptions o = options(1);
    o.train_src = {write("a.src", "w0 w1\nw2\nw3 w4 w5\n")};
    o.train_src2 = {write("a.src2", "w6\nw7 w8\nw9\n")};
    o.train_tgt = {write("a.tgt", "w10\nw11\nw12\n")};
    return o;
  }

  /// The sources of a corpus, sorted.
  static std::set<Ids> sources_of(const Corpus& corpus) {
    std::set<Ids> all;
    for (int64_t i = 0; i < corpus.num_pairs(); ++i) all.insert(corpus.src(i));
    return all;
  }
};

TEST_F(TwoSources, TextIsJoinedByOneTab) {
  std::string joined;
  join_sources("a\tb", "c\td", joined);
  EXPECT_EQ(joined, "a b\tc d");
  const auto texts = split_sources("a\tb\tc");
  ASSERT_TRUE(texts.has_value());
  EXPECT_EQ(texts->first, "a");
  EXPECT_EQ(texts->second, "b\tc");
  EXPECT_FALSE(split_sources("a b").has_value());
}

TEST_F(TwoSources, AColumnHoldsBothWithTheFirstEndOfSentenceBetweenThem) {
  const auto corpus = open(two_sources());
  EXPECT_EQ(sources_of(*corpus),
            (std::set<Ids>{{4, 5, 3, 10, 3}, {6, 3, 11, 12, 3}, {7, 8, 9, 3, 13, 3}}));
  EXPECT_EQ(corpus->num_src_tokens(), 16);
  EXPECT_EQ(corpus->src_counts().pieces, 10) << "end-of-sentences are no pieces";
  EXPECT_EQ(corpus->src_counts().words, 10);
}

TEST_F(TwoSources, AreReadFromColumnsToo) {
  DataOptions o = options(1);
  o.train_src.clear();
  o.train_tgt.clear();
  o.train_tsv = {write("a.tsv", "w10\tw0 w1\tw6\nw11\tw2\tw7 w8\n")};
  o.tgt_column = 1;
  o.src_column = 2;
  o.src2_column = 3;
  EXPECT_EQ(sources_of(*open(o)), (std::set<Ids>{{4, 5, 3, 10, 3}, {6, 3, 11, 12, 3}}));
  o.src2_column = 4;
  const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
  EXPECT_TRUE(contains(said, "a.tsv")) << said;
}

TEST_F(TwoSources, TheTextOfValidationIsKeptJoined) {
  DataOptions o = two_sources();
  o.valid_src = {write("v.src", "w0\tw1\n")};
  o.valid_src2 = {write("v.src2", "w2 w3\n")};
  o.valid_tgt = {write("v.tgt", "w4\n")};
  const auto corpus = open(o, Split::kValid);
  EXPECT_EQ(corpus->src_text(0), "w0 w1\tw2 w3");
  EXPECT_EQ(corpus->src(0), (Ids{4, 5, 3, 6, 7, 3}));
}

TEST_F(TwoSources, APairWithoutOneOfThemIsEmpty) {
  DataOptions o = two_sources();
  o.train_src = {write("e.src", "w0\n\nw1\n")};
  o.train_src2 = {write("e.src2", "\nw2\nw3\n")};
  const auto corpus = open(o);
  EXPECT_EQ(corpus->num_pairs(), 1);
  EXPECT_EQ(corpus->filters().empty, 2);
  EXPECT_EQ(corpus->src(0), (Ids{5, 3, 7, 3}));
}

TEST_F(TwoSources, WhatTheFiltersFindIsToldOfTheTextAtFault) {
  DataOptions o = two_sources();
  o.train_src = {write("f.src", "w0\n\nw1 \xFF\nw2\n\nw3\n")};
  o.train_src2 = {write("f.src2", "\nw4\nw5\nw6 \xFF\n\nw7\n")};
  o.train_tgt = {write("f.tgt", "w8\nw8\nw8\nw8\nw8\nw8\n")};
  using Lines = std::vector<std::pair<int64_t, Side>>;
  const auto listed = [](const FirstLines& lines) {
    Lines found;
    for (const FilteredLine& line : lines) {
      if (line.line > 0) found.emplace_back(line.line, line.side);
    }
    return found;
  };
  for (const bool from_cache : {false, true}) {
    const auto corpus = open(o);
    EXPECT_EQ(corpus->from_cache(), from_cache);
    EXPECT_EQ(corpus->num_pairs(), 1);
    // Where both are at fault, as in line 5, the first is named.
    EXPECT_EQ(listed(corpus->filters().first_empty),
              (Lines{{1, Side::kSecondSource}, {2, Side::kSource}, {5, Side::kSource}}));
    EXPECT_EQ(listed(corpus->filters().first_invalid_utf8),
              (Lines{{3, Side::kSource}, {4, Side::kSecondSource}}));
  }
  o.invalid_utf8 = "replace";
  EXPECT_EQ(listed(open(o)->filters().first_replaced),
            (Lines{{3, Side::kSource}, {4, Side::kSecondSource}}));
}

TEST_F(TwoSources, AnEmptySecondFileIsTheOneThatIsNamed) {
  DataOptions o = two_sources();
  o.train_src2 = {write("blank.src2", "\n \n\n")};
  const auto always = [] { return true; };
  EXPECT_THROW(check_filters(o, Split::kTrain, tokenizers_, always), SecondSourceError);
  const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
  EXPECT_TRUE(contains(said, "blank.src2:1, ")) << said;
  EXPECT_FALSE(contains(said, "a.src:")) << said;
}

TEST_F(TwoSources, ABadLineOfTheSecondFileIsNamed) {
  DataOptions o = two_sources();
  o.invalid_utf8 = "error";
  o.train_src2 = {write("bad.src2", "w6\n\xFF\nw9\n")};
  const auto always = [] { return true; };
  EXPECT_THROW(check_lines(o, Split::kTrain, always), SecondSourceError);
  const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
  EXPECT_TRUE(contains(said, "bad.src2:2: this line is not valid UTF-8")) << said;
}

TEST_F(TwoSources, TheBoundCountsBothTogether) {
  DataOptions o = two_sources();
  o.max_src_tokens = 5;
  const auto corpus = open(o);
  EXPECT_EQ(corpus->num_pairs(), 2);
  EXPECT_EQ(corpus->filters().too_long, 1);
}

TEST_F(TwoSources, TruncationKeepsAShareOfEach) {
  const PairRules rules{.max_src_tokens = 8,
                        .max_tgt_tokens = 8,
                        .too_long = TooLong::kTruncate,
                        .two_sources = true};
  EncodedPair pair;
  FilterCounts counts;
  const auto cut = [&](const std::string& joined) {
    EXPECT_TRUE(encode_pair(rules, tokenizers_, joined, "w0", {}, pair, counts));
    return pair.src;
  };
  // Six of nine tokens stay: four of six, and two of three.
  EXPECT_EQ(cut("w0 w1 w2 w3 w4 w5\tw6 w7 w8"), (Ids{4, 5, 6, 7, 3, 10, 11, 3}));
  EXPECT_EQ(pair.src_cut, 3);
  // A short one keeps a token, on either side.
  EXPECT_EQ(cut("w0\tw1 w2 w3 w4 w5 w6 w7 w8 w9"), (Ids{4, 3, 5, 6, 7, 8, 9, 3}));
  EXPECT_EQ(cut("w1 w2 w3 w4 w5 w6 w7 w8 w9\tw0"), (Ids{5, 6, 7, 8, 9, 3, 4, 3}));
  // What fits stays.
  EXPECT_EQ(cut("w0 w1 w2\tw3 w4 w5"), (Ids{4, 5, 6, 3, 7, 8, 9, 3}));
  EXPECT_EQ(pair.src_cut, 0);
}

TEST_F(TwoSources, AnyCutKeepsTheBoundAndATokenOfEach) {
  for (int64_t first = 1; first <= 12; ++first) {
    for (int64_t second = 1; second <= 12; ++second) {
      for (int64_t most = kLeastTokensOfTwoSources - 1; most <= first + second + 2; ++most) {
        Ids ids(static_cast<size_t>(first), 7);
        ids.push_back(kEos);
        ids.insert(ids.end(), static_cast<size_t>(second), 9);
        const auto size = static_cast<int64_t>(ids.size());
        const int64_t gone = cut_sources(ids, most, kEos);
        const int64_t left = std::min(most, size);
        ASSERT_EQ(static_cast<int64_t>(ids.size()), left);
        ASSERT_EQ(gone, size - left);
        const auto sevens = std::count(ids.begin(), ids.end(), 7);
        const auto nines = std::count(ids.begin(), ids.end(), 9);
        ASSERT_GE(sevens, 1);
        ASSERT_GE(nines, 1);
        ASSERT_LE(sevens, first);
        ASSERT_LE(nines, second);
        ASSERT_EQ(ids[static_cast<size_t>(sevens)], kEos);
      }
    }
  }
}

TEST_F(TwoSources, NoTextSpellsTheBoundary) {
  Ids ids;
  ASSERT_TRUE(encode_sources(*tokenizers_.src, "w0 </s> w1\tw2", ids));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kEos), 1);
  EXPECT_EQ(end_of_first_source(ids, kEos), 3u);
  Ids none{8};
  EXPECT_FALSE(encode_sources(*tokenizers_.src, "w0\t", none));
  EXPECT_EQ(none, Ids{8});
}

TEST_F(TwoSources, IdsAreDecodedToBothTexts) {
  EXPECT_EQ(decode_sources(*tokenizers_.src, {4, 5, 3, 6, 3}), "w0 w1\tw2");
}

TEST_F(TwoSources, AnotherNumberOfLinesIsRefusedWithAllCounts) {
  DataOptions o = two_sources();
  o.train_src2 = {write("short.src2", "w6\nw7\n")};
  const Error error = testing::failure(ExitCode::kBadData, [&] { open(o); });
  for (const std::string part : {"a.src has 3", "short.src2 has 2", "a.tgt has 3"}) {
    EXPECT_TRUE(contains(error.message(), part)) << error.message();
  }
  o.train_src2 = {write("long.src2", "w6\nw7\nw8\nw9\n")};
  const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
  EXPECT_TRUE(contains(said, "long.src2 has 4")) << said;
}

TEST_F(TwoSources, OfThreeNumbersOfLinesTheOddOneIsAtFaultElseTheShortest) {
  enum class Fault { kSource, kSecond, kTarget };
  struct Row {
    int src, src2, tgt;
    Fault fault;
  };
  const auto words = [](int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += "w" + std::to_string(i) + "\n";
    return text;
  };
  const auto fault_of = [&](const DataOptions& o) {
    try {
      check_lines(o, Split::kTrain, [] { return true; });
    } catch (const SecondSourceError&) {
      return Fault::kSecond;
    } catch (const TargetError&) {
      return Fault::kTarget;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      return Fault::kSource;
    }
    ADD_FAILURE() << "all is well";
    return Fault::kSource;
  };
  const std::vector<Row> rows{
      {3, 2, 3, Fault::kSecond}, {3, 4, 3, Fault::kSecond}, {3, 3, 2, Fault::kTarget},
      {3, 3, 4, Fault::kTarget}, {2, 3, 3, Fault::kSource}, {4, 3, 3, Fault::kSource},
      {4, 2, 3, Fault::kSecond}, {3, 4, 2, Fault::kTarget}, {2, 4, 3, Fault::kSource}};
  for (const Row& row : rows) {
    SCOPED_TRACE(std::to_string(row.src) + ", " + std::to_string(row.src2) + ", " +
                 std::to_string(row.tgt));
    DataOptions o = two_sources();
    o.train_src = {write("odd.src", words(row.src))};
    o.train_src2 = {write("odd.src2", words(row.src2))};
    o.train_tgt = {write("odd.tgt", words(row.tgt))};
    EXPECT_EQ(fault_of(o), row.fault);
  }
}

TEST_F(TwoSources, AFileWithoutASecondOneIsRefused) {
  DataOptions o = two_sources();
  o.train_src2.push_back(o.train_src2.front());
  const std::string said = failure(ExitCode::kUsage, [&] { inputs_of(o, Split::kTrain); });
  EXPECT_TRUE(contains(said, "data.train_src names 1 file and data.train_src2 2")) << said;
  o = two_sources();
  o.train_tsv = {write("a.tsv", "w0\tw1\n")};
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { inputs_of(o, Split::kTrain); }),
                       "data.train_tsv has no column of a second source"));
}

TEST_F(TwoSources, TheCacheDependsOnTheSecondSource) {
  DataOptions o = two_sources();
  const auto path = open(o)->cache_path();
  EXPECT_EQ(open(o)->cache_path(), path);
  DataOptions other = o;
  other.train_src2 = {write("b.src2", "w6\nw7\nw9\n")};
  EXPECT_NE(open(other)->cache_path(), path);
  DataOptions one = o;
  one.train_src2.clear();
  const auto plain = open(one);
  EXPECT_NE(plain->cache_path(), path);
  EXPECT_EQ(plain->src(0).size(), 3u);
}

/// One character a piece, and pieces of two.
text::SubwordModel model_of_pairs() {
  text::SubwordModel model{.kind = text::SubwordModel::Kind::kBpe, .pieces = {}};
  int64_t id = 4;
  for (const char* piece : {"a", "b", "ab", "aba", "abab"}) {
    model.pieces.push_back({.text = piece, .score = -static_cast<double>(id), .id = id});
    ++id;
  }
  return model;
}

TEST_F(TwoSources, NoDrawnSegmentationCrossesTheBoundary) {
  const text::SubwordSampler sampler(model_of_pairs(), 0.5);
  const Ids ids{6, 3, 6};  // ab | ab: without a boundary "abab" is a piece
  std::set<Ids> first, second;
  for (uint64_t key = 0; key < 200; ++key) {
    const Ids drawn = sampler.sample(ids, key);
    ASSERT_EQ(std::count(drawn.begin(), drawn.end(), kEos), 1);
    const auto boundary = static_cast<std::ptrdiff_t>(end_of_first_source(drawn, kEos));
    first.insert(Ids(drawn.begin(), drawn.begin() + boundary));
    second.insert(Ids(drawn.begin() + boundary + 1, drawn.end()));
  }
  const std::set<Ids> all{{6}, {4, 5}};
  EXPECT_EQ(first, all);
  EXPECT_EQ(second, all);
}

}  // namespace
}  // namespace stretto::data
