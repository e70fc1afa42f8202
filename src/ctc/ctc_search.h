#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "ctc/ctc_labels.h"
#include "ctc/ctc_options.h"
#include "ctc/hypothesis.h"
#include "decoding/token_scorer.h"
#include "text/ngram/lexicon.h"

/// Shape letters: T frames, L labels. A frame has L + 1 classes; class L is the blank.
namespace stretto::ctc {

struct DecoderParts;

/// All that searches share: labels, lexicon, language model, hot words. Unchanged after it was
/// made; threads may search with it at once.
class CtcDecoder {
 public:
  /// @param spell      labels of a word that a lexicon has without its labels, and of the language
  ///                   model's words (CtcOptions::lexicon_from_lm)
  /// @param cache_dir  of the language model's mapped form; empty = the user's cache folder
  /// Throws Error(kUsage) for options that contradict each other, and what the readers of its files
  /// throw (text/ngram).
  CtcDecoder(CtcLabels labels, CtcOptions options, const text::Speller& spell,
             const std::filesystem::path& cache_dir = {});
  ~CtcDecoder();
  CtcDecoder(CtcDecoder&&) noexcept;

  const CtcLabels& labels() const;
  const CtcOptions& options() const;
  /// Words of the lexicon, and those left out of it since they have no spelling.
  int64_t num_lexicon_words() const;
  int64_t num_left_out() const;

  /// The texts that log_probs [T, L + 1] may be, natural logs, best first: one at least, nbest at
  /// most. Throws Error(kNumeric) where a probability is NaN, naming its frame.
  std::vector<CtcHypothesis> decode(std::span<const float> log_probs) const;

  const DecoderParts& parts() const { return *parts_; }  ///< for CtcSearch

 private:
  std::unique_ptr<const DecoderParts> parts_;
};

/// One search, which takes frames as they come: results do not depend on how frames are cut into
/// pieces.
///
///     CtcSearch search(decoder);
///     search.push(frames);                 // [n, L + 1], as often as there are some
///     show(search.certain().text);         // what no further frame changes
///     const auto best = search.finish();
class CtcSearch {
 public:
  /// @param scorer  a language model of labels in the place of options.lm, for beams: its tokens
  /// are
  ///                the labels. Not owned. Throws std::invalid_argument beside options.lm.
  explicit CtcSearch(const CtcDecoder& decoder, decoding::TokenScorer* scorer = nullptr);
  ~CtcSearch();
  CtcSearch(CtcSearch&&) noexcept;

  /// @param log_probs  [n, L + 1]. Throws std::invalid_argument for another width, Error(kNumeric)
  ///                   for NaN.
  void push(std::span<const float> log_probs);
  int64_t num_frames() const;  ///< pushed so far

  /// The text as it stands, without an end: the best hypothesis so far.
  CtcHypothesis best_so_far() const;
  /// The part that all hypotheses share, which no further frame can change: whole words alone.
  CtcHypothesis certain() const;
  /// Drops hypotheses that differ from the best one in a word that ended before this frame. From
  /// now on those words are certain. Bounds the delay of certain(), at the price of hypotheses that
  /// might still have won.
  void settle(int64_t before_frame);

  /// n best of all frames; afterwards the search is as new.
  std::vector<CtcHypothesis> finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stretto::ctc
