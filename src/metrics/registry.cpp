#include <array>

#include "base/error.h"
#include "base/text.h"
#include "metrics/scorer.h"
#include "metrics/tokenizers.h"

namespace stretto::metrics {
namespace {

struct MetricEntry {
  const char* name;
  std::unique_ptr<Scorer> (*make)(const ScoreOptions&);
};

/// Every metric there is.
constexpr std::array kMetrics = {
    MetricEntry{"bleu", make_bleu},
    MetricEntry{"chrf", [](const ScoreOptions& options) { return make_chrf(options, 0); }},
    MetricEntry{"chrf++", [](const ScoreOptions& options) { return make_chrf(options, 2); }},
    MetricEntry{"ter", make_ter},
};

[[noreturn]] void throw_unknown(const std::string& what, const std::string& name,
                                const std::vector<std::string>& known) {
  const std::string near = closest(name, known);
  throw Error(
      ExitCode::kUsage, "unknown " + what + " '" + printable(name) + "'",
      (near.empty() ? "" : "did you mean '" + near + "'? ") + "known: " + join(known, ", "));
}

}  // namespace

const std::vector<BleuTokenizerEntry>& bleu_tokenizers() {
  static const std::vector<BleuTokenizerEntry> kTokenizers = {
      {"13a", tokenize_13a},
      {"intl", tokenize_intl},
      {"none", tokenize_none},
      {"char", tokenize_char},
  };
  return kTokenizers;
}

BleuTokenizer find_bleu_tokenizer(const std::string& name) {
  for (const auto& entry : bleu_tokenizers()) {
    if (name == entry.name) return entry.tokenize;
  }
  throw_unknown("BLEU tokenizer", name, tokenizer_names());
}

std::unique_ptr<Scorer> make_scorer(const ScoreOptions& options) {
  for (const auto& entry : kMetrics) {
    if (options.metric == entry.name) return entry.make(options);
  }
  throw_unknown("metric", options.metric, metric_names());
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& entry : kMetrics) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> names;
  for (const auto& entry : bleu_tokenizers()) names.emplace_back(entry.name);
  return names;
}

}  // namespace stretto::metrics
