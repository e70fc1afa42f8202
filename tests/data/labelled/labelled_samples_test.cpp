#include "data/labelled/labelled_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/cache_folder.h"
#include "data/samples_in_memory.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/labelled/whole_samples.h"
#include "tests/data/squad/span_tokenizer.h"
#include "text/encoded_text.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using testing::whole;

class LabelledSamplesTest : public ::testing::Test {
 protected:
  LabelledSamplesTest() { options_.cache_dir = (folder_ / "cache").string(); }

  std::shared_ptr<const LabelledSamples> open(const Labels* labels) const {
    return open_labelled_samples(options_.train, options_, *tokenizer_, labels);
  }
  /// The rows of the files, encoded one by one.
  Batch read(const Labels* labels) const {
    const text::TextEncoder encoder(*tokenizer_, text_bound_of(options_));
    Batch batch = empty_labelled_batch(labels == nullptr);
    for (const auto& path : options_.train) {
      LabelledReader reader(path, columns_of(options_));
      for (LabelledRow row; reader.next(row);) {
        const auto text =
            options_.text2.empty() ? encoder.encode(row.text) : encoder.encode(row.text, row.text2);
        batch.sample_ids.push_back(batch.num_sequences());
        tokens(batch).append(text.ids);
        segments(batch).append(text.segments);
        if (labels == nullptr) {
          batch.column<float>(kLabelColumn).append({static_cast<float>(row.value)});
          continue;
        }
        std::vector<int64_t> numbers;
        for (const auto& name : row.labels) numbers.push_back(*labels->find(name));
        batch.column<int64_t>(kLabelColumn).append(numbers);
      }
    }
    return batch;
  }

  /// More samples than a chunk has, of several lengths.
  void write_many() {
    std::string rows = "text\tlabel\n";
    for (int i = 0; i < 5000; ++i) {
      rows += i % 3 == 0 ? "who lives in oslo" : i % 3 == 1 ? "anna" : "% in";
      rows += i % 7 == 0 ? "\tno\n" : "\tyes\n";
    }
    options_.train = {folder_.write("a.tsv", rows)};
  }

  void expect_same(const LabelledSamples& samples, const Labels* labels) const {
    const Batch direct = read(labels), found = whole(samples), gold = samples.labels();
    EXPECT_EQ(found.sample_ids, direct.sample_ids);
    EXPECT_EQ(tokens(found).values, tokens(direct).values);
    EXPECT_EQ(tokens(found).offsets, tokens(direct).offsets);
    EXPECT_EQ(segments(found).values, segments(direct).values);
    EXPECT_EQ(segments(found).offsets, segments(direct).offsets);
    EXPECT_EQ(samples.num_tokens(), tokens(direct).num_rows());
    const auto unknown = tokenizer_->specials().unk;
    const auto& ids = tokens(direct).values;
    EXPECT_EQ(samples.counts().unknown, std::count(ids.begin(), ids.end(), unknown));
    if (labels != nullptr) {
      const auto& all = direct.column<int64_t>(kLabelColumn);
      EXPECT_EQ(found.column<int64_t>(kLabelColumn).values, all.values);
      std::vector<int64_t> counts(static_cast<size_t>(labels->size()));
      for (const int64_t label : all.values) ++counts[static_cast<size_t>(label)];
      EXPECT_EQ(samples.label_counts(labels->size()), counts);
      EXPECT_EQ(gold.column<int64_t>(kLabelColumn).values, all.values);
      EXPECT_EQ(gold.column<int64_t>(kLabelColumn).offsets, all.offsets);
    } else {
      EXPECT_EQ(found.column<float>(kLabelColumn).values,
                direct.column<float>(kLabelColumn).values);
      EXPECT_EQ(gold.column<float>(kLabelColumn).values, direct.column<float>(kLabelColumn).values);
    }
  }

  /// The folders of the cache that are stores of a kind.
  std::vector<fs::path> stores_of(const std::string& kind) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
      if (fs::exists(entry.path() / ("opened." + kind))) found.push_back(entry.path());
    }
    return found;
  }

  testing::TempDir folder_;
  LabelledOptions options_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_ = testing::small_tokenizer();
};

TEST_F(LabelledSamplesTest, AreThoseOfASetInMemory) {
  write_many();
  const auto labels = Labels::given({"yes", "no"});
  for (const bool found : {false, true}) {
    const auto samples = open(&labels);
    EXPECT_EQ(samples->from_cache(), found);
    expect_same(*samples, &labels);
  }
}

TEST_F(LabelledSamplesTest, StandInTheSameOrderOfLengths) {
  write_many();
  const auto labels = Labels::given({"yes", "no"});
  const auto samples = open(&labels);
  const SamplesInMemory memory(read(&labels));
  EXPECT_EQ(samples->runs().lengths, memory.runs().lengths);
  EXPECT_EQ(samples->runs().begins, memory.runs().begins);
  for (uint64_t i = 0; i < 5000; ++i) ASSERT_EQ(samples->sample_at(i), memory.sample_at(i));
}

TEST_F(LabelledSamplesTest, HavePairsWithSegmentsAndCutTexts) {
  options_.train = {
      folder_.write("a.tsv", "a\tb\tlabel\nwho lives in\tanna in oslo\t1\nin\twho\t0\n")};
  options_.text = "a";
  options_.text2 = "b";
  options_.max_text_tokens = 7;
  const auto labels = Labels::given({"0", "1"});
  for (int start = 0; start < 2; ++start) {
    const auto samples = open(&labels);
    expect_same(*samples, &labels);
    EXPECT_EQ(samples->counts().cut_tokens, 2);
  }
}

TEST_F(LabelledSamplesTest, HaveNumbersAndSeveralLabels) {
  options_.train = {folder_.write("a.csv", "text,label\nwho,3.5\nin,-1\n")};
  options_.label_kind = "number";
  for (int start = 0; start < 2; ++start) expect_same(*open(nullptr), nullptr);
  options_.train = {folder_.write("b.tsv", "text\tlabel\nwho\tb;a\nin\ta\n")};
  options_.label_kind = "class";
  options_.label_separator = ";";
  const auto labels = Labels::given({"a", "b"});
  for (int start = 0; start < 2; ++start) expect_same(*open(&labels), &labels);
}

TEST_F(LabelledSamplesTest, OtherLabelsOrBoundsAreOtherSamples) {
  write_many();
  const auto labels = Labels::given({"yes", "no"}), others = Labels::given({"no", "yes"});
  const uint64_t hash = open(&labels)->counts().hash;
  EXPECT_NE(open(&others)->counts().hash, hash);
  options_.max_text_tokens = 5;
  const auto cut = open(&labels);
  EXPECT_FALSE(cut->from_cache());
  EXPECT_GT(cut->counts().cut_samples, 0);
  options_.max_text_tokens = 128;
  EXPECT_EQ(open(&labels)->counts().hash, hash);
}

TEST_F(LabelledSamplesTest, AreTheSameWithoutACache) {
  write_many();
  const auto labels = Labels::given({"yes", "no"});
  options_.cache_dir = folder_.write("file", "") + "/cache";
  const auto samples = open(&labels);
  EXPECT_FALSE(samples->from_cache());
  expect_same(*samples, &labels);
  options_.cache_dir = (folder_ / "cache").string();
  EXPECT_EQ(open(&labels)->counts().hash, samples->counts().hash);
}

TEST_F(LabelledSamplesTest, TellOfSkippedAndBadRowsAndHeadersFromTheCacheToo) {
  options_.bad_samples = "skip";
  options_.skipped_label = "-";
  options_.text = "1";
  options_.label = "2";
  options_.train = {folder_.write("a.tsv", "who\tyes\nin\tno\nanna\tmaybe\noslo\t-\nin\n")};
  const auto labels = Labels::given({"yes", "no"});
  for (int start = 0; start < 2; ++start) {
    const auto samples = open(&labels);
    EXPECT_EQ(samples->size(), 1);
    EXPECT_EQ(samples->counts().skipped, 1);
    EXPECT_EQ(samples->counts().bad.count, 2);
    EXPECT_EQ(samples->counts().samples_as_header,
              std::vector<std::string>{options_.train[0] + ":1"});
  }
  const auto none = Labels::given({"a", "b"});
  for (int start = 0; start < 2; ++start) {
    const Error error = testing::failure(ExitCode::kBadData, [&] { open(&none); });
    EXPECT_NE(std::string(error.what()).find("no sample is left"), std::string::npos);
  }
}

TEST_F(LabelledSamplesTest, DamagedTokensAreMadeAgain) {
  write_many();
  const auto labels = Labels::given({"yes", "no"});
  open(&labels);
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
    if (entry.path().filename() == "1.bin") fs::resize_file(entry.path(), 16);
  }
  const auto samples = open(&labels);
  EXPECT_FALSE(samples->from_cache());
  expect_same(*samples, &labels);
  EXPECT_TRUE(open(&labels)->from_cache());
}

TEST_F(LabelledSamplesTest, TokensThatDoNotBelongTogetherAreMadeAgain) {
  write_many();
  const auto labels = Labels::given({"yes", "no"});
  open(&labels);
  const auto folders = stores_of("labelled_tokens");
  ASSERT_EQ(folders.size(), 1U);
  const StorePlace place{.root = open_cache(options_.cache_dir),
                         .kind = "labelled_tokens",
                         .key = std::stoull(folders.front().filename().string(), nullptr, 16),
                         .num_parts = 3};
  bool damaged = false;
  const auto store = find_samples(place, damaged);
  ASSERT_TRUE(store.has_value());
  fs::remove_all(place.folder());  // what was mapped stays
  fs::create_directories(place.folder());
  SampleStoreWriter writer(place.folder(), place.num_parts);
  writer.append(0, store->part(0).substr(2));
  writer.append(1, store->part(1));
  writer.finish(place.key, store->words());
  EXPECT_TRUE(find_samples(place, damaged).has_value()) << "sums and sizes are right";
  EXPECT_FALSE(open(&labels)->from_cache());
  const auto samples = open(&labels);
  EXPECT_TRUE(samples->from_cache());
  expect_same(*samples, &labels);
}

/// Overwrites a part of a store that is in use.
void overwrite(const fs::path& part, const std::string& bytes) {
  std::fstream(part, std::ios::in | std::ios::out | std::ios::binary) << bytes;
}

TEST_F(LabelledSamplesTest, WhatIsWrittenToACacheInUseIsRefusedAndNeverLookedUp) {
  options_.train = {folder_.write("a.tsv", "a\tb\tlabel\nwho\tanna\t1\nin\twho\t0\n")};
  options_.text = "a";
  options_.text2 = "b";
  const auto labels = Labels::given({"0", "1"});
  const std::string ones(64, '\xFF');
  // Ids, their ends and segments; texts' ends, labels and their ends.
  const std::vector<std::pair<std::string, std::vector<int>>> stores{{"labelled_tokens", {0, 1, 2}},
                                                                     {"labelled_texts", {1, 2, 3}}};
  for (const auto& [kind, parts] : stores) {
    for (const int number : parts) {
      const auto samples = open(&labels);
      const auto folders = stores_of(kind);
      ASSERT_EQ(folders.size(), 1U);
      const fs::path part = folders.front() / (std::to_string(number) + ".bin");
      overwrite(part, ones.substr(0, fs::file_size(part)));
      const Error error = testing::failure(ExitCode::kIo, [&] {
        whole(*samples);
        samples->texts().text2(1);
      });
      EXPECT_NE(std::string(error.what()).find(folders.front().string()), std::string::npos)
          << error.what();
      fs::remove_all(folders.front());
    }
  }
}

}  // namespace
}  // namespace stretto::data
