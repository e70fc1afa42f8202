#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/display.h"

/// The numbers by which people judge the runs of a family: one list, which `check`, the linter,
/// `eval.best_metric`, a search, the console, curves and reports read.
namespace stretto::experiment {

/// How many samples a score needs.
struct ScoreNoise {
  int64_t fewest = 0;     ///< of fewer it is mostly noise; 0 = no number is known
  std::string source;     ///< paper or page that says so
  bool is_share = false;  ///< a mean of values from 0 to 1: its standard error has a bound
};

/// A share, such as an accuracy: its standard error, sqrt(p (1 - p) / n), is at most
/// 0.5 / sqrt(n), which is 2.5 points of 400 samples. So is that of a mean of values from 0 to 1.
inline ScoreNoise noise_of_share() {
  return {.fewest = 400, .source = "docs/large-batches.md#validation", .is_share = true};
}

/// F1 of a class, or a correlation: its worst case is no better.
inline ScoreNoise noise_beyond_share() {
  ScoreNoise noise = noise_of_share();
  noise.is_share = false;
  return noise;
}

/// A number of a family's validations, or of its training.
struct ScoreSpec {
  report::NumberStyle style;  ///< its key, which way is better, and how it is printed and drawn
  bool ranks = true;          ///< `best` can go by it: every validation has it
  std::vector<std::string> also_called = {};  ///< by other toolkits, or by people
  std::string title = {};                     ///< in a text, "BLEU"; empty = as its key
  ScoreNoise noise = {};

  const std::string& name() const { return style.name; }
  bool higher_is_better() const { return style.higher_is_better; }
  const std::string& words() const { return title.empty() ? style.name : title; }
};

/// Those by which `best` can go, in their order, but the loss behind the others: the first one is
/// the default of `eval.best_metric`.
std::vector<ScoreSpec> ranking_scores(const std::vector<ScoreSpec>& scores);

/// How they are drawn, in their order.
std::vector<report::NumberStyle> styles_of(const std::vector<ScoreSpec>& scores);

}  // namespace stretto::experiment
