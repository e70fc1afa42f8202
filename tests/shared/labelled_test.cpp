// Real files of labelled texts and pairs: their rows, labels and numbers of samples.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "data/labelled/labelled_file.h"
#include "data/labelled/labels.h"

namespace stretto::data {
namespace {

class RealLabelled : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("STRETTO_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "STRETTO_SHARED names no folder with data";
    folder_ = std::filesystem::path(shared) / "data";
    if (!std::filesystem::exists(folder_ / "sst2")) GTEST_SKIP() << folder_ << " has no sst2";
  }

  std::vector<LabelledRow> read(const std::string& name, const LabelledColumns& columns) const {
    LabelledReader reader((folder_ / name).string(), columns);
    std::vector<LabelledRow> rows;
    for (LabelledRow row; reader.next(row);) rows.push_back(row);
    return rows;
  }

  std::filesystem::path folder_;
};

std::map<std::string, int> counts_of(const std::vector<LabelledRow>& rows) {
  std::map<std::string, int> counts;
  for (const auto& row : rows) ++counts[row.labels.front()];
  return counts;
}

using Counts = std::map<std::string, int>;

TEST_F(RealLabelled, Sst2IsReadWithAndWithoutHeader) {
  const LabelledColumns glue{.text = "sentence", .label = "label"};
  EXPECT_EQ(read("sst2/glue_train.tsv.gz", glue).size(), 67349);
  const LabelledColumns dev{.text = "content", .label = "label"};
  const auto with_header = read("sst2/glue_dev.tsv", dev);
  EXPECT_EQ(counts_of(with_header), (Counts{{"0", 428}, {"1", 444}}));
  EXPECT_EQ(with_header[0].text, "one long string of cliches .");
  const LabelledColumns plain{.text = "1", .label = "2", .header = false};
  EXPECT_EQ(read("sst2/sentences_train.tsv.gz", plain).size(), 6920);
  EXPECT_EQ(counts_of(read("sst2/sentences_dev.tsv", plain)), counts_of(with_header));
}

TEST_F(RealLabelled, RteIsReadAsPairs) {
  const auto rows = read("rte/train.tsv", {.text = "sentence1", .text2 = "sentence2"});
  EXPECT_EQ(counts_of(rows), (Counts{{"0", 1249}, {"1", 1241}}));
  EXPECT_EQ(rows[0].text, "No Weapons of Mass Destruction Found in Iraq Yet.");
  EXPECT_EQ(rows[0].text2, "Weapons of Mass Destruction Found in Iraq.");
}

TEST_F(RealLabelled, SickHasClassesAndNumbers) {
  LabelledColumns columns{
      .text = "sentence_A", .text2 = "sentence_B", .label = "entailment_judgment"};
  const auto rows = read("sick/SICK_train.txt", columns);
  EXPECT_EQ(counts_of(rows),
            (Counts{{"CONTRADICTION", 665}, {"ENTAILMENT", 1299}, {"NEUTRAL", 2536}}));
  columns.label = "relatedness_score";
  columns.kind = LabelKind::kNumber;
  const auto trial = read("sick/SICK_trial.txt", columns);
  EXPECT_EQ(trial.size(), 500);
  EXPECT_EQ(trial[0].value, 3.6);
}

TEST_F(RealLabelled, MrpcHasQuotesByteOrderMarkAndCarriageReturns) {
  const LabelledColumns columns{.text = "#1 String", .text2 = "#2 String", .label = "Quality"};
  const auto rows = read("mrpc/msr-para-train.tsv", columns);
  EXPECT_EQ(rows.size(), 3576);
  EXPECT_NE(rows[0].text.find("\"the witness\","), std::string::npos) << rows[0].text;
  EXPECT_TRUE(rows[0].text2.ends_with("evidence.")) << rows[0].text2;
  EXPECT_EQ(read("mrpc/msr-para-val.tsv", columns).size(), 500);
}

TEST_F(RealLabelled, TrecHasTheLabelFirst) {
  LabelledColumns columns{.format = LabelledFormat::kLabelFirst, .encoding = Encoding::kLatin1};
  const auto labels_of = [&] {
    std::vector<std::string> labels;
    for (const auto& row : read("trec_qc/train.txt", columns)) {
      EXPECT_TRUE(is_valid_utf8(row.text));
      labels.push_back(row.labels.front());
    }
    EXPECT_EQ(labels.size(), 5452);
    return Labels::sorted(labels);
  };
  EXPECT_EQ(labels_of().size(), 50);
  columns.label_until = ":";
  EXPECT_EQ(labels_of().names(),
            (std::vector<std::string>{"ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"}));
}

TEST_F(RealLabelled, AgNewsIsQuotedCsv) {
  const auto rows = read("ag_news/test_first5600.csv.gz",
                         {.text = "2", .text2 = "3", .label = "1", .header = false});
  EXPECT_EQ(counts_of(rows), (Counts{{"1", 1413}, {"2", 1398}, {"3", 1378}, {"4", 1411}}));
  EXPECT_EQ(rows[0].text, "Fears for T N pension after talks");
}

}  // namespace
}  // namespace stretto::data
