#include "families/speech_recognition/engine/transcriber.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/ctc/frames.h"
#include "tests/text/byte_tokenizer.h"

namespace stretto::tasks {
namespace {

/// A tokenizer of these pieces, the first of which pads.
class PieceTokenizer final : public text::test::ByteTokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces)
      : ByteTokenizer(/*eos=*/-1), pieces_(std::move(pieces)) {}
  text::SpecialIds specials() const override { return {.pad = 0}; }
  std::string piece(int64_t id) const override { return pieces_.at(static_cast<size_t>(id)); }
  int64_t size() const override { return std::ssize(pieces_); }

 private:
  std::vector<std::string> pieces_;
};

TEST(Transcriber, PiecesOfBytesAreWrittenAsBytes) {
  experiment::SpeechRecognitionOptions own;
  own.tokenizer.type = "byte_bpe";
  const auto labels = ctc_labels_of(PieceTokenizer({"<pad>", "\u0120a", "\u00C3", "\u00BC"}), own);
  EXPECT_EQ(labels.texts, (std::vector<std::string>{"", "a", "\xC3", "\xBC"}));
  EXPECT_EQ(labels.begins_word, (std::vector<bool>{false, true, false, false}));
}

TEST(Transcriber, TheBoundaryOfPhonemesSeparatesWordsOfALexicon) {
  experiment::SpeechRecognitionOptions own;
  own.tokenizer.type = "phonemes";
  own.tokenizer.word_boundary = "SIL";
  own.decode.method = "beam";
  const PieceTokenizer tokenizer({"<pad>", "HH", "SIL"});
  EXPECT_EQ(ctc_labels_of(tokenizer, own).separator, -1) << "each phoneme is a word";
  own.decode.lexicon = "words.txt";
  const auto labels = ctc_labels_of(tokenizer, own);
  EXPECT_EQ(labels.separator, 2);
  EXPECT_EQ(labels.begins_word, (std::vector<bool>{false, true, false}));
}

TEST(Transcriber, WordsOfBytesAreSpeltByTheLexicon) {
  const testing::TempDir folder;
  experiment::SpeechRecognitionOptions own;
  own.tokenizer.type = "byte_bpe";
  own.decode.method = "beam";
  SpeechUnits units;
  units.tokenizer =
      std::make_shared<PieceTokenizer>(std::vector<std::string>{"<pad>", "\u0120a", "a"});
  own.decode.lexicon = folder.write("spelt.txt", "a \u0120a\na a\n");
  EXPECT_EQ(Transcriber(own, units, at::kCPU).decoder().num_lexicon_words(), 2);
  own.decode.lexicon = folder.write("words.txt", "a\n");
  const auto error = testing::failure(ExitCode::kUsage, [&] { Transcriber(own, units, at::kCPU); });
  EXPECT_NE(error.message().find("two spellings"), std::string::npos) << error.message();
}

TEST(Transcriber, TwoLanguageModelsAreRefused) {
  experiment::SpeechRecognitionOptions own;
  own.decode.method = "beam";
  own.decode.lm = "words.arpa";
  own.decode.lm_run = "runs/characters";
  SpeechUnits units;
  units.tokenizer = std::make_shared<PieceTokenizer>(std::vector<std::string>{"a", "b"});
  const auto error = testing::failure(ExitCode::kUsage, [&] { Transcriber(own, units, at::kCPU); });
  EXPECT_NE(error.message().find("two language models"), std::string::npos) << error.message();
}

TEST(Transcriber, HotWordsAreWrittenAsTextsAre) {
  experiment::SpeechRecognitionOptions own;
  own.decode.method = "beam";
  SpeechUnits units;
  units.tokenizer = std::make_shared<PieceTokenizer>(std::vector<std::string>{"a", "b", " "});
  // Between a and b the frames are nearly undecided.
  auto frames = testing::sure_frames({0, 2, 0, 3, 0, 2, 0}, 4);
  frames[2 * 4 + 1] = frames[2 * 4] - 0.5F;
  EXPECT_EQ(Transcriber(own, units, at::kCPU).read(frames).front().text, "a aa a");
  own.decode.hot_words = {"BA"};
  EXPECT_EQ(Transcriber(own, units, at::kCPU).read(frames).front().text, "a ba a");
}

}  // namespace
}  // namespace stretto::tasks
