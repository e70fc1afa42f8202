// Commands on a run whose model takes a state from one update to the next.
#include "tests/recurrent_family/recurrent_family.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/commands.h"
#include "runs/run_folder.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;

class RecurrentFamilyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { add_recurrent_family(); }

  experiment::LoadedExperiment load(const std::vector<std::string>& overrides = {}) const {
    return experiment::load_experiment(recipe_, overrides);
  }
  /// `stretto train`. @param until  updates; 0 = to the end
  int train(const std::string& name, int64_t until = 0,
            const std::vector<std::string>& overrides = {}) const {
    return engine::run_train(
        {.experiment = load(overrides), .run_directory = run(name), .until = until});
  }
  std::string run(const std::string& name) const { return (folder_ / name).string(); }
  /// Every tensor of the last checkpoint.
  std::map<std::string, std::string> saved(const std::string& name) const {
    const auto loaded = store::CheckpointStore::load(store::CheckpointStore(run(name)).path_of(12));
    std::map<std::string, std::string> tensors;
    for (const auto& [stem, file] : loaded.files) {
      for (const auto& tensor : file.tensors()) {
        tensors[stem + ":" + tensor.name] = std::string(tensor.bytes);
      }
    }
    return tensors;
  }

  testing::TempDir folder_;
  const std::string recipe_ = folder_.write("recurrent.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"

[task]
name = "recurrent"

[optim]
lr = 0.05

[schedule]
name = "constant"
warmup_steps = 2

[train]
max_steps = 12
save_every = 4
update_freq = 6

[eval]
every = 4

[report]
every = 1
)");
};

TEST_F(RecurrentFamilyTest, ARunInPartsEndsWithTheBitsOfAWholeOne) {
  EXPECT_EQ(train("whole"), 0);
  for (const int64_t until : {3, 5, 9, 0}) EXPECT_EQ(train("parts", until), 0);
  EXPECT_EQ(saved("parts"), saved("whole"));
  EXPECT_TRUE(saved("whole").contains("optimizer:carry/h"));
}

TEST_F(RecurrentFamilyTest, AReplayReadsTheStateOfTheUpdate) {
  const std::vector<std::string> fails{"model.nan_after=7", "train.forensics.policy=stop",
                                       "train.forensics.stop_after=1"};
  failure(ExitCode::kNumeric, [&] { train("run", 0, fails); });
  const auto report = std::filesystem::path(run("run")) / "forensics" / "step_00000008.json";
  const auto replay = [&] {
    int code = -1;
    const std::string said = stretto::testing::standard_output_of([&] {
      code = engine::run_replay({.experiment = load(fails),
                                 .run_directory = run("run"),
                                 .file = report.string(),
                                 .json = true});
    });
    EXPECT_EQ(code, 0);
    return nlohmann::json::parse(said);
  };
  const auto json = replay();
  EXPECT_TRUE(json.at("reproduced").get<bool>());
  EXPECT_TRUE(json.at("same_tensor").get<bool>());

  std::filesystem::remove(report.parent_path() / "step_00000008.carry.safetensors");
  EXPECT_THROW(replay(), Error);
}

TEST_F(RecurrentFamilyTest, CheckKnowsThatNoProcessesShareAMicroBatch) {
  EXPECT_FALSE(experiment::may_cut_micro_batches(load().options));
  EXPECT_FALSE(experiment::may_cut_micro_batches(load({"dist.deterministic=true"}).options));
}

}  // namespace
}  // namespace stretto::tasks
