#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::metrics {

/// Scores of samples with one label each, from their confusion matrix. Equal to scikit-learn's with
/// its defaults; fractions, not percent.
///
/// `sums()` of several processes are added element by element, and read back by `set_sums()`.
class LabelCounts {
 public:
  /// @param num_labels  L, at least 1
  explicit LabelCounts(int64_t num_labels);

  /// One sample; both labels in [0, L). Throws std::invalid_argument for others.
  void add(int64_t gold, int64_t predicted);

  /// The confusion matrix [L, L], row by row: a row is a gold label, a column a predicted one.
  std::span<const double> sums() const { return counts_; }
  /// @param sums  as sums() gives them. Throws std::invalid_argument for another size.
  void set_sums(std::span<const double> sums);

  int64_t num_labels() const { return num_labels_; }
  int64_t count(int64_t gold, int64_t predicted) const;
  int64_t num_samples() const;

  /// Share of samples whose label was predicted correctly; 0 without samples.
  double accuracy() const;
  /// F1 of one label against all others: 2 TP / (2 TP + FP + FN), 0 if the divisor is 0.
  double f1(int64_t label) const;
  /// Mean of f1() over labels that occur, as gold or predicted.
  double macro_f1() const;
  /// F1 of the counts summed over labels. With one label a sample, it equals accuracy().
  double micro_f1() const { return accuracy(); }
  /// Matthews correlation, for any number of labels (Gorodkin 2004), from -1 to 1; 0 if all samples
  /// have one gold label, or one predicted label.
  double matthews() const;

 private:
  double cell(int64_t gold, int64_t predicted) const;
  /// How many samples have each label.
  std::vector<double> gold_totals() const;
  std::vector<double> predicted_totals() const;

  int64_t num_labels_;
  std::vector<double> counts_;  ///< whole numbers, as double: collectives add those
};

/// Scores of samples with any number of labels each; fractions. Equal to scikit-learn's for label
/// indicators. Sums add up as those of LabelCounts.
class MultiLabelCounts {
 public:
  explicit MultiLabelCounts(int64_t num_labels);

  /// One sample; distinct labels in [0, L), in any order. Throws std::invalid_argument for others.
  void add(std::span<const int64_t> gold, std::span<const int64_t> predicted);

  /// TP, FP and FN of each label, then samples and exact samples: 3 L + 2 numbers.
  std::span<const double> sums() const { return sums_; }
  void set_sums(std::span<const double> sums);

  /// Share of samples whose labels were all predicted, and no others.
  double exact_match() const;
  double f1(int64_t label) const;
  /// Mean of f1() over all labels: one that never occurs contributes 0.
  double macro_f1() const;
  /// F1 of TP, FP and FN summed over labels; 0 if there are none.
  double micro_f1() const;

 private:
  int64_t num_labels_;
  std::vector<double> sums_;
};

}  // namespace stretto::metrics
