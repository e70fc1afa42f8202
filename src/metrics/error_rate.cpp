#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "metrics/edit_counts.h"
#include "metrics/scorer.h"
#include "metrics/speech_text.h"
#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

constexpr size_t kHits = 0, kSubstitutions = 1, kDeletions = 2, kInsertions = 3, kNumErrorSums = 4;

struct ErrorUnit {
  const char* metric;  ///< "WER"
  std::vector<std::u32string> (*split)(std::u32string_view text);
  const char32_t* joint;  ///< a unit between two transcripts that are one; empty = none
};

/// Errors over the length of the reference, as jiwer counts both.
class ErrorRate : public Scorer {
 public:
  ErrorRate(const ScoreOptions& options, ErrorUnit unit)
      : unit_(unit),
        lowercase_(options.lowercase),
        normalization_(options.normalize),
        normalize_(find_normalization(options.normalize)),
        is_contiguous_(metrics::is_contiguous(options.normalize)) {}

  std::vector<double> segment_statistics(const std::string& hypothesis,
                                         std::span<const std::string> references) override {
    if (references.size() != 1) {
      throw Error(ExitCode::kUsage, std::string(unit_.metric) + " compares with one reference",
                  "give one file of references");
    }
    const EditCounts counts = count_edits(units(references.front()), units(hypothesis));
    std::vector<double> row(kNumErrorSums);
    row[kHits] = static_cast<double>(counts.hits);
    row[kSubstitutions] = static_cast<double>(counts.substitutions);
    row[kDeletions] = static_cast<double>(counts.deletions);
    row[kInsertions] = static_cast<double>(counts.insertions);
    return row;
  }

  /// Without a word in any reference, jiwer gives the number of insertions.
  double score(std::span<const double> totals) const override {
    const double length = length_of(totals), errors = errors_of(totals);
    return 100 * (length > 0 ? errors / length : errors);
  }

  Score report(std::span<const double> totals) const override {
    Score out;
    out.metric = unit_.metric;
    out.score = score(totals);
    out.details = {{"hits", totals[kHits]},
                   {"substitutions", totals[kSubstitutions]},
                   {"deletions", totals[kDeletions]},
                   {"insertions", totals[kInsertions]},
                   {"ref_length", length_of(totals)}};
    return out;
  }

  std::string signature_fields() const override {
    return std::string("case:") + (lowercase_ ? "lc" : "mixed") + "|norm:" + normalization_;
  }
  std::string version() const override { return std::string("jiwer-") + kJiwerVersion; }
  bool higher_is_better() const override { return false; }
  bool is_contiguous() const override { return is_contiguous_; }

 private:
  static double length_of(std::span<const double> totals) {
    return totals[kHits] + totals[kSubstitutions] + totals[kDeletions];
  }
  static double errors_of(std::span<const double> totals) {
    return totals[kSubstitutions] + totals[kDeletions] + totals[kInsertions];
  }

  std::vector<std::u32string> units_of_line(const std::string& line) const {
    std::u32string text = decode_utf8(line);
    if (lowercase_) text = lower(text);
    return unit_.split(normalize_(std::move(text)));
  }

  std::vector<uint32_t> units(const std::string& segment) {
    if (!is_contiguous_) return vocabulary_.ids(units_of_line(segment));
    std::vector<std::u32string> all;
    for (const std::string& line : split(segment, '\n')) {
      std::vector<std::u32string> own = units_of_line(line);
      if (!all.empty() && !own.empty() && *unit_.joint != 0) all.emplace_back(unit_.joint);
      all.insert(all.end(), std::make_move_iterator(own.begin()),
                 std::make_move_iterator(own.end()));
    }
    return vocabulary_.ids(all);
  }

  const ErrorUnit unit_;
  const bool lowercase_;
  const std::string normalization_;
  const Normalization normalize_;
  const bool is_contiguous_;
  Vocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Scorer> make_wer(const ScoreOptions& options) {
  return std::make_unique<ErrorRate>(options, ErrorUnit{"WER", words_of_transcript, U""});
}

std::unique_ptr<Scorer> make_cer(const ScoreOptions& options) {
  return std::make_unique<ErrorRate>(options, ErrorUnit{"CER", characters_of_transcript, U" "});
}

}  // namespace stretto::metrics
