#include "data/tokenizer_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/start_memory.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// Lines with a key, which count how often they are read, and may break off.
class KeyedLines final : public text::LineSource {
 public:
  explicit KeyedLines(uint64_t key,
                      std::vector<std::string> lines = {"the red house", "the blue dog"})
      : key_(key), lines_(std::move(lines)) {}

  uint64_t key() override { return key_; }
  bool next(std::string& line) override {
    if (next_ == breaks_at) throw Error(ExitCode::kIo, "the disk is gone", "mount it");
    if (next_ == lines_.size()) return false;
    line = lines_[next_++];
    return true;
  }
  size_t num_read() const { return next_; }

  size_t breaks_at = SIZE_MAX;

 private:
  uint64_t key_;
  std::vector<std::string> lines_;
  size_t next_ = 0;
};

class TokenizerStoreTest : public ::testing::Test {
 protected:
  TokenizerStoreTest() {
    options_.type = "wordpiece";
    options_.vocab_size = 60;
  }

  text::TokenizerPair open(KeyedLines& lines, uint64_t seed = 1) const {
    return open_tokenizers(options_, seed, &lines, cache_);
  }
  /// Whether the lines of this key are read.
  bool trains(uint64_t key, uint64_t seed = 1) const {
    KeyedLines lines(key);
    open(lines, seed);
    return lines.num_read() > 0;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
      if (entry.path().extension() == ".bin") found.push_back(entry);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  testing::TempDir folder_;
  std::string cache_ = (folder_ / "cache").string();
  text::TokenizerOptions options_;
};

TEST_F(TokenizerStoreTest, ATokenizerIsTrainedOnceOnLinesOfOneKey) {
  KeyedLines lines(7);
  const auto first = open(lines);
  EXPECT_EQ(lines.num_read(), 2U);
  KeyedLines again(7);
  const auto second = open(again);
  EXPECT_EQ(again.num_read(), 0U);
  EXPECT_EQ(second.assets, first.assets);
  EXPECT_EQ(second.src->fingerprint(), first.src->fingerprint());
  EXPECT_EQ(second.src, second.tgt);
  KeyedLines same(7);
  EXPECT_EQ(text::make_tokenizers(options_, 1, &same, nullptr).assets, first.assets);
}

TEST_F(TokenizerStoreTest, OtherLinesOptionsAndSeedsMakeAnother) {
  EXPECT_TRUE(trains(7));
  EXPECT_FALSE(trains(7));
  EXPECT_TRUE(trains(8));
  EXPECT_TRUE(trains(7, 2));
  const auto before = options_;
  for (const auto& change : std::vector<void (*)(text::TokenizerOptions&)>{
           [](auto& o) { o.type = "char"; }, [](auto& o) { o.algorithm = "unigram"; },
           [](auto& o) { o.vocab_size = 50; }, [](auto& o) { o.character_coverage = 0.99; },
           [](auto& o) { o.max_training_lines = 1; }, [](auto& o) { o.lowercase = "no"; }}) {
    options_ = before;
    change(options_);
    EXPECT_TRUE(trains(7));
    EXPECT_FALSE(trains(7));
  }
}

TEST_F(TokenizerStoreTest, LinesWithoutAKeyAreReadEachTime) {
  EXPECT_TRUE(trains(0));
  EXPECT_TRUE(trains(0));
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(TokenizerStoreTest, WhereNothingCanBeKeptEachCallTrains) {
  cache_ = folder_.write("file", "") + "/cache";
  EXPECT_TRUE(trains(7));
  EXPECT_TRUE(trains(7));
}

TEST_F(TokenizerStoreTest, ADamagedOneIsTrainedAgain) {
  trains(7);
  const auto all = files();
  ASSERT_EQ(all.size(), 3U);
  for (const auto& path : all) {
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const int first = file.peek();
      file.seekp(0);
      file.put(static_cast<char>(first ^ 1));
    }
    EXPECT_TRUE(trains(7)) << path;
    EXPECT_FALSE(trains(7)) << path;
  }
}

// The lines that were read do not come again: a second training would have the rest of them.
TEST_F(TokenizerStoreTest, LinesThatBreakOffEndTheTraining) {
  KeyedLines lines(7);
  lines.breaks_at = 1;
  testing::failure(ExitCode::kIo, [&] { open(lines); });
  EXPECT_TRUE(trains(7));
}

TEST_F(TokenizerStoreTest, AStartTriesOnceWhatCannotBeTrained) {
  const auto refuse = [&](KeyedLines& lines) {
    return testing::failure(ExitCode::kUsage, [&] { open(lines); }).message();
  };
  options_.vocab_size = 6;
  for (const bool is_kept : {true, false}) {
    if (!is_kept) cache_ = folder_.write("file", "") + "/cache";
    const StartMemory memory;
    KeyedLines lines(7), same(7), others(8);
    const std::string first = refuse(lines);
    EXPECT_EQ(refuse(same), first);
    EXPECT_GT(lines.num_read(), 0U);
    EXPECT_EQ(same.num_read(), 0U) << "it is trained twice";
    EXPECT_EQ(refuse(others), first);
    EXPECT_GT(others.num_read(), 0U);
  }
  KeyedLines later(7);
  refuse(later);
  EXPECT_GT(later.num_read(), 0U) << "of another start";
}

TEST_F(TokenizerStoreTest, AStartReadsWhatBreaksOffAgain) {
  const StartMemory memory;
  KeyedLines lines(7);
  lines.breaks_at = 1;
  testing::failure(ExitCode::kIo, [&] { open(lines); });
  EXPECT_TRUE(trains(7));
}

TEST_F(TokenizerStoreTest, AStartReadsANamedOneOnceAndSharesIt) {
  KeyedLines lines(0);
  const auto made = open(lines);
  ASSERT_EQ(made.assets.size(), 1U);
  options_.model = folder_.write("named.json", made.assets.begin()->second);
  const auto named = [&] { return open_tokenizers(options_, 1, nullptr, cache_); };
  {
    const StartMemory memory;
    const auto first = named();
    EXPECT_EQ(named().src, first.src);
    auto assets = first.assets;
    assets["labels.json"] = "[]";
    EXPECT_EQ(open_tokenizers(options_, assets).src, first.src);
    assets["tokenizer.json"] += "\n";
    EXPECT_NE(open_tokenizers(options_, assets).src, first.src);
  }
  EXPECT_NE(named().src, named().src);
}

}  // namespace
}  // namespace stretto::data
