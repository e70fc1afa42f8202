#include "runs/average.h"

#include <gtest/gtest.h>
#include <torch/version.h>

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "runs/provenance.h"
#include "store/manifest.h"
#include "tests/base/failure.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;
using store::testing::CheckpointTest;
using store::testing::TinyCheckpoint;

/// A run with checkpoints of steps 10, 20 and 30, of which 20 is the best.
class OpenCheckpoint : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    for (const int64_t step : {10, 20, 30}) {
      TinyCheckpoint tiny(step);
      TrainState state;
      state.step = step;
      for (int64_t at = 10; at <= step; at += 10) state.quality[at] = at == 20 ? 2.0 : 1.0;
      tiny.content.state_json = state.to_json();
      tiny.content.provenance.tokenizer = {{"joint.model", "aaaa"}};
      store().save(tiny.content);
    }
  }
  void damage(int64_t step) const {
    const fs::path file = store().path_of(step) / "model.safetensors";
    std::string bytes = bytes_of(file);
    bytes.back() ^= 1;
    overwrite(file, bytes);
  }
  std::string opened(const std::string& selector) const {
    return open_checkpoint(dir_.path(), selector).directory.filename().string();
  }
  Error refusal(const std::string& selector) const {
    try {
      open_checkpoint(dir_.path(), selector);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "`" << selector << "` was not refused";
    return Error(ExitCode::kOk, "");
  }
  std::string log() {
    const std::string text = ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return text;
  }
};

TEST_F(OpenCheckpoint, TakesTheBestElseTheLastOrTheOneThatWasNamed) {
  EXPECT_EQ(opened(""), "step_00000020");
  EXPECT_EQ(opened("best"), "step_00000020");
  EXPECT_EQ(opened("last"), "step_00000030");
  EXPECT_EQ(opened("10"), "step_00000010");
  EXPECT_EQ(opened("step_00000010"), "step_00000010");
  fs::remove_all(store().path_of(20));
  EXPECT_EQ(opened(""), "step_00000030");
  EXPECT_EQ(refusal("best").code(), ExitCode::kUsage);
  EXPECT_EQ(log(), "");
}

TEST_F(OpenCheckpoint, ADamagedBestGivesWayToTheLastWithAWarningAndIsLeftWhereItIs) {
  damage(20);
  EXPECT_EQ(opened(""), "step_00000030");
  const std::string said = log();
  EXPECT_NE(said.find("step_00000020"), std::string::npos) << said;
  EXPECT_NE(said.find("model.safetensors"), std::string::npos) << said;
  EXPECT_NE(said.find("step_00000030"), std::string::npos) << said;
  EXPECT_EQ(store().steps(), (std::vector<int64_t>{10, 20, 30}));
}

TEST_F(OpenCheckpoint, ADamagedOneThatWasNamedIsAnError) {
  damage(20);
  for (const char* name : {"best", "20", "step_00000020"}) {
    const Error error = refusal(name);
    EXPECT_EQ(error.code(), ExitCode::kBadData) << name;
    EXPECT_NE(std::string(error.what()).find("step_00000020/model.safetensors"), std::string::npos);
    EXPECT_NE(error.advice().find("name another one"), std::string::npos) << error.advice();
  }
  EXPECT_THROW(open_checkpoints(dir_.path(), "10,20"), Error);
}

TEST_F(OpenCheckpoint, TheLastIsTheNewestThatIsWhole) {
  damage(30);
  EXPECT_EQ(opened("last"), "step_00000020");
  EXPECT_NE(log().find("step_00000030"), std::string::npos);
  damage(20);
  EXPECT_EQ(opened(""), "step_00000010");
}

TEST_F(OpenCheckpoint, WhenNoneIsWholeThatIsSaidAndNotThatThereIsNone) {
  for (const int64_t step : {10, 20, 30}) damage(step);
  const Error error = refusal("");
  EXPECT_EQ(error.code(), ExitCode::kBadData);
  EXPECT_NE(std::string(error.what()).find("none of its 3 checkpoints"), std::string::npos);
}

TEST_F(OpenCheckpoint, ABestOfALaterStrettoIsNotPassedOver) {
  auto manifest = store::Manifest::from_json(bytes_of(store().path_of(20) / "manifest.json"), "m");
  manifest.format_version = store::kFormatVersion + 1;
  overwrite(store().path_of(20) / "manifest.json", manifest.to_json());
  EXPECT_THROW(open_checkpoint(dir_.path(), ""), store::NewerFormat);
  EXPECT_THROW(open_checkpoint(dir_.path(), "20"), store::NewerFormat);
}

TEST_F(OpenCheckpoint, AnEnsembleIsInTheOrderOfItsNames) {
  const auto opened = open_checkpoints(dir_.path(), "30, 10,best");
  ASSERT_EQ(opened.size(), 3u);
  EXPECT_EQ(opened[0].step, 30);
  EXPECT_EQ(opened[1].step, 10);
  EXPECT_EQ(opened[2].step, 20);
}

TEST_F(OpenCheckpoint, AnAverageKeepsTheTokenizerAndRefusesToMixTwo) {
  const std::vector<fs::path> paths{store().path_of(10), store().path_of(20)};
  const auto mean = average_checkpoints(dir_.path(), paths, {"run-1", ""}, "averaged");
  const auto provenance = store::CheckpointStore::load(mean).provenance;
  EXPECT_EQ(provenance.tokenizer.at("joint.model"), "aaaa");
  EXPECT_EQ(provenance.libtorch, TORCH_VERSION);
  TinyCheckpoint other(40);
  other.content.provenance.tokenizer = {{"joint.model", "bbbb"}};
  const auto strange = store().save(other.content);
  EXPECT_THROW(average_checkpoints(dir_.path(), {paths[0], strange}, {"run-1", ""}, "mixed"),
               Error);
}

TEST_F(OpenCheckpoint, AnAverageOfEqualTensorsIsThatTensorToTheBit) {
  TinyCheckpoint same(40);
  // A seventh of the sum of seven of these is another number in fp32.
  for (size_t i = 0; i < same.weights.size(); ++i) same.weights[i] = i % 2 == 0 ? 0.1F : 0.7F;
  same.content.provenance.tokenizer = {{"joint.model", "aaaa"}};
  const std::vector<fs::path> paths(7, store().save(same.content));
  const auto mean = store::CheckpointStore::load(
      average_checkpoints(dir_.path(), paths, {"run-1", ""}, "averaged"));
  const auto once = store::CheckpointStore::load(paths.front());
  for (const char* name : {"w", "b"}) {
    EXPECT_EQ(mean.file("model").find(name)->bytes, once.file("model").find(name)->bytes) << name;
  }
}

TEST_F(OpenCheckpoint, AnAverageOfTheLastTakesAnOlderOneInPlaceOfADamagedOne) {
  damage(20);
  const auto mean = average_last_checkpoints(dir_.path(), 2, {"run-1", ""}, "averaged");
  const auto loaded = store::CheckpointStore::load(mean);
  EXPECT_EQ(loaded.step, 30);
  float first = 0;  // step + 0 in each
  std::memcpy(&first, loaded.file("model").find("w")->bytes.data(), sizeof first);
  EXPECT_EQ(first, 20.0F);  // of 10 and 30
  const std::string said = log();
  EXPECT_NE(said.find("step_00000020 is damaged and is left out"), std::string::npos) << said;
  EXPECT_NE(said.find("averaged without it: step_00000010, step_00000030\n"), std::string::npos)
      << said;
  EXPECT_EQ(said.find("only"), std::string::npos) << said;
}

TEST_F(OpenCheckpoint, AnAverageOfTheLastIsOfFewerWhenNoOtherIsWhole) {
  damage(30);
  const auto mean = average_last_checkpoints(dir_.path(), 3, {"run-1", ""}, "averaged");
  EXPECT_EQ(store::CheckpointStore::load(mean).step, 20);
  const std::string said = log();
  EXPECT_NE(said.find("step_00000030 is damaged"), std::string::npos) << said;
  EXPECT_NE(said.find("only 2 checkpoints are there to average, 3 were asked for"),
            std::string::npos)
      << said;
}

TEST_F(OpenCheckpoint, AnAverageFailsWhenNoneIsWholeOrADamagedOneWasNamed) {
  damage(30);
  const std::vector<fs::path> named{store().path_of(20), store().path_of(30)};
  EXPECT_THROW(average_checkpoints(dir_.path(), named, {"run-1", ""}, "averaged"), Error);
  for (const int64_t step : {10, 20}) damage(step);
  try {
    average_last_checkpoints(dir_.path(), 2, {"run-1", ""}, "averaged");
    ADD_FAILURE() << "averaged nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("none of its 3 checkpoints"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(dir_.path() / "checkpoints" / "averaged"));
}

TEST(TokenizerHashes, AreThoseOfSha256sum) {
  const auto hashes = tokenizer_hashes({{"a", "abc"}, {"b", ""}});
  EXPECT_EQ(hashes.at("a"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hashes.at("b"), sha256_hex(""));
}

TEST(RequireSameTokenizer, NamesFileAndBothHashes) {
  store::LoadedCheckpoint checkpoint;
  checkpoint.directory = "run/checkpoints/step_00000001";
  const auto objection = [&](const std::map<std::string, std::string>& hashes) -> std::string {
    try {
      require_same_tokenizer(checkpoint, hashes, "run/tokenizer");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(objection({{"src.model", "1111"}}), "") << "early checkpoints name no tokenizer";
  checkpoint.provenance.tokenizer = {{"src.model", "1111"}, {"tgt.model", "2222"}};
  EXPECT_EQ(objection({{"src.model", "1111"}, {"tgt.model", "2222"}}), "");
  EXPECT_EQ(objection({}), "");
  const std::string swapped = objection({{"src.model", "1111"}, {"tgt.model", "3333"}});
  for (const char* word : {"run/tokenizer/tgt.model", "3333", "2222", "step_00000001"}) {
    EXPECT_NE(swapped.find(word), std::string::npos) << swapped;
  }
  EXPECT_NE(objection({{"src.model", "1111"}}).find("no such file"), std::string::npos);
  EXPECT_NE(swapped.find("belongs to another tokenizer than there is"), std::string::npos);
  EXPECT_NE(objection({{"src.model", "1111"}, {"tgt.model", "2222"}, {"src.vocab", "4"}})
                .find("src.vocab"),
            std::string::npos);
}

TEST(RequireSameTokenizer, NamesAFileThatIsNoTokenizer) {
  store::LoadedCheckpoint checkpoint;
  checkpoint.directory = "run/checkpoints/step_00000001";
  checkpoint.provenance.tokenizer = {{"names.json", "2222"}, {"tokenizer.json", "1111"}};
  const Error error = testing::failure(ExitCode::kBadData, [&] {
    require_same_tokenizer(checkpoint, {{"names.json", "3333"}, {"tokenizer.json", "1111"}},
                           "run/tokenizer");
  });
  const std::string said = error.message();
  for (const char* part : {"belongs to another names.json than there is: run/tokenizer/names.json",
                           "put the names.json of this run back"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  EXPECT_EQ(said.find("another tokenizer"), std::string::npos) << said;
}

}  // namespace
}  // namespace stretto::runs
