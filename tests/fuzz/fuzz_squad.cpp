// Fuzz target: files of SQuAD, predictions, and lines with a question. Error is the only exception
// that may come out, and what was accepted is as the header says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "data/squad/code_points.h"
#include "data/squad/predictions.h"
#include "data/squad/question_lines.h"
#include "data/squad/squad_file.h"

namespace {

using namespace stretto;

void require(bool fact) {
  if (!fact) std::abort();
}

void check(const data::SquadData& data, const data::SquadReading& reading) {
  std::set<std::string> ids;
  for (const auto& question : data.questions) {
    require(ids.insert(question.id).second);
    require(question.paragraph < data.paragraphs.size());
    require(!reading.require_answers || question.is_impossible || !question.answers.empty());
    if (reading.bad_answers == data::BadAnswers::kIgnore) continue;
    require(!question.text.empty());
    const data::CodePoints context(data.paragraphs[question.paragraph].text);
    for (const auto& answer : question.answers) {
      const int64_t end = answer.begin + data::CodePoints(answer.text).size();
      require(!answer.text.empty() && context.slice(answer.begin, end) == answer.text);
    }
  }
  for (const auto& paragraph : data.paragraphs) require(is_valid_utf8(paragraph.text));
}

/// The first line as the reader of lines hands it on: in UTF-8.
std::string first_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  if (is_valid_utf8(line)) return line;
  for (char& c : line) c = static_cast<char>(c & 0x7F);
  return line;
}

template <class Call>
void attempt(Call call) {
  try {
    call();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const data::SquadReading reading{.bad_answers = static_cast<data::BadAnswers>(bytes[0] % 3),
                                   .require_answers = (bytes[0] & 4) != 0};
  const std::string name = (bytes[0] & 8) != 0 ? "fuzz.jsonl" : "fuzz";
  for (const bool skips : {false, true}) {
    attempt([&] {
      data::SquadData data;
      data::BadSamples bad({.skips = skips, .most = 5});
      data::parse_squad(text, name, reading, data, bad);
      check(data, reading);
      require(!bad.is_stopping() && bad.left_out().count <= (skips ? 5 : 0));
    });
  }
  attempt([&] {
    const auto predictions = data::parse_predictions(text, "fuzz");
    std::set<std::string> ids;
    for (const auto& [id, answer] : predictions) {
      require(ids.insert(id).second && is_valid_utf8(answer));
    }
  });
  attempt([&] { data::parse_no_answer_probabilities(text, "fuzz"); });
  const auto line = data::parse_question_line({.place = "fuzz:1", .text = first_line(text)});
  require(!line.problem.empty() || (!line.question.empty() && !line.paragraph.empty()));
  require(is_valid_utf8(line.question) && is_valid_utf8(line.paragraph));
  return 0;
}
