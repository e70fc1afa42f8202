#include "data/squad/question_lines.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/lines.h"

namespace stretto::data {
namespace {

constexpr const char* kLineShape =
    "expected {\"question\": …, \"context\": …} or QUESTION, a tab and its paragraph";

/// A text of a JSON line; a problem where it is missing or is none.
std::string text_at(const nlohmann::json& json, const char* key, std::string& problem) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_string()) return found->get<std::string>();
  if (problem.empty()) problem = std::string("no text `") + key + "`; " + kLineShape;
  return "";
}

QuestionLine parse_json_line(const InputLine& line) {
  QuestionLine parsed;
  try {
    const auto json = parse_json(line.text, line.place, kMaxLineBytes);
    if (json.contains("data")) {
      parsed.problem =
          "this looks like a file of SQuAD; give it as a file whose name ends in .json";
      return parsed;
    }
    parsed.question = text_at(json, "question", parsed.problem);
    parsed.paragraph = text_at(json, "context", parsed.problem);
    if (json.contains("id")) {
      parsed.id =
          json.at("id").is_string() ? json.at("id").get<std::string>() : json.at("id").dump();
    }
  } catch (const Error& error) {
    parsed.problem = std::string("not JSON: ") + error.what();
  }
  return parsed;
}

}  // namespace

QuestionLine parse_question_line(const InputLine& line) {
  QuestionLine parsed;
  if (!line.problem.empty()) {
    parsed.problem = line.problem;
    return parsed;
  }
  if (line.text.find_first_not_of(" \t") == line.text.find('{') &&
      line.text.find('{') != std::string::npos) {
    parsed = parse_json_line(line);
  } else if (const size_t tab = line.text.find('\t'); tab != std::string::npos) {
    parsed.question = line.text.substr(0, tab);
    parsed.paragraph = line.text.substr(tab + 1);
  } else {
    parsed.problem = kLineShape;
  }
  if (parsed.problem.empty() && trim(parsed.question).empty()) parsed.problem = "no question";
  if (parsed.problem.empty() && trim(parsed.paragraph).empty()) parsed.problem = "no paragraph";
  return parsed;
}

bool names_squad_file(std::string_view path) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  }
  return path.ends_with(".json");
}

void append_question(const QuestionLine& line, SquadData& data) {
  if (data.paragraphs.empty() || data.paragraphs.back().text != line.paragraph) {
    data.paragraphs.push_back({.text = line.paragraph, .title = ""});
  }
  data.questions.push_back({.id = std::to_string(data.questions.size()),
                            .text = line.question,
                            .paragraph = data.paragraphs.size() - 1,
                            .answers = {}});
}

}  // namespace stretto::data
