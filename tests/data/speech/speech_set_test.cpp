#include "data/speech/speech_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "audio/audio_file.h"
#include "audio/wave_writer.h"
#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"
#include "tests/data/speech/utterances.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;
using test::wav;
using Names = std::vector<std::string>;

class SpeechSetTest : public ::testing::Test {
 protected:
  SpeechSetTest() { options_.cache_dir = below("cache"); }

  std::string put(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }
  std::string below(const std::string& name) const { return (folder_ / name).string(); }
  std::shared_ptr<const SpeechSet> open(const std::string& name,
                                        const std::string& key = "data.train") const {
    return open_speech(options_, key, {below(name)});
  }
  static Names texts_of(const SpeechSet& set) {
    Names texts;
    for (int64_t i = 0; i < set.size(); ++i) texts.emplace_back(set.text(i));
    return texts;
  }
  static Names ids_of(const SpeechSet& set) {
    Names ids;
    for (int64_t i = 0; i < set.size(); ++i) ids.emplace_back(set.id(i));
    return ids;
  }

  testing::TempDir folder_;
  SpeechDataOptions options_;
};

TEST_F(SpeechSetTest, AllLayoutsOfTheSameUtterancesAreTheSame) {
  const std::vector<test::Member> libri{{"d/84/84-1.trans.txt", "84-1-0 one two\n84-1-1 three\n"},
                                        {"d/84/84-1-0.wav", wav(0.5, 1)},
                                        {"d/84/84-1-1.wav", wav(0.75, 2)}};
  for (const auto& member : libri) put("tree/" + member.name, member.bytes);
  put("a.tar", test::tar_of(libri));
  put("b.tgz", test::tar_of(libri, test::TarForm::kGnu, /*is_packed=*/true));
  put("list.csv",
      "wav_filename,transcript\ntree/d/84/84-1-0.wav,one two\ntree/d/84/84-1-1.wav, three \n");
  put("list.jsonl",
      "{\"audio_filepath\": \"tree/d/84/84-1-0.wav\", \"duration\": 0.49, \"text\": \"one two\"}\n"
      "{\"audio_filepath\": \"tree/d/84/84-1-1.wav\", \"duration\": 0.75, \"text\": \"three\"}\n");
  put("bars.txt", "tree/d/84/84-1-0.wav|one two\ntree/d/84/84-1-1.wav|three\n");
  put("kaldi/wav.scp", "u0 ../tree/d/84/84-1-0.wav\nu1 ../tree/d/84/84-1-1.wav\n");
  put("kaldi/text", "u1 three\nu0 one two\n");
  const uint64_t hash = open("tree")->hash();
  for (const char* name :
       {"tree", "a.tar", "b.tgz", "list.csv", "list.jsonl", "bars.txt", "kaldi"}) {
    for (int start = 0; start < 2; ++start) {
      const auto set = open(name);
      EXPECT_EQ(texts_of(*set), (Names{"one two", "three"})) << name;
      EXPECT_EQ(set->hash(), hash) << name << ", start " << start;
      EXPECT_EQ(set->seconds(1), 0.75);
      EXPECT_EQ(set->rate(0), 8000);
      EXPECT_EQ(set->channels(0), 1);
      EXPECT_EQ(set->read(0, 0).size(), 4000U) << name;
      EXPECT_EQ(set->read(1, 16000).size(), 12000U) << name;
      EXPECT_EQ(set->left_out().count, 0) << name;
      EXPECT_EQ(set->refusal(), "");
    }
  }
}

TEST_F(SpeechSetTest, AnIdStandsForOneUtteranceOfAllPaths) {
  put("a.wav", wav(0.5, 1));
  put("b.wav", wav(0.5, 2));
  put("one.csv", "path,text,id\na.wav,one,u1\n");
  put("two.csv", "path,text,id\nb.wav,two,u1\nb.wav,three,u2\n");
  const auto set = open_speech(options_, "data.train", {below("one.csv"), below("two.csv")});
  EXPECT_EQ(texts_of(*set), (Names{"one", "three"}));
  ASSERT_EQ(set->left_out().count, 1);
  EXPECT_EQ(set->left_out().first.front().fault, ": has the id `u1` of " + below("one.csv") + ":2");
  // Without ids in the data, two folders may name their sounds alike.
  put("x/yes/a.wav", wav(0.5, 3));
  put("x/no/a.wav", wav(0.5, 4));
  put("y/yes/a.wav", wav(0.5, 5));
  put("y/no/a.wav", wav(0.5, 6));
  EXPECT_EQ(open_speech(options_, "data.train", {below("x"), below("y")})->size(), 4);
  options_.bad_samples = "stop";
  failure(ExitCode::kBadData, [&] {
    open_speech(options_, "data.train", {below("one.csv"), below("two.csv")});
  });
}

TEST_F(SpeechSetTest, ClippedSoundsAreCountedAndUsed) {
  const auto sine = [](float loudness) {
    std::vector<float> samples;
    for (int i = 0; i < 4000; ++i) {
      samples.push_back(
          std::clamp(loudness * std::sin(0.3F * static_cast<float>(i)), -1.0F, 0.9999F));
    }
    return samples;
  };
  EXPECT_TRUE(is_clipped(sine(1.5F)));
  EXPECT_FALSE(is_clipped(sine(1.0F))) << "loud, and whole";
  EXPECT_FALSE(is_clipped({}));
  put("one/yes.wav", audio::wave_bytes(sine(3), 8000));
  put("one/yes.txt", "yes");
  put("one/no.wav", audio::wave_bytes(sine(0.5F), 8000));
  put("one/no.txt", "no");
  const auto set = open("one");
  EXPECT_EQ(set->clipped(), "");
  for (int times = 0; times < 2; ++times) {
    for (int64_t i = 0; i < set->size(); ++i) EXPECT_TRUE(set->load(i, 16000).has_value());
  }
  EXPECT_TRUE(set->clipped().starts_with("1 sound is clipped, such as " + below("one/yes.wav")))
      << set->clipped();
  EXPECT_EQ(set->left_out().count, 0);
}

TEST_F(SpeechSetTest, AnUtteranceKnowsItsPlace) {
  put("tree/84/84-1.trans.txt", "84-1-0 one\n");
  put("tree/84/84-1-0.wav", wav(0.5));
  put("a.tar", test::tar_of({{"84/84-1.trans.txt", "84-1-0 one\n"}, {"84/84-1-0.wav", wav(0.5)}}));
  put("b/1.wav", wav(0.5));
  put("b/1.txt", "one");
  put("list.csv", "path,text,speaker\nb/1.wav,one,ann\n");
  const auto tree = open("tree"), archive = open("a.tar"), beside = open("b"),
             list = open("list.csv");
  EXPECT_EQ(tree->place(0), below("tree/84/84-1.trans.txt:1"));
  EXPECT_EQ(tree->path(0), below("tree/84/84-1-0.wav"));
  EXPECT_EQ(tree->id(0), "84-1-0");
  EXPECT_EQ(tree->speaker(0), "84");
  EXPECT_EQ(archive->place(0), below("a.tar: 84/84-1.trans.txt:1"));
  EXPECT_EQ(archive->path(0), below("a.tar: 84/84-1-0.wav"));
  EXPECT_EQ(beside->place(0), below("b/1.wav"));
  EXPECT_EQ(beside->id(0), "1.wav");
  EXPECT_EQ(list->place(0), below("list.csv:2"));
  EXPECT_EQ(list->id(0), "b/1.wav");
  EXPECT_EQ(list->speaker(0), "ann");
}

TEST_F(SpeechSetTest, PartsOfALongFileAreUtterances) {
  put("long.wav", wav(10, 3));
  put("list.csv",
      "path,text,offset,duration\nlong.wav,a,0,1.5\nlong.wav,b,1.5,2.5\nlong.wav,c,9,\n");
  const auto set = open("list.csv");
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(ids_of(*set), (Names{"long.wav#0", "long.wav#1.5", "long.wav#9"}));
  EXPECT_EQ(set->seconds(1), 2.5);
  EXPECT_EQ(set->seconds(2), 1.0);
  const auto whole = audio::read_audio(below("long.wav"));
  const auto part = set->read(1, 0);
  EXPECT_EQ(part, std::vector<float>(whole.begin() + 12000, whole.begin() + 32000));
  EXPECT_DOUBLE_EQ(set->total_seconds(), 5.0);
}

TEST_F(SpeechSetTest, ADurationThatEndsBeforeTheOnlySoundOfARowIsTold) {
  put("a.wav", wav(2, 1));
  put("b.wav", wav(2, 2));
  put("parts.csv", "path,text,offset,duration\na.wav,a,0,1\na.wav,b,1,1\nb.wav,c,1,0.5\n");
  put("whole.csv", "path,text,duration\na.wav,a,1.96\n");
  put("short.csv", "path,text,duration\na.wav,a,2\nb.wav,b,0.5\n");
  const auto tells_of = [&](const char* name, const std::string& what) {
    ::testing::internal::CaptureStderr();
    EXPECT_GT(open(name)->size(), 0);
    return ::testing::internal::GetCapturedStderr().find(what) != std::string::npos;
  };
  EXPECT_FALSE(tells_of("parts.csv", "before the sound does")) << "parts of sounds are meant";
  EXPECT_FALSE(tells_of("whole.csv", "before the sound does")) << "manifests round";
  EXPECT_TRUE(tells_of("short.csv",
                       "1 utterance ends before the sound does, such as " + below("short.csv:3")));
}

TEST_F(SpeechSetTest, LimitsHoldInTrainingAlone) {
  put("short.wav", wav(0.05));
  put("good.wav", wav(1));
  put("long.wav", wav(3));
  put("list.csv", "path,text\nshort.wav,a\ngood.wav,b\nlong.wav,c\n");
  options_.max_seconds = 2;
  const auto set = open("list.csv");
  EXPECT_EQ(texts_of(*set), Names{"b"});
  EXPECT_EQ(set->outside_limits().too_short, 1);
  EXPECT_EQ(set->outside_limits().too_long, 1);
  EXPECT_EQ(set->outside_limits().text(options_),
            "1 utterance (0.1s) shorter than data.min_seconds = 0.1, 1 utterance (3.0s) longer "
            "than data.max_seconds = 2");
  EXPECT_EQ(set->left_out().count, 0) << "they are no bad samples";
  EXPECT_EQ(open("list.csv", "data.valid")->size(), 3);
  options_.max_seconds = 0.5;
  failure(ExitCode::kBadData, [&] { open("list.csv"); });
}

TEST_F(SpeechSetTest, BadFilesAreCountedNamedAndSkipped) {
  put("good.wav", wav(0.5));
  put("empty.wav", "");
  put("cut.wav", wav(0.5).substr(0, 3000));
  put("text.wav", "this is no sound");
  put("nothing.wav", test::silence(0));
  put("list.csv",
      "path,text,duration\ngood.wav,yes,\ngone.wav,a,\nempty.wav,b,\ncut.wav,c,\ntext.wav,d,\n"
      "nothing.wav,e,\ngood.wav,f,7\ngood.wav, ,\ngood.wav,caf\xE9,\n");
  const auto set = open("list.csv");
  EXPECT_EQ(texts_of(*set), Names{"yes"});
  const auto left_out = set->left_out();
  EXPECT_EQ(left_out.count, 8);
  const auto faults = test::faults_of(left_out);
  ASSERT_EQ(faults.size(), 8U);
  EXPECT_EQ(faults[0], ":3: gone.wav: is not there");
  EXPECT_EQ(faults[1], ":4: empty.wav: is empty");
  EXPECT_EQ(faults[2].find(":5: cut.wav: is cut off"), 0U) << faults[2];
  EXPECT_EQ(faults[3].find(":6: text.wav: is no sound that can be read"), 0U) << faults[3];
  EXPECT_EQ(faults[4].find(":7: nothing.wav: "), 0U) << faults[4];
  EXPECT_EQ(faults[5], ":8: good.wav: has no 7.00 s from 0.00 s on: it lasts 0.50 s");
  EXPECT_EQ(faults[6], ":9: has no text");
  EXPECT_EQ(faults[7], ":10: its text is not UTF-8");
  options_.max_bad_samples = 7;
  failure(ExitCode::kBadData, [&] { open("list.csv"); });
  options_.max_bad_samples = 1000;
  options_.bad_samples = "stop";
  const auto error = failure(ExitCode::kBadData, [&] { open("list.csv"); });
  EXPECT_EQ(error.details().size(), 8U);
}

TEST_F(SpeechSetTest, ASecondUtteranceOfAnIdIsABadSample) {
  put("a.wav", wav(0.5));
  put("list.csv", "path,text,id\na.wav,one,u\na.wav,two,u\na.wav,three,v\n");
  const auto set = open("list.csv");
  EXPECT_EQ(texts_of(*set), (Names{"one", "three"}));
  EXPECT_EQ(test::faults_of(set->left_out()), Names{":3: has the id `u` of an earlier utterance"});
}

TEST_F(SpeechSetTest, AFileMayStandInSeveralRows) {
  put("a.wav", wav(0.5));
  put("list.csv", "path,text\na.wav,one\na.wav,one\n");
  EXPECT_EQ(open("list.csv")->size(), 2);
}

TEST_F(SpeechSetTest, ADayOfSoundIsNoUtterance) {
  // A header alone: 12 hours at 8 Hz.
  const std::string samples(static_cast<size_t>(12) * 3600 * 8, '\1');
  put("a.wav", audio::test::wave(8, 1, 8, 1, samples));
  put("b.wav", wav(1));
  put("list.csv", "path,text,offset,duration\na.wav,x,,\na.wav,y,60,5\nb.wav,z,,\n");
  const auto set = open("list.csv");
  EXPECT_EQ(texts_of(*set), (Names{"y", "z"})) << "its parts may be";
  EXPECT_EQ(test::faults_of(set->left_out()),
            Names{":2: a.wav: lasts 12h 00m, and an utterance may last 1h 00m"});
}

TEST_F(SpeechSetTest, FilesThatChangeAreNoticed) {
  const std::string path = put("a.wav", wav(0.5, 1));
  put("b.wav", wav(0.5, 2));
  put("list.csv", "path,text\na.wav,one\nb.wav,two\n");
  const auto set = open("list.csv");
  put("a.wav", wav(0.5, 7));
  failure(ExitCode::kBadData, [&] { set->read(0, 0); });
  EXPECT_FALSE(set->load(0, 0)) << "skipped";
  EXPECT_FALSE(set->load(0, 0));
  EXPECT_EQ(set->left_out().count, 1) << "counted once";
  EXPECT_TRUE(set->load(1, 0));
  fs::remove(path);
  failure(ExitCode::kBadData, [&] { set->read(0, 0); });
  EXPECT_EQ(open("list.csv")->size(), 1) << "the next start looks again";
}

TEST_F(SpeechSetTest, AnArchiveThatChangesIsNoticed) {
  const auto members = [](int64_t seed) {
    return test::tar_of({{"1/1.trans.txt", "1-0 one\n"}, {"1/1-0.wav", wav(0.5, seed)}});
  };
  put("a.tar", members(1));
  const auto set = open("a.tar");
  EXPECT_EQ(set->read(0, 0).size(), 4000U);
  // The same file with other bytes.
  std::ofstream(below("a.tar"), std::ios::binary | std::ios::in) << members(2);
  failure(ExitCode::kBadData, [&] { set->read(0, 0); });
}

TEST_F(SpeechSetTest, SilenceTeachesNothing) {
  put("a.wav", test::silence(0.5));
  put("b.wav", wav(0.5));
  put("list.csv", "path,text\na.wav,one\nb.wav,two\n");
  const auto set = open("list.csv");
  EXPECT_EQ(set->size(), 2);
  const auto error = failure(ExitCode::kBadData, [&] { set->read(0, 16000); });
  EXPECT_EQ(std::string(error.what()),
            below("a.wav") + ": is silent, and its text is `one`: all samples are 0");
  EXPECT_FALSE(set->load(0, 16000));
}

TEST_F(SpeechSetTest, SamplesThatAreNoNumbersAreFoundWhenTheyAreRead) {
  // Floats of 32 bits: 0.5, NaN, 0.25.
  const std::string samples =
      audio::test::bytes_of_integers({0x3F000000, 0x7FC00000, 0x3E800000}, 4);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += samples;
  put("a.wav", audio::test::wave(8000, 1, 32, 3, many));
  put("b.wav", wav(0.5));
  put("list.csv", "path,text\na.wav,one\nb.wav,two\n");
  const auto set = open("list.csv");
  EXPECT_EQ(set->size(), 2);
  failure(ExitCode::kBadData, [&] { set->read(0, 0); });
  EXPECT_FALSE(set->load(0, 0));
  EXPECT_EQ(set->left_out().count, 1);
}

TEST_F(SpeechSetTest, ManyChannelsAreOne) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < 8 * 4000; ++i) samples.push_back(i % 8 * 100 + i);
  put("a.wav", audio::test::wave(192000, 8, 24, 1, audio::test::bytes_of_integers(samples, 3)));
  options_.min_seconds = 0;
  put("list.csv", "path,text\na.wav,one\n");
  const auto set = open("list.csv");
  EXPECT_EQ(set->channels(0), 8);
  EXPECT_EQ(set->read(0, 0).size(), 4000U);
  EXPECT_EQ(set->read(0, 16000).size(), 334U);
}

TEST_F(SpeechSetTest, SharedSoundsAreFound) {
  put("a.wav", wav(0.5, 1));
  put("b.wav", wav(0.5, 2));
  put("c.wav", wav(0.5, 2));
  put("train.csv", "path,text\na.wav,one\nb.wav,two\n");
  put("valid.csv", "path,text\nc.wav,two\n");
  const auto train = open("train.csv"), valid = open("valid.csv", "data.valid");
  EXPECT_EQ(shared_sounds_text(*train, *valid),
            "utterances with the sound of one for training: 1 of 1, such as " +
                below("valid.csv:2") + ", as " + below("train.csv:3"));
  EXPECT_EQ(shared_sounds_text(*valid, *valid).empty(), false);
}

TEST_F(SpeechSetTest, WithoutTheCacheNothingIsWritten) {
  put("a.wav", wav(0.5));
  put("list.csv", "path,text\na.wav,one\n");
  const auto set = open_speech(options_, "data.train", {below("list.csv")}, CacheUse::kNone);
  EXPECT_EQ(set->read(0, 0).size(), 4000U);
  EXPECT_FALSE(fs::exists(below("cache")));
}

TEST_F(SpeechSetTest, SoundsAreReadWhereTheCacheIsRefused) {
  options_.cache_dir = put("file", "") + "/cache";
  const std::vector<test::Member> libri{{"1/1.trans.txt", "1-0 one\n"}, {"1/1-0.wav", wav(0.5)}};
  put("a.tar", test::tar_of(libri));
  put("a.tgz", test::tar_of(libri, test::TarForm::kGnu, /*is_packed=*/true));
  for (const char* name : {"a.tar", "a.tgz"}) {
    const auto set = open(name);
    EXPECT_FALSE(set->refusal().empty()) << name;
    EXPECT_EQ(set->read(0, 0).size(), 4000U) << name;
  }
}

TEST_F(SpeechSetTest, MembersThatAreNoFilesAreBadSamples) {
  put("a.tar", test::tar_of({{"1/1.trans.txt", "1-0 one\n1-1 two\n"},
                             {"1/1-0.wav", wav(0.5)},
                             {"1/1-1.wav", "", "/etc/passwd"},
                             {"../x.wav", wav(0.5)},
                             {"1/.hidden.wav", wav(0.5)}}));
  const auto set = open("a.tar");
  EXPECT_EQ(texts_of(*set), Names{"one"});
  EXPECT_EQ(test::faults_of(set->left_out()),
            (Names{": 1/1-1.wav: is a link", ": ../x.wav: its name leads out of the archive",
                   ": 1/1.trans.txt:2: there is no sound 1/1-1.wav or .flac"}));
}

}  // namespace
}  // namespace stretto::data
