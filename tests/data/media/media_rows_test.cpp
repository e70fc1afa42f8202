#include "data/media/media_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/manifest.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using RowTexts = std::vector<std::string>;

class MediaRowsTest : public ::testing::Test {
 protected:
  RowTexts rows(const std::string& name, const std::string& text, BadSamples& bad) const {
    RowTexts found;
    read_media_rows(folder_.write(name, text), columns_, bad, [&](const MediaRow& row) {
      found.push_back(std::to_string(row.line) + " " + row.path + " [" + row.text + "] " +
                      std::to_string(static_cast<int>(row.offset * 10)) + "+" +
                      std::to_string(static_cast<int>(row.duration * 10)));
    });
    return found;
  }
  RowTexts rows(const std::string& name, const std::string& text) const {
    BadSamples bad;
    return rows(name, text, bad);
  }
  std::string refusal(const std::string& name, const std::string& text,
                      ExitCode code = ExitCode::kBadData) const {
    return failure(code, [&] { rows(name, text); }).message();
  }

  const MediaColumns columns_{
      .path = "audio_filepath", .text = "text", .offset = "offset", .duration = "duration"};
  testing::TempDir folder_;
};

TEST_F(MediaRowsTest, ReadsCsvTsvAndJsonLines) {
  const RowTexts wanted{"2 a.wav [hello, you] 5+20", "3 b/c.wav [] 0+0"};
  EXPECT_EQ(rows("m.csv",
                 "duration,text,audio_filepath,offset\n2,\"hello, you\",a.wav,0.5\n,,b/c.wav,\n"),
            wanted);
  EXPECT_EQ(
      rows("m.tsv",
           "audio_filepath\toffset\tduration\ttext\na.wav\t0.5\t2\thello, you\nb/c.wav\t\t\t\n"),
      wanted);
  EXPECT_EQ(rows("m.jsonl",
                 "\n{\"audio_filepath\": \"a.wav\", \"text\": \"hello, you\", \"offset\": 0.5, "
                 "\"duration\": 2, \"lang\": null}\n"
                 "{\"audio_filepath\": \"b/c.wav\", \"text\": \"\"}\n\n"),
            wanted);
}

TEST_F(MediaRowsTest, AColumnThatIsNotNamedIsNotRead) {
  BadSamples bad;
  RowTexts found;
  read_media_rows(folder_.write("m.csv", "path,duration\na.jpg,none\n"), {}, bad,
                  [&](const MediaRow& row) { found.push_back(row.path + row.text); });
  EXPECT_EQ(found, RowTexts{"a.jpg"});
}

TEST_F(MediaRowsTest, ReadsNothingOfAnEmptyFile) {
  EXPECT_TRUE(rows("m.csv", "").empty());
  EXPECT_TRUE(rows("m.jsonl", "").empty());
  EXPECT_TRUE(rows("m.csv", "audio_filepath,text,offset,duration\n").empty());
}

TEST_F(MediaRowsTest, SaysWhichRowIsBad) {
  const std::string header = "audio_filepath,text,offset,duration\n";
  EXPECT_NE(refusal("m.csv", header + "a.wav,x,0,1\nb.wav\n")
                .find("m.csv:3: 1 field, where the header has 4"),
            std::string::npos);
  EXPECT_NE(refusal("m.csv", header + ",x,0,1\n").find("m.csv:2: names no file"),
            std::string::npos);
  for (const std::string number : {"1s", "-1", "nan", "1e999", "inf"}) {
    EXPECT_NE(refusal("m.csv", header + "a.wav,x,0," + number + "\n")
                  .find("m.csv:2: `duration` is no number of seconds: " + number),
              std::string::npos);
  }
  EXPECT_NE(
      refusal("m.jsonl", "{\"text\": \"x\"}\n").find("m.jsonl:1: `audio_filepath` is missing"),
      std::string::npos);
  EXPECT_NE(refusal("m.jsonl", "{\"audio_filepath\": \"a\", \"text\": [1]}\n")
                .find("m.jsonl:1: `text` is neither text nor a number"),
            std::string::npos);
  EXPECT_NE(refusal("m.jsonl", "[]\n").find("m.jsonl:1: is no JSON object"), std::string::npos);
  EXPECT_NE(refusal("m.jsonl", "{\"audio_filepath\"\n").find("m.jsonl:1"), std::string::npos);
}

TEST_F(MediaRowsTest, LeavesBadRowsOutWhenAsked) {
  BadSamples bad({.skips = true});
  EXPECT_EQ(rows("m.csv", "audio_filepath,text,offset,duration\na.wav,,x,\nb.wav,,,\nc.wav\n", bad),
            RowTexts{"3 b.wav [] 0+0"});
  EXPECT_EQ(bad.left_out().count, 2);
}

TEST_F(MediaRowsTest, RefusesAFileThatIsNoManifest) {
  EXPECT_NE(
      refusal("m.txt", "a.wav\n", ExitCode::kUsage).find("m.txt: is no manifest by its ending"),
      std::string::npos);
  EXPECT_NE(refusal("m.csv", "path,text\n", ExitCode::kUsage)
                .find("m.csv:1: the header has no column `audio_filepath`\n  it has path, text"),
            std::string::npos);
}

TEST_F(MediaRowsTest, NamesTheFilesThatAreComparedLater) {
  const std::string path =
      folder_.write("m.csv", "audio_filepath,text,offset,duration\na.wav,,,\n,,,\n");
  const auto files = files_named_by(media_manifest("data.train", path, columns_, {.skips = true}));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].line, 2);
  EXPECT_EQ(files[0].path, (folder_ / "a.wav").string());
  failure(ExitCode::kBadData,
          [&] { files_named_by(media_manifest("data.train", path, columns_, {})); });
}

}  // namespace
}  // namespace stretto::data
