#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "metrics/scorers.h"

namespace stretto::metrics {

/// A corpus metric that is a function of statistics which add up over segments: what makes both
/// corpus scores and resampling cheap.
class Scorer {
 public:
  virtual ~Scorer() = default;

  /// Statistics of one segment; always the same number of values. Not const: scorers intern words.
  virtual std::vector<double> segment_statistics(const std::string& hypothesis,
                                                 std::span<const std::string> references) = 0;
  /// The score of summed statistics, in percent.
  virtual double score(std::span<const double> totals) const = 0;
  /// Fills metric, score, verbose and details; `compute` adds signature and text.
  virtual Score report(std::span<const double> totals) const = 0;
  /// The metric's own part of the signature, "case:mixed|eff:no|...".
  virtual std::string signature_fields() const = 0;
  /// The release whose numbers it gives.
  virtual std::string version() const { return kSacrebleuVersion; }
  /// True when all segments are one: segment_statistics() gets them with a line feed between them.
  virtual bool is_contiguous() const { return false; }
  /// True when a larger score is better.
  virtual bool higher_is_better() const { return true; }
};

/// Throws Error(kUsage) for unknown names, with the nearest known one.
std::unique_ptr<Scorer> make_scorer(const ScoreOptions& options);

std::unique_ptr<Scorer> make_bleu(const ScoreOptions& options);
std::unique_ptr<Scorer> make_chrf(const ScoreOptions& options, int word_order);
std::unique_ptr<Scorer> make_ter(const ScoreOptions& options);
std::unique_ptr<Scorer> make_wer(const ScoreOptions& options);
std::unique_ptr<Scorer> make_cer(const ScoreOptions& options);

/// One row of statistics for each segment, after checking the counts; or one row, where all
/// segments are one, and counts may differ. Throws Error(kBadData).
std::vector<std::vector<double>> corpus_statistics(
    Scorer& scorer, std::span<const std::string> hypotheses,
    std::span<const std::vector<std::string>> references);

/// Sum over rows.
std::vector<double> sum_statistics(std::span<const std::vector<double>> rows);

}  // namespace stretto::metrics
