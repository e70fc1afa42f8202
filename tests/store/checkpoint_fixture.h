#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "store/checkpoint.h"
#include "tests/base/temp_dir.h"

namespace stretto::store::testing {

namespace fs = std::filesystem;

/// A tiny checkpoint whose every value depends on its step, so that a mixture of two cannot hide.
struct TinyCheckpoint {
  explicit TinyCheckpoint(int64_t step, std::string run_id = "run-1") {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(step) + 0.25f * static_cast<float>(i);
    }
    counts = {step, step + 1};
    content.step = step;
    content.run_id = std::move(run_id);
    content.config_hash = "c0ffee";
    content.provenance = {.world_size = 2,
                          .stretto = "1.0",
                          .libtorch = "2.0",
                          .tokenizer = {{"joint.model", "abcd"}}};
    content.files = {{"model",
                      {view("w", DType::kF32, {2, 3}, &weights[0], 24),
                       view("b", DType::kF32, {2}, &weights[6], 8)}},
                     {"optimizer",
                      {view("m/w", DType::kF32, {6}, &weights[0], 24),
                       view("n", DType::kI64, {2}, counts.data(), 16)}}};
    content.state_json = "{\"step\":" + std::to_string(step) + "}";
  }
  TinyCheckpoint(const TinyCheckpoint&) = delete;
  TinyCheckpoint& operator=(const TinyCheckpoint&) = delete;

  static TensorView view(std::string name, DType dtype, std::vector<int64_t> shape,
                         const void* data, size_t size) {
    return {std::move(name), dtype, std::move(shape), {static_cast<const char*>(data), size}};
  }

  std::vector<float> weights = std::vector<float>(8);
  std::vector<int64_t> counts;
  CheckpointContent content;
};

/// Whether `loaded` is, byte for byte, what TinyCheckpoint(step) has.
inline ::testing::AssertionResult is_checkpoint(const LoadedCheckpoint& loaded, int64_t step) {
  const TinyCheckpoint expected(step);
  if (loaded.step != step || loaded.run_id != "run-1" || loaded.config_hash != "c0ffee" ||
      loaded.provenance != expected.content.provenance ||
      loaded.state_json != expected.content.state_json || loaded.files.size() != 2) {
    return ::testing::AssertionFailure() << "is not step " << step << " but " << loaded.step;
  }
  for (const auto& [stem, tensors] : expected.content.files) {
    for (const auto& tensor : tensors) {
      const TensorView* found = loaded.file(stem).find(tensor.name);
      if (found == nullptr || found->dtype != tensor.dtype || found->shape != tensor.shape ||
          found->bytes != tensor.bytes) {
        return ::testing::AssertionFailure() << tensor.name << " differs";
      }
    }
  }
  return ::testing::AssertionSuccess();
}

/// A run folder, and quiet on the screen; failpoints are off again afterwards.
class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override {
    set_failpoints("");
    log_ += ::testing::internal::GetCapturedStderr();
  }

  CheckpointStore store() const { return CheckpointStore(dir_.path()); }
  fs::path save(int64_t step) { return store().save(TinyCheckpoint(step).content); }

  static std::string bytes_of(const fs::path& path) { return read_file(path); }
  static void overwrite(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  /// Names in RUN/checkpoints that begin with `prefix`.
  size_t count(const std::string& prefix) const {
    size_t found = 0;
    for (const auto& path : files_in(dir_ / "checkpoints")) {
      found += path.filename().string().starts_with(prefix) ? 1 : 0;
    }
    return found;
  }

  /// Runs `body` in a child under `failpoints`. @return true when it was killed by one
  static bool killed(const std::string& failpoints, const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      log::set_quiet(true);
      set_failpoints(failpoints);
      try {
        body();
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the child failed";
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  stretto::testing::TempDir dir_;
  std::string log_;
};

}  // namespace stretto::store::testing
