#include "runs/choose_checkpoint.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "runs/train_state.h"
#include "store/manifest.h"
#include "store/run_record.h"
#include "tests/base/failure.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;
using store::testing::CheckpointTest;
using store::testing::TinyCheckpoint;
using stretto::testing::failure;

/// Two runs, `a` and `b`, with checkpoints of steps 10 and 20, of which 10 is the best.
class ChooseCheckpoint : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    for (const std::string run : {"a", "b"}) {
      for (const int64_t step : {10, 20}) save_step(run, step, "run-" + run);
      store::write_run_record(dir_ / run, {"run-" + run, {"hash"}, "", "", ""});
    }
  }
  void save_step(const std::string& run, int64_t step, const std::string& run_id) const {
    TinyCheckpoint tiny(step, run_id);
    TrainState state;
    state.step = step;
    for (int64_t at = 10; at <= step; at += 10) state.quality[at] = at == 10 ? 2.0 : 1.0;
    tiny.content.state_json = state.to_json();
    store::CheckpointStore(dir_ / run).save(tiny.content);
  }
  fs::path step_of(const std::string& run, int64_t step) const {
    return store::CheckpointStore(dir_ / run).path_of(step);
  }
  fs::path opened(const std::string& selector) const {
    return open_checkpoint(dir_ / "a", selector).directory;
  }
  std::string log() {
    const std::string text = ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return text;
  }
};

TEST_F(ChooseCheckpoint, APathIsTakenWithItsFolder) {
  EXPECT_EQ(opened(step_of("b", 20)), step_of("b", 20));
  EXPECT_EQ(opened(step_of("b", 20).string() + "/"), step_of("b", 20));
  EXPECT_EQ(opened(step_of("a", 20)), step_of("a", 20));
  EXPECT_EQ(opened(dir_ / "b"), step_of("b", 10)) << "of a run its best";
  fs::copy(step_of("b", 20), dir_ / "alone", fs::copy_options::recursive);
  EXPECT_EQ(opened(dir_ / "alone"), dir_ / "alone");
}

TEST_F(ChooseCheckpoint, AWordIsTheRunsOwnNameBeforeItIsAFolder) {
  const fs::path here = fs::current_path();
  fs::current_path(dir_.path());
  EXPECT_EQ(opened("b"), fs::path("b/checkpoints/step_00000010"));
  fs::create_directories("10");
  EXPECT_EQ(opened("10"), step_of("a", 10));
  fs::copy(step_of("a", 20), dir_ / "a/checkpoints/b", fs::copy_options::recursive);
  EXPECT_EQ(opened("b"), dir_ / "a/checkpoints/b");
  EXPECT_EQ(opened("./b"), fs::path("b/checkpoints/step_00000010"));
  fs::current_path(here);
}

TEST_F(ChooseCheckpoint, APlaceThatIsNotThereIsNamed) {
  const fs::path nowhere = dir_ / "nowhere/checkpoints/step_00000020";
  const auto refusal = [&](const std::string& selectors) {
    return std::string(
        failure(ExitCode::kUsage, [&] { open_checkpoints(dir_ / "a", selectors); }).what());
  };
  EXPECT_NE(refusal(nowhere).find(nowhere.string() + ": there is no such folder"),
            std::string::npos);
  EXPECT_NE(refusal("10," + nowhere.string()).find(nowhere), std::string::npos);
  EXPECT_NE(refusal(dir_ / "a/checkpoints").find("neither a checkpoint nor a run"),
            std::string::npos);
  EXPECT_NE(refusal(step_of("b", 10) / "manifest.json").find("is no folder"), std::string::npos);
  EXPECT_NE(refusal("step_00000099").find("`step_00000099`"), std::string::npos);
  for (const char* list : {"10,", ",10", "10,,20"}) {
    EXPECT_NE(refusal(list).find("a place in it is empty"), std::string::npos) << list;
  }
}

TEST_F(ChooseCheckpoint, AListMayMixNamesAndPaths) {
  const auto list = open_checkpoints(
      dir_ / "a", "20, " + step_of("b", 10).string() + " ," + (dir_ / "b").string());
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].directory, step_of("a", 20));
  EXPECT_EQ(list[1].run_id, "run-b");
  EXPECT_EQ(list[2].directory, step_of("b", 10));
  fs::rename(dir_ / "b", dir_ / "b,c");
  EXPECT_EQ(open_checkpoints(dir_ / "a", dir_ / "b,c").front().run_id, "run-b")
      << "a comma in a name";
}

TEST_F(ChooseCheckpoint, OneOfAnotherRunInTheFolderIsRefusedAndNotPassedOver) {
  save_step("a", 30, "run-b");
  for (const char* selector : {"", "last", "30"}) {
    const Error error = failure(ExitCode::kBadData, [&] { opened(selector); });
    const std::string text = error.message();
    for (const char* words : {"step_00000030", "run-a", "run-b", "--checkpoint PATH"}) {
      EXPECT_NE(text.find(words), std::string::npos) << selector << ": " << text;
    }
  }
  EXPECT_EQ(opened("20"), step_of("a", 20));
  EXPECT_TRUE(fs::exists(step_of("a", 30))) << "it is whole, and is left alone";
  std::vector<std::string> broken;
  failure(ExitCode::kBadData, [&] { newest_checkpoints(dir_ / "a", 2, broken); });
}

TEST_F(ChooseCheckpoint, AStepWithoutItsManifestIsNamedAndNotSkipped) {
  fs::remove(step_of("a", 20) / "manifest.json");
  EXPECT_EQ(opened("last"), step_of("a", 10));
  const std::string said = log();
  EXPECT_NE(said.find("step_00000020"), std::string::npos) << said;
  EXPECT_NE(said.find("manifest.json: is missing"), std::string::npos) << said;
  const Error error = failure(ExitCode::kBadData, [&] { opened("20"); });
  EXPECT_NE(std::string(error.what()).find("manifest.json: is missing"), std::string::npos);
  fs::create_directories(step_of("a", 20) / "manifest.json");
  EXPECT_EQ(opened(""), step_of("a", 10));
  EXPECT_NE(log().find("manifest.json: is no file"), std::string::npos);
}

TEST_F(ChooseCheckpoint, OneWithoutWhatTheOptimizerKeepsIsAModelAllTheSame) {
  fs::remove(step_of("a", 20) / "optimizer.safetensors");
  EXPECT_EQ(opened("last"), step_of("a", 20));
  EXPECT_EQ(opened("20"), step_of("a", 20));
  EXPECT_EQ(opened(step_of("a", 20)), step_of("a", 20));
}

TEST_F(ChooseCheckpoint, TheRunOfACheckpointIsTheFolderAboveItsFolder) {
  EXPECT_EQ(run_of(step_of("a", 10)), dir_ / "a");
  EXPECT_EQ(run_of(step_of("a", 10) / ""), dir_ / "a") << "a slash at its end";
  EXPECT_EQ(run_of(dir_ / "a"), fs::path());
  fs::remove(dir_ / "a/run.json");
  EXPECT_EQ(run_of(step_of("a", 10)), fs::path());
}

}  // namespace
}  // namespace stretto::runs
