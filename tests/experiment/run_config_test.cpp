#include "experiment/run_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "experiment/load_experiment.h"
#include "experiment/same_experiment.h"
#include "store/checkpoint.h"
#include "store/run_record.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

void replace_first(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << "the test is stale: no " << from;
  text.replace(at, from.size(), to);
}

/// A run folder with a configuration and an identity.
class RunConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) dir_.write(name, "x\n");
    dir_.write("my.toml",
               "[data]\ntrain_src = [\"a\"]\ntrain_tgt = [\"b\"]\n[train]\nmax_steps = 9\n"
               "[schedule]\nwarmup_steps = 2\n");
    loaded_ = load_experiment(dir_ / "my.toml", {});
    write(loaded_, "id");
  }

  fs::path run() const { return dir_ / "run"; }
  fs::path file() const { return run() / "config.toml"; }
  void write(const LoadedExperiment& experiment, const std::string& run_id) const {
    fs::create_directories(run());
    write_file_atomic(file(), store::seal_config(experiment.resolved_toml, run_id));
    store::write_run_record(run(), {run_id, {experiment.config_hash}, "then", "there", "1"});
  }
  void edit(const std::function<void(std::string&)>& change) const {
    std::string text = read_file(file());
    change(text);
    write_file_atomic(file(), text);
  }
  /// Puts a checkpoint of this identity into the run.
  void add_checkpoint(const std::string& run_id, const std::string& hash) const {
    store::CheckpointStore(run()).save({.step = 1,
                                        .run_id = run_id,
                                        .config_hash = hash,
                                        .provenance = {},
                                        .files = {},
                                        .state_json = "{}"});
  }
  std::string refusal() const {
    const Error error = testing::failure(ExitCode::kBadData, [&] { read_run_config(run()); });
    EXPECT_NE(std::string(error.what()).find(file().string()), std::string::npos) << error.what();
    EXPECT_NE(error.advice().find("put the file back"), std::string::npos) << error.advice();
    return error.what();
  }
  /// What is said while the configuration is taken as it is.
  std::string warning() const {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(read_run_config(run()), store::unseal_config(read_file(file())).toml);
    return ::testing::internal::GetCapturedStderr();
  }

  testing::TempDir dir_;
  LoadedExperiment loaded_;
};

TEST_F(RunConfig, IsTakenAsItWasWritten) {
  EXPECT_EQ(read_run_config(run()), loaded_.resolved_toml);
  EXPECT_EQ(warning(), "");
}

TEST_F(RunConfig, WithAnotherModelIsRefused) {
  edit([](std::string& text) { replace_first(text, "num_heads = ", "num_heads = 1"); });
  EXPECT_NE(refusal().find("is not the configuration that the run was trained with"),
            std::string::npos);
  // And when the seal was removed as well.
  edit([](std::string& text) { text = store::unseal_config(text).toml; });
  EXPECT_NE(refusal().find("is not the configuration"), std::string::npos);
}

TEST_F(RunConfig, ThatIsCutShortIsRefusedWhereverItIsCut) {
  const std::string whole = read_file(file());
  for (size_t at = whole.find('\n'); at + 1 < whole.size(); at = whole.find('\n', at + 1)) {
    write_file_atomic(file(), whole.substr(0, at + 1));
    EXPECT_NE(refusal().find("cut short"), std::string::npos) << at;
  }
}

TEST_F(RunConfig, OfAnotherRunIsRefused) {
  const auto other = load_experiment(dir_ / "my.toml", {"run.seed=5"});
  write_file_atomic(file(), store::seal_config(other.resolved_toml, "other"));
  const std::string said = refusal();
  EXPECT_NE(said.find("run other"), std::string::npos) << said;
  EXPECT_NE(said.find("run id"), std::string::npos) << said;
}

TEST_F(RunConfig, WithAFreeKeyEditedIsTakenWithAWarning) {
  edit([](std::string& text) { replace_first(text, "beam_size = ", "beam_size = 1"); });
  EXPECT_NE(warning().find("was changed since Stretto wrote it"), std::string::npos);
}

TEST_F(RunConfig, WithoutASealIsJudgedByTheKeysThatItStates) {
  edit([](std::string& text) { text = store::unseal_config(text).toml; });
  EXPECT_EQ(warning(), "");
  edit([](std::string& text) {  // a key that the hash knows
    const size_t line = text.find("\nseed = ");
    text.erase(line + 1, text.find('\n', line + 1) - line);
  });
  EXPECT_NE(refusal().find("is not the configuration"), std::string::npos);
  // A release that had no such key made the hash over the keys that there were.
  store::write_run_record(
      run(), {"id", {stated_config_hash(read_file(file()), file().string())}, "", "", ""});
  EXPECT_EQ(warning(), "");
}

TEST_F(RunConfig, OfALongerRunIsKnownByItsCheckpoints) {
  const auto longer =
      load_experiment(dir_ / "my.toml", {"schedule.name=linear", "train.max_steps=20"});
  write_file_atomic(file(), longer.resolved_toml);  // as a release wrote it that had no seals
  refusal();
  EXPECT_EQ(read_run_config(run(), Extend::kYes), longer.resolved_toml);
  add_checkpoint("another", longer.config_hash);
  refusal();
  add_checkpoint("id", longer.config_hash);
  EXPECT_EQ(read_run_config(run()), longer.resolved_toml);
}

TEST_F(RunConfig, OfNoRunYetIsTakenAsItIs) {
  fs::remove(run() / "run.json");
  edit([](std::string& text) { replace_first(text, "num_heads = ", "num_heads = 1"); });
  EXPECT_NO_THROW(read_run_config(run()));
}

TEST_F(RunConfig, IsLookedAtBeforeTrainingGoesOn) {
  edit([](std::string& text) { replace_first(text, "num_heads = ", "num_heads = 1"); });
  add_checkpoint("id", loaded_.config_hash);
  testing::failure(ExitCode::kBadData,
                   [&] { require_same_experiment(run(), loaded_, /*extend=*/false); });
}

TEST_F(RunConfig, ThatIsMissingIsKnownByTheHashInRunJson) {
  fs::remove(file());
  const auto other = load_experiment(dir_ / "my.toml", {"optim.lr=0.25"});
  EXPECT_NO_THROW(require_same_experiment(run(), other, false)) << "nothing was trained";
  add_checkpoint("id", loaded_.config_hash);
  EXPECT_FALSE(require_same_experiment(run(), loaded_, false).anew);
  const Error error =
      testing::failure(ExitCode::kBadData, [&] { require_same_experiment(run(), other, false); });
  EXPECT_NE(std::string(error.what()).find("config.toml: is missing"), std::string::npos)
      << error.what();
}

/// A run folder as 0.1.0 wrote it before it sealed configurations.
class EarlierRun : public RunConfig {
 protected:
  void SetUp() override {
    const fs::path assets = fs::path(STRETTO_SOURCE_DIR) / "tests/assets/run_0.1";
    fs::create_directories(run());
    for (const char* name : {"config.toml", "run.json"}) fs::copy(assets / name, run() / name);
  }
};

TEST_F(EarlierRun, IsTaken) {
  EXPECT_EQ(warning(), "");
  EXPECT_EQ(read_run_config(run()), read_file(file()));
}

TEST_F(EarlierRun, WithAnotherModelIsRefused) {
  edit([](std::string& text) { replace_first(text, "num_heads = 2", "num_heads = 4"); });
  EXPECT_NE(refusal().find("is not the configuration"), std::string::npos);
}

TEST_F(EarlierRun, ThatIsCutShortIsRefused) {
  const std::string whole = read_file(file());
  for (size_t at = whole.find("\n["); at != std::string::npos; at = whole.find("\n[", at + 1)) {
    write_file_atomic(file(), whole.substr(0, at + 1));
    EXPECT_NE(refusal().find("cut short"), std::string::npos) << at;
  }
}

/// What a release that had schedule.d_model hashed of a file with these keys, by its formula.
std::string former_hash(const std::string& name, const std::string& width) {
  return hex64(
      xxh3_64("data.train_src=[\"/a\"]\ndata.train_tgt=[\"/b\"]\nmodel.d_model=256\n"
              "schedule.name=\"" +
              name + "\"\nschedule.d_model=" + width + "\nschedule.max_lr=0.5\n"));
}

/// The hash of the same file, as a run folder keeps it; empty = without schedule.d_model.
std::string present_hash(const std::string& name, const std::string& width) {
  const std::string toml =
      "[data]\ntrain_src = [\"/a\"]\ntrain_tgt = [\"/b\"]\n[model]\nd_model = 256\n[schedule]\n"
      "name = \"" +
      name + "\"\n" + (width.empty() ? "" : "d_model = " + width + "\n") +
      "max_lr = 0.5\n[train]\nmax_steps = 9000\n";
  return stated_config_hash(toml, "/run/config.toml");
}

TEST(StatedConfigHash, OfASchedulesWidthIsThatOfReleasesWithSuchAKey) {
  EXPECT_EQ(present_hash("noam", "256"), former_hash("noam", "256"));
  EXPECT_EQ(present_hash("inverse_sqrt", "512"), former_hash("inverse_sqrt", "512"));
  EXPECT_EQ(present_hash("inverse_sqrt", "300"), former_hash("inverse_sqrt", "300"));
}

TEST(StatedConfigHash, WithoutASchedulesWidthIsThatOfTheOnlyOneThatWasAccepted) {
  EXPECT_EQ(present_hash("noam", ""), former_hash("noam", "256"));
  EXPECT_EQ(present_hash("inverse_sqrt", ""), former_hash("inverse_sqrt", "512"));
}

}  // namespace
}  // namespace stretto::experiment
