#include "distill/labelling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::distill {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// $1 = file, $2 = the test's folder: prints each line with a mark. Each start adds a line to
// `starts`; a file `fail` there holds an exit code for the part of the file that has `three`.
constexpr const char* kTeacher = R"sh(
echo start >> "$2/starts"
if [ -e "$2/fail" ] && grep -q three "$1"; then echo "no luck" >&2; exit "$(cat "$2/fail")"; fi
if [ -e "$2/short" ]; then echo one; exit 0; fi
sed 's/^/t:/' "$1"
)sh";

class LabellingTest : public ::testing::Test {
 protected:
  void SetUp() override { log::set_quiet(true); }
  void TearDown() override { log::set_quiet(false); }

  LabellingSetup setup(int processes = 1, const std::string& fingerprint = "f") const {
    LabellingSetup made;
    made.folder = folder_ / "labels";
    made.texts = {{.path = text_}};
    made.fingerprint = fingerprint;
    made.processes = processes;
    made.part_lines = 2;
    made.command = [this](const fs::path& source) {
      return std::vector<std::string>{
          "/bin/sh", "-c", kTeacher, "sh", source.string(), folder_.path().string()};
    };
    made.tick = 2ms;
    return made;
  }
  int64_t starts() const {
    const std::string text = fs::exists(folder_ / "starts") ? read_file(folder_ / "starts") : "";
    fs::remove(folder_ / "starts");
    return std::count(text.begin(), text.end(), '\n');
  }

  testing::TempDir folder_;
  std::string text_ = folder_.write("a.en", "one\ntwo\nthree\nfour\nfive\n");
};

TEST_F(LabellingTest, LabelsEveryLineInItsOrderWithAnyNumberOfProcesses) {
  for (const int processes : {1, 3}) {
    fs::remove_all(folder_ / "labels");
    Labelling labelling(setup(processes));
    ASSERT_EQ(labelling.run(), 0);
    EXPECT_EQ(starts(), 3);
    const auto& labels = labelling.labels();
    ASSERT_EQ(labels.texts.size(), 1U);
    EXPECT_EQ(labels.lines, 5);
    EXPECT_EQ(read_file(labels.texts[0].text), "one\ntwo\nthree\nfour\nfive\n");
    EXPECT_EQ(read_file(labels.texts[0].labels), "t:one\nt:two\nt:three\nt:four\nt:five\n");
    EXPECT_FALSE(fs::exists(folder_ / "labels/text_0")) << "the parts only take room";
  }
}

TEST_F(LabellingTest, GoesOnBehindWhatIsDone) {
  folder_.write("fail", "71");
  EXPECT_EQ(Labelling(setup()).run(), 71);
  EXPECT_EQ(starts(), 2) << "no part is begun after one that failed";
  fs::remove(folder_ / "fail");
  EXPECT_EQ(Labelling(setup()).run(), 0);
  EXPECT_EQ(starts(), 2);
  Labelling again(setup());
  EXPECT_EQ(again.run(), 0);
  EXPECT_EQ(starts(), 0);
  EXPECT_EQ(again.labels().lines, 5);
}

TEST_F(LabellingTest, RefusesTheFolderOfOtherLabels) {
  EXPECT_EQ(Labelling(setup()).run(), 0);
  testing::failure(ExitCode::kUsage, [&] { Labelling other(setup(1, "another teacher")); });
}

TEST_F(LabellingTest, KnowsTheFolderOfACommandThatWasStoppedBeforeItsFirstLabel) {
  auto unreadable = setup();
  unreadable.texts[0].column = 2;
  testing::failure(ExitCode::kBadData, [&] { Labelling(std::move(unreadable)).run(); });
  EXPECT_TRUE(fs::exists(folder_ / "labels/text_0")) << "it was stopped while it cut its texts";
  folder_.write("text.txt", "three\n");
  folder_.write("fail", "71");
  auto wrong = setup(1, "another teacher");
  const std::string text = (folder_ / "text.txt").string();
  wrong.texts = {{.path = text}, {.path = text}};
  EXPECT_EQ(Labelling(std::move(wrong)).run(), 71);
  EXPECT_TRUE(fs::exists(folder_ / "labels/text_1"));
  fs::remove(folder_ / "fail");
  EXPECT_EQ(starts(), 1);
  EXPECT_EQ(Labelling(setup()).run(), 0);
  EXPECT_EQ(starts(), 3);
  EXPECT_FALSE(fs::exists(folder_ / "labels/text_1")) << "parts of the other texts";
}

TEST_F(LabellingTest, RefusesPartsAndTextsOfWhichNobodyKnowsWhoseTheyAre) {
  folder_.write("fail", "71");
  EXPECT_EQ(Labelling(setup()).run(), 71);
  fs::remove(folder_ / "labels/labels.json");
  const auto error = testing::failure(ExitCode::kUsage, [&] { Labelling(setup()).run(); });
  EXPECT_NE(error.message().find("text_0 is there"), std::string::npos) << error.message();
  fs::remove_all(folder_ / "labels");
  folder_.write("labels/text_0.labels", "precious");
  testing::failure(ExitCode::kUsage, [&] { Labelling(setup()).run(); });
  EXPECT_EQ(read_file(folder_ / "labels/text_0.labels"), "precious");
}

TEST_F(LabellingTest, RemovesThePartsThatAKilledProcessLeftBehindItsLabels) {
  EXPECT_EQ(Labelling(setup()).run(), 0);
  folder_.write("labels/text_0/000000.src", "one\ntwo\n");
  EXPECT_EQ(Labelling(setup()).run(), 0);
  EXPECT_FALSE(fs::exists(folder_ / "labels/text_0"));
}

TEST_F(LabellingTest, RefusesLabelsThatWereChangedAndTooFewOfThem) {
  EXPECT_EQ(Labelling(setup()).run(), 0);
  write_file_atomic(folder_ / "labels/text_0.labels", "t:one\n");
  testing::failure(ExitCode::kBadData, [&] { Labelling(setup()).run(); });
  fs::remove_all(folder_ / "labels");
  folder_.write("short", "");
  const auto error = testing::failure(ExitCode::kBadData, [&] { Labelling(setup()).run(); });
  EXPECT_NE(error.message().find("1 label for the 2 lines"), std::string::npos) << error.message();
}

TEST_F(LabellingTest, RefusesAFlippedByteInAFileOfTheSameSize) {
  for (const char* name : {"text_0.src", "text_0.labels"}) {
    const fs::path path = folder_ / "labels" / name;
    EXPECT_EQ(Labelling(setup()).run(), 0);
    const std::string written = read_file(path);
    std::string flipped = written;
    flipped[flipped.find("two")] = 'T';
    write_file_atomic(path, flipped);
    const auto error = testing::failure(ExitCode::kBadData, [&] { Labelling(setup()).run(); });
    const std::string said = path.string() + ": is not what the teacher wrote";
    EXPECT_NE(error.message().find(said), std::string::npos) << error.message();
    write_file_atomic(path, written);
    EXPECT_EQ(Labelling(setup()).run(), 0) << "a copy was put back";
  }
}

TEST_F(LabellingTest, TakesFinishedLabelsOfAVersionThatKeptNoHashes) {
  EXPECT_EQ(Labelling(setup()).run(), 0);
  auto record = *read_labels_record(folder_ / "labels");
  EXPECT_EQ(record.hashes.size(), 2U);
  record.hashes.clear();
  write_file_atomic(labels_record_path(folder_ / "labels"), labels_record_text(record, 1));
  EXPECT_EQ(Labelling(setup()).run(), 0);
}

TEST(LabelsRecord, IsReadAsItWasWrittenAndRefusedWhereItIsDamaged) {
  LabelsRecord record;
  record.fingerprint = "f";
  record.cut.parts = {{.text = 0, .number = 0, .lines = 5}, {.text = 1, .number = 0, .lines = 2}};
  record.cut.left_out = 3;
  record.bytes = {1, 2, 3, 4};
  record.hashes = {"a", "b", "c", "d"};
  record.lines = 6;
  record.without_label = 1;
  const auto read = parse_labels_record(labels_record_text(record, 2), "labels.json");
  EXPECT_EQ(read.fingerprint, "f");
  ASSERT_EQ(read.cut.parts.size(), 2U);
  EXPECT_EQ(read.cut.parts[1].text, 1U);
  EXPECT_EQ(read.cut.lines, 7);
  EXPECT_EQ(read.cut.left_out, 3);
  EXPECT_EQ(read.bytes, record.bytes);
  EXPECT_EQ(read.hashes, record.hashes);
  EXPECT_EQ(read.lines, 6);
  record.hashes.pop_back();
  testing::failure(ExitCode::kBadData,
                   [&] { parse_labels_record(labels_record_text(record, 2), "labels.json"); });
  record.hashes.clear();
  std::string flipped = labels_record_text(record, 2);
  flipped.replace(flipped.find("\"lines\": 6"), 10, "\"lines\": 7");
  testing::failure(ExitCode::kBadData, [&] { parse_labels_record(flipped, "labels.json"); });
  for (
      const char* text :
      {"[]", "{}",
       R"({"fingerprint":"f","parts":[[0]],"bytes":[],"left_out":0,"lines":0,"without_label":0})",
       R"({"fingerprint":"f","parts":[[1]],"bytes":[1],"left_out":0,"lines":0,"without_label":0})",
       R"({"fingerprint":"f","parts":[[1]],"bytes":[],"left_out":-1,"lines":0,"without_label":0})"}) {
    testing::failure(ExitCode::kBadData, [&] { parse_labels_record(text, "labels.json"); });
  }
}

}  // namespace
}  // namespace stretto::distill
