#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiment/experiment.h"

/// What `stretto distill` asks of a family of tasks.
namespace stretto::experiment {

/// A text of the student's training data that a teacher labels, line by line.
struct TextToLabel {
  std::string path;       ///< as data::open_bytes() takes it
  int64_t column = 0;     ///< of each line, from 1; 0 = the whole line
  char separator = '\t';  ///< between columns
  bool operator==(const TextToLabel&) const = default;
};

/// The most bytes of a word of a file of pairs: the pieces of two longer ones are too many pairs.
inline constexpr size_t kMostWordBytes = 1000;

/// Such a text once it is labelled: two files, line for line.
struct LabelledText {
  std::string text, labels;
};

/// Which training data a student gets.
enum class StudentData : uint8_t {
  kLabelled,        ///< what the teacher wrote alone
  kLabelledAndOwn,  ///< that, and behind it the data of the student's configuration
};

struct FamilyDistillation {
  /// Null, as is `data_keys`: a teacher labels no text, and its probabilities alone are learned.
  /// The training text of a student, in the order in which its labels are handed back. Throws
  /// Error(kUsage) for data whose lines a teacher cannot label.
  std::vector<TextToLabel> (*texts)(const Experiment& student) = nullptr;
  /// Keys of `[data]`, `key=value`, with which the student trains on those texts.
  std::vector<std::string> (*data_keys)(const Experiment& student,
                                        const std::vector<LabelledText>& texts,
                                        StudentData data) = nullptr;
  /// Keys for `stretto infer` of the teacher, whatever its configuration says: one label a line, in
  /// the form in which training reads it. Null: none.
  /// @param reader  whose tokenizer reads the labels: the student, or the teacher where it takes
  /// its
  std::vector<std::string> (*teacher_keys)(const Experiment& teacher,
                                           const Experiment& reader) = nullptr;
  /// Keys with which the student learns from the teacher's probabilities beside its own labels.
  /// Null: its losses cannot.
  std::vector<std::string> (*word_level_keys)(const std::string& teacher_run,
                                              const std::string& checkpoint) = nullptr;
  /// Keys with which the student looks for its answers among the words of a file of pairs
  /// (distill/word_pairs.h). Null: it has no such key.
  std::vector<std::string> (*shortlist_keys)(const std::string& pairs) = nullptr;
  /// Throws Error(kUsage) where one cannot teach the other: languages that differ, say.
  void (*require_match)(const Experiment& teacher, const Experiment& student) = nullptr;
};

}  // namespace stretto::experiment
