#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::train::test {

/// Runs of ToyTask below a folder of the test's own.
class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("stretto_trainer_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  TrainerSetup setup(const std::string& name) const { return toy_setup(root_ / name); }

  std::filesystem::path root_;
};

}  // namespace stretto::train::test
