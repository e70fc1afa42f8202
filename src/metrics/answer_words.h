#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::metrics {

/// What counts as a word of an answer.
enum class AnswerSplit {
  /// As the scripts of SQuAD 1.1 and 2.0: ASCII punctuation and the articles a, an, the are
  /// removed, and white space separates words. Text without spaces is one word.
  kSpace,
  /// As the script of MLQA (Lewis et al. 2020) for `zh`: all Unicode punctuation (\p{P}) and ASCII
  /// punctuation is removed, articles stay, and each of U+4E00 to U+9FA5 is a word.
  kMlqaZh,
  /// As kMlqaZh, for Japanese too: each character of Han, Hiragana and Katakana is a word. No
  /// published script counts so; scores compare with those of this option only.
  kCjk,
};

/// Names of the values above, in their order: space, mlqa-zh, cjk.
std::vector<std::string> answer_split_names();
/// Throws Error(kUsage) for an unknown name, with the nearest known one.
AnswerSplit answer_split_named(const std::string& name);

/// The words of an answer after normalisation: lower case as Python's str.lower(), without
/// punctuation and articles, split as Python's str.split() does. Two answers match exactly when
/// their words are equal.
///
/// An article is a whole run of letters and numbers, as `\b(a|an|the)\b` of Python's `re` finds
/// it: combining marks end a run.
///
/// @param text  UTF-8; a malformed byte counts as U+FFFD
std::vector<std::u32string> answer_words(std::string_view text,
                                         AnswerSplit split = AnswerSplit::kSpace);

}  // namespace stretto::metrics
