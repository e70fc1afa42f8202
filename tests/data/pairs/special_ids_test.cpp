// Special ids of parallel text are its tokenizers'.
#include "data/pairs/pair_filter.h"
#include "data/pairs/two_sources.h"
#include "tests/data/pairs/corpus_fixture.h"
#include "tests/text/renumbered_tokenizer.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;

class SpecialIdsOfPairs : public CorpusFixture {
 protected:
  void SetUp() override {
    CorpusFixture::SetUp();
    plain_ = tokenizers_;
    other_ = std::make_shared<testing::RenumberedTokenizer>(plain_.src);
    tokenizers_ = {.src = other_, .tgt = other_, .joint = true, .assets = {}};
  }

  /// The text has words that no vocabulary knows.
  DataOptions some_text() const {
    DataOptions o = options(1);
    o.train_src = {write("a.src", "w0 w39 w1\nnobody w2\nw38\n")};
    o.train_tgt = {write("a.tgt", "w3\nw4 w5 knows\nw36 w37\n")};
    return o;
  }

  text::TokenizerPair plain_;
  std::shared_ptr<const testing::RenumberedTokenizer> other_;
};

TEST_F(SpecialIdsOfPairs, EndEachSentenceAndCountWhatIsUnknown) {
  const DataOptions text = some_text();
  const auto plain = open_corpus(text, Split::kTrain, plain_, 1, 1);
  const auto other = open(text);
  EXPECT_NE(other->cache_path(), plain->cache_path());
  ASSERT_EQ(other->num_pairs(), plain->num_pairs());
  for (int64_t i = 0; i < plain->num_pairs(); ++i) {
    EXPECT_EQ(other->src(i), other_->numbers(plain->src(i)));
    EXPECT_EQ(other->tgt(i), other_->numbers(plain->tgt(i)));
    EXPECT_EQ(other->src(i).back(), other_->specials().eos);
    EXPECT_EQ(other->tgt(i).back(), other_->specials().eos);
  }
  EXPECT_EQ(other->src_counts().pieces, 6);
  EXPECT_EQ(other->src_counts().unknown, 1);
  EXPECT_EQ(other->tgt_counts().pieces, 6);
  EXPECT_EQ(other->tgt_counts().unknown, 1);
}

TEST_F(SpecialIdsOfPairs, OfEachSideAreItsOwnTokenizers) {
  const text::TokenizerPair mixed{.src = plain_.src, .tgt = other_, .joint = false, .assets = {}};
  const PairRules rules{.max_src_tokens = 3, .max_tgt_tokens = 3, .too_long = TooLong::kTruncate};
  EncodedPair pair;
  FilterCounts counts;
  ASSERT_TRUE(encode_pair(rules, mixed, "w0 nobody w1", "nobody w1", {}, pair, counts));
  EXPECT_EQ(pair.src, (Ids{4, plain_.src->specials().unk, plain_.src->specials().eos}));
  EXPECT_EQ(pair.tgt, (Ids{other_->specials().unk, other_->number(5), other_->specials().eos}));
  TextCounts src, tgt;
  count_pair(mixed, pair, src, tgt);
  for (const TextCounts& side : {src, tgt}) {
    EXPECT_EQ(side.pieces, 2);
    EXPECT_EQ(side.unknown, 1);
  }
}

TEST_F(SpecialIdsOfPairs, AreTheBoundaryOfTwoSources) {
  const int64_t eos = other_->specials().eos, unk = other_->specials().unk;
  Ids ids;
  // `w39` has the id 0, `w36` the id 3.
  ASSERT_TRUE(encode_sources(*other_, "w36 </s> w39\tw38", ids));
  EXPECT_EQ(ids, (Ids{3, unk, 0, eos, 1}));
  EXPECT_EQ(end_of_first_source(ids, eos), 3u);
  EXPECT_EQ(decode_sources(*other_, ids), "w36 <unk> w39\tw38");
  EXPECT_EQ(cut_sources(ids, 4, eos), 1);
  EXPECT_EQ(ids, (Ids{3, unk, eos, 1}));
}

/// A vocabulary without `<unk>` that spells its own end-of-sentence, or has none.
class Bare final : public text::Tokenizer {
 public:
  explicit Bare(int64_t eos) : eos_(eos) {}
  text::SpecialIds specials() const override { return {.eos = eos_}; }
  void encode(std::string_view line, Ids& ids) const override {
    for (const char c : line) ids.push_back(c - 'a');
  }
  std::string decode(const Ids& ids) const override {
    std::string text;
    for (const int64_t id : ids) text += piece(id);
    return text;
  }
  std::string piece(int64_t id) const override {
    return std::string(1, static_cast<char>('a' + id));
  }
  int64_t size() const override { return 26; }
  uint64_t fingerprint() const override { return 1; }

 private:
  int64_t eos_;
};

TEST_F(SpecialIdsOfPairs, ASpelledBoundaryIsLeftOutWhereNothingIsUnknown) {
  Ids ids;
  ASSERT_TRUE(encode_sources(Bare(25), "azb\tcz", ids));
  EXPECT_EQ(ids, (Ids{0, 1, 25, 2}));
  EXPECT_FALSE(encode_sources(Bare(25), "az\tz", ids)) << "nothing is left of the second";
}

TEST_F(SpecialIdsOfPairs, WithoutAnEndOfSentenceThereIsNoCorpus) {
  tokenizers_.tgt = std::make_shared<Bare>(-1);
  const std::string said = failure(ExitCode::kUsage, [&] { open(some_text()); });
  EXPECT_TRUE(contains(said, "tokenizer of the target")) << said;
  EXPECT_TRUE(contains(said, "end-of-sentence")) << said;
}

}  // namespace
}  // namespace stretto::data
