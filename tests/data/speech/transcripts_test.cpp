#include "data/speech/transcripts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/base/temp_dir.h"
#include "tests/data/speech/utterances.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;
using Names = std::vector<std::string>;

class TranscriptsTest : public ::testing::Test {
 protected:
  /// Utterances of half a second each with these texts.
  std::shared_ptr<const SpeechSet> set_of(const Names& texts) const {
    std::string list = "path\ttext\n";
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string name = std::to_string(i) + ".wav";
      folder_.write(name, test::wav(0.5, static_cast<int64_t>(i)));
      list += name + "\t" + texts[i] + "\n";
    }
    SpeechDataOptions options;
    options.cache_dir = (folder_ / "cache").string();
    return open_speech(options, "data.train", {folder_.write("list.tsv", list)});
  }
  /// The ids of a sample's characters behind the four specials, by the JSON list "abc".
  static std::shared_ptr<const text::Tokenizer> abc() {
    return text::make_characters("[\"a\", \"b\", \"c\"]", "abc");
  }
  static Ids target(const Transcripts& made, int64_t sample) {
    const auto ids = made.samples.targets.sequence(sample);
    return {ids.begin(), ids.end()};
  }

  testing::TempDir folder_;
};

TEST_F(TranscriptsTest, TextsBecomeIdsByTheRules) {
  const auto set = set_of({"ABBA", "c"});
  const auto made = encode_transcripts(*set, {}, *abc(), 2);
  EXPECT_EQ(made.samples.ids, (Ids{0, 1}));
  EXPECT_EQ(made.samples.seconds, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(target(made, 0), (Ids{4, 5, 5, 4}));
  EXPECT_EQ(made.texts, (Names{"abba", "c"}));
  EXPECT_TRUE(made.remarks(*set).empty());
  EXPECT_EQ(encode_transcript(" Cab", text::TargetText(text::TargetOptions{}), *abc()),
            (Ids{6, 4, 5}));
}

TEST_F(TranscriptsTest, UnknownCharactersAreCountedAndShown) {
  const auto set = set_of({"a\xC3\xA9\x62\xC3\xA9", "abc", "?", "a!"});
  text::TargetOptions options;
  const auto made = encode_transcripts(*set, options, *abc(), 1);
  EXPECT_EQ(made.samples.ids, (Ids{0, 1, 3}));
  EXPECT_EQ(target(made, 0), (Ids{4, 5}));
  EXPECT_EQ(made.texts[0], "a\xC3\xA9\x62\xC3\xA9") << "scores compare with what is said";
  EXPECT_EQ(made.unknown.count, 4);
  EXPECT_EQ(made.unknown.text(),
            "the tokenizer lacks 4 characters in 3 utterances: `\xC3\xA9` 2, `!` 1, `?` 1; they "
            "are left out of the texts");
  EXPECT_EQ(made.empty, 1);
  EXPECT_EQ(made.remarks(*set).size(), 2U);
}

TEST_F(TranscriptsTest, UnknownCharactersTakeTheSpacesAroundThemAlong) {
  const auto tokenizer = text::make_characters("[\" \", \"a\", \"b\"]", "ab");
  const auto set = set_of({"a b", "a - b", "? a b ?", "- ?"});
  const auto made = encode_transcripts(*set, {}, *tokenizer, 1);
  EXPECT_EQ(made.samples.ids, (Ids{0, 1, 2})) << "nothing is left of the last one";
  for (int64_t sample = 1; sample < 3; ++sample)
    EXPECT_EQ(target(made, sample), target(made, 0)) << made.texts[static_cast<size_t>(sample)];
  EXPECT_EQ(made.unknown.count, 5);
}

TEST_F(TranscriptsTest, UnknownCharactersMayStayOrCostTheUtterance) {
  const auto set = set_of({"axb", "abc"});
  text::TargetOptions options;
  options.unknown = "keep";
  EXPECT_EQ(target(encode_transcripts(*set, options, *abc(), 1), 0), (Ids{4, 1, 5}));
  options.unknown = "skip";
  const auto made = encode_transcripts(*set, options, *abc(), 1);
  EXPECT_EQ(made.samples.ids, Ids{1});
  EXPECT_EQ(made.unusable, 1);
}

TEST_F(TranscriptsTest, PhonemesComeFromALexicon) {
  const auto set = set_of({"Hello you", "hello World"});
  text::TargetOptions options;
  options.type = "phonemes";
  options.lexicon = folder_.write("lexicon.txt", "HELLO HH AH L OW\nYOU Y UW\n");
  options.word_boundary = "|";
  const auto vocabulary = text::make_vocabulary("AH\nHH\nL\nOW\nUW\nY\n|\n", "phonemes", "none");
  const auto made = encode_transcripts(*set, options, *vocabulary, 1);
  EXPECT_EQ(target(made, 0), (Ids{5, 4, 6, 7, 10, 9, 8}));
  EXPECT_EQ(target(made, 1), (Ids{5, 4, 6, 7}));
  EXPECT_EQ(made.unknown.text(),
            "the tokenizer lacks 1 word in 1 utterance: `world` 1; they are left out of the texts");
  options.unknown = "keep";
  EXPECT_EQ(target(encode_transcripts(*set, options, *vocabulary, 1), 1), (Ids{5, 4, 6, 7, 10, 1}));
}

TEST_F(TranscriptsTest, TheTokenizerIsTrainedOnTargets) {
  const auto set = set_of({"Ba", "ab"});
  text::TargetOptions options;
  const auto lines = transcript_lines(set, options);
  std::string line;
  ASSERT_TRUE(lines->next(line));
  EXPECT_EQ(line, "ba");
  ASSERT_TRUE(lines->next(line));
  EXPECT_FALSE(lines->next(line));
  EXPECT_NE(lines->key(), 0U);
  options.alphabet = " abc";
  const auto letters = transcript_lines(set, options);
  ASSERT_TRUE(letters->next(line));
  EXPECT_EQ(line, " abc");
  EXPECT_FALSE(letters->next(line));
  EXPECT_NE(letters->key(), lines->key());
}

TEST_F(TranscriptsTest, PairsThatCtcCannotAlignAreFoundByLengths) {
  const auto set = set_of({"abc", "aabb", "c"});
  auto made = encode_transcripts(*set, {}, *abc(), 1);
  drop_impossible(made, [](double seconds) { return static_cast<int64_t>(seconds * 10); });
  EXPECT_EQ(made.samples.ids, (Ids{0, 2})) << "5 frames, and aabb needs 6";
  EXPECT_EQ(made.impossible.count, 1);
  EXPECT_EQ(made.impossible.first, Ids{1});
  EXPECT_EQ(made.texts, (Names{"abc", "c"}));
  EXPECT_EQ(made.samples.targets.num_sequences(), 2);
  const auto remarks = made.remarks(*set);
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("1 utterance left out"), std::string::npos) << remarks[0];
}

TEST(CtcFrames, ABlankStandsBetweenEqualNeighbours) {
  EXPECT_EQ(ctc_frames(Ids{}), 0);
  EXPECT_EQ(ctc_frames(Ids{1, 2, 1}), 3);
  EXPECT_EQ(ctc_frames(Ids{1, 1, 1, 2}), 6);
}

}  // namespace
}  // namespace stretto::data
