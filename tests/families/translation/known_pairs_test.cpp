#include "families/translation/known_pairs.h"

#include <gtest/gtest.h>

#include "families/translation/translation_options.h"
#include "tests/base/failure.h"

namespace stretto::experiment {
namespace {

/// A corpus that is only its counts.
class Counted final : public data::Corpus {
 public:
  Counted(data::TextCounts src, data::TextCounts tgt) : src_(src), tgt_(tgt) {}
  int64_t num_pairs() const override { return 1; }
  int64_t num_src_tokens() const override { return 1; }
  int64_t num_tgt_tokens() const override { return 1; }
  const data::FilterCounts& filters() const override { return filters_; }
  const data::TextCounts& src_counts() const override { return src_; }
  const data::TextCounts& tgt_counts() const override { return tgt_; }
  uint64_t cache_bytes() const override { return 0; }
  std::filesystem::path cache_path() const override { return {}; }
  bool from_cache() const override { return false; }
  std::vector<int64_t> src(int64_t) const override { return {}; }
  std::vector<int64_t> tgt(int64_t) const override { return {}; }
  std::string tgt_text(int64_t) const override { return {}; }
  std::string src_text(int64_t) const override { return {}; }

 private:
  data::TextCounts src_, tgt_;
  data::FilterCounts filters_;
};

/// The target of 10,000 pieces in 4,000 words, so many of them unknown; the source has none.
Counted with_unknown(int64_t count) {
  return {{.words = 5, .pieces = 5, .unknown = 0},
          {.words = 4000, .pieces = 10000, .unknown = count}};
}

void require(int64_t unknown, const text::TokenizerPair& tokenizers, const Experiment& experiment,
             bool warn) {
  const auto corpus = with_unknown(unknown);
  require_known("training text", corpus.src_counts(), corpus.tgt_counts(), tokenizers, experiment,
                warn);
}

std::string said(int64_t unknown, bool warn = true) {
  ::testing::internal::CaptureStderr();
  require(unknown, {}, {}, warn);
  return ::testing::internal::GetCapturedStderr();
}

TEST(KnownPairs, IsSaidInRatesOfWhichOnlyZeroIsZero) {
  using Facts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(known_text_facts("text", with_unknown(31)),
            (Facts{{"text, unknown tokens", "source 0 %, target 0.31 %"},
                   {"text, pieces a word", "source 1.00, target 2.50"}}));
  const Counted one({.words = 1, .pieces = 1000000, .unknown = 1}, {});
  EXPECT_EQ(known_text_facts("text", one).front().second, "source below 0.01 %, target 0 %");
}

TEST(KnownPairs, IsWarnedOfAboveOnePerCent) {
  EXPECT_EQ(said(100), "");
  EXPECT_NE(said(101).find("warning: training text: 1.01 % of the target's tokens are `<unk>`"),
            std::string::npos)
      << said(101);
  EXPECT_EQ(said(101, /*warn=*/false), "");
}

TEST(KnownPairs, IsRefusedAboveTheBoundWithWhatHelps) {
  EXPECT_NE(said(2000).find("warning"), std::string::npos);
  Experiment experiment;
  const auto refusal = [&](const text::TokenizerPair& tokenizers) {
    return testing::failure(ExitCode::kBadData,
                            [&] { require(2001, tokenizers, experiment, false); })
        .message();
  };
  const std::string trained = refusal({});
  EXPECT_NE(trained.find("20.0 % of the target's tokens are `<unk>`, more than data.max_unknown = "
                         "0.2 allows"),
            std::string::npos)
      << trained;
  EXPECT_NE(trained.find("raise tokenizer.character_coverage"), std::string::npos) << trained;
  translation_of(experiment).tokenizer.model = "a.model";
  EXPECT_NE(refusal({}).find("leave tokenizer.model"), std::string::npos);
  text::TokenizerPair words;
  words.assets["src.vocab"] = "";
  EXPECT_NE(refusal(words).find("split the text as the vocabulary is split"), std::string::npos);
  translation_of(experiment).data.max_unknown = 0.21;
  require(2001, words, experiment, false);
}

}  // namespace
}  // namespace stretto::experiment
