#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ctc/ctc_options.h"
#include "decoding/token_scorer.h"
#include "text/ngram/lexicon.h"

/// Shape letters: T frames, L labels. A frame has L + 1 classes; class L is the blank.
namespace stretto::ctc {

/// What the labels of a model mean as text.
struct CtcLabels {
  std::vector<std::string> names;  ///< [L] as lexicons and language models of labels have them
  std::vector<std::string> texts;  ///< [L] what a label adds to the text, without a word's mark
  std::vector<bool> begins_word;   ///< [L] with a label of this kind a new word begins
  int64_t separator = -1;          ///< the label that stands between words; -1 = there is none

  int64_t size() const { return static_cast<int64_t>(names.size()); }
};

/// Labels by their names: " ", "|" or "<space>" is the separator, "▁" in front of a name begins a
/// word. A name in angle brackets or without a text, such as "<pad>", adds none.
CtcLabels labels_by_name(std::vector<std::string> names);

/// A word of a hypothesis and the frames that it takes.
struct CtcWord {
  std::string text;
  int64_t begin_frame = 0;
  int64_t end_frame = 0;  ///< behind the last one
  bool operator==(const CtcWord&) const = default;
};

/// One text that the frames may be.
struct CtcHypothesis {
  std::vector<int64_t> ids;           ///< labels
  std::vector<int64_t> begin_frames;  ///< [ids] where each label most probably begins
  std::vector<CtcWord> words;
  std::string text;         ///< words with a space between
  double score = 0;         ///< all of CtcOptions' sum; what n best are sorted by
  double log_prob = 0;      ///< of the labels, over all alignments (greedy: of the best one)
  double lm_log_prob = 0;   ///< of the language model, natural log, without alpha
  bool is_complete = true;  ///< false: the last word is none of the lexicon
};

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

  struct Parts;  ///< for CtcSearch
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const Parts> parts_;
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
  /// @param scorer  a language model of labels in the place of options.lm, such as one of a
  ///                StepModel (decoding/step_scorer.h), for beams; its tokens are the labels; not
  ///                owned
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
