#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/squad/question_store.h"
#include "data/squad/question_windows.h"
#include "data/squad/squad_file.h"
#include "data/squad/windows.h"
#include "experiment/experiment.h"
#include "experiment/preflight.h"
#include "families/question_answering/question_answering_options.h"
#include "families/text/text_rules.h"
#include "metrics/squad.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// The sections of question answering. Throws std::bad_variant_access for another family.
inline const QuestionAnsweringOptions& questions_of(const Experiment& experiment) {
  return experiment.task.as<QuestionAnsweringOptions>();
}
inline QuestionAnsweringOptions& questions_of(Experiment& experiment) {
  return experiment.task.as<QuestionAnsweringOptions>();
}

/// Questions for training or for scores, each with answers or marked impossible.
///
/// Throws as data::read_squad(), and Error(kBadData) for an impossible question where data.version
/// is 1.
data::SquadData read_questions(const Experiment& experiment, const std::vector<std::string>& files);
/// The same from the cache, where they are kept for the next start.
data::StoredQuestions open_questions(const Experiment& experiment,
                                     const std::vector<std::string>& files);
/// The questions for training, those with bad answers too; the second one from the cache, where
/// they are kept for the next start. Where something was left out they have no key.
data::SquadData read_training_text(const Experiment& experiment);
data::StoredQuestions open_training_text(const Experiment& experiment);
/// Windows of open_questions(); tokens are from the cache where they are in it.
data::QuestionWindows open_windows(const Experiment& experiment,
                                   const std::vector<std::string>& files,
                                   const text::Tokenizer& tokenizer);
data::QuestionWindows windows_of(const Experiment& experiment, data::StoredQuestions questions,
                                 const text::Tokenizer& tokenizer);

/// Questions, tokenizer and tokens in the cache, as TaskRules::prepare_data() has it.
void prepare_questions(const Experiment& experiment);

/// Whether a paragraph of these may not answer its question.
bool has_impossible(const data::SquadData& questions);

/// The rules by which answers count. @param has_impossible  whether, of data.version = "auto", the
/// data have a question without an answer
metrics::SquadVersion squad_version(const Experiment& experiment, bool has_impossible);

/// How paragraphs are cut; the special tokens are those of the tokenizer.
data::WindowOptions window_options(const Experiment& experiment);

/// Paragraphs and questions for the training of a tokenizer, one a line. The key is that of the
/// questions.
class QuestionText : public text::LineSource {
 public:
  /// @param read  called when the key or the first line is asked for
  explicit QuestionText(std::function<data::StoredQuestions()> read) : read_(std::move(read)) {}
  uint64_t key() override { return questions().key; }
  bool next(std::string& line) override;

 private:
  const data::StoredQuestions& questions();

  std::function<data::StoredQuestions()> read_;
  data::StoredQuestions questions_;
  size_t next_ = 0;  ///< paragraphs, then questions
};

/// The tokens of all windows, special ones included, and those of them that are unknown.
TokenCounts count_window_tokens(const data::QuestionWindows& windows,
                                const text::Tokenizer& tokenizer);

/// The same of the windows that files make, and how many these are. Files that question_preflight()
/// leaves unread are not read here either. Throws as read_questions() and data::QuestionWindows do.
SeenTokens count_question_tokens(const Experiment& experiment,
                                 const std::vector<std::string>& files,
                                 const text::Tokenizer& tokenizer, const PreflightTimer& time);

/// Reads the files of questions within the time that there is: the large ones only with `how.full`.
Preflight question_preflight(const Experiment& experiment,
                             const std::vector<config::Problem>& known,
                             const PreflightOptions& how);

}  // namespace stretto::experiment
