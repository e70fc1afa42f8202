// Truncated, flipped and mixed files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "base/error.h"
#include "base/random.h"
#include "store/manifest.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;
using testing::CheckpointTest;
using testing::is_checkpoint;
using testing::TinyCheckpoint;

class Corruption : public CheckpointTest {
 protected:
  // The message with which loading is refused; "" when it is not.
  static std::string refusal(const fs::path& folder) {
    try {
      CheckpointStore::load(folder);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_NE(std::string(error.what()).find(folder.string()), std::string::npos);
      return error.what();
    }
    return "";
  }
  static bool names(const std::string& message, const std::string& what) {
    return message.find(what) != std::string::npos;
  }
};

TEST_F(Corruption, EveryTruncationIsDetectedAndNamed) {
  save(1);
  const fs::path folder = save(2);
  for (const fs::path& path : files_in(folder)) {
    const std::string whole = bytes_of(path);
    std::set<size_t> cuts{0, 1, 7, 8, 9, whole.size() - 1};
    if (path.extension() == ".safetensors") {
      const size_t data = safetensors_header_bytes(whole, "test");
      cuts.insert({data - 1, data, data + 1});
      size_t offset = data;
      for (const auto& tensor : parse_safetensors(whole, "test", nullptr)) {
        cuts.insert({offset, offset + 1, offset + tensor.bytes.size() - 1});
        offset += tensor.bytes.size();
      }
    }
    for (size_t i = 0; i < 64; ++i) cuts.insert(i * whole.size() / 64);
    for (const size_t cut : cuts) {
      overwrite(path, whole.substr(0, cut));
      EXPECT_TRUE(names(refusal(folder), path.filename().string())) << path << " cut at " << cut;
    }
    EXPECT_TRUE(is_checkpoint(*store().load_newest(false), 1)) << path;
    overwrite(path, whole);
  }
  EXPECT_EQ(refusal(folder), "");
}

TEST_F(Corruption, EveryBitFlipIsDetected) {
  const fs::path folder = save(2);
  RandomStream random(8);
  for (const bool burst : {false, true}) {
    for (int trial = 0; trial < 1000; ++trial) {
      const auto files = files_in(folder);
      const fs::path& path = files[static_cast<size_t>(trial) % files.size()];
      const std::string whole = bytes_of(path);
      std::string bytes = whole;
      const uint64_t length = burst ? 2 + random.below(63) : 1;
      const uint64_t first = random.below(bytes.size() * 8);
      for (uint64_t bit = first; bit < std::min<uint64_t>(first + length, bytes.size() * 8);
           ++bit) {
        // The two ends of a burst always turn, what lies between them with probability one half.
        const bool turn = bit == first || bit + 1 == first + length || random.below(2) == 1;
        if (turn) bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      }
      overwrite(path, bytes);
      EXPECT_NE(refusal(folder), "") << path << " bit " << first << " length " << length;
      overwrite(path, whole);
    }
  }
  EXPECT_EQ(refusal(folder), "");
}

// Same bytes under another shape: no tensor's checksum knows of it.
TEST_F(Corruption, APermutedShapeIsDetected) {
  const fs::path folder = save(1), file = folder / "model.safetensors";
  std::string bytes = bytes_of(file);
  const size_t shape = bytes.find("[2,3]");
  ASSERT_NE(shape, std::string::npos) << "the test is stale";
  bytes.replace(shape, 5, "[3,2]");
  overwrite(file, bytes);
  EXPECT_NO_THROW(SafetensorsFile{file}) << "the test is stale: the file is not even well-formed";
  EXPECT_TRUE(names(refusal(folder), "its header is not the one that was saved"));
}

TEST_F(Corruption, FilesOfTwoStepsCannotBeMixed) {
  const fs::path first = save(1), second = save(2);
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"}) {
    const std::string own = bytes_of(second / name);
    overwrite(second / name, bytes_of(first / name));
    EXPECT_TRUE(
        names(refusal(second), std::string(name) == "manifest.json" ? "manifest.json" : name))
        << name;
    overwrite(second / name, own);
  }
  EXPECT_EQ(refusal(second), "");
}

TEST_F(Corruption, FilesOfTwoRunsCannotBeMixed) {
  const fs::path own = save(1);
  CheckpointStore other(dir_ / "other");
  const fs::path foreign = other.save(TinyCheckpoint(1, "run-2").content);
  overwrite(own / "model.safetensors", bytes_of(foreign / "model.safetensors"));
  const std::string message = refusal(own);
  EXPECT_TRUE(names(message, "is of run run-2")) << message;
}

TEST_F(Corruption, AMissingFileIsNamed) {
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"}) {
    save(1);
    const fs::path folder = save(2);
    fs::remove(folder / name);
    EXPECT_TRUE(names(refusal(folder), std::string(name) + ": is missing"));
    EXPECT_TRUE(is_checkpoint(*store().load_newest(true), 1)) << name;
    EXPECT_FALSE(fs::exists(folder)) << name;
  }
}

TEST_F(Corruption, WhatIsNoFileIsNamedAndTheOneBeforeTaken) {
  ::alarm(120);  // who waits for the other side of a pipe has failed
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"}) {
    for (const bool pipe : {false, true}) {
      save(1);
      const fs::path folder = save(2);
      fs::remove(folder / name);
      if (pipe) {
        ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
      } else {
        fs::create_directories(folder / name);
      }
      EXPECT_TRUE(names(refusal(folder), std::string(name) + ": is no file")) << name;
      EXPECT_TRUE(is_checkpoint(*store().load_newest(true), 1)) << name;
    }
  }
  ::alarm(0);
}

TEST_F(Corruption, ARenamedStepIsDetected) {
  save(1);
  fs::rename(dir_ / "checkpoints/step_00000001", dir_ / "checkpoints/step_00000009");
  EXPECT_TRUE(names(refusal(dir_ / "checkpoints/step_00000009"), "is of step 1"));
}

TEST_F(Corruption, ALinkInPlaceOfAFileIsRefused) {
  const fs::path folder = save(1);
  fs::rename(folder / "state.json", dir_ / "elsewhere");
  fs::create_symlink(dir_ / "elsewhere", folder / "state.json");
  EXPECT_TRUE(names(refusal(folder), "state.json"));
}

TEST_F(Corruption, AManifestMayNotPointOutsideItsFolder) {
  const fs::path folder = save(1);
  for (const char* name : {"../model.safetensors", "/etc/passwd", ".hidden", "", "a/b", "a\n"}) {
    Manifest manifest = Manifest::from_json(bytes_of(folder / "manifest.json"), "m");
    manifest.files[0].name = name;
    overwrite(folder / "manifest.json", manifest.to_json());
    EXPECT_TRUE(names(refusal(folder), "bad file name")) << name;
    manifest.files[0].name = "model.safetensors";
    overwrite(folder / "manifest.json", manifest.to_json());
  }
}

}  // namespace
}  // namespace stretto::store
