#include "data/speech/manifest_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/data/speech/utterances.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using test::lines_of;

struct ManifestRead {
  std::vector<UtteranceRow> rows;
  std::vector<std::string> faults;
};

ManifestRead read_manifest_text(std::string_view text, MediaListFormat format,
                                const SpeechDataOptions& options = {}) {
  BadSamples bad = test::skipping();
  ManifestRead result;
  result.rows = read_manifest_rows(lines_of(text, "/d/a.list"), format, options, bad).rows;
  result.faults = test::faults_of(bad.left_out());
  return result;
}

TEST(ManifestRows, CsvOfDeepSpeech) {
  const auto [rows, faults] = read_manifest_text(
      "wav_filename,wav_filesize,transcript\na.wav,1044,\"well, yes\"\n\n/x/b.wav,12,no\n",
      MediaListFormat::kCsv);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].sound, "/d/a.wav");
  EXPECT_EQ(rows[0].shown, "a.wav");
  EXPECT_EQ(rows[0].text, "well, yes");
  EXPECT_EQ(rows[0].bytes, 1044U);
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[1].sound, "/x/b.wav");
  EXPECT_EQ(rows[1].line, 4);
  EXPECT_TRUE(faults.empty());
}

TEST(ManifestRows, JsonLinesOfNeMo) {
  const auto [rows, faults] = read_manifest_text(
      "{\"audio_filepath\": \"a.flac\", \"offset\": 1.5, \"duration\": 2.25, \"text\": \"one\", "
      "\"speaker\": 7}\n{\"audio_filepath\": \"b.flac\", \"duration\": 3, \"text\": \"two\"}\n",
      MediaListFormat::kJsonLines);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].offset, 1.5);
  EXPECT_EQ(rows[0].duration, 2.25);
  EXPECT_EQ(rows[0].speaker, "7");
  EXPECT_EQ(rows[1].offset, 0);
  EXPECT_EQ(rows[1].duration, 3);
  EXPECT_TRUE(faults.empty());
}

TEST(ManifestRows, TsvOfCommonVoiceWithAFolderOfClips) {
  const auto [rows, faults] =
      read_manifest_text("client_id\tpath\tsentence\nabc\tx.mp3\tShe said \"no\".\n",
                         MediaListFormat::kTsv, {.audio_dir = "/clips"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].sound, "/clips/x.mp3");
  EXPECT_EQ(rows[0].text, "She said \"no\".");
  EXPECT_EQ(rows[0].speaker, "abc");
  EXPECT_TRUE(faults.empty());
}

TEST(ManifestRows, AColumnThatIsNamedCountsAlone) {
  const SpeechDataOptions options{.text = "spoken", .id = "name"};
  const auto [rows, faults] =
      read_manifest_text("path,text,spoken,name\na.wav,1,one,u1\n", MediaListFormat::kCsv, options);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "one");
  EXPECT_EQ(rows[0].id, "u1");
  const auto error = failure(ExitCode::kUsage, [&] {
    read_manifest_text("path,text\na.wav,1\n", MediaListFormat::kCsv, options);
  });
  EXPECT_EQ(std::string(error.what()), "/d/a.list:1: the header has no column `spoken`");
}

TEST(ManifestRows, WithoutAColumnOfTextsThereIsNothingToLearn) {
  failure(ExitCode::kUsage,
          [] { read_manifest_text("path,size\na.wav,1\n", MediaListFormat::kCsv); });
  const auto [rows, faults] =
      read_manifest_text("{\"path\": \"a.wav\"}\n", MediaListFormat::kJsonLines);
  EXPECT_TRUE(rows.empty());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].find(":1: has none of the columns transcript, text"), 0U) << faults[0];
}

TEST(ManifestRows, BadRowsAreNamedAndTheOthersStay) {
  const auto [rows, faults] = read_manifest_text(
      "path,text,offset,duration\na.wav,one,-1,\n,two,,\nc.wav\nd.wav,four,nan,\ne.wav,five,1e3,x\n"
      "f.wav,six,,\n",
      MediaListFormat::kCsv);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "six");
  EXPECT_EQ(faults, (std::vector<std::string>{":2: its offset is no number from 0 on: -1",
                                              ":3: names no sound",
                                              ":4: has 1 field, where the header has 4",
                                              ":5: its offset is no number from 0 on: nan",
                                              ":6: its duration is no number from 0 on: x"}));
}

TEST(ManifestRows, BrokenJsonIsABadRow) {
  const auto [rows, faults] = read_manifest_text(
      "{\"path\": \"a.wav\", \"text\": \n[1]\n{\"path\": [\"a\"], \"text\": \"x\"}\n"
      "{\"path\": \"b.wav\", \"text\": \"yes\"}\n",
      MediaListFormat::kJsonLines);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "yes");
  EXPECT_EQ(faults.size(), 3U);
}

}  // namespace
}  // namespace stretto::data
