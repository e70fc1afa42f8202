#include "data/speech/speech_commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/speech/speech_set.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"
#include "tests/data/speech/utterances.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using SoundNames = std::vector<std::string>;

TEST(SpeechCommands, TheHashOfASpeakerIsTensorFlows) {
  // Of Google's which_set(name, 10, 10).
  EXPECT_EQ(split_by_hash("7311d8a3_nohash_0.wav"), SpeechSplit::kValidation);
  EXPECT_EQ(split_by_hash("78e51061_nohash_3.wav"), SpeechSplit::kValidation);
  EXPECT_EQ(split_by_hash("2265b1f5_nohash_0.wav"), SpeechSplit::kTest);
  EXPECT_EQ(split_by_hash("414c343c_nohash_1.wav"), SpeechSplit::kTest);
  EXPECT_EQ(split_by_hash("91b7584a_nohash_0.wav"), SpeechSplit::kTraining);
  EXPECT_EQ(split_by_hash("noname.wav"), SpeechSplit::kTraining);
}

TEST(SpeechCommands, SetsHaveTheirWords) {
  EXPECT_TRUE(command_words("all").empty());
  EXPECT_EQ(command_words("12").size(), 10U);
  EXPECT_EQ(command_words("30").size(), 30U);
  EXPECT_EQ(command_words("35").size(), 35U);
  for (const char* set : {"12", "30", "35"}) {
    EXPECT_TRUE(std::ranges::is_sorted(command_words(set))) << set;
    EXPECT_TRUE(std::ranges::includes(command_words("35"), command_words(set))) << set;
  }
}

UtteranceRows commands_of(SpeechSplit split, const std::map<std::string, std::string>& files,
                          SoundNames* faults = nullptr, const SpeechDataOptions& options = {}) {
  LayoutFiles layout;
  layout.path = "/d";
  layout.open = [&](const std::string& name) {
    return test::lines_of(files.at(name), "/d/" + name);
  };
  layout.split = split;
  for (const auto& file : files) layout.names.push_back(file.first);
  BadSamples bad = test::skipping();
  auto rows = read_layout(SpeechFormat::kSpeechCommands, layout, options, bad);
  if (faults != nullptr) *faults = test::faults_of(bad.left_out());
  return rows;
}

SoundNames sounds_of(const UtteranceRows& rows) {
  SoundNames names;
  for (const auto& row : rows.rows) names.push_back(row.sound);
  return names;
}

const std::map<std::string, std::string> kListed{
    {"v2/_background_noise_/rain.wav", ""},
    {"v2/_other_/a_nohash_0.wav", ""},
    {"v2/no/a_nohash_0.wav", ""},
    {"v2/no/b_nohash_0.wav", ""},
    {"v2/testing_list.txt", "no/b_nohash_0.wav\n"},
    {"v2/validation_list.txt", "yes/a_nohash_1.wav\r\nyes/gone_nohash_0.wav\n"},
    {"v2/yes/a_nohash_0.wav", ""},
    {"v2/yes/a_nohash_1.wav", ""}};

TEST(SpeechCommands, ListsSayWhatIsForValidationAndForTests) {
  const std::string rain = "v2/_background_noise_/rain.wav";
  SoundNames faults;
  const auto train = commands_of(SpeechSplit::kTraining, kListed, &faults);
  EXPECT_EQ(sounds_of(train), (SoundNames{"v2/no/a_nohash_0.wav", "v2/yes/a_nohash_0.wav", rain}));
  EXPECT_TRUE(faults.empty());
  EXPECT_EQ(train.rows[1].text, "yes");
  EXPECT_EQ(train.rows[1].speaker, "a");
  EXPECT_EQ(train.rows[2].text, kNoiseFolder);
  const auto valid = commands_of(SpeechSplit::kValidation, kListed, &faults);
  EXPECT_EQ(sounds_of(valid), (SoundNames{"v2/yes/a_nohash_1.wav", rain}));
  EXPECT_EQ(valid.lists.at(valid.rows[0].list), "/d/v2/validation_list.txt");
  EXPECT_EQ(valid.rows[0].line, 1);
  EXPECT_EQ(faults, (SoundNames{"/v2/validation_list.txt:2: there is no sound "
                                "yes/gone_nohash_0.wav"}));
  EXPECT_EQ(sounds_of(commands_of(SpeechSplit::kTest, kListed)),
            (SoundNames{"v2/no/b_nohash_0.wav", rain}));
}

TEST(SpeechCommands, WithoutListsTheHashSays) {
  const std::map<std::string, std::string> files{{"yes/2265b1f5_nohash_0.wav", ""},
                                                 {"yes/7311d8a3_nohash_0.wav", ""},
                                                 {"yes/91b7584a_nohash_0.wav", ""}};
  EXPECT_EQ(sounds_of(commands_of(SpeechSplit::kTest, files)),
            (SoundNames{"yes/2265b1f5_nohash_0.wav"}));
  EXPECT_EQ(sounds_of(commands_of(SpeechSplit::kValidation, files)),
            (SoundNames{"yes/7311d8a3_nohash_0.wav"}));
  EXPECT_EQ(sounds_of(commands_of(SpeechSplit::kTraining, files)),
            (SoundNames{"yes/91b7584a_nohash_0.wav"}));
  SpeechDataOptions options;
  options.commands.split = "lists";
  failure(ExitCode::kBadData, [&] { commands_of(SpeechSplit::kTest, files, nullptr, options); });
}

TEST(SpeechCommands, OneListWithoutTheOtherIsRefused) {
  auto files = kListed;
  files.erase("v2/testing_list.txt");
  const auto error =
      failure(ExitCode::kBadData, [&] { commands_of(SpeechSplit::kTraining, files); });
  EXPECT_NE(error.message().find("testing_list.txt"), std::string::npos);
}

constexpr const char* kTen[]{"down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes"};
constexpr const char* kOthers[]{"bed", "bird", "cat"};

/// Four sounds a word in each of the three sets, and two noises.
class CommandSetTest : public ::testing::Test {
 protected:
  CommandSetTest() {
    options_.cache_dir = (folder_ / "cache").string();
    options_.commands.set = "12";
    options_.commands.unknown_share = 0.2;
    int64_t seed = 0;
    std::string valid, tests;
    const auto put = [&](const std::string& name) {
      members_.push_back({name, test::wav(0.5, ++seed)});
    };
    const auto put_word = [&](const std::string& word) {
      for (int i = 0; i < 12; ++i) {
        const std::string name = word + "/s" + std::to_string(i) + "_nohash_0.wav";
        put(name);
        if (i % 3 == 1) valid += name + "\n";
        if (i % 3 == 2) tests += name + "\n";
      }
    };
    for (const char* word : kTen) put_word(word);
    for (const char* word : kOthers) put_word(word);
    for (const char* noise : {"rain", "wind"}) {
      members_.push_back(
          {"_background_noise_/" + std::string(noise) + ".wav", test::wav(30, ++seed)});
    }
    members_.push_back({"validation_list.txt", valid});
    members_.push_back({"testing_list.txt", tests});
    for (const auto& member : members_) folder_.write("v1/" + member.name, member.bytes);
  }

  std::shared_ptr<const SpeechSet> open(const std::string& key,
                                        const std::string& name = "v1") const {
    return open_speech(options_, key, {(folder_ / name).string()});
  }
  static std::map<std::string, int64_t> counts(const SpeechSet& set) {
    std::map<std::string, int64_t> counts;
    for (int64_t i = 0; i < set.size(); ++i) ++counts[std::string(set.text(i))];
    return counts;
  }

  testing::TempDir folder_;
  std::vector<test::Member> members_;
  SpeechDataOptions options_;
};

TEST_F(CommandSetTest, TwelveClassesAreTenWordsUnknownAndSilence) {
  for (const char* key : {"data.train", "data.valid", "data.test"}) {
    const auto set = open(key);
    const auto found = counts(*set);
    EXPECT_EQ(found.size(), 12U) << key;
    for (const char* word : kTen) EXPECT_EQ(found.at(word), 4) << key;
    EXPECT_EQ(found.at("unknown"), 8) << key;  // a fifth of 40
    EXPECT_EQ(found.at("silence"), 4) << key;
    EXPECT_EQ(set->seconds(set->size() - 1), 1) << key;
    EXPECT_EQ(set->read(set->size() - 1, 0).size(), 8000U) << key;
    EXPECT_EQ(set->seconds(40), 0.5) << key;
    EXPECT_EQ(set->read(40, 0).size(), 4000U) << key;
  }
}

TEST_F(CommandSetTest, AnArchiveIsTheSame) {
  folder_.write("v1.tar.gz", test::tar_of(members_, test::TarForm::kGnu, /*is_packed=*/true));
  for (const char* key : {"data.train", "data.valid"}) {
    EXPECT_EQ(open(key, "v1.tar.gz")->hash(), open(key)->hash()) << key;
    EXPECT_EQ(open(key, "v1.tar.gz")->hash(), open(key)->hash()) << key << ", from the cache";
  }
}

TEST_F(CommandSetTest, TrainingDrawsAnewInEachEpochByTheSeed) {
  const auto set = open("data.train");
  const auto drawn = [&](uint64_t seed, int64_t epoch) {
    std::vector<std::vector<float>> sounds;
    for (int64_t i = 40; i < set->size(); ++i) {
      sounds.push_back(set->read(i, 0, {.seed = seed, .epoch = epoch}));
    }
    return sounds;
  };
  EXPECT_EQ(drawn(1, 0), drawn(1, 0));
  EXPECT_NE(drawn(1, 0), drawn(1, 1));
  EXPECT_NE(drawn(1, 0), drawn(2, 0));
  // No utterance comes twice in an epoch, and in many epochs each one comes.
  std::set<std::vector<float>> all;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    auto sounds = drawn(1, epoch);
    sounds.resize(8);
    EXPECT_EQ(std::set<std::vector<float>>(sounds.begin(), sounds.end()).size(), 8U) << epoch;
    all.insert(sounds.begin(), sounds.end());
  }
  EXPECT_EQ(all.size(), 12U);  // four of each of three words
  EXPECT_EQ(set->id(40), "unknown 0");
  EXPECT_EQ(set->place(48), (folder_ / "v1").string() + ": silence 0");
  EXPECT_EQ(set->read(0, 0, {.seed = 1}), set->read(0, 0, {.seed = 2, .epoch = 3}));
}

TEST_F(CommandSetTest, OtherKeysHaveAlwaysTheSame) {
  const auto set = open("data.valid");
  for (int64_t i = 40; i < set->size(); ++i) {
    EXPECT_EQ(set->read(i, 0), set->read(i, 0, {.seed = 3, .epoch = 2}));
  }
  EXPECT_NE(set->id(40).find("_nohash_0.wav"), std::string::npos) << "its own name";
  EXPECT_NE(set->id(48).find("_background_noise_/"), std::string::npos);
  EXPECT_EQ(shared_sounds(*open("data.train"), *set).count, 0);
}

TEST_F(CommandSetTest, OtherWordsAreLeftOutWithoutTheClassOfThem) {
  options_.commands.set = "30";
  EXPECT_EQ(open("data.valid")->size(), 52);
  const auto error = failure(ExitCode::kBadData, [&] { open("data.train"); });
  EXPECT_NE(error.message().find("no utterance of dog"), std::string::npos) << error.message();
  options_.commands.set = "all";
  EXPECT_EQ(open("data.train")->size(), 52);
}

TEST_F(CommandSetTest, AnotherFormatHasItsTextsAsClasses) {
  folder_.write("list.csv",
                "path,text\nv1/bed/s0_nohash_0.wav,unknown\nv1/yes/s0_nohash_0.wav,yes\n");
  options_.format = "manifest";
  EXPECT_EQ(counts(*open("--data", "list.csv")),
            (std::map<std::string, int64_t>{{"unknown", 1}, {"yes", 1}}));
  failure(ExitCode::kUsage, [&] { open("data.train", "list.csv"); });
}

TEST_F(CommandSetTest, NoisesAndOtherWordsAreNeeded) {
  std::filesystem::remove_all(folder_ / "v1/_background_noise_");
  auto error = failure(ExitCode::kBadData, [&] { open("data.train"); });
  EXPECT_NE(error.message().find("silence_share"), std::string::npos);
  options_.commands.silence_share = 0;
  EXPECT_EQ(counts(*open("data.train")).count("silence"), 0U);
  options_.format = "class_folders";
  failure(ExitCode::kUsage, [&] { open("data.train"); });
}

}  // namespace
}  // namespace stretto::data
