// The calls that make files durable, counted from outside: what a failpoint before them cannot
// tell.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/checkpoint.h"
#include "tests/base/temp_dir.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STRETTO_UNDER_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define STRETTO_UNDER_ASAN
#endif

namespace stretto::store {
namespace {

namespace fs = std::filesystem;

struct Call {
  std::string name, path, to;
};

/// What durability_tool did, in order.
class Durability : public ::testing::Test {
 protected:
  static constexpr size_t kNever = SIZE_MAX;

  void SetUp() override {
#if defined(STRETTO_UNDER_ASAN)
    GTEST_SKIP() << "the sanitizer must be the first library";
#endif
  }

  /// Runs the tool under the recorder. @return its exit code
  int record(const std::string& words, const std::string& variables = "") {
    const std::string tests = std::string(STRETTO_BINARY_DIR) + "/tests";
    const fs::path log = dir_ / "calls";
    const int status = std::system((variables + " CALLS_TO='" + log.string() + "' CALLS_UNDER='" +
                                    work().string() + "' LD_PRELOAD='" + tests +
                                    "/libcall_recorder.so' '" + tests + "/durability_tool' " +
                                    words + " 2>'" + (dir_ / "stderr").string() + "'")
                                       .c_str());
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const size_t space = line.find(' '), tab = line.find('\t');
      calls_.push_back({line.substr(0, space), line.substr(space + 1, tab - space - 1),
                        tab == std::string::npos ? "" : line.substr(tab + 1)});
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string complaint() const {
    return read_file(dir_ / "stderr");
  }

  fs::path work() const {
    fs::create_directories(dir_ / "work");
    return dir_ / "work";
  }

  size_t last(const std::string& name, const fs::path& path) const {
    size_t found = kNever;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].name == name && calls_[i].path == path) found = i;
    }
    return found;
  }
  /// The first call of this name on `path` behind call `after`; kNever stands before all.
  size_t next(const std::string& name, const fs::path& path, size_t after) const {
    for (size_t i = after + 1; i < calls_.size(); ++i) {
      if (calls_[i].name == name && calls_[i].path == path) return i;
    }
    return kNever;
  }
  /// Renamings that end at `to`.
  std::vector<size_t> renamings_to(const fs::path& to) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].name == "rename" && calls_[i].to == to) found.push_back(i);
    }
    return found;
  }
  /// Files in `folder` that were written to before call `end`.
  std::vector<fs::path> written_in(const fs::path& folder, size_t end) const {
    std::vector<fs::path> files;
    for (size_t i = 0; i < end; ++i) {
      const fs::path path = calls_[i].path;
      const bool is_new = std::find(files.begin(), files.end(), path) == files.end();
      if (calls_[i].name == "write" && path.parent_path() == folder && is_new) {
        files.push_back(path);
      }
    }
    return files;
  }

  /// write < fsync(file) < fsync(folder) < rename < fsync(parent), for a whole folder.
  void expect_published(const fs::path& folder, const fs::path& target, size_t num_files) {
    const auto renamings = renamings_to(target);
    ASSERT_EQ(renamings.size(), 1u) << target;
    const size_t renamed = renamings.front();
    ASSERT_EQ(calls_[renamed].path, folder);
    const size_t folder_synced = last("fsync", folder);
    ASSERT_NE(folder_synced, kNever) << folder << " is never fsynced";
    EXPECT_LT(folder_synced, renamed) << folder;
    const auto files = written_in(folder, renamed);
    EXPECT_EQ(files.size(), num_files);
    for (const fs::path& file : files) {
      const size_t written = last("write", file), synced = last("fsync", file);
      ASSERT_NE(synced, kNever) << file << " is never fsynced";
      EXPECT_LT(written, synced) << file;
      EXPECT_LT(synced, folder_synced) << file;
    }
    EXPECT_NE(next("fsync", target.parent_path(), renamed), kNever)
        << "the folder of " << target << " is not fsynced after the renaming";
  }

  stretto::testing::TempDir dir_;
  std::vector<Call> calls_;
};

TEST_F(Durability, AReplacedFileIsSyncedBeforeItsRenamingAndItsFolderAfter) {
  const fs::path file = work() / "f";
  ASSERT_EQ(record("atomic '" + file.string() + "' text"), 0) << complaint();
  const auto renamings = renamings_to(file);
  ASSERT_EQ(renamings.size(), 1u);
  const size_t renamed = renamings.front();
  const fs::path temporary = calls_[renamed].path;
  EXPECT_EQ(temporary.parent_path(), work());
  const size_t written = last("write", temporary), synced = last("fsync", temporary);
  ASSERT_NE(written, kNever);
  ASSERT_NE(synced, kNever) << "the file is never fsynced";
  EXPECT_LT(written, synced);
  EXPECT_LT(synced, renamed);
  EXPECT_NE(next("fsync", work(), renamed), kNever) << "the folder is not fsynced afterwards";
  EXPECT_EQ(read_file(file), "text");
}

TEST_F(Durability, ACheckpointIsSyncedFileByFileThenItsFolderThenTheOneAbove) {
  const fs::path run = work() / "run", checkpoints = run / "checkpoints";
  fs::create_directories(run);
  ASSERT_EQ(record("checkpoints '" + run.string() + "' 4"), 0) << complaint();
  for (int64_t step = 1; step <= 4; ++step) {
    const auto renamings = renamings_to(checkpoints / step_name(step));
    ASSERT_EQ(renamings.size(), 1u) << step;
    expect_published(calls_[renamings.front()].path, checkpoints / step_name(step), 4);
  }
  // The folder itself is new.
  const size_t made = next("mkdir", checkpoints, kNever);
  ASSERT_NE(made, kNever);
  EXPECT_NE(next("fsync", run, made), kNever) << "a new folder is not fsynced in its parent";
}

TEST_F(Durability, OlderCheckpointsGoOnlyWhenTheNewOneIsDurable) {
  const fs::path run = work() / "run", checkpoints = run / "checkpoints";
  fs::create_directories(run);
  ASSERT_EQ(record("checkpoints '" + run.string() + "' 4"), 0) << complaint();
  for (const int64_t step : {1, 2}) {
    const size_t given_up = last("rename", checkpoints / step_name(step));
    ASSERT_NE(given_up, kNever) << "the test is stale: step " << step << " is not pruned";
    const size_t published = renamings_to(checkpoints / step_name(step + 2)).front();
    const size_t durable = next("fsync", checkpoints, published);
    ASSERT_NE(durable, kNever);
    EXPECT_LT(durable, given_up) << "step " << step << " is given up for one that may be lost";
  }
}

// A decision is followed only when it is on the disk: no line is written before the one ahead of
// it.
TEST_F(Durability, AJournalIsSyncedWithItsFolderWhenItIsNewAndThenLineByLine) {
  const fs::path journal = work() / "journal";
  ASSERT_EQ(record("journal '" + journal.string() + "' 4"), 0) << complaint();
  const auto renamings = renamings_to(journal);
  ASSERT_EQ(renamings.size(), 1u) << "it is made with its first line";
  const size_t renamed = renamings.front();
  const fs::path temporary = calls_[renamed].path;
  EXPECT_LT(last("write", temporary), last("fsync", temporary));
  EXPECT_LT(last("fsync", temporary), renamed);
  const size_t folder_synced = next("fsync", work(), renamed);
  ASSERT_NE(folder_synced, kNever) << "the folder of a new journal is not fsynced";
  size_t synced = folder_synced;
  for (int line = 2; line <= 4; ++line) {
    const size_t written = next("write", journal, synced);
    ASSERT_NE(written, kNever) << line;
    synced = next("fsync", journal, written);
    ASSERT_NE(synced, kNever) << "line " << line << " is not fsynced";
    const size_t following = next("write", journal, written);
    EXPECT_TRUE(following == kNever || synced < following) << line;
  }
  EXPECT_EQ(
      std::count_if(calls_.begin(), calls_.end(),
                    [&](const Call& call) { return call.name == "fsync" && call.path == journal; }),
      3);
  ASSERT_EQ(record("journal '" + (work() / "other").string() + "' 3", "CALLS_INTERRUPTED=1"), 0)
      << complaint();
}

TEST_F(Durability, AnExportedFolderIsSyncedBeforeItIsRenamedAndTheOneAboveAfter) {
  const fs::path place = work() / "model";
  ASSERT_EQ(record("folder '" + place.string() + "'"), 0) << complaint();
  const auto renamings = renamings_to(place);
  ASSERT_EQ(renamings.size(), 1u);
  const fs::path staging = calls_[renamings.front()].path;
  const size_t synced = last("fsync", staging);
  ASSERT_NE(synced, kNever) << "the folder is never fsynced";
  EXPECT_LT(synced, renamings.front());
  EXPECT_NE(next("fsync", work(), renamings.front()), kNever)
      << "the folder above is not fsynced after the renaming";
}

TEST_F(Durability, CallsThatASignalInterruptsAreMadeAgain) {
  const fs::path run = work() / "deep/run";
  fs::create_directories(work() / "deep/run");
  const std::string interrupted = "CALLS_INTERRUPTED=1";
  ASSERT_EQ(record("checkpoints '" + run.string() + "' 3", interrupted), 0) << complaint();
  const CheckpointStore store(run);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{2, 3}));
  EXPECT_NO_THROW(CheckpointStore::load(store.path_of(3)));
  ASSERT_EQ(record("atomic '" + (work() / "f").string() + "' text", interrupted), 0) << complaint();
  EXPECT_EQ(read_file(work() / "f"), "text");
  std::ofstream(work() / "a") << "x y\n";
  std::ofstream(work() / "b") << "y\n";
  ASSERT_EQ(record("corpus '" + work().string() + "'", interrupted), 0) << complaint();
}

}  // namespace
}  // namespace stretto::store
