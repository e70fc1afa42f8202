#pragma once

#include <string>
#include <string_view>

#include "data/squad/squad_file.h"
#include "data/text_input.h"

/// Questions for `stretto infer`, one a line.
namespace stretto::data {

struct QuestionLine {
  std::string id;  ///< of a JSON line that has one
  std::string question, paragraph;
  std::string problem;  ///< why it cannot be answered; empty = it can
};

/// `QUESTION<TAB>PARAGRAPH`, or a JSON object with `question`, `context` and perhaps `id`; other
/// keys are ignored. A bad line is handed on with its problem, as TextInput does.
QuestionLine parse_question_line(const InputLine& line);

/// Whether a path of `stretto infer` names a file of SQuAD and not lines: it ends with `.json`,
/// perhaps packed (`.json.gz`, `FILE.zip:x.json`).
bool names_squad_file(std::string_view path);

/// Appends a question, and its paragraph unless that is the one before. Its id is its number.
void append_question(const QuestionLine& line, SquadData& data);

}  // namespace stretto::data
