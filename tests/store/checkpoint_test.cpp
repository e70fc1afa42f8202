#include "store/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "base/error.h"
#include "base/hash.h"
#include "store/manifest.h"
#include "tests/base/failure.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;
using testing::CheckpointTest;
using testing::is_checkpoint;
using testing::TinyCheckpoint;

class Checkpoint : public CheckpointTest {};

TEST_F(Checkpoint, ComesBackByteForByte) {
  const auto folder = save(123);
  EXPECT_EQ(folder, dir_ / "checkpoints/step_00000123");
  EXPECT_TRUE(is_checkpoint(CheckpointStore::load(folder), 123));
  const auto newest = store().load_newest(true);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->directory, folder);
  EXPECT_EQ(files_in(dir_ / "checkpoints").size(), 1u);
}

TEST_F(Checkpoint, AModelIsReadWithoutALookAtWhatTheOptimizerKeeps) {
  const fs::path folder = save(7);
  const fs::path optimizer = folder / "optimizer.safetensors";
  for (const bool is_there : {true, false}) {
    is_there ? overwrite(optimizer, "damaged") : static_cast<void>(fs::remove(optimizer));
    const auto loaded = CheckpointStore::load(folder, CheckpointPart::kModel);
    EXPECT_EQ(loaded.step, 7);
    EXPECT_NE(loaded.file("model").find("w"), nullptr);
    EXPECT_THROW(loaded.file("optimizer"), Error);
    EXPECT_THROW(CheckpointStore::load(folder), Error) << "training needs it";
  }
  overwrite(folder / "model.safetensors", "damaged");
  EXPECT_THROW(CheckpointStore::load(folder, CheckpointPart::kModel), Error);
}

TEST_F(Checkpoint, TheManifestHoldsWhatOtherToolsCanCheck) {
  const auto folder = save(5);
  const auto manifest = Manifest::from_json(bytes_of(folder / "manifest.json"), "m");
  ASSERT_EQ(manifest.files.size(), 3u);
  for (const auto& file : manifest.files) {
    EXPECT_EQ(file.size, fs::file_size(folder / file.name));
    EXPECT_EQ(file.sha256, sha256_hex(bytes_of(folder / file.name)));
  }
  EXPECT_EQ(manifest.files[0].tensors.size(), 2u);
}

TEST_F(Checkpoint, NoneAtAllIsNoError) {
  EXPECT_FALSE(store().load_newest(true));
  EXPECT_TRUE(store().steps().empty());
  store().remove_stale();
  store().prune({});
}

TEST_F(Checkpoint, StepsAreThoseThatLookComplete) {
  for (const int64_t step : {30, 4, 100000000}) save(step);
  fs::create_directories(dir_ / "checkpoints/step_00000099");
  fs::create_directories(dir_ / "checkpoints/step_7");
  fs::create_directories(dir_ / "checkpoints/step_-0000001");
  fs::create_directories(dir_ / "checkpoints/step_0000001x");
  store().save(TinyCheckpoint(31).content, "averaged");
  EXPECT_EQ(store().steps(), (std::vector<int64_t>{4, 30, 100000000}));
}

TEST_F(Checkpoint, ANamedOneIsKeptApart) {
  const auto folder = store().save(TinyCheckpoint(31).content, "averaged");
  EXPECT_EQ(folder.filename(), "averaged");
  EXPECT_TRUE(is_checkpoint(CheckpointStore::load(folder), 31));
  EXPECT_FALSE(store().load_newest(true));
  for (const char* bad : {"../x", "a/b", ".hidden", "step_00000001", "a b"}) {
    EXPECT_THROW(store().save(TinyCheckpoint(1).content, bad), std::invalid_argument) << bad;
  }
}

TEST_F(Checkpoint, SavingAStepAgainReplacesIt) {
  save(7);
  TinyCheckpoint other(7);
  other.content.state_json = "{\"again\":true}";
  store().save(other.content);
  EXPECT_EQ(store().load_newest(true)->state_json, "{\"again\":true}");
  EXPECT_EQ(files_in(dir_ / "checkpoints").size(), 1u);
}

TEST_F(Checkpoint, ReplacesAlsoWhereNamesCannotBeSwapped) {
  save(7);
  TinyCheckpoint other(7);
  other.content.state_json = "{\"again\":true}";
  set_failpoints("checkpoint.exchange:einval");
  store().save(other.content);
  EXPECT_EQ(store().load_newest(true)->state_json, "{\"again\":true}");
  EXPECT_EQ(files_in(dir_ / "checkpoints").size(), 1u);
}

TEST_F(Checkpoint, PruneKeepsWhatItIsTold) {
  for (int64_t step = 1; step <= 5; ++step) save(step);
  store().prune({2, 5});
  EXPECT_EQ(store().steps(), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(files_in(dir_ / "checkpoints").size(), 2u);
}

TEST_F(Checkpoint, StaleFoldersAreIgnoredAndRemoved) {
  save(3);
  for (const char* name : {".tmp-step_00000009-1-0", ".trash-step_00000001-1-0/sub"}) {
    fs::create_directories(dir_ / "checkpoints" / name);
    overwrite(dir_ / "checkpoints" / name / "model.safetensors", "half");
  }
  EXPECT_EQ(store().load_newest(true)->step, 3);
  store().remove_stale();
  EXPECT_EQ(files_in(dir_ / "checkpoints").size(), 1u);
  EXPECT_EQ(store().load_newest(true)->step, 3);
}

TEST_F(Checkpoint, WhatAnotherProcessIsWritingBesideTrainingIsNotStale) {
  save(3);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // as `stretto average` that is killed on its way
    const FileLock beside = store().save_beside_training();
    fs::create_directories(dir_ / "checkpoints/.tmp-averaged-1-0");
    fs::create_directories(dir_ / "checkpoints/.old-averaged-1-0");
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  // What training itself left may go all the same.
  fs::create_directories(dir_ / "checkpoints/.tmp-step_00000009-1-0");
  fs::create_directories(dir_ / "checkpoints/.trash-step_00000001-1-0");
  store().prune({3});
  EXPECT_EQ(count(".tmp-averaged"), 1u);
  EXPECT_EQ(count(".old-averaged"), 1u);
  EXPECT_EQ(count(".tmp-step") + count(".trash-"), 0u);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  store().prune({3});
  EXPECT_EQ(count("."), 0u) << "its process is gone";
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Checkpoint, AFolderBehindALinkIsNeitherWrittenToNorTidied) {
  const auto folder = save(1);
  fs::rename(dir_ / "checkpoints", dir_ / "elsewhere");
  fs::create_directories(dir_ / "elsewhere/.tmp-step_00000009-1-0");
  fs::create_directory_symlink(dir_ / "elsewhere", dir_ / "checkpoints");
  const Error error = failure(ExitCode::kUsage, [&] { save(2); });
  EXPECT_NE(std::string(error.what()).find("is a symbolic link"), std::string::npos);
  failure(ExitCode::kUsage, [&] { store().remove_stale(); });
  failure(ExitCode::kUsage, [&] { store().prune({}); });
  EXPECT_TRUE(fs::exists(dir_ / "elsewhere/.tmp-step_00000009-1-0"));
  EXPECT_EQ(store().load_newest(false)->step, 1) << "it may be read";
}

TEST_F(Checkpoint, RemovingStaleFoldersNeverFollowsLinks) {
  save(3);
  fs::create_directories(dir_ / "precious");
  overwrite(dir_ / "precious/file", "data");
  fs::create_directories(dir_ / "checkpoints/.tmp-x");
  fs::create_directory_symlink(dir_ / "precious", dir_ / "checkpoints/.tmp-x/link");
  fs::create_directory_symlink(dir_ / "precious", dir_ / "checkpoints/.trash-link");
  store().remove_stale();
  EXPECT_EQ(bytes_of(dir_ / "precious/file"), "data");
  EXPECT_EQ(files_in(dir_ / "checkpoints").size(), 1u);
}

TEST_F(Checkpoint, ABrokenOneIsNamedMovedAsideAndThePreviousTaken) {
  save(1);
  const auto folder = save(2);
  std::string bytes = bytes_of(folder / "model.safetensors");
  bytes.back() ^= 1;
  overwrite(folder / "model.safetensors", bytes);
  EXPECT_TRUE(is_checkpoint(*store().load_newest(false), 1));
  EXPECT_TRUE(fs::exists(folder)) << "without quarantine nothing is touched";
  EXPECT_TRUE(is_checkpoint(*store().load_newest(true), 1));
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(count("bad-step_00000002"), 1u);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ::testing::internal::CaptureStderr();
  EXPECT_NE(log.find("step_00000002"), std::string::npos) << log;
  EXPECT_NE(log.find("model.safetensors"), std::string::npos) << log;
  EXPECT_NE(log.find("the checksum of `b` is wrong"), std::string::npos) << log;
}

TEST_F(Checkpoint, AFolderWithoutAManifestIsAStepAllTheSame) {
  save(1);
  fs::remove(save(2) / "manifest.json");
  EXPECT_EQ(store().steps(), (std::vector<int64_t>{1}));
  EXPECT_EQ(store().step_folders(), (std::vector<int64_t>{1, 2}));
}

TEST_F(Checkpoint, WhenNoneIsValidTheRunDoesNotSilentlyBeginAgain) {
  overwrite(save(1) / "state.json", "{}");
  for (int attempt = 0; attempt < 2; ++attempt) {
    failure(ExitCode::kBadData, [&] { store().load_newest(true); });
  }
}

TEST_F(Checkpoint, OneOfALaterStrettoIsRefusedWithBothVersionsAndLeftAlone) {
  save(1);
  const auto folder = save(2);
  Manifest manifest = Manifest::from_json(bytes_of(folder / "manifest.json"), "m");
  manifest.format_version = kFormatVersion + 41;
  overwrite(folder / "manifest.json", manifest.to_json());
  const Error error = failure(ExitCode::kBadData, [&] { store().load_newest(true); });
  const std::string text = error.what();
  EXPECT_NE(text.find("format " + std::to_string(kFormatVersion + 41)), std::string::npos);
  EXPECT_NE(text.find("up to " + std::to_string(kFormatVersion)), std::string::npos);
  EXPECT_TRUE(fs::exists(folder));
}

TEST_F(Checkpoint, AnAbsentTensorFileIsNamed) {
  TinyCheckpoint tiny(1);
  tiny.content.files.pop_back();
  const auto loaded = CheckpointStore::load(store().save(tiny.content));
  EXPECT_NO_THROW(loaded.file("model"));
  EXPECT_THROW(loaded.file("optimizer"), Error);
}

TEST_F(Checkpoint, ARunThatCannotFitOnTheDiskIsRefusedWithTheNumbers) {
  EXPECT_NO_THROW(store().require_space(1 << 20, 2));
  const Error error = failure(ExitCode::kIo, [&] { store().require_space(uint64_t{1} << 58, 3); });
  EXPECT_NE(std::string(error.what()).find("4 checkpoints of 256 PiB need 1.0 EiB"),
            std::string::npos)
      << error.what();
  EXPECT_NE(std::string(error.what()).find(" free"), std::string::npos) << error.what();
  EXPECT_NE(error.advice().find("train.keep_last"), std::string::npos) << error.advice();
}

TEST_F(Checkpoint, CheckpointsThatAreThereNeedNoMoreSpace) {
  const auto complaint = [&](uint64_t bytes, int64_t count) -> std::string {
    try {
      store().require_space(bytes, count);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const uint64_t available = fs::space(dir_.path()).available;
  save(1);
  save(2);
  // Three in all and one being written: two of them are there, so that two more must fit.
  EXPECT_EQ(complaint(available / 4, 3), "");
  const std::string two = complaint(available / 2 + available / 4, 3);
  EXPECT_NE(two.find(": 2 more checkpoints of "), std::string::npos) << two;
  // More than are kept: one must fit while it is written, whatever is there.
  const std::string one = complaint(2 * available, 1);
  EXPECT_NE(one.find(": 1 more checkpoint of "), std::string::npos) << one;
}

TEST_F(Checkpoint, SpaceIsLookedForBeforeTheFolderIsThere) {
  const CheckpointStore fresh(dir_ / "not/yet");
  EXPECT_NO_THROW(fresh.require_space(1, 1));
  EXPECT_THROW(fresh.require_space(uint64_t{1} << 58, 1), Error);
}

}  // namespace
}  // namespace stretto::store
