#include "runs/run_data.h"

#include <gtest/gtest.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "data/data_record.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;

class RunDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_quiet(true);
    folder_.write("train", "1\n2\n");
    folder_.write("valid", "3\n");
  }
  void TearDown() override {
    log::set_quiet(false);
    set_failpoints("");
  }

  RunData::Setup setup(bool accept = false) const {
    return {.files = {{"data.train", (folder_ / "train").string()},
                      {"data.heads.0.valid_b", (folder_ / "valid").string()}},
            .setting = {},
            .accept = accept};
  }
  RunFolder open() const {
    auto folder = RunFolder::open_for_training(run_);
    folder.write_config("a = 1\n", "hash");
    return folder;
  }
  /// A process that goes on from this step: what metrics.jsonl is told.
  std::vector<std::string> start(int64_t step, bool accept = false) const {
    auto folder = open();
    RunData data(folder, setup(accept));
    data.first_writes(folder)();
    if (step > 0) {
      folder_.write("run/checkpoints/step_0000000" + std::to_string(step) + "/manifest.json", "{}");
    }
    return data.notes_at(folder, step);
  }
  std::vector<int64_t> accepted_steps() const {
    std::vector<int64_t> steps;
    const auto folder = RunFolder::open(run_);
    for (const auto& one : folder.accepted_data()) steps.push_back(one.step);
    return steps;
  }
  std::string refusal() const {
    return testing::failure(ExitCode::kBadData, [&] { start(1); }).message();
  }

  testing::TempDir folder_;
  const fs::path run_ = folder_ / "run";
};

using Steps = std::vector<int64_t>;

TEST_F(RunDataTest, ReadsTheFilesBeforeItsFirstWritesAreMade) {
  auto folder = open();
  const RunData data(folder, setup());
  const auto write = data.first_writes(folder);
  EXPECT_FALSE(fs::exists(run_ / data::kDataRecordFile));
  folder_.write("train", "another\n");
  write();
  EXPECT_TRUE(folder.has_data_record());
  const auto record = data::read_data_record(run_, folder.run_id());
  ASSERT_TRUE(record.has_value());
  folder_.write("train", "1\n2\n");
  EXPECT_TRUE(data::changes_since(*record, setup().files, {}).empty());
}

TEST_F(RunDataTest, LetsARunGoOnWithTheSameDataAlone) {
  EXPECT_TRUE(start(1).empty());
  EXPECT_TRUE(start(1).empty());
  folder_.write("train", "1\ntwo\n");
  const auto message = refusal();
  EXPECT_NE(
      message.find("data.train: " + (folder_ / "train").string() + ": first differs in line 2"),
      std::string::npos)
      << message;
  EXPECT_EQ(accepted_steps(), Steps{});
  folder_.write("train", "1\n2\n");
  EXPECT_TRUE(start(1).empty()) << "put back, it is the same";
}

TEST_F(RunDataTest, NotesWhatIsAcceptedOnce) {
  start(1);
  folder_.write("valid", "three\n");
  const auto notes = start(1, /*accept=*/true);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("first differs in line 1"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("different validation data"), std::string::npos) << notes[0];
  EXPECT_EQ(accepted_steps(), Steps{1});
  // From the same checkpoint again: metrics.jsonl was cut back, and is told again.
  EXPECT_EQ(start(1), notes);
  EXPECT_TRUE(start(2).empty());
  EXPECT_EQ(accepted_steps(), Steps{1});
  EXPECT_TRUE(start(2, /*accept=*/true).empty()) << "nothing is new";
}

TEST_F(RunDataTest, MovesTheStepBackWithARollback) {
  start(1);
  folder_.write("train", "other\n");
  auto folder = open();
  RunData data(folder, setup(/*accept=*/true));
  EXPECT_EQ(data.notes_at(folder, 5).size(), 1u);
  EXPECT_TRUE(data.notes_at(folder, 7).empty());
  EXPECT_EQ(data.notes_at(folder, 3).size(), 1u);
  EXPECT_EQ(accepted_steps(), Steps{3});
}

TEST_F(RunDataTest, BeginsWithWhatThereIsWhileNothingWasSaved) {
  start(0);
  folder_.write("train", "other\n");
  EXPECT_TRUE(start(0).empty());
  EXPECT_TRUE(start(1).empty());
  folder_.write("train", "1\n2\n");
  refusal();
}

TEST_F(RunDataTest, MakesTheRecordOfAnOlderRun) {
  auto folder = open();
  folder_.write("run/checkpoints/step_00000001/manifest.json", "{}");
  EXPECT_FALSE(folder.has_data_record());
  RunData data(folder, setup());
  data.first_writes(folder)();
  EXPECT_TRUE(data.notes_at(folder, 1).empty());
  EXPECT_TRUE(RunFolder::open(run_).has_data_record());
  folder_.write("train", "other\n");
  EXPECT_THROW(RunData(folder, setup()), Error);
}

TEST_F(RunDataTest, NoticesARecordThatIsDamagedOrGone) {
  start(1);
  folder_.write("run/data.json", "{}");
  EXPECT_NE(refusal().find("data.json: is damaged"), std::string::npos);
  fs::remove(run_ / "data.json");
  EXPECT_NE(refusal().find("data.json: is missing"), std::string::npos);
  EXPECT_EQ(start(1, /*accept=*/true).size(), 1u);
  EXPECT_EQ(start(1).size(), 1u);
  EXPECT_TRUE(fs::exists(run_ / "data.json"));
}

TEST_F(RunDataTest, ForgetsNothingWhereItIsStoppedBetweenTwoFiles) {
  start(1);
  folder_.write("train", "other\n");
  set_failpoints("data_record.write:eio");
  EXPECT_THROW(start(1, /*accept=*/true), Error);
  set_failpoints("");
  EXPECT_EQ(accepted_steps(), Steps{1});
  refusal();
  EXPECT_EQ(start(1, /*accept=*/true).size(), 1u);
  EXPECT_EQ(accepted_steps(), Steps{1}) << "the same is noted once";
  EXPECT_EQ(start(1).size(), 1u);
}

TEST_F(RunDataTest, OfAReplayMustBeThoseOfTheStep) {
  start(1);
  const auto require = [&](int64_t step) {
    const auto folder = RunFolder::open(run_);
    require_data_of_step(folder, setup().files, {}, step);
  };
  EXPECT_NO_THROW(require(3));
  folder_.write("valid", "other\n");
  EXPECT_NO_THROW(require(3)) << "a replay does not validate";
  folder_.write("train", "1\n2\nmore\n");
  const auto error = testing::failure(ExitCode::kBadData, [&] { require(3); });
  EXPECT_NE(error.message().find("has more at its end"), std::string::npos) << error.message();
  start(2, /*accept=*/true);
  EXPECT_NO_THROW(require(3)) << "trained on the data of now";
  EXPECT_NO_THROW(require(1)) << "warned of";
  folder_.write("train", "1\n2\n");
  EXPECT_NO_THROW(require(1)) << "the files of then were put back";
  EXPECT_THROW(require(3), Error);
}

}  // namespace
}  // namespace stretto::runs
