#include "data/labelled/labelled_samples.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/samples_in_memory.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/squad/span_tokenizer.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class LabelledSamplesTest : public ::testing::Test {
 protected:
  LabelledSamplesTest() { options_.cache_dir = (folder_ / "cache").string(); }

  std::shared_ptr<const LabelledSamples> open(const Labels* labels) const {
    return open_labelled_samples(options_.train, options_, *tokenizer_, labels);
  }
  LabelledSet read(const Labels* labels) const {
    return read_labelled_set(options_.train, options_, *tokenizer_, labels, KeepTexts::kYes);
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
    const LabelledSet direct = read(labels), whole = samples.whole(KeepTexts::kYes);
    EXPECT_EQ(whole.samples.sample_ids, direct.samples.sample_ids);
    EXPECT_EQ(tokens(whole.samples).values, tokens(direct.samples).values);
    EXPECT_EQ(tokens(whole.samples).offsets, tokens(direct.samples).offsets);
    EXPECT_EQ(segments(whole.samples).values, segments(direct.samples).values);
    EXPECT_EQ(whole.hash, direct.hash);
    EXPECT_EQ(whole.unknown, direct.unknown);
    EXPECT_EQ(whole.cut_samples, direct.cut_samples);
    EXPECT_EQ(whole.cut_tokens, direct.cut_tokens);
    EXPECT_EQ(samples.num_tokens(), tokens(direct.samples).num_rows());
    ASSERT_EQ(whole.rows.size(), direct.rows.size());
    EXPECT_EQ(whole.rows.back().text2, direct.rows.back().text2);
    if (labels != nullptr) {
      const auto& all = whole.samples.column<int64_t>(kLabelColumn);
      EXPECT_EQ(all.values, direct.samples.column<int64_t>(kLabelColumn).values);
      EXPECT_EQ(samples.labels().column<int64_t>(kLabelColumn).offsets, all.offsets);
    } else {
      EXPECT_EQ(whole.samples.column<float>(kLabelColumn).values,
                direct.samples.column<float>(kLabelColumn).values);
    }
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
  const SamplesInMemory memory(read(&labels).samples);
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

}  // namespace
}  // namespace stretto::data
