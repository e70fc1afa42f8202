#include <algorithm>
#include <cmath>

#include "metrics/edit_rate.h"
#include "metrics/scorer.h"
#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

constexpr size_t kEdits = 0, kLength = 1, kNumTerSums = 2;

class Ter : public Scorer {
 public:
  explicit Ter(const ScoreOptions& options) : case_sensitive_(options.ter_case_sensitive) {}

  /// The fewest edits to any reference, and the average reference length.
  std::vector<double> segment_statistics(const std::string& hypothesis,
                                         std::span<const std::string> references) override {
    const std::vector<uint32_t> hyp = words(hypothesis);
    std::vector<double> row(kNumTerSums);
    double lengths = 0;
    for (size_t r = 0; r < references.size(); ++r) {
      const std::vector<uint32_t> ref = words(references[r]);
      const auto edits = static_cast<double>(translation_edits(hyp, ref));
      row[kEdits] = r == 0 ? edits : std::min(row[kEdits], edits);
      lengths += static_cast<double>(ref.size());
    }
    row[kLength] = lengths / static_cast<double>(references.size());
    return row;
  }

  double score(std::span<const double> totals) const override {
    if (totals[kLength] > 0) return 100 * (totals[kEdits] / totals[kLength]);
    return totals[kEdits] > 0 ? 100 : 0;
  }

  Score report(std::span<const double> totals) const override {
    Score out;
    out.metric = "TER";
    out.score = score(totals);
    out.details = {{"num_edits", totals[kEdits]}, {"ref_length", totals[kLength]}};
    return out;
  }

  std::string signature_fields() const override {
    return std::string("case:") + (case_sensitive_ ? "mixed" : "lc") +
           "|tok:tercom|norm:no|punct:yes|asian:no";
  }

  bool higher_is_better() const override { return false; }

 private:
  std::vector<uint32_t> words(const std::string& segment) {
    std::u32string text = decode_utf8(segment);
    if (!case_sensitive_) text = lower(rstrip(std::move(text)));
    return vocabulary_.ids(split_words(text));
  }

  const bool case_sensitive_;
  Vocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Scorer> make_ter(const ScoreOptions& options) {
  return std::make_unique<Ter>(options);
}

}  // namespace stretto::metrics
