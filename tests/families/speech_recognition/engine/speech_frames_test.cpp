#include "families/speech_recognition/engine/speech_frames.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/speech/speech_batches.h"
#include "data/speech/speech_set.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "tests/families/speech_recognition/toned_words.h"

namespace stretto::tasks {
namespace {

class SpeechFramesTest : public ::testing::Test {
 protected:
  SpeechFramesTest() {
    testing::put_toned_words(folder_, "train", 6);
    own_.data.train = {(folder_ / "train.csv").string()};
    own_.data.cache_dir = (folder_ / "cache").string();
    own_.features.rate = testing::kTonedRate;
    own_.features.num_mels = 24;
    own_.augment.speeds = {0.9, 1, 1.1};
    own_.augment.feature_masks = 1;
    own_.augment.feature_mask_width = 4;
    set_ = data::open_speech(own_.data, "data.train", own_.data.train);
    sounds_ = std::make_unique<audio::SoundFeatures>(own_.features, own_.augment, /*seed=*/5);
  }

  /// Utterances with the target "0 1".
  data::Batch batch(std::vector<int64_t> samples, int64_t epoch = 0) const {
    data::Batch made;
    data::PackedTokens targets, lengths;
    for (size_t i = 0; i < samples.size(); ++i) {
      targets.append({0, 1});
      lengths.append({50});
    }
    made.sample_ids = std::move(samples);
    made.columns = {std::move(targets), std::move(lengths)};
    made.epoch = epoch;
    return made;
  }
  FrameMaker maker() const { return {.set = *set_, .sounds = *sounds_, .own = own_}; }

  testing::TempDir folder_;
  experiment::SpeechRecognitionOptions own_;
  std::shared_ptr<const data::SpeechSet> set_;
  std::unique_ptr<audio::SoundFeatures> sounds_;
};

at::Tensor frames_of(const train::Prepared& made, int64_t utterance) {
  const auto& rows = made.rows(kFrameRows);
  const at::Tensor offsets = rows.offsets.values;
  const auto begin = offsets[utterance].item<int64_t>();
  return rows.values.slice(0, begin, offsets[utterance + 1].item<int64_t>());
}

TEST_F(SpeechFramesTest, OfAnUtteranceDoNotDependOnItsBatch) {
  const auto together = prepare_training_utterances(batch({4, 1, 3}), maker());
  const auto alone = prepare_training_utterances(batch({3}), maker());
  EXPECT_TRUE(at::equal(frames_of(together, 2), frames_of(alone, 0)));
  EXPECT_TRUE(
      at::equal(together.rows(kTargetRows).ids.slice(0, 4, 6), alone.rows(kTargetRows).ids));
}

TEST_F(SpeechFramesTest, OfTrainingDependOnTheEpochAndOthersDoNot) {
  const auto at_epoch = [&](int64_t epoch) {
    return frames_of(prepare_training_utterances(batch({2}, epoch), maker()), 0);
  };
  EXPECT_TRUE(at::equal(at_epoch(3), at_epoch(3)));
  EXPECT_FALSE(at_epoch(3).sizes() == at_epoch(4).sizes() && at::equal(at_epoch(3), at_epoch(4)));
  EXPECT_TRUE(at::equal(frames_of(prepare_test_utterances(batch({2}), maker()), 0),
                        frames_of(prepare_test_utterances(batch({2, 1}), maker()), 0)));
}

TEST_F(SpeechFramesTest, OneThatCannotBeReadKeepsItsPlace) {
  std::filesystem::remove(folder_ / "train_1.wav");
  const auto made = prepare_training_utterances(batch({0, 1, 2}), maker());
  EXPECT_EQ(made.rows(kFrameRows).offsets.values.size(0), 3) << "two utterances have rows";
  const auto other = prepare_training_utterances(batch({2}), maker());
  EXPECT_TRUE(at::equal(frames_of(made, 1), frames_of(other, 0)));
  EXPECT_EQ(count_lengths(made, kUnreadLength), 1);
  EXPECT_EQ(made.rows(kTargetRows).num_rows(), 4);
  const auto counts = usable_counts(made);
  EXPECT_EQ(counts.utterances, 2);
  EXPECT_EQ(counts.ids, 4);
}

TEST_F(SpeechFramesTest, OneThatIsTooShortForItsTextIsLeftOutOfTraining) {
  data::Batch long_text = batch({0});
  long_text.columns[data::kUtteranceTarget] = data::PackedTokens();
  long_text.column<int64_t>(data::kUtteranceTarget).append(std::vector<int64_t>(500, 1));
  const auto made = prepare_training_utterances(long_text, maker());
  EXPECT_EQ(count_lengths(made, kTooShortLength), 1);
  EXPECT_EQ(made.rows(kFrameRows).num_rows(), 0);
  const auto tested = prepare_test_utterances(long_text, maker());
  EXPECT_EQ(count_lengths(tested, kTooShortLength), 0);
  EXPECT_GT(tested.rows(kFrameRows).num_rows(), 0) << "what was said can still be heard";
}

TEST_F(SpeechFramesTest, CtcNeedsABlankBetweenTwoEqualLabels) {
  own_.model.select("conformer");  // a row for each frame
  own_.model.as<models::ConformerOptions>().subsampling_factor = 1;
  const std::vector<int64_t> twice{1, 1}, other{1, 2};
  EXPECT_FALSE(fits(own_, 2, twice));
  EXPECT_TRUE(fits(own_, 3, twice));
  EXPECT_TRUE(fits(own_, 2, other));
  EXPECT_FALSE(fits(own_, 0, std::vector<int64_t>{}));
}

}  // namespace
}  // namespace stretto::tasks
