#include <array>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"
#include "metrics/answer_words.h"
#include "metrics/scorer.h"
#include "metrics/speech_text.h"
#include "metrics/squad.h"
#include "metrics/tokenizers.h"

namespace stretto::metrics {
namespace {

struct MetricEntry {
  const char* name;
  std::unique_ptr<Scorer> (*make)(const ScoreOptions&);
  bool is_error_rate = false;
};

/// Every metric there is.
constexpr std::array kMetrics = {
    MetricEntry{"bleu", make_bleu},
    MetricEntry{"chrf", [](const ScoreOptions& options) { return make_chrf(options, 0); }},
    MetricEntry{"chrf++", [](const ScoreOptions& options) { return make_chrf(options, 2); }},
    MetricEntry{"ter", make_ter},
    MetricEntry{"wer", make_wer, /*is_error_rate=*/true},
    MetricEntry{"cer", make_cer, /*is_error_rate=*/true},
};

struct NormalizationEntry {
  const char* name;
  Normalization normalize;
  bool is_contiguous = false;
};

constexpr std::array kNormalizations = {
    NormalizationEntry{"none", keep_transcript},
    NormalizationEntry{"standardize", standardize_transcript},
    NormalizationEntry{"contiguous", keep_transcript, /*is_contiguous=*/true},
    NormalizationEntry{"standardize_contiguous", standardize_transcript, /*is_contiguous=*/true},
};

struct SquadEntry {
  const char* name;
  SquadVersion version;
};

constexpr std::array kSquadMetrics = {
    SquadEntry{"squad1", SquadVersion::kV1},
    SquadEntry{"squad2", SquadVersion::kV2},
};

struct AnswerSplitEntry {
  const char* name;
  AnswerSplit split;
};

constexpr std::array kAnswerSplits = {
    AnswerSplitEntry{"space", AnswerSplit::kSpace},
    AnswerSplitEntry{"mlqa-zh", AnswerSplit::kMlqaZh},
    AnswerSplitEntry{"cjk", AnswerSplit::kCjk},
};

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

/// @param what  an entry, for the message. Throws Error(kUsage) for an unknown name.
template <class Entries>
const auto& entry_named(const Entries& entries, const std::string& name, const std::string& what) {
  for (const auto& entry : entries) {
    if (name == entry.name) return entry;
  }
  const auto known = names_of(entries);
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
  return entry_named(bleu_tokenizers(), name, "BLEU tokenizer").tokenize;
}

std::unique_ptr<Scorer> make_scorer(const ScoreOptions& options) {
  return entry_named(kMetrics, options.metric, "metric").make(options);
}

std::vector<std::string> metric_names() {
  return names_of(kMetrics);
}

bool is_error_rate(const std::string& metric) {
  return entry_named(kMetrics, metric, "metric").is_error_rate;
}

Normalization find_normalization(const std::string& name) {
  return entry_named(kNormalizations, name, "normalization").normalize;
}

bool is_contiguous(const std::string& normalization) {
  return entry_named(kNormalizations, normalization, "normalization").is_contiguous;
}

std::vector<std::string> normalization_names() {
  return names_of(kNormalizations);
}

std::vector<std::string> tokenizer_names() {
  return names_of(bleu_tokenizers());
}

std::vector<std::string> squad_metric_names() {
  return names_of(kSquadMetrics);
}

SquadVersion squad_metric_named(const std::string& name) {
  return entry_named(kSquadMetrics, name, "metric of answers").version;
}

std::string name_of(SquadVersion version) {
  for (const auto& entry : kSquadMetrics) {
    if (version == entry.version) return entry.name;
  }
  throw std::logic_error("a version of SQuAD without a name");
}

std::vector<std::string> answer_split_names() {
  return names_of(kAnswerSplits);
}

AnswerSplit answer_split_named(const std::string& name) {
  return entry_named(kAnswerSplits, name, "split of answers").split;
}

}  // namespace stretto::metrics
