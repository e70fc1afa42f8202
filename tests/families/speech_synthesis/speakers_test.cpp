#include "families/speech_synthesis/speakers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/families/speech_synthesis/small_clips.h"

namespace stretto::experiment {
namespace {

class SpeakersTest : public ::testing::Test {
 protected:
  std::shared_ptr<const data::SpeechSet> clips(const std::string& name,
                                               const std::vector<testing::SmallClip>& clips) {
    data::SpeechDataOptions options;
    options.cache_dir = (folder_ / "cache").string();
    return data::open_speech(options, "data.train", {testing::put_clips(folder_, name, clips)});
  }

  testing::TempDir folder_;
};

TEST_F(SpeakersTest, AreInTheOrderOfTheirBytes) {
  const auto set = clips("two", {{"abc", "high"}, {"bcd", "deep"}, {"cde", "high"}});
  const auto speakers = speakers_in(*set);
  ASSERT_TRUE(speakers.has_value());
  EXPECT_EQ(speakers->names(), (std::vector<std::string>{"deep", "high"}));
  EXPECT_EQ(speaker_numbers(*set, speakers), (std::vector<int64_t>{1, 0, 1}));
}

TEST_F(SpeakersTest, OneOrNoneHasNoVectors) {
  EXPECT_FALSE(speakers_in(*clips("none", {{"abc"}, {"bcd"}})).has_value());
  EXPECT_FALSE(speakers_in(*clips("one", {{"abc", "deep"}, {"bcd", "deep"}})).has_value());
  EXPECT_TRUE(speaker_numbers(*clips("any", {{"abc", "deep"}}), std::nullopt).empty());
}

TEST_F(SpeakersTest, UnknownAndMissingOnesAreRefusedWithTheirPlace) {
  const auto known = speakers_in(*clips("known", {{"abc", "deep"}, {"bcd", "high"}}));
  const auto other = clips("other", {{"abd", "deep"}, {"acd", "third"}});
  const Error unknown =
      stretto::testing::failure(ExitCode::kBadData, [&] { speaker_numbers(*other, known); });
  EXPECT_NE(std::string(unknown.what()).find("other.jsonl:2"), std::string::npos) << unknown.what();
  EXPECT_NE(unknown.advice().find("deep, high"), std::string::npos) << unknown.advice();
  const auto nameless = clips("nameless", {{"abf"}});
  stretto::testing::failure(ExitCode::kBadData, [&] { speaker_numbers(*nameless, known); });
}

}  // namespace
}  // namespace stretto::experiment
