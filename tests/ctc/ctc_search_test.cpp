#include "ctc/ctc_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/ctc/frames.h"
#include "text/ngram/open_ngram_model.h"

namespace stretto::ctc {
namespace {

using stretto::testing::TempDir;
using Sequence = std::vector<int64_t>;

constexpr double kLn10 = 2.302585092994045684;
/// Of words of the letters a and b, and of these letters with `|` between words.
const std::string kWordArpa =
    "\\data\\\nngram 1=6\nngram 2=4\n\n\\1-grams:\n"
    "-2.5\t<unk>\n-99\t<s>\t-0.3\n-0.9\t</s>\n-0.5\ta\t-0.2\n-0.8\tab\t-0.4\n-1.4\tbb\t-0.1\n\n"
    "\\2-grams:\n-0.2\t<s> ab\n-0.4\tab a\n-1.1\ta ab\n-0.3\tbb </s>\n\n\\end\\\n";
const std::string kLetterArpa =
    "\\data\\\nngram 1=5\nngram 2=4\n\n\\1-grams:\n"
    "-99\t<s>\t-0.3\n-0.9\t</s>\n-0.5\ta\t-0.2\n-0.8\tb\t-0.4\n-1.0\t|\t-0.1\n\n"
    "\\2-grams:\n-0.2\t<s> b\n-0.4\tb a\n-1.1\ta |\n-0.3\tb </s>\n\n\\end\\\n";

CtcLabels letters() {
  return labels_by_name({"a", "b", "|"});
}

std::vector<int32_t> spell(std::string_view word) {
  std::vector<int32_t> labels;
  for (const char c : word) {
    if (c != 'a' && c != 'b') return {};
    labels.push_back(c - 'a');
  }
  return labels;
}

/// Nothing is pruned.
CtcOptions exact_beam() {
  CtcOptions options;
  options.method = "beam";
  options.beam_size = 100000;
  options.beam_token = 0;
  options.beam_threshold = 0;
  options.nbest = 100000;
  return options;
}

std::vector<CtcHypothesis> decode(const CtcOptions& options, std::span<const float> frames,
                                  const CtcLabels& labels = letters()) {
  const TempDir folder;
  return CtcDecoder(labels, options, spell, folder.path()).decode(frames);
}

/// The text of labels, with one space where words are apart.
std::string text_of(const Sequence& labels) {
  std::string text;
  for (const int64_t label : labels) text += "ab "[static_cast<size_t>(label)];
  return join(split_words(text), " ");
}

/// log10 of the words of a text, with its end.
double lm_log10(const text::NgramModel& model, const std::vector<std::string>& tokens) {
  text::NgramState state = model.begin_history();
  double sum = 0;
  for (const std::string& token : tokens) {
    text::NgramState next;
    sum += double{model.score(state, model.index(token), next)};
    state = next;
  }
  text::NgramState ignored;
  return sum + double{model.score(state, model.end_index(), ignored)};
}

/// Texts and their log-probabilities, from all alignments.
std::map<std::string, double> all_texts(const std::vector<float>& frames, int64_t classes) {
  std::map<std::string, double> texts;
  for (const auto& [labels, log_prob] : testing::all_label_sequences(frames, classes))
    texts[text_of(labels)] += std::exp(log_prob);
  for (auto& [text, prob] : texts) prob = std::log(prob);
  return texts;
}

void expect_best_first(const std::vector<CtcHypothesis>& found) {
  for (size_t i = 1; i < found.size(); ++i) EXPECT_GE(found[i - 1].score, found[i].score);
}

TEST(CtcSearch, AnUnprunedBeamEqualsTheSumOverAllAlignments) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto frames = testing::random_frames(seed, 6, 3, 2);
    const auto expected = testing::all_label_sequences(frames, 3);
    const auto found = decode(exact_beam(), frames, labels_by_name({"x", "y"}));
    ASSERT_EQ(found.size(), expected.size());
    expect_best_first(found);
    for (const CtcHypothesis& hypothesis : found) {
      ASSERT_TRUE(expected.contains(hypothesis.ids));
      EXPECT_NEAR(hypothesis.log_prob, expected.at(hypothesis.ids), 1e-5);
      EXPECT_EQ(hypothesis.score, hypothesis.log_prob);
    }
  }
}

TEST(CtcSearch, TextsThatDifferInIdleSeparatorsAreOne) {
  const auto frames = testing::random_frames(3, 5, 4, 2);
  const auto expected = all_texts(frames, 4);
  const auto found = decode(exact_beam(), frames);
  ASSERT_EQ(found.size(), expected.size());
  for (const CtcHypothesis& hypothesis : found)
    EXPECT_NEAR(hypothesis.log_prob, expected.at(hypothesis.text), 1e-5) << hypothesis.text;
}

TEST(CtcSearch, TextsThatDifferInLabelsWithoutATextAreOne) {
  const auto frames = testing::random_frames(5, 5, 3, 2);
  std::map<std::string, double> expected;
  for (const auto& [labels, log_prob] : testing::all_label_sequences(frames, 3)) {
    std::string text;
    for (const int64_t label : labels) text += label == 0 ? "a" : "";
    expected[text] += std::exp(log_prob);
  }
  const auto found = decode(exact_beam(), frames, labels_by_name({"a", "<unk>"}));
  ASSERT_EQ(found.size(), expected.size());
  for (const CtcHypothesis& hypothesis : found)
    EXPECT_NEAR(std::exp(hypothesis.log_prob), expected.at(hypothesis.text), 1e-5);
}

TEST(CtcSearch, AMarkAloneBeginsAWordAndIsNoLabelWithoutAText) {
  const auto frames = testing::random_frames(6, 5, 3, 2);
  const auto found = decode(exact_beam(), frames, labels_by_name({"a", "\xe2\x96\x81"}));
  const auto has = [&](const std::string& text) {
    return std::ranges::any_of(found, [&](const auto& one) { return one.text == text; });
  };
  EXPECT_TRUE(has("aa"));
  EXPECT_TRUE(has("a a"));
}

TEST(CtcSearch, ALanguageModelOfWordsScoresEachWordOnceItEnds) {
  const TempDir folder;
  CtcOptions options = exact_beam();
  options.lm = folder.write("lm.arpa", kWordArpa);
  options.alpha = 0.7;
  options.beta = 0.4;
  options.unknown_score = -1.5;
  const auto model = text::read_ngram_model(kWordArpa, "lm.arpa");
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto frames = testing::random_frames(seed, 6, 4, 2);
    const auto expected = all_texts(frames, 4);
    const auto found = decode(options, frames);
    ASSERT_EQ(found.size(), expected.size());
    expect_best_first(found);
    for (const CtcHypothesis& hypothesis : found) {
      const auto words = split_words(hypothesis.text);
      const double lm = kLn10 * lm_log10(*model, words);
      const auto unknown = std::count_if(words.begin(), words.end(), [&](const std::string& word) {
        return model->index(word) == 0;
      });
      EXPECT_NEAR(hypothesis.lm_log_prob, lm, 1e-4) << hypothesis.text;
      EXPECT_NEAR(hypothesis.score,
                  expected.at(hypothesis.text) + 0.7 * lm +
                      0.4 * static_cast<double>(words.size()) - 1.5 * static_cast<double>(unknown),
                  1e-4)
          << hypothesis.text;
      EXPECT_EQ(hypothesis.words.size(), words.size());
    }
  }
}

TEST(CtcSearch, ALexiconAllowsItsWordsAlone) {
  const TempDir folder;
  CtcOptions options = exact_beam();
  options.lm = folder.write("lm.arpa", kWordArpa);
  options.lexicon = folder.write("lexicon.txt", "a\nab a b |\nbb\n");
  const auto model = text::read_ngram_model(kWordArpa, "lm.arpa");
  const auto frames = testing::random_frames(11, 6, 4, 2);
  std::map<std::string, double> expected;
  for (const auto& [text, log_prob] : all_texts(frames, 4)) {
    const auto words = split_words(text);
    if (std::all_of(words.begin(), words.end(), [](const std::string& word) {
          return word == "a" || word == "ab" || word == "bb";
        })) {
      expected[text] =
          log_prob + 0.5 * kLn10 * lm_log10(*model, words) + static_cast<double>(words.size());
    }
  }
  const auto found = decode(options, frames);
  ASSERT_EQ(found.size(), expected.size());
  for (const CtcHypothesis& hypothesis : found) {
    EXPECT_TRUE(hypothesis.is_complete);
    EXPECT_NEAR(hypothesis.score, expected.at(hypothesis.text), 1e-4) << hypothesis.text;
  }
}

TEST(CtcSearch, TheWordsOfALanguageModelMayBeTheLexicon) {
  const TempDir folder;
  CtcOptions options = exact_beam();
  options.lm = folder.write("lm.arpa", kWordArpa);
  options.lexicon = folder.write("lexicon.txt", "a\nab\nbb\n");
  const auto frames = testing::random_frames(2, 6, 4, 2);
  const auto expected = decode(options, frames);
  options.lexicon = "";
  options.lexicon_from_lm = true;
  const auto found = decode(options, frames);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].text, expected[i].text);
}

TEST(CtcSearch, ALanguageModelOfLabelsScoresEachLabel) {
  const TempDir folder;
  CtcOptions options = exact_beam();
  options.lm = folder.write("lm.arpa", kLetterArpa);
  options.lm_unit = "labels";
  options.beta = 0.3;
  const auto model = text::read_ngram_model(kLetterArpa, "lm.arpa");
  const auto frames = testing::random_frames(21, 5, 3, 2);
  const auto expected = testing::all_label_sequences(frames, 3);
  const auto found = decode(options, frames, labels_by_name({"a", "b"}));
  ASSERT_EQ(found.size(), expected.size());
  for (const CtcHypothesis& hypothesis : found) {
    std::vector<std::string> tokens;
    for (const int64_t id : hypothesis.ids) tokens.push_back(id == 0 ? "a" : "b");
    EXPECT_NEAR(hypothesis.score,
                expected.at(hypothesis.ids) + 0.5 * kLn10 * lm_log10(*model, tokens) +
                    0.3 * static_cast<double>(tokens.size()),
                1e-4);
  }
}

/// A language model that likes a label to follow another one.
class Alternating : public decoding::TokenScorer {
 public:
  uint32_t start() override { return 9; }
  void score(std::span<const decoding::TokenQuery> queries,
             std::span<decoding::TokenScore> scores) override {
    for (size_t i = 0; i < queries.size(); ++i) {
      scores[i].next = static_cast<uint32_t>(queries[i].token);
      scores[i].log_prob = scores[i].next == queries[i].state ? -5.0F : -0.1F;
    }
  }
  float end(uint32_t state) override { return state == 1 ? -0.5F : -1.0F; }
  void keep(std::span<uint32_t>) override {}
  size_t num_states() const override { return 3; }
};

TEST(CtcSearch, AScorerOfLabelsTakesThePlaceOfALanguageModel) {
  const auto frames = testing::random_frames(4, 5, 3, 2);
  const auto expected = testing::all_label_sequences(frames, 3);
  const CtcDecoder decoder(labels_by_name({"a", "b"}), exact_beam(), spell);
  Alternating scorer;
  CtcSearch search(decoder, &scorer);
  search.push(frames);
  for (const CtcHypothesis& hypothesis : search.finish()) {
    double lm = hypothesis.ids.empty() || hypothesis.ids.back() != 1 ? -1.0 : -0.5;
    for (size_t i = 0; i < hypothesis.ids.size(); ++i)
      lm += i > 0 && hypothesis.ids[i] == hypothesis.ids[i - 1] ? -5.0 : -0.1;
    EXPECT_NEAR(hypothesis.score,
                expected.at(hypothesis.ids) + 0.5 * lm + static_cast<double>(hypothesis.ids.size()),
                1e-4);
  }
}

TEST(CtcSearch, WordsWithoutSeparatorsFollowEachOther) {
  // Phonemes: two words sound alike, and one ends like another begins.
  const TempDir folder;
  CtcOptions options = exact_beam();
  options.lexicon = folder.write("lexicon.txt", "see S I\nsea S I\nis I S\n");
  const auto frames = testing::sure_frames({0, 1, 2, 1, 0, 2}, 3);
  const auto found = decode(options, frames, labels_by_name({"S", "I"}));
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0].ids, (Sequence{0, 1, 1, 0}));
  std::vector<std::string> best = {found[0].text, found[1].text};
  std::sort(best.begin(), best.end());
  EXPECT_EQ(best, (std::vector<std::string>{"sea is", "see is"}));
  EXPECT_EQ(found[0].words[1], (CtcWord{"is", 3, 5}));
}

TEST(CtcSearch, PiecesWithAMarkBeginWords) {
  CtcOptions options = exact_beam();
  options.nbest = 1;
  const CtcLabels labels = labels_by_name({"\u2581the", "\u2581c", "at", "<unk>"});
  const auto found = decode(options, testing::sure_frames({0, 4, 1, 2, 2, 4}, 5), labels);
  EXPECT_EQ(found[0].text, "the cat");
  EXPECT_EQ(found[0].words, (std::vector<CtcWord>{{"the", 0, 1}, {"cat", 2, 5}}));
}

TEST(CtcSearch, WordsHaveTheFramesOfTheirLabels) {
  CtcOptions options;
  const auto frames = testing::sure_frames({3, 0, 0, 3, 1, 2, 3, 1, 3, 1, 1, 3}, 4);
  for (const std::string method : {"greedy", "beam"}) {
    options.method = method;
    const auto found = decode(options, frames);
    EXPECT_EQ(found[0].text, "ab bb") << method;
    EXPECT_EQ(found[0].words, (std::vector<CtcWord>{{"ab", 1, 5}, {"bb", 7, 11}})) << method;
    EXPECT_EQ(found[0].begin_frames, (Sequence{1, 4, 5, 7, 9})) << method;
  }
}

TEST(CtcSearch, TheGreedyOneTakesTheLikeliestClassOfEachFrame) {
  const auto frames = testing::random_frames(8, 40, 4, 4);
  Sequence expected;
  double log_prob = 0;
  int64_t before = -1;
  for (size_t t = 0; t < 40; ++t) {
    const auto best = std::max_element(&frames[t * 4], &frames[t * 4] + 4);
    const int64_t label = best - &frames[t * 4];
    log_prob += double{*best};
    if (label != before && label != 3) expected.push_back(label);
    before = label;
  }
  const auto found = decode({}, frames);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].ids, expected);
  EXPECT_NEAR(found[0].score, log_prob, 1e-5);
}

CtcOptions pruned_beam(const TempDir& folder) {
  CtcOptions options;
  options.method = "beam";
  options.beam_size = 20;
  options.beam_token = 2;
  options.nbest = 5;
  options.lm = folder.write("lm.arpa", kWordArpa);
  options.hot_words = {"bb a"};
  options.hot_weight = 1;
  return options;
}

TEST(CtcSearch, PiecesOfAStreamGiveTheResultOfTheWhole) {
  const TempDir folder;
  for (const std::string method : {"beam", "greedy"}) {
    CtcOptions options = pruned_beam(folder);
    options.method = method;
    const CtcDecoder decoder(letters(), options, spell, folder.path());
    const auto frames = testing::random_frames(31, 120, 4, 5);
    const auto whole = decoder.decode(frames);
    CtcSearch search(decoder);
    for (int round = 0; round < 2; ++round) {  // a search may be used again
      size_t begin = 0;
      for (size_t n = 0; begin < frames.size(); n = (n + 3) % 8) {
        const size_t size = std::min(n * 4, frames.size() - begin);
        search.push(std::span<const float>(frames).subspan(begin, size));
        begin += size;
      }
      EXPECT_EQ(search.num_frames(), 120);
      const auto pieces = search.finish();
      ASSERT_EQ(pieces.size(), whole.size());
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(pieces[i].ids, whole[i].ids);
        EXPECT_EQ(pieces[i].words, whole[i].words);
        EXPECT_EQ(pieces[i].score, whole[i].score);
      }
    }
  }
}

TEST(CtcSearch, WhatIsCertainStays) {
  const TempDir folder;
  const CtcDecoder decoder(letters(), pruned_beam(folder), spell, folder.path());
  const auto frames = testing::random_frames(33, 200, 4, 9);
  CtcSearch search(decoder);
  std::vector<std::string> certain;
  size_t most = 0;
  for (size_t t = 0; t < 200; ++t) {
    search.push(std::span<const float>(frames).subspan(t * 4, 4));
    certain.push_back(search.certain().text);
    most = std::max(most, search.certain().words.size());
  }
  EXPECT_GT(most, 0U);
  for (const CtcHypothesis& hypothesis : search.finish()) {
    for (const std::string& text : certain)
      EXPECT_TRUE((hypothesis.text + " ").starts_with(text.empty() ? "" : text + " ")) << text;
  }
}

TEST(CtcSearch, SettledWordsAreCertain) {
  const TempDir folder;
  CtcOptions options = pruned_beam(folder);
  options.beam_token = 0;
  const CtcDecoder decoder(letters(), options, spell, folder.path());
  const auto frames = testing::random_frames(34, 60, 4, 1);  // nothing is sure here
  CtcSearch search(decoder);
  for (size_t t = 0; t < 60; ++t) {
    search.push(std::span<const float>(frames).subspan(t * 4, 4));
    const CtcHypothesis best = search.best_so_far();
    search.settle(search.num_frames() - 10);
    const CtcHypothesis certain = search.certain();
    for (size_t i = 0; i + 1 < best.words.size(); ++i) {
      // The word behind it has begun, so that this one ended before.
      if (best.words[i + 1].begin_frame >= search.num_frames() - 10) break;
      ASSERT_GT(certain.words.size(), i);
      EXPECT_EQ(certain.words[i].text, best.words[i].text);
    }
  }
  EXPECT_FALSE(search.finish().empty());
}

TEST(CtcSearch, HotWordsAreFound) {
  CtcOptions options;
  options.method = "beam";
  // Between a and b the frames are nearly undecided.
  auto frames = testing::sure_frames({0, 2, 0, 3, 0, 2, 0}, 4);
  frames[2 * 4 + 1] = frames[2 * 4] - 0.5F;
  EXPECT_EQ(decode(options, frames)[0].text, "a aa a");
  options.hot_words = {"ba"};
  EXPECT_EQ(decode(options, frames)[0].text, "a ba a");
  options.hot_weight = 0.1;
  EXPECT_EQ(decode(options, frames)[0].text, "a aa a");
}

TEST(CtcSearch, HotWordsOfALexiconAreFoundByTheirNames) {
  const TempDir folder;
  CtcOptions options;
  options.method = "beam";
  options.lexicon = folder.write("lexicon.txt", "see S I\nsea S I\n");
  options.hot_words = {"sea"};
  const auto frames = testing::sure_frames({0, 1, 2}, 3);
  EXPECT_EQ(decode(options, frames, labels_by_name({"S", "I"}))[0].text, "sea");
  options.hot_words = {"see"};
  EXPECT_EQ(decode(options, frames, labels_by_name({"S", "I"}))[0].text, "see");
}

TEST(CtcSearch, HotWordsNeedEndsOfWords) {
  CtcOptions options;
  options.method = "beam";
  options.hot_words = {"see"};
  const auto frames = testing::sure_frames({0, 1, 2}, 3);
  const auto error = stretto::testing::failure(ExitCode::kUsage, [&] {
    decode(options, frames, labels_by_name({"S", "I"}));
  });
  EXPECT_NE(error.message().find("decode.hot_words"), std::string::npos) << error.message();
}

TEST(CtcSearch, LabelsMayBeBytesOfCharacters) {
  const CtcLabels labels = labels_by_name({"a", "\xC3", "\xBC", "|"});
  for (const char* method : {"greedy", "beam"}) {
    CtcOptions options;
    options.method = method;
    const auto whole = decode(options, testing::sure_frames({0, 1, 2, 3, 0, 1}, 5), labels)[0];
    ASSERT_EQ(whole.words.size(), 2U) << method;
    EXPECT_EQ(whole.words[0].text, "a\xC3\xBC") << method;
    EXPECT_EQ(whole.text, "a\xC3\xBC a\xEF\xBF\xBD") << method << ": a half is no character";
  }
}

TEST(CtcSearch, AnUnfinishedWordOfTheLexiconIsSaidToBeOne) {
  const TempDir folder;
  CtcOptions options;
  options.method = "beam";
  options.beam_threshold = 3;
  options.lexicon = folder.write("lexicon.txt", "abab\n");
  const auto found = decode(options, testing::sure_frames({0, 1, 3, 0}, 4, 1e-6));
  EXPECT_FALSE(found[0].is_complete);
  EXPECT_EQ(found[0].text, "aba");
}

TEST(CtcSearch, WithoutAFrameThereIsTheEmptyText) {
  const TempDir folder;
  for (const std::string method : {"beam", "greedy"}) {
    CtcOptions options = pruned_beam(folder);
    options.method = method;
    const auto found = decode(options, {});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].text.empty() && found[0].ids.empty() && found[0].words.empty());
  }
}

TEST(CtcSearch, ImpossibleFramesEndNoSearch) {
  CtcOptions options;
  options.method = "beam";
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::vector<float> frames(12, kNever);
  const auto found = decode(options, frames);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].score, -std::numeric_limits<double>::infinity());
}

TEST(CtcSearch, WrongFramesAreRefused) {
  CtcOptions options;
  options.method = "beam";
  auto frames = testing::random_frames(1, 5, 4, 1);
  frames[9] = std::nanf("");
  const auto message =
      testing::failure(ExitCode::kNumeric, [&] { decode(options, frames); }).message();
  EXPECT_NE(message.find("frame 2"), std::string::npos) << message;
  frames.resize(7);
  EXPECT_THROW(decode(options, frames), std::invalid_argument);
}

TEST(CtcSearch, OptionsThatContradictEachOtherAreRefused) {
  const TempDir folder;
  const auto refused = [&](const CtcOptions& options, const CtcLabels& labels = letters()) {
    testing::failure(ExitCode::kUsage, [&] { decode(options, {}, labels); });
  };
  CtcOptions options = pruned_beam(folder);
  options.lexicon_from_lm = true;
  options.lexicon = folder.write("lexicon.txt", "a\n");
  refused(options);
  options = pruned_beam(folder);
  options.lm = "";
  options.lexicon_from_lm = true;
  refused(options);
  options = pruned_beam(folder);
  options.nbest = 21;
  refused(options);
  refused(pruned_beam(folder), labels_by_name({"a", "b"}));
  options = pruned_beam(folder);
  options.lm_unit = "labels";
  refused(options, labels_by_name({"a", "b"}));  // hot words count between ends of words
  options.hot_words.clear();
  testing::failure(ExitCode::kBadData, [&] { decode(options, {}, labels_by_name({"x", "y"})); });
}

}  // namespace
}  // namespace stretto::ctc
