#include "data/sample_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<uint64_t>;

class SampleStoreTest : public ::testing::Test {
 protected:
  StorePlace place(uint64_t key = 1) const {
    return {.root = folder_.path(), .kind = "texts", .key = key, .num_parts = 3, .threads = 2};
  }

  /// Texts, their lengths, and a part that stays empty.
  StoreBuild build() {
    return [this](SampleStoreWriter& writer) {
      ++builds_;
      for (uint64_t i = 0; i < 20000; ++i) {
        const std::string text = "text " + std::to_string(i);
        writer.append(0, text);
        writer.append_value<uint64_t>(1, text.size());
      }
      return Words{7, 11};
    };
  }

  SampleStore open(uint64_t key = 1) { return open_samples(place(key), build()); }

  static void flip(const fs::path& path, size_t at) {
    std::string bytes = read_file(path);
    bytes.at(at) ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
  }

  testing::TempDir folder_;
  int builds_ = 0;
};

void expect_whole(const SampleStore& store) {
  EXPECT_TRUE(store.part(0).starts_with("text 0text 1text 2"));
  EXPECT_EQ(store.array<uint64_t>(1).size(), 20000U);
  EXPECT_EQ(store.array<uint64_t>(1).back(), 10U);
  EXPECT_TRUE(store.part(2).empty());
  EXPECT_EQ(store.words(), (Words{7, 11}));
}

TEST_F(SampleStoreTest, IsBuiltOnceAndThenFound) {
  const auto built = open();
  EXPECT_FALSE(built.from_cache());
  expect_whole(built);
  const auto found = open();
  EXPECT_TRUE(found.from_cache());
  expect_whole(found);
  EXPECT_EQ(found.num_bytes(), built.num_bytes());
  open(2);
  EXPECT_EQ(builds_, 2);
}

TEST_F(SampleStoreTest, HoldsTheSameInMemory) {
  const auto store = samples_in_memory(3, build());
  EXPECT_FALSE(store.from_cache());
  expect_whole(store);
}

TEST_F(SampleStoreTest, IsForItsUserAlone) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat(place().folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(SampleStoreTest, ADamagedFileIsMadeAgain) {
  open();
  int made = 1;
  for (const char* name : {"0.bin", "1.bin", "head.bin"}) {
    const fs::path path = place().folder() / name;
    flip(path, fs::file_size(path) / 2);
    expect_whole(open());
    EXPECT_EQ(builds_, ++made) << name;
  }
  EXPECT_TRUE(open().from_cache());
}

TEST_F(SampleStoreTest, APartOfAStoreIsMadeAgain) {
  for (const char* name : {"0.bin", "2.bin", "head.bin"}) {
    open();
    fs::remove(place().folder() / name);
    const int before = builds_;
    expect_whole(open());
    EXPECT_EQ(builds_, before + 1) << name;
  }
  fs::resize_file(place().folder() / "0.bin", 1000);
  const int before = builds_;
  expect_whole(open());
  EXPECT_EQ(builds_, before + 1);
}

TEST_F(SampleStoreTest, AnotherKeyOrNumberOfPartsInItsPlaceIsDamage) {
  open(2);
  fs::rename(place(2).folder(), place(1).folder());
  bool damaged = false;
  EXPECT_FALSE(find_samples(place(), damaged));
  EXPECT_TRUE(damaged);
  expect_whole(open());
  StorePlace other = place();
  other.num_parts = 2;
  EXPECT_FALSE(find_samples(other, damaged));
  EXPECT_TRUE(damaged);
  EXPECT_FALSE(find_samples(place(3), damaged));
  EXPECT_FALSE(damaged);
}

TEST_F(SampleStoreTest, OneThatItsReaderRefusesIsMadeAgain) {
  open();
  StorePlace strict = place();
  strict.is_sound = [&](const SampleStore& store) { return store.words() == Words{5}; };
  bool damaged = false;
  EXPECT_FALSE(find_samples(strict, damaged));
  EXPECT_TRUE(damaged);
  const auto other = [&](SampleStoreWriter&) { return Words{5}; };
  EXPECT_FALSE(open_samples(strict, other).from_cache());
  EXPECT_TRUE(open_samples(strict, other).from_cache());
}

TEST_F(SampleStoreTest, OneThatIsDamagedAsItIsMadeIsAFaultOfTheMachine) {
  StorePlace strict = place();
  strict.is_sound = [](const SampleStore&) { return false; };
  const Error error = testing::failure(ExitCode::kIo, [&] { open_samples(strict, build()); });
  EXPECT_NE(std::string(error.advice()).find("data.cache_dir"), std::string::npos);
  EXPECT_EQ(builds_, 1);
}

TEST_F(SampleStoreTest, ABuildThatFailsLeavesNothing) {
  const auto failing = [&](SampleStoreWriter& writer) -> Words {
    writer.append(0, "some");
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(open_samples(place(), failing), std::runtime_error);
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().extension(), ".lock") << entry.path();
  }
  expect_whole(open());
}

TEST_F(SampleStoreTest, WhatAKilledBuildLeftIsRemoved) {
  const fs::path left = folder_ / (".tmp-" + place().folder().filename().string() + "-1");
  fs::create_directories(left);
  std::ofstream(left / "0.bin") << "half";
  expect_whole(open());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(SampleStoreTest, SeveralThatOpenAtOnceBuildOnce) {
  std::vector<std::jthread> openers;
  for (int i = 0; i < 4; ++i) openers.emplace_back([&] { expect_whole(open()); });
  openers.clear();
  EXPECT_EQ(builds_, 1);
}

TEST(StoreWords, TextComesBackAndShortWordsAreRefused) {
  Words words{5};
  for (const char* text : {"", "a", "eight by", "nine byte"}) append_text(words, text);
  size_t at = 1;
  std::string text;
  for (const char* expected : {"", "a", "eight by", "nine byte"}) {
    ASSERT_TRUE(take_text(words, at, text));
    EXPECT_EQ(text, expected);
  }
  EXPECT_EQ(at, words.size());
  EXPECT_FALSE(take_text(words, at, text));
  for (const uint64_t size : {uint64_t{9}, UINT64_MAX}) {
    at = 0;
    EXPECT_FALSE(take_text(Words{size, 0}, at, text)) << size;
  }
}

}  // namespace
}  // namespace stretto::data
