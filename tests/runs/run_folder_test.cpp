#include "runs/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/stray_files.h"
#include "store/owner_mark.h"
#include "tests/base/failure.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("stretto_run_folder_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    if (const char* before = std::getenv("STRETTO_STATE")) state_ = before;
    ::setenv("STRETTO_STATE", (root_ / "state").c_str(), 1);
  }
  void TearDown() override {
    fs::remove_all(root_);
    state_.empty() ? ::unsetenv("STRETTO_STATE") : ::setenv("STRETTO_STATE", state_.c_str(), 1);
  }
  /// With the mark of this user.
  void expect_sealed(const std::string& toml, const std::string& run_id) const {
    const std::string bytes = read_file(root_ / "run" / "config.toml");
    const std::string mark = store::owner_mark(store::marked_text(toml, run_id));
    EXPECT_EQ(bytes, store::seal_config(toml, run_id, mark));
    EXPECT_TRUE(store::unseal_config(bytes).is_own());
  }
  fs::path root_;
  std::string state_;
};

TEST_F(RunFolderTest, KeepsItsIdentityAndConfig) {
  std::string id;
  {
    auto folder = RunFolder::open_for_training(root_ / "run");
    EXPECT_FALSE(folder.has_run());
    folder.write_config("a = 1\n", "hash");
    id = folder.run_id();
    EXPECT_EQ(id.size(), 16U);
  }
  auto folder = RunFolder::open_for_training(root_ / "run");
  EXPECT_EQ(folder.run_id(), id);
  EXPECT_EQ(folder.stored_config(), "a = 1\n");
  folder.write_config("a = 2\n", "hash");
  EXPECT_EQ(RunFolder::open(root_ / "run").stored_config(), "a = 2\n");
  EXPECT_EQ(RunFolder::open(root_ / "run").run_id(), id);
}

TEST_F(RunFolderTest, ARunBegunAnewIsAnotherRun) {
  auto folder = RunFolder::open_for_training(root_ / "run");
  const std::map<std::string, std::string> assets{{"tokenizer.model", "a"}}, others{{"b", "b"}};
  folder.write_config("a = 1\n", "hash 1");
  folder.write_assets(assets);
  const std::string id = folder.run_id();
  fs::create_directories(root_ / "run" / "tensorboard");
  for (const char* name : {"metrics.jsonl", "report.html", "log.txt", "tensorboard/events"}) {
    write_file_atomic(root_ / "run" / name, "x");
  }
  folder.begin_anew(/*keep_tokenizer=*/true);
  EXPECT_FALSE(folder.has_run());
  EXPECT_EQ(folder.stored_config(), "a = 1\n") << "until there is another one";
  EXPECT_EQ(folder.read_assets(), assets);
  for (const char* name : {"metrics.jsonl", "report.html", "tensorboard", "run.json"}) {
    EXPECT_FALSE(fs::exists(root_ / "run" / name)) << name;
  }
  EXPECT_EQ(read_file(root_ / "run" / "log.txt"), "x") << "what happened is not forgotten";

  folder.write_config("a = 2\n", "hash 2");
  EXPECT_NE(folder.run_id(), id);
  EXPECT_EQ(RunFolder::open(root_ / "run").run_id(), folder.run_id());
  EXPECT_NE(read_file(root_ / "run" / "run.json").find("hash 2"), std::string::npos);
  EXPECT_EQ(folder.stored_config(), "a = 2\n");

  folder.begin_anew(/*keep_tokenizer=*/false);
  EXPECT_TRUE(folder.read_assets().empty());
  folder.write_assets(others);
  EXPECT_EQ(folder.read_assets(), others);
}

TEST_F(RunFolderTest, RemembersTheHashesOfAllItsConfigurations) {
  using Hashes = std::vector<std::string>;
  auto folder = RunFolder::open_for_training(root_ / "run");
  EXPECT_TRUE(folder.config_hashes().empty());
  folder.write_config("a = 1\n", "hash 1");
  const std::string id = folder.run_id();
  folder.write_config("a = 2\n", "hash 2");
  folder.write_config("a = 1\n", "hash 1");
  const auto again = RunFolder::open(root_ / "run");
  EXPECT_EQ(again.run_id(), id);
  EXPECT_EQ(again.config_hashes(), (Hashes{"hash 1", "hash 2"}));
  expect_sealed("a = 1\n", id);
}

TEST_F(RunFolderTest, SealsTheConfigurationOfAnEarlierRelease) {
  fs::create_directories(root_ / "run");
  write_file_atomic(root_ / "run" / "run.json", "{\"run_id\": \"old\", \"config_hash\": \"h\"}");
  write_file_atomic(root_ / "run" / "config.toml", "a = 1\n");
  auto folder = RunFolder::open_for_training(root_ / "run");
  EXPECT_EQ(folder.stored_config(), "a = 1\n");
  folder.write_config("a = 1\n", "h");
  expect_sealed("a = 1\n", "old");
}

TEST_F(RunFolderTest, NothingIsWrittenThroughALink) {
  fs::create_directories(root_ / "run");
  fs::create_directories(root_ / "elsewhere");
  write_file_atomic(root_ / "target", "precious");
  fs::create_symlink(root_ / "target", root_ / "run" / ".lock");
  testing::failure(ExitCode::kUsage, [&] { RunFolder::open_for_training(root_ / "run"); });
  EXPECT_EQ(read_file(root_ / "target"), "precious");
  fs::remove(root_ / "run" / ".lock");
  for (const char* name : {"checkpoints", "tokenizer", "tensorboard", "forensics"}) {
    fs::create_directory_symlink(root_ / "elsewhere", root_ / "run" / name);
    const Error error =
        testing::failure(ExitCode::kUsage, [&] { RunFolder::open_for_training(root_ / "run"); });
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    fs::remove(root_ / "run" / name);
  }
  EXPECT_NO_THROW(RunFolder::open_for_training(root_ / "run"));
  fs::create_directory_symlink(root_ / "run", root_ / "link");
  EXPECT_NO_THROW(RunFolder::open_for_training(root_ / "link")) << "the folder itself may be one";
}

TEST_F(RunFolderTest, StrayFilesOfAKilledProcessGoWhenTrainingBegins) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  int status = 0;
  ::waitpid(dead, &status, 0);
  fs::create_directories(root_ / "run" / "forensics");
  const std::string suffix = temporary_suffix(dead, 0);
  for (const char* name : {"config.toml", "metrics.jsonl", "forensics/step_00000001.json"}) {
    write_file_atomic(root_ / "run" / (name + suffix), "half");
  }
  write_file_atomic(root_ / "run" / ("notes" + suffix), "somebody's own");
  const auto folder = RunFolder::open_for_training(root_ / "run");
  for (const char* name : {"config.toml", "metrics.jsonl", "forensics/step_00000001.json"}) {
    EXPECT_FALSE(fs::exists(root_ / "run" / (name + suffix))) << name;
  }
  EXPECT_TRUE(fs::exists(root_ / "run" / ("notes" + suffix)));
}

TEST_F(RunFolderTest, ASecondTrainerIsRefusedAndToldWhoIsThere) {
  const auto first = RunFolder::open_for_training(root_ / "run");
  const Error error =
      testing::failure(ExitCode::kUsage, [&] { RunFolder::open_for_training(root_ / "run"); });
  EXPECT_NE(error.message().find(std::to_string(::getpid())), std::string::npos) << error.message();
}

TEST_F(RunFolderTest, AFolderThatIsNoRunIsRefused) {
  fs::create_directories(root_ / "empty");
  testing::failure(ExitCode::kUsage, [&] { RunFolder::open(root_ / "empty"); });
  testing::failure(ExitCode::kUsage, [&] { RunFolder::open(root_ / "nothing"); });
}

TEST_F(RunFolderTest, AssetsComeBackAsTheyWere) {
  auto folder = RunFolder::open_for_training(root_ / "run");
  EXPECT_TRUE(folder.read_assets().empty());
  const std::map<std::string, std::string> assets{{"tokenizer.model", std::string("a\0b", 3)},
                                                  {"src.vocab", "x\n"}};
  folder.write_assets(assets);
  EXPECT_EQ(folder.read_assets(), assets);
}

TEST_F(RunFolderTest, WhatIsNoFileInThePlaceOfATokenizersIsNamed) {
  auto folder = RunFolder::open_for_training(root_ / "run");
  folder.write_assets({{"tokenizer.model", "a"}});
  const fs::path file = root_ / "run" / "tokenizer" / "tokenizer.model";
  fs::remove(file);
  fs::create_directory(file);
  const Error error = testing::failure(ExitCode::kUsage, [&] { folder.read_assets(); });
  EXPECT_NE(std::string(error.what()).find("tokenizer.model: is a folder"), std::string::npos)
      << error.what();
  fs::remove(file);
  write_file_atomic(root_ / "run" / "tokenizer" / ".nfs0001", "a file that is still open");
  EXPECT_TRUE(folder.read_assets().empty());
}

}  // namespace
}  // namespace stretto::runs
