#include "families/language_model/engine/scored_text.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/families/language_model/engine/animals.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;

TEST(LanguageScores, AreSumsFirstAndThenTheExponent) {
  const auto scores = scores_of({.nll = 20, .loss = 24, .tokens = 10, .bytes = 40, .words = 5});
  const auto value = [&](const char* name) { return train::find_score(scores, name)->value; };
  EXPECT_NEAR(value("loss"), 2.4, 1e-12);
  EXPECT_NEAR(value("nll"), 2, 1e-12);
  EXPECT_NEAR(value("ppl"), std::exp(2.0), 1e-9);
  EXPECT_NEAR(value("bits_per_byte"), 20 / std::log(2.0) / 40, 1e-12);
  EXPECT_NEAR(value("word_ppl"), std::exp(4.0), 1e-9);
  EXPECT_EQ(scores_of({.nll = 20, .loss = 24, .tokens = 10}).size(), 3U) << "what is not known";
}

TEST(LanguageScores, HaveNoPerplexityOfWordsForATextWithoutSpaces) {
  const auto scores =
      scores_of({.nll = 9000, .loss = 9000, .tokens = 3000, .bytes = 9000, .words = 2});
  EXPECT_EQ(train::find_score(scores, "word_ppl"), nullptr) << "it would be infinite";
  EXPECT_NE(train::find_score(scores, "bits_per_byte"), nullptr);
}

TEST_P(LanguageModelKinds, AScoreDoesNotDependOnBatches) {
  choose(GetParam());
  const auto task = make_task();
  double first = 0;
  for (const int64_t max_tokens : {7, 64, 1000, 100000}) {
    sections().eval.max_tokens = max_tokens;
    const double nll = valid_nll(*task);
    if (first == 0) first = nll;
    EXPECT_NEAR(nll, first, 1e-6 * first) << max_tokens;
  }
}

TEST_P(LanguageModelKinds, ATextIsReadFromItsBeginToItsEnd) {
  choose(GetParam());
  sections().eval.window = 512;  // all of it
  const auto task = make_task();
  const auto ids = stream_of(*valid_text().documents);
  const at::Tensor each =
      nll_of(model_of(*task), {ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()});
  EXPECT_NEAR(valid_nll(*task), each.mean().item<double>(), 1e-5);
}

TEST_F(LanguageModelTest, AWindowSeesWhatStandsInItAlone) {
  sections().eval.window = 8;
  sections().eval.stride = 3;
  const auto task = make_task();
  const auto ids = stream_of(*valid_text().documents);
  double sum = 0;
  int64_t scored = 0;
  const auto tokens = std::ssize(ids) - 1;
  for (int64_t begin = 0; scored < tokens; begin += 3) {
    const int64_t end = std::min(begin + 8, tokens);
    const at::Tensor each = nll_of(model_of(*task), {ids.begin() + begin, ids.begin() + end},
                                   {ids.begin() + begin + 1, ids.begin() + end + 1});
    sum += each.narrow(0, scored - begin, end - scored).sum().item<double>();
    scored = end;
  }
  EXPECT_NEAR(valid_nll(*task), sum / static_cast<double>(tokens), 1e-5);
}

TEST_F(LanguageModelTest, PartsOfATextMayBeReadSideBySide) {
  choose("lstm");
  sections().eval.lanes = 11;  // two groups
  const auto task = make_task();
  const auto text = valid_text();
  const auto ids = stream_of(*text.documents);
  const auto length = static_cast<uint64_t>(text.documents->num_ids());
  double sum = 0;
  for (uint64_t part = 0; part < 11; ++part) {
    const auto begin = static_cast<std::ptrdiff_t>(length * part / 11),
               end = static_cast<std::ptrdiff_t>(length * (part + 1) / 11);
    sum += nll_of(model_of(*task), {ids.begin() + begin, ids.begin() + end},
                  {ids.begin() + begin + 1, ids.begin() + end + 1})
               .sum()
               .item<double>();
  }
  EXPECT_NEAR(valid_nll(*task), sum / static_cast<double>(length), 1e-5);
  sections().eval.lanes = 1000;
  failure(ExitCode::kBadData, [&] { valid_nll(*task); });
}

TEST_P(LanguageModelKinds, EndsOfLinesAreCountedOrNot) {
  choose(GetParam());
  sections().eval.window = 512;
  const auto task = make_task();
  const auto text = valid_text();
  const auto score = [&] {
    return score_text(model_of(*task), sections(), text, "validation text", {});
  };
  const TextScore with = score();
  EXPECT_EQ(with.tokens, static_cast<int64_t>(text.documents->num_ids()));
  EXPECT_EQ(with.words, with.tokens) << "each word is a token";
  EXPECT_EQ(with.bytes, std::ssize(testing::animal_lines(30, 2)));
  sections().eval.count_ends = false;
  const TextScore without = score();
  EXPECT_EQ(without.tokens, with.tokens - 30);
  EXPECT_EQ(without.words, with.words - 30);
  EXPECT_EQ(without.bytes, with.bytes - 30);
  const auto ids = stream_of(*text.documents);
  const at::Tensor each =
      nll_of(model_of(*task), {ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()});
  double sum = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] != ids.front()) sum += each[static_cast<int64_t>(i) - 1].item<double>();
  }
  EXPECT_NEAR(without.nll, sum, 1e-4 * sum);
}

TEST_P(LanguageModelKinds, ADocumentMayBeScoredByItself) {
  choose(GetParam());
  sections().eval.window = 4;
  sections().eval.stride = 2;
  const auto task = make_task();
  const auto text = valid_text();
  const auto scores = score_documents(model_of(*task), sections(), *text.documents, {});
  ASSERT_EQ(std::ssize(scores), text.documents->size());
  for (const int64_t i : {0, 7, 29}) {
    std::vector<int64_t> ids;
    text.documents->append(text.documents->num_ids() - 1, text.documents->num_ids(), ids);
    text.documents->append(text.documents->begin(i), text.documents->begin(i + 1), ids);
    const bool recurrent = std::string(GetParam()) == "lstm";
    const auto tokens = std::ssize(ids) - 1;
    double sum = 0;
    int64_t scored = 0;
    for (int64_t begin = 0; scored < tokens; begin += 2) {
      const int64_t end = recurrent ? tokens : std::min(begin + 4, tokens);
      const at::Tensor each = nll_of(model_of(*task), {ids.begin() + begin, ids.begin() + end},
                                     {ids.begin() + begin + 1, ids.begin() + end + 1});
      sum += each.narrow(0, scored - begin, end - scored).sum().item<double>();
      scored = end;
    }
    EXPECT_NEAR(scores[static_cast<size_t>(i)].log_prob, -sum, 1e-4) << i;
    EXPECT_EQ(scores[static_cast<size_t>(i)].tokens, tokens);
  }
}

TEST_F(LanguageModelTest, ATextMayBeginBehindATokenOfItsOwn) {
  sections().eval.window = 512;
  const auto task = make_task();
  constexpr int64_t kBegin = 5;
  auto text = valid_text();
  const auto& documents = *text.documents;
  const auto sum_of = [&](uint64_t end) {
    std::vector<int64_t> ids{kBegin};
    documents.append(0, end, ids);
    return nll_of(model_of(*task), {ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()})
        .sum()
        .item<double>();
  };
  const auto alone = score_documents(model_of(*task), sections(), documents, {}, kBegin);
  EXPECT_NEAR(alone.front().log_prob, -sum_of(documents.begin(1)), 1e-4);
  text.begin = kBegin;
  const double whole = sum_of(documents.num_ids());
  EXPECT_NEAR(score_text(model_of(*task), sections(), text, "validation text", {}).nll, whole,
              1e-5 * whole);
  EXPECT_NE(context_words(sections(), "<s>").find("of a text behind <s>"), std::string::npos);
  EXPECT_EQ(context_words(sections()).find("of a text"), std::string::npos);
}

}  // namespace
}  // namespace stretto::tasks
