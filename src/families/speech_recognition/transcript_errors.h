#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "metrics/edit_counts.h"

/// How transcripts differ from what was said, as jiwer counts it (metrics/edit_counts.h).
namespace stretto::tasks {

/// Errors of an utterance.
struct TranscriptErrors {
  metrics::EditCounts words, characters;
};

/// @param normalize  one of metrics::normalization_names(), for both sides
/// Throws Error(kBadData) for texts that are too long to be aligned.
TranscriptErrors transcript_errors(const std::string& reference, const std::string& hypothesis,
                                   const std::string& normalize);

/// Errors over the length of the reference, in percent; as jiwer, 100 times the insertions where no
/// reference has a word.
double error_rate(const metrics::EditCounts& counts);

/// What became of an utterance.
struct UtteranceResult {
  std::string id, place;
  double seconds = 0;
  std::string reference, hypothesis;
  double loss = 0;      ///< NaN: its sound is too short for its text
  bool is_read = true;  ///< false: its sound could not be read, and it has no hypothesis
};

/// A line for each utterance, with tabs between its columns, below a line of their names:
///
///     id  seconds  words  substitutions  deletions  insertions  loss  reference  hypothesis
///
/// Tabs and line ends within texts become spaces. An utterance that was not read has `-` in the
/// place of numbers, and one without a loss has it there.
std::string utterance_table(const std::vector<UtteranceResult>& results,
                            const std::string& normalize);

/// Which words were taken for which. Words are those of the normalised texts.
class Confusions {
 public:
  explicit Confusions(std::string normalize) : normalize_(std::move(normalize)) {}

  void add(const std::string& reference, const std::string& hypothesis);
  /// A line for each pair that occurred, the most frequent first, with tabs between: how often, the
  /// word of the reference, the word in its place. `-` stands for no word.
  std::string text() const;

 private:
  std::string normalize_;
  std::map<std::pair<std::string, std::string>, int64_t> counts_;
};

}  // namespace stretto::tasks
