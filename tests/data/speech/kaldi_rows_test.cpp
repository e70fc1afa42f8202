#include "data/speech/kaldi_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/speech/utterances.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using FilesByName = std::map<std::string, std::string>;
using FaultTexts = std::vector<std::string>;

struct KaldiRead {
  UtteranceRows all;
  FaultTexts faults;
};

KaldiRead read_kaldi(const FilesByName& files, const SpeechDataOptions& options = {}) {
  const KaldiFolder folder{.path = "/k",
                           .open = [&](const std::string& name) -> std::optional<LineReader> {
                             const auto found = files.find(name);
                             if (found == files.end()) return std::nullopt;
                             return test::lines_of(found->second, "/k/" + name);
                           }};
  BadSamples bad = test::skipping();
  KaldiRead result;
  result.all = read_kaldi_rows(folder, options, bad);
  result.faults = test::faults_of(bad.left_out());
  return result;
}

TEST(KaldiRows, WithoutSegmentsEachRecordingIsAnUtterance) {
  const auto [all, faults] = read_kaldi({{"wav.scp", "u2 b.wav\nu1  /x/a.wav\n"},
                                         {"text", "u1 hello world\nu2\tyes\n"},
                                         {"utt2spk", "u1 ann\n"}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].id, "u2");
  EXPECT_EQ(all.rows[0].sound, "/k/b.wav");
  EXPECT_EQ(all.rows[0].text, "yes");
  EXPECT_EQ(all.rows[0].speaker, "");
  EXPECT_EQ(all.rows[1].sound, "/x/a.wav");
  EXPECT_EQ(all.rows[1].text, "hello world");
  EXPECT_EQ(all.rows[1].speaker, "ann");
  EXPECT_EQ(all.lists.at(all.rows[1].list), "/k/wav.scp");
  EXPECT_EQ(all.rows[1].line, 2);
  EXPECT_TRUE(faults.empty());
}

TEST(KaldiRows, SegmentsArePartsOfRecordings) {
  const auto [all, faults] = read_kaldi({{"wav.scp", "r a.wav\n"},
                                         {"segments", "u1 r 0.5 2\nu2\tr\t2\t-1\n"},
                                         {"text", "u1 one\nu2 two\n"}});
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].offset, 0.5);
  EXPECT_EQ(all.rows[0].duration, 1.5);
  EXPECT_EQ(all.rows[1].offset, 2);
  EXPECT_EQ(all.rows[1].duration, 0) << "-1 is the end of the recording";
  EXPECT_EQ(all.lists.at(all.rows[1].list), "/k/segments");
  EXPECT_TRUE(faults.empty());
}

TEST(KaldiRows, ACommandIsRefusedAndNeverRun) {
  const testing::TempDir folder;
  const std::string mark = (folder / "was_run").string();
  const std::vector<std::string> commands{"touch " + mark + " |", "| touch " + mark,
                                          "sph2pipe -f wav a.sph |"};
  for (const auto& command : commands) {
    folder.write("wav.scp", "u1 a.wav\nu2 " + command + "\n");
    folder.write("text", "u1 one\nu2 two\n");
    BadSamples bad = test::skipping();
    const auto error = failure(ExitCode::kBadData, [&] {
      read_kaldi_rows(kaldi_folder(folder.path().string()), {}, bad);
    });
    EXPECT_EQ(std::string(error.what()), (folder / "wav.scp").string() + ":2: is a command, `" +
                                             command + "`; a command in data is never run");
    EXPECT_FALSE(std::filesystem::exists(mark));
  }
}

TEST(KaldiRows, BadLinesAreNamed) {
  const auto [all, faults] = read_kaldi({{"wav.scp", "r a.wav\nr b.wav\ns\n"},
                                         {"segments",
                                          "u1 r 2 1\nu2 q 0 1\nu3 r 0 x\nu4 r 0\nu5 r 0 1\n"
                                          "u5 r 1 2\nu6 r 0 1\n"},
                                         {"text", "u5 five\n"}});
  ASSERT_EQ(all.rows.size(), 1U);
  EXPECT_EQ(all.rows[0].id, "u5");
  EXPECT_EQ(faults,
            (FaultTexts{"/wav.scp:2: `r` stands in line 1 already", "/wav.scp:3: names no sound",
                        "/segments:1: is no segment: r 2 1",
                        "/segments:2: is of recording `q`, which wav.scp does not have",
                        "/segments:3: is no segment: r 0 x", "/segments:4: is no segment: r 0",
                        "/segments:6: `u5` stands in line 5 already",
                        "/segments:7: text has no line of `u6`"}));
}

TEST(KaldiRows, FilesThatAreNeededAreMissed) {
  EXPECT_STREQ(failure(ExitCode::kUsage,
                       [] {
                         read_kaldi({{"text", "u one\n"}});
                       })
                   .what(),
               "/k/wav.scp: is missing");
  EXPECT_STREQ(failure(ExitCode::kUsage,
                       [] {
                         read_kaldi({{"wav.scp", "u a.wav\n"}});
                       })
                   .what(),
               "/k/text: is missing");
}

}  // namespace
}  // namespace stretto::data
