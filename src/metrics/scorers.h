#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stretto::metrics {

/// The sacreBLEU release whose numbers and signatures this room reproduces; it is what a signature
/// carries as `version`, because that is what makes a published score comparable.
inline constexpr const char* kSacrebleuVersion = "2.6.0";
/// The same of jiwer, for error rates of transcripts.
inline constexpr const char* kJiwerVersion = "4.0.0";

/// What to compute, and how; the defaults are sacreBLEU's.
struct ScoreOptions {
  /// One of `metric_names()`: bleu, chrf, chrf++, ter, wer, cer.
  std::string metric = "bleu";
  /// BLEU only; one of `tokenizer_names()`: 13a, intl, none, char.
  std::string tokenize = "13a";
  /// BLEU, chrF and error rates: lower-case both sides first. TER ignores it, as sacreBLEU's `-lc`
  /// does.
  bool lowercase = false;
  /// Error rates only; one of `normalization_names()`: none, standardize, contiguous,
  /// standardize_contiguous.
  std::string normalize = "none";
  /// TER lower-cases unless this is set (`--ter-case-sensitive`).
  bool ter_case_sensitive = false;
  /// Digits after the point of the score in `Score::text`.
  int decimals = 2;
};

/// A corpus score.
struct Score {
  std::string metric;     ///< as sacreBLEU names it: BLEU, chrF2, chrF2++, TER; or WER, CER
  double score = 0;       ///< percent; for TER, WER and CER lower is better
  std::string signature;  ///< "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
  std::string text;       ///< "BLEU|<signature> = 28.64 60.1/34.5/... (BP = 1.000 ratio = ...)"
  std::string verbose;    ///< what follows the score in `text`; of BLEU alone
  /// BLEU: precision_1..4, brevity_penalty, ratio, hyp_len, ref_len; TER: num_edits, ref_length;
  /// chrF: precision_1.., recall_1.. of each n-gram order, characters first, then words;
  /// WER and CER: hits, substitutions, deletions, insertions, ref_length.
  std::vector<std::pair<std::string, double>> details;
};

/// Corpus score of `hypotheses` against one or more sets of references.
///
/// BLEU (Papineni et al. 2002) with exponential smoothing (Chen and Cherry 2014, method 3) and the
/// closest reference length; chrF (Popovic 2015, 2017) with character order 6, beta 2, and word
/// order 2 for chrF++, taking the best reference of each segment; TER (Snover et al. 2006) as
/// tercom does it, with beam width 25 and shifts of at most 10 words by at most 50 positions.
/// Scores equal sacreBLEU's.
///
/// WER and CER are the errors of words or characters over those of the reference (edit_counts.h,
/// speech_text.h), and equal 100 times jiwer's. They compare with one reference.
///
/// Text is UTF-8; a malformed byte counts as U+FFFD. Line ends should have been removed.
///
/// @param hypotheses  one segment each
/// @param references  one vector for each reference set, each as long as `hypotheses`
/// Throws Error(kUsage) for an unknown metric, tokenizer or normalization, and for several
/// references of an error rate; Error(kBadData) when there are no segments or no references or when
/// the counts differ.
Score compute(const ScoreOptions& options, std::span<const std::string> hypotheses,
              std::span<const std::vector<std::string>> references);

/// One line of JSON: metric (as in the options), score, signature, the score again under the
/// metric's name, then the details; numbers in full.
std::string to_json(const Score& score, const ScoreOptions& options);

/// Names that ScoreOptions::metric, tokenize and normalize may have.
std::vector<std::string> metric_names();
std::vector<std::string> tokenizer_names();
std::vector<std::string> normalization_names();
/// Whether the metric is an error rate of transcripts, which reads ScoreOptions::normalize.
bool is_error_rate(const std::string& metric);

}  // namespace stretto::metrics
