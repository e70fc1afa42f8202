#include "data/speech/speech_layouts.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/speech/sound_names.h"
#include "tests/base/failure.h"
#include "tests/data/speech/utterances.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using FilesByName = std::map<std::string, std::string>;
using FaultTexts = std::vector<std::string>;

struct LayoutRead {
  UtteranceRows all;
  FaultTexts faults;
};

LayoutRead read_layout_of(SpeechFormat format, const FilesByName& files,
                          const SpeechDataOptions& options = {}) {
  LayoutFiles layout{.path = "/d", .names = {}, .open = [&](const std::string& name) {
                       return test::lines_of(files.at(name), "/d/" + name);
                     }};
  for (const auto& file : files) layout.names.push_back(file.first);
  BadSamples bad = test::skipping();
  LayoutRead result;
  result.all = read_layout(format, layout, options, bad);
  result.faults = test::faults_of(bad.left_out());
  return result;
}

TEST(SpeechLayouts, LibriSpeech) {
  const auto [all, faults] = read_layout_of(
      SpeechFormat::kLibriSpeech,
      {{"84/121/84-121.trans.txt", "84-121-0000 GO DO YOU\n84-121-0001 NO\n84-121-0002 GONE\n"},
       {"84/121/84-121-0000.flac", ""},
       {"84/121/84-121-0001.wav", ""},
       {"README.TXT", "x"}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].id, "84-121-0000");
  EXPECT_EQ(all.rows[0].text, "GO DO YOU");
  EXPECT_EQ(all.rows[0].speaker, "84");
  EXPECT_EQ(all.rows[0].sound, "84/121/84-121-0000.flac");
  EXPECT_EQ(all.rows[1].sound, "84/121/84-121-0001.wav");
  EXPECT_EQ(all.lists.at(all.rows[1].list), "/d/84/121/84-121.trans.txt");
  EXPECT_EQ(all.rows[1].line, 2);
  EXPECT_EQ(faults, FaultTexts{"/84/121/84-121.trans.txt:3: there is no sound "
                               "84/121/84-121-0002.wav or .flac"});
}

TEST(SpeechLayouts, LjSpeechTakesTheNormalisedText) {
  const FilesByName files{{"metadata.csv", "LJ1|in 1455|in fourteen fifty-five\nLJ2|two|\nLJ3\n"},
                          {"wavs/LJ1.wav", ""},
                          {"wavs/LJ2.wav", ""}};
  const auto [all, faults] = read_layout_of(SpeechFormat::kLjSpeech, files);
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].text, "in fourteen fifty-five");
  EXPECT_EQ(all.rows[0].sound, "wavs/LJ1.wav");
  EXPECT_EQ(all.rows[1].text, "two");
  EXPECT_EQ(faults, FaultTexts{"/metadata.csv:3: has no `|`"});
  const auto raw = read_layout_of(SpeechFormat::kLjSpeech, files, {.text = "raw"});
  EXPECT_EQ(raw.all.rows.at(0).text, "in 1455");
  failure(ExitCode::kUsage,
          [&] { read_layout_of(SpeechFormat::kLjSpeech, files, {.text = "words"}); });
}

TEST(SpeechLayouts, MAilabsHasSpeakersAboveBooks) {
  const auto [all, faults] = read_layout_of(
      SpeechFormat::kMAilabs, {{"by_book/female/ann/emma/metadata.csv", "emma_1|A|a\n"},
                               {"by_book/female/ann/emma/wavs/emma_1.wav", ""},
                               {"by_book/male/bob/ivanhoe/metadata.csv", "iv_1|B|b\n"},
                               {"by_book/male/bob/ivanhoe/wavs/iv_1.wav", ""}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].speaker, "ann");
  EXPECT_EQ(all.rows[1].speaker, "bob");
  EXPECT_EQ(all.rows[1].sound, "by_book/male/bob/ivanhoe/wavs/iv_1.wav");
  EXPECT_TRUE(faults.empty());
}

TEST(SpeechLayouts, TextFilesStandBesideSounds) {
  const auto [all, faults] =
      read_layout_of(SpeechFormat::kTextFiles, {{"a/1.wav", ""},
                                                {"a/1.txt", "he was\n\n not \n"},
                                                {"a/2.flac", ""},
                                                {"a/2.normalized.txt", "two"},
                                                {"a/2.txt", "2"},
                                                {"a/3.wav", ""}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].text, "he was not");
  EXPECT_EQ(all.rows[0].line, 0);
  EXPECT_EQ(all.rows[1].text, "two");
  EXPECT_EQ(faults, FaultTexts{"/a/3.wav: there is no text beside it"});
}

TEST(SpeechLayouts, ClassFoldersAreTexts) {
  const auto [all, faults] = read_layout_of(SpeechFormat::kClassFolders,
                                            {{"v2/yes/0a7c_nohash_0.wav", ""},
                                             {"v2/no_way/b.wav", ""},
                                             {"v2/_background_noise_/rain.wav", ""},
                                             {"v2/yes/README", ""}},
                                            {.label_words = {"yes yeah"}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].text, "no way");
  EXPECT_EQ(all.rows[1].text, "yeah");
  EXPECT_EQ(all.rows[1].speaker, "0a7c");
  EXPECT_TRUE(faults.empty());
  failure(ExitCode::kUsage, [] {
    read_layout_of(SpeechFormat::kClassFolders, {{"train/yes/a.wav", ""}, {"test/yes/b.wav", ""}});
  });
}

TEST(SpeechLayouts, NamesHaveTexts) {
  const auto [all, faults] =
      read_layout_of(SpeechFormat::kLabelledNames,
                     {{"r/7_ann_0.wav", ""}, {"r/0_bob_1.wav", ""}, {"r/odd.wav", ""}},
                     {.name_pattern = "{text}_{speaker}_{take}", .label_words = {"7 seven"}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].text, "0");
  EXPECT_EQ(all.rows[0].speaker, "bob");
  EXPECT_EQ(all.rows[1].text, "seven");
  EXPECT_EQ(faults, FaultTexts{"/r/odd.wav: its name does not fit data.name_pattern = "
                               "\"{text}_{speaker}_{take}\""});
}

TEST(SpeechLayouts, ListsNameIdsOrPaths) {
  BadSamples bad = test::skipping();
  const auto all = read_bar_list(
      test::lines_of("LJ1|in 1455|in fourteen\nwavs/a.wav|one\nb.flac|3|two\nc.wav|3\nx\n",
                     "/d/list.txt"),
      {}, bad);
  ASSERT_EQ(all.rows.size(), 4U);
  EXPECT_EQ(all.rows[0].id, "LJ1");
  EXPECT_EQ(all.rows[0].sound, "/d/wavs/LJ1.wav");
  EXPECT_EQ(all.rows[0].text, "in fourteen");
  EXPECT_EQ(all.rows[1].id, "");
  EXPECT_EQ(all.rows[1].sound, "/d/wavs/a.wav");
  EXPECT_EQ(all.rows[2].speaker, "3");
  EXPECT_EQ(all.rows[2].text, "two");
  EXPECT_EQ(all.rows[3].text, "3") << "the only column behind a path is the text";
  EXPECT_EQ(test::faults_of(bad.left_out()), FaultTexts{":5: is no utterance: x"});
}

TEST(SpeechLayouts, FilesLieBelowTheFolder) {
  const auto place = [](const std::string& path, const std::string& name, bool is_archive) {
    return LayoutFiles{.path = path, .names = {}, .open = {}, .is_archive = is_archive}.place_of(
        name);
  };
  EXPECT_EQ(place("/d", "a/b.txt", false), "/d/a/b.txt");
  EXPECT_EQ(place("/d/", "a/b.txt", false), "/d/a/b.txt");
  EXPECT_EQ(place("/d", "/a/b.txt", false), "/d//a/b.txt");
  EXPECT_EQ(place("a.tar", "a/b.txt", true), "a.tar: a/b.txt");
}

TEST(SoundNames, EndingsTell) {
  for (const char* name : {"a.wav", "b/c.FLAC", "x.y.mp3", "a.opus"}) {
    EXPECT_TRUE(is_sound_name(name)) << name;
  }
  for (const char* name : {"wav", "a.wave", "a.txt", "a.wav.txt", ""}) {
    EXPECT_FALSE(is_sound_name(name)) << name;
  }
  EXPECT_EQ(without_sound_ending("a.b/c.flac"), "a.b/c");
  EXPECT_EQ(without_sound_ending("a.b/c"), "a.b/c");
}

}  // namespace
}  // namespace stretto::data
