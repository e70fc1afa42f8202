#include "search/trial_folder.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/hash.h"
#include "data/data_record.h"
#include "search/search_plan.h"
#include "store/run_record.h"
#include "tests/base/failure.h"
#include "tests/search/bench.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using testing::expect_in;

/// The run folder of a trial with one checkpoint, and its tokenizer.
class TrialFolder : public store::testing::CheckpointTest {
 protected:
  TrialFolder() : loaded_(experiment::load_experiment(bench_.config, {})) { make(); }

  void make() {
    fs::remove_all(run());
    fs::create_directories(run());
    store::testing::TinyCheckpoint checkpoint(8);
    checkpoint.content.config_hash = loaded_.config_hash;
    checkpoint.content.provenance.tokenizer = {{"joint.model", sha256_hex("pieces")}};
    checkpoint_ = store::CheckpointStore(run()).save(checkpoint.content);
    dir_.write("run/tokenizer/joint.model", "pieces");
    dir_.write("run/output.txt", "said");
    dir_.write("run/config.toml", store::seal_config(loaded_.resolved_toml, "run-1"));
    const std::string text = dir_.write("train.txt", "one\ntwo\n");
    data::write_data_record(run(), data::record_data("run-1", {{"data.train", text}}, {}));
    store::write_run_record(run(), {.run_id = "run-1",
                                    .config_hashes = {loaded_.config_hash},
                                    .created = "then",
                                    .host = "there",
                                    .stretto = "1",
                                    .has_data_record = true});
  }

  fs::path run() const { return dir_ / "run"; }

  /// What is said of one that was damaged in this way.
  std::string damage(const std::function<void()>& how) {
    make();
    EXPECT_EQ(damage_of_run(run()), "");
    how();
    return damage_of_run(run());
  }

  testing::SearchBench bench_;
  experiment::LoadedExperiment loaded_;
  fs::path checkpoint_;
};

TEST_F(TrialFolder, KnowsWhatIsDamaged) {
  expect_in("run.json", damage([&] { overwrite(run() / "run.json", "{"); }));
  expect_in("run.json: is missing", damage([&] { fs::remove(run() / "run.json"); }));
  expect_in("config.toml", damage([&] { fs::remove(run() / "config.toml"); }));
  expect_in("config.toml", damage([&] {
              auto text = bytes_of(run() / "config.toml");
              text.replace(text.find("d_model = "), 12, "d_model = 12");
              overwrite(run() / "config.toml", text);
            }));
  expect_in("none of the 1 checkpoint is valid", damage([&] {
              auto bytes = bytes_of(checkpoint_ / "model.safetensors");
              bytes.back() ^= 1;
              overwrite(checkpoint_ / "model.safetensors", bytes);
            }));
  expect_in("bad-step_00000008 was moved aside earlier",
            damage([&] { fs::rename(checkpoint_, run() / "checkpoints/bad-step_00000008"); }));
  expect_in("step_00000016: is of another run", damage([&] {
              const store::testing::TinyCheckpoint other(16, "run-2");
              store::CheckpointStore(run()).save(other.content);
            }));
  expect_in("joint.model: is not that of the checkpoint",
            damage([&] { overwrite(run() / "tokenizer/joint.model", "Pieces"); }));
  expect_in("joint.model: is not that of the checkpoint",
            damage([&] { fs::remove(run() / "tokenizer/joint.model"); }));
  expect_in("data.json: is damaged", damage([&] {
              auto text = bytes_of(run() / "data.json");
              text.replace(text.find("data.train"), 10, "data.valid");
              overwrite(run() / "data.json", text);
            }));
  expect_in("data.json: belongs to another run",
            damage([&] { data::write_data_record(run(), {.owner = "run-2", .files = {}}); }));
  expect_in("data.json: is missing", damage([&] { fs::remove(run() / "data.json"); }));
}

TEST_F(TrialFolder, IsWholeWhereTrainingCanGoOn) {
  EXPECT_EQ(damage_of_run(run()), "");
  EXPECT_EQ(damage_of_run(dir_ / "nowhere"), "");
  // One of two is enough, and a run without any begins.
  store::testing::TinyCheckpoint newer(16);
  const auto second = store::CheckpointStore(run()).save(newer.content);
  overwrite(second / "manifest.json", "{");
  EXPECT_EQ(damage_of_run(run()), "");
  // A run of an earlier version has no record of its data, and one without a checkpoint makes it.
  store::write_run_record(run(), {"run-1", {loaded_.config_hash}, "then", "there", "1"});
  fs::remove(run() / "data.json");
  EXPECT_EQ(damage_of_run(run()), "");
  overwrite(run() / "data.json", "{");
  fs::remove_all(run() / "checkpoints");
  EXPECT_EQ(damage_of_run(run()), "");
  EXPECT_FALSE(holds_checkpoints(run()));
}

TEST_F(TrialFolder, IsForgottenButForWhatItsProcessesPrinted) {
  dir_.write("run/metrics.jsonl", "");
  dir_.write("run/report.html", "");
  EXPECT_TRUE(holds_checkpoints(run()));
  forget_run(run());
  std::vector<std::string> left;
  for (const auto& path : files_in(run())) left.push_back(path.filename());
  EXPECT_EQ(left, (std::vector<std::string>{"output.txt"}));
  EXPECT_NO_THROW(forget_run(dir_ / "nowhere"));
}

TEST_F(TrialFolder, IsNotThatOfAnotherConfiguration) {
  EXPECT_NO_THROW(require_own_run(run(), loaded_));
  const auto other = experiment::load_experiment(bench_.config, {"optim.lr=0.5"});
  const auto error =
      stretto::testing::failure(ExitCode::kUsage, [&] { require_own_run(run(), other); });
  expect_in("holds a run of another configuration", error.what());
  expect_in("optim.lr", error.what());
  expect_in("move the folder away", error.advice());
  // What is damaged is no other run.
  fs::remove(run() / "run.json");
  fs::remove(run() / "config.toml");
  EXPECT_NO_THROW(require_own_run(run(), other));
}

}  // namespace
}  // namespace stretto::search
