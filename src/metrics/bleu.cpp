#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "metrics/scorer.h"
#include "metrics/text_units.h"
#include "metrics/tokenizers.h"

namespace stretto::metrics {
namespace {

constexpr int kMaxOrder = 4;
constexpr size_t kHypothesisLength = 0, kReferenceLength = 1, kCorrect = 2;
constexpr size_t kTotal = kCorrect + kMaxOrder;
constexpr size_t kNumBleuSums = kTotal + kMaxOrder;

/// The reference length nearest to the hypothesis; of two equally near the shorter.
int64_t closest_length(int64_t length, std::span<const int64_t> candidates) {
  return *std::min_element(candidates.begin(), candidates.end(), [length](int64_t a, int64_t b) {
    const int64_t da = std::abs(a - length), db = std::abs(b - length);
    return da != db ? da < db : a < b;
  });
}

/// Precisions in percent with exponential smoothing (NIST): the k-th order without a match gets
/// 1 / (2^k total). All are 0 when nothing matched at all, and orders longer than every hypothesis
/// stay 0, which makes the corpus score 0 (effective order is off).
std::array<double, kMaxOrder> smoothed_precisions(std::span<const double> totals) {
  std::array<double, kMaxOrder> precisions{};
  const auto correct = totals.subspan(kCorrect, kMaxOrder);
  if (std::all_of(correct.begin(), correct.end(), [](double c) { return c == 0; })) {
    return precisions;
  }
  double smoothing = 1;
  for (size_t n = 0; n < kMaxOrder; ++n) {
    const double total = totals[kTotal + n];
    if (total == 0) break;
    if (correct[n] == 0) {
      smoothing *= 2;
      precisions[n] = 100.0 / (smoothing * total);
    } else {
      precisions[n] = 100.0 * correct[n] / total;
    }
  }
  return precisions;
}

double brevity_penalty(double hypothesis_length, double reference_length) {
  if (hypothesis_length >= reference_length) return 1;
  return hypothesis_length > 0 ? std::exp(1 - reference_length / hypothesis_length) : 0;
}

class Bleu : public Scorer {
 public:
  explicit Bleu(const ScoreOptions& options)
      : options_(options), tokenize_(find_bleu_tokenizer(options.tokenize)) {}

  std::vector<double> segment_statistics(const std::string& hypothesis,
                                         std::span<const std::string> references) override {
    const std::vector<uint32_t> hyp = words(hypothesis);
    std::vector<std::vector<uint32_t>> refs;
    std::vector<int64_t> lengths;
    for (const auto& reference : references) {
      refs.push_back(words(reference));
      lengths.push_back(static_cast<int64_t>(refs.back().size()));
    }
    std::vector<double> row(kNumBleuSums);
    const auto length = static_cast<int64_t>(hyp.size());
    row[kHypothesisLength] = static_cast<double>(length);
    row[kReferenceLength] = static_cast<double>(closest_length(length, lengths));
    for (int order = 1; order <= kMaxOrder; ++order) {
      NgramCounts allowed;
      for (const auto& ref : refs) {
        allowed = merge_max(allowed, count_ngrams(ref, order, SymbolBits::kWord));
      }
      const NgramCounts counts = count_ngrams(hyp, order, SymbolBits::kWord);
      const auto n = static_cast<size_t>(order - 1);
      row[kCorrect + n] = static_cast<double>(count_matches(counts, allowed));
      row[kTotal + n] = static_cast<double>(counts.total);
    }
    return row;
  }

  double score(std::span<const double> totals) const override {
    const auto precisions = smoothed_precisions(totals);
    double sum = 0;
    for (double precision : precisions) {
      if (precision == 0) return 0;
      sum += std::log(precision);
    }
    return brevity_penalty(totals[kHypothesisLength], totals[kReferenceLength]) *
           std::exp(sum / kMaxOrder);
  }

  Score report(std::span<const double> totals) const override {
    Score out;
    out.metric = "BLEU";
    out.score = score(totals);
    const auto precisions = smoothed_precisions(totals);
    const double hyp_len = totals[kHypothesisLength], ref_len = totals[kReferenceLength];
    const double penalty = brevity_penalty(hyp_len, ref_len);
    const double ratio = ref_len > 0 ? hyp_len / ref_len : 0;
    std::vector<std::string> shown;
    for (size_t n = 0; n < kMaxOrder; ++n) {
      shown.push_back(fixed(precisions[n], 1));
      out.details.emplace_back("precision_" + std::to_string(n + 1), precisions[n]);
    }
    out.details.insert(out.details.end(), {{"brevity_penalty", penalty},
                                           {"ratio", ratio},
                                           {"hyp_len", hyp_len},
                                           {"ref_len", ref_len}});
    out.verbose = join(shown, "/") + " (BP = " + fixed(penalty, 3) + " ratio = " + fixed(ratio, 3) +
                  " hyp_len = " + fixed(hyp_len, 0) + " ref_len = " + fixed(ref_len, 0) + ")";
    return out;
  }

  std::string signature_fields() const override {
    return std::string("case:") + (options_.lowercase ? "lc" : "mixed") +
           "|eff:no|tok:" + options_.tokenize + "|smooth:exp";
  }

 private:
  std::vector<uint32_t> words(const std::string& segment) {
    std::u32string text = decode_utf8(segment);
    if (options_.lowercase) text = lower(text);
    return vocabulary_.ids(split_words(tokenize_(rstrip(std::move(text)))));
  }

  const ScoreOptions options_;
  const BleuTokenizer tokenize_;
  Vocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Scorer> make_bleu(const ScoreOptions& options) {
  return std::make_unique<Bleu>(options);
}

}  // namespace stretto::metrics
