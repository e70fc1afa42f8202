#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/comparison.h"

/// A number of several runs against the batch of their updates, as Figure 1 of Goyal et al. 2017
/// ("Accurate, Large Minibatch SGD", arXiv:1706.02677) has it: a line for each kind of warm-up,
/// with the scatter over seeds.
namespace stretto::report {

/// Runs that differ in their seed, and in nothing that a line stands for.
struct BatchPoint {
  double batch = 0;          ///< of an update, in BatchFigure::unit
  double mean = 0;           ///< of the runs' values
  double deviation = 0;      ///< over the runs, with n - 1; 0 of one run
  std::vector<size_t> runs;  ///< indices of Comparison::runs
};

/// A line of the figure.
struct BatchLine {
  std::string name;                ///< "gradual warm-up", and keys that differ: "optim.name = …"
  std::vector<BatchPoint> points;  ///< ascending
};

struct BatchFigure {
  std::string title;   ///< "Top-1 error (%)"
  std::string number;  ///< its key in metrics.jsonl
  std::string unit;    ///< of batches: "pictures"
  int decimals = 2;    ///< of values
  /// A run's value is the median of so many validations at its end, as in the article's
  /// section 5.1.
  static constexpr size_t kLastValidations = 5;
  std::vector<BatchLine> lines;
  /// Keys that differ within lines, beside seed, batch and warm-up: what is seen may be due to
  /// them.
  std::vector<std::string> others;
};

/// The number that `best` means, or else the loss, of the runs that have it. A number with
/// NumberStyle::error is drawn as 100 (1 - value). Nothing unless all of these runs are of one
/// family, and some line has two batches.
std::optional<BatchFigure> batch_figure(const Comparison& comparison,
                                        const std::vector<Curves>& curves);

/// The figure, a table of its points, and a note: a section of comparison_page. The error bars are
/// two deviations long in each direction, as in the article.
std::string render_batch_figure(const BatchFigure& figure);

}  // namespace stretto::report
