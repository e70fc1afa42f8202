#include "metrics/label_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace stretto::metrics {
namespace {

LabelCounts counts_of(int64_t num_labels, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  LabelCounts counts(num_labels);
  for (const auto& [gold, predicted] : pairs) counts.add(gold, predicted);
  return counts;
}

/// Gold 0 0 0 1 1 2, predicted 0 0 1 1 2 2.
LabelCounts three_labels() {
  return counts_of(3, {{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 2}});
}

TEST(LabelCounts, AreAConfusionMatrixWithARowForEachGoldLabel) {
  const auto counts = three_labels();
  EXPECT_EQ(std::vector<double>(counts.sums().begin(), counts.sums().end()),
            (std::vector<double>{2, 1, 0, 0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(counts.count(0, 1), 1);
  EXPECT_EQ(counts.count(1, 0), 0);
  EXPECT_EQ(counts.num_samples(), 6);
}

TEST(LabelCounts, HaveAccuracyAndF1) {
  const auto counts = three_labels();
  EXPECT_NEAR(counts.accuracy(), 4.0 / 6, 1e-15);
  EXPECT_NEAR(counts.micro_f1(), 4.0 / 6, 1e-15);
  EXPECT_NEAR(counts.f1(0), 4.0 / 5, 1e-15);
  EXPECT_NEAR(counts.f1(1), 2.0 / 4, 1e-15);
  EXPECT_NEAR(counts.f1(2), 2.0 / 3, 1e-15);
  EXPECT_NEAR(counts.macro_f1(), (4.0 / 5 + 2.0 / 4 + 2.0 / 3) / 3, 1e-15);
}

TEST(LabelCounts, LeaveLabelsThatNeverOccurOutOfMacroF1) {
  const auto counts = counts_of(4, {{0, 0}, {0, 2}});
  EXPECT_NEAR(counts.macro_f1(), (2.0 / 3 + 0) / 2, 1e-15);  // labels 0 and 2
  EXPECT_EQ(counts.f1(3), 0);
}

TEST(LabelCounts, HaveMatthewsCorrelation) {
  // Two labels: (TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)), TP 2, TN 3, FP 1, FN 1.
  const auto two = counts_of(2, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, {0, 1}, {1, 0}});
  EXPECT_NEAR(two.matthews(), 5.0 / std::sqrt(3.0 * 3 * 4 * 4), 1e-15);
  // Three: (4*6 - (3*2 + 2*2 + 1*2)) / sqrt((36 - 14) (36 - 12)).
  EXPECT_NEAR(three_labels().matthews(), 12 / std::sqrt(22.0 * 24), 1e-15);
  EXPECT_NEAR(counts_of(2, {{0, 1}, {1, 0}}).matthews(), -1, 1e-15);
}

TEST(LabelCounts, HaveNoCorrelationWithOneLabelOnASide) {
  EXPECT_EQ(counts_of(2, {{0, 0}, {1, 0}}).matthews(), 0);
  EXPECT_EQ(counts_of(2, {{0, 0}, {0, 1}}).matthews(), 0);
}

TEST(LabelCounts, WithoutSamplesScore0) {
  const LabelCounts counts(2);
  EXPECT_EQ(counts.accuracy(), 0);
  EXPECT_EQ(counts.macro_f1(), 0);
  EXPECT_EQ(counts.matthews(), 0);
}

TEST(LabelCounts, AddUpOverProcesses) {
  const auto one = counts_of(3, {{0, 0}, {0, 0}, {0, 1}});
  const auto other = counts_of(3, {{1, 1}, {1, 2}, {2, 2}});
  std::vector<double> sums(one.sums().begin(), one.sums().end());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums()[i];
  LabelCounts both(3);
  both.set_sums(sums);
  EXPECT_EQ(both.macro_f1(), three_labels().macro_f1());
  EXPECT_EQ(both.matthews(), three_labels().matthews());
}

TEST(LabelCounts, RefuseWhatIsNoLabel) {
  LabelCounts counts(2);
  EXPECT_THROW(counts.add(2, 0), std::invalid_argument);
  EXPECT_THROW(counts.add(0, -1), std::invalid_argument);
  EXPECT_THROW(counts.f1(2), std::invalid_argument);
  EXPECT_THROW(counts.set_sums(std::vector<double>(3)), std::invalid_argument);
  EXPECT_THROW(LabelCounts(0), std::invalid_argument);
  EXPECT_EQ(counts.num_samples(), 0);
}

using Labels = std::vector<int64_t>;

TEST(MultiLabelCounts, ScoreEachLabelOnItsOwn) {
  MultiLabelCounts counts(3);
  counts.add(Labels{0, 1}, Labels{1, 0});  // exact, in any order
  counts.add(Labels{0}, Labels{0, 2});
  counts.add(Labels{}, Labels{});  // exact
  counts.add(Labels{1}, Labels{});
  // TP, FP, FN: label 0: 2 0 0; label 1: 1 0 1; label 2: 0 1 0.
  EXPECT_EQ(counts.exact_match(), 0.5);
  EXPECT_EQ(counts.f1(0), 1);
  EXPECT_NEAR(counts.f1(1), 2.0 / 3, 1e-15);
  EXPECT_EQ(counts.f1(2), 0);
  EXPECT_NEAR(counts.macro_f1(), (1 + 2.0 / 3) / 3, 1e-15);
  EXPECT_NEAR(counts.micro_f1(), 6.0 / 8, 1e-15);
}

TEST(MultiLabelCounts, AddUpOverProcesses) {
  MultiLabelCounts one(2), other(2), both(2);
  one.add(Labels{0}, Labels{0});
  other.add(Labels{1}, Labels{0});
  std::vector<double> sums(one.sums().begin(), one.sums().end());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums()[i];
  both.set_sums(sums);
  EXPECT_EQ(both.exact_match(), 0.5);
  EXPECT_NEAR(both.micro_f1(), 0.5, 1e-15);
}

TEST(MultiLabelCounts, RefuseWhatIsNoSetOfLabels) {
  MultiLabelCounts counts(2);
  EXPECT_THROW(counts.add(Labels{2}, Labels{}), std::invalid_argument);
  EXPECT_THROW(counts.add(Labels{}, Labels{1, 1}), std::invalid_argument);
  EXPECT_EQ(counts.exact_match(), 0);
  EXPECT_EQ(counts.micro_f1(), 0);
}

}  // namespace
}  // namespace stretto::metrics
