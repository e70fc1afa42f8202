#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("stretto_run_folder_" + std::to_string(::getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path root_;
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

}  // namespace
}  // namespace stretto::train
