#include <string_view>

#include "metrics/scorer.h"
#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

constexpr int kCharacterOrder = 6;
constexpr double kBetaSquared = 4;  // beta 2: recall weighs twice as much as precision

/// Counts of one n-gram order; a row of statistics is one after another of these.
constexpr size_t kHypothesis = 0, kReference = 1, kMatch = 2, kPerOrder = 3;

/// Parts one punctuation mark from the end of a word, else one from its start (Popovic's script).
std::vector<std::u32string> separate_punctuation(std::vector<std::u32string> words) {
  std::vector<std::u32string> out;
  for (auto& word : words) {
    if (word.size() > 1 && is_ascii_punctuation(word.back())) {
      out.push_back(word.substr(0, word.size() - 1));
      out.push_back(word.substr(word.size() - 1));
    } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
      out.push_back(word.substr(0, 1));
      out.push_back(word.substr(1));
    } else {
      out.push_back(std::move(word));
    }
  }
  return out;
}

/// F-beta of precision and recall averaged over the orders that both sides have.
double f_score(std::span<const double> statistics) {
  double precision = 0, recall = 0;
  int effective_order = 0;
  for (size_t at = 0; at < statistics.size(); at += kPerOrder) {
    const double hyp = statistics[at + kHypothesis], ref = statistics[at + kReference];
    if (hyp <= 0 || ref <= 0) continue;
    precision += statistics[at + kMatch] / hyp;
    recall += statistics[at + kMatch] / ref;
    ++effective_order;
  }
  if (effective_order == 0 || precision + recall == 0) return 0;
  precision /= effective_order;
  recall /= effective_order;
  return 100 * ((1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall));
}

class Chrf : public Scorer {
 public:
  Chrf(const ScoreOptions& options, int word_order)
      : lowercase_(options.lowercase), word_order_(word_order) {}

  std::vector<double> segment_statistics(const std::string& hypothesis,
                                         std::span<const std::string> references) override {
    const std::vector<NgramCounts> hyp = all_ngrams(hypothesis);
    std::vector<double> best;
    double best_score = -1;
    for (const auto& reference : references) {
      std::vector<double> row = match(hyp, all_ngrams(reference));
      const double segment_score = f_score(row);
      if (segment_score > best_score) {
        best_score = segment_score;
        best = std::move(row);
      }
    }
    return best;
  }

  double score(std::span<const double> totals) const override { return f_score(totals); }

  Score report(std::span<const double> totals) const override {
    Score out;
    out.metric = "chrF2" + std::string(static_cast<size_t>(word_order_), '+');
    out.score = score(totals);
    for (size_t at = 0; at < totals.size(); at += kPerOrder) {
      const std::string order = std::to_string(at / kPerOrder + 1);
      const auto percent_of = [&](size_t what) {
        return totals[at + what] > 0 ? 100 * totals[at + kMatch] / totals[at + what] : 0.0;
      };
      out.details.emplace_back("precision_" + order, percent_of(kHypothesis));
      out.details.emplace_back("recall_" + order, percent_of(kReference));
    }
    return out;
  }

  std::string signature_fields() const override {
    return std::string("case:") + (lowercase_ ? "lc" : "mixed") +
           "|eff:yes|nc:" + std::to_string(kCharacterOrder) + "|nw:" + std::to_string(word_order_) +
           "|space:no";
  }

 private:
  std::vector<NgramCounts> all_ngrams(const std::string& segment) {
    std::u32string text = decode_utf8(segment);
    if (lowercase_) text = lower(text);
    std::vector<std::u32string> words = split_words(text);
    std::vector<uint32_t> characters;
    for (const auto& word : words) characters.insert(characters.end(), word.begin(), word.end());

    std::vector<NgramCounts> out;
    for (int n = 1; n <= kCharacterOrder; ++n) {
      out.push_back(count_ngrams(characters, n, SymbolBits::kCharacter));
    }
    if (word_order_ > 0) {
      const auto ids = vocabulary_.ids(separate_punctuation(std::move(words)));
      for (int n = 1; n <= word_order_; ++n) {
        out.push_back(count_ngrams(ids, n, SymbolBits::kWord));
      }
    }
    return out;
  }

  static std::vector<double> match(const std::vector<NgramCounts>& hyp,
                                   const std::vector<NgramCounts>& ref) {
    std::vector<double> row;
    for (size_t n = 0; n < hyp.size(); ++n) {
      // An order that the reference is too short for does not count against the hypothesis.
      row.push_back(ref[n].total > 0 ? static_cast<double>(hyp[n].total) : 0.0);
      row.push_back(static_cast<double>(ref[n].total));
      row.push_back(static_cast<double>(count_matches(hyp[n], ref[n])));
    }
    return row;
  }

  const bool lowercase_;
  const int word_order_;
  Vocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Scorer> make_chrf(const ScoreOptions& options, int word_order) {
  return std::make_unique<Chrf>(options, word_order);
}

}  // namespace stretto::metrics
