#include "data/squad/squad_file.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/squad/code_points.h"

namespace stretto::data {
namespace {

using SquadJson = nlohmann::json;

constexpr const char* kSquadShape =
    "SQuAD's JSON is {\"data\": [{\"paragraphs\": [{\"context\": …, \"qas\": [{\"id\": …, "
    "\"question\": …, \"answers\": [{\"text\": …, \"answer_start\": …}]}]}]}]}";

/// A value of the file, and how to get there.
struct Node {
  const SquadJson& json;
  const Node* parent = nullptr;
  std::string_view key;  ///< of an object
  size_t index = 0;      ///< of an array, if `key` is empty

  /// "data[3].paragraphs[0].context"
  std::string path() const {
    if (parent == nullptr) return "";
    const std::string before = parent->path();
    if (key.empty()) return before + "[" + std::to_string(index) + "]";
    return before + (before.empty() ? "" : ".") + std::string(key);
  }
};

SquadJson parse_file(std::string_view bytes, const std::string& where) {
  try {
    return parse_json(bytes, where, kMaxSquadBytes);
  } catch (const Error& error) {
    throw Error(
        error.code(), error.what(),
        std::string("the file is not JSON in SQuAD's format, or is damaged. ") + kSquadShape);
  }
}

class SquadParser {
 public:
  SquadParser(const std::string& where, const SquadReading& reading, SquadData& data)
      : where_(where), reading_(reading), data_(data) {
    for (const auto& question : data.questions) ids_.insert(question.id);
  }

  void parse(const SquadJson& json) {
    const Node root{.json = json};
    each(root, "data", [this](const Node& article) {
      const std::string title = optional_text(article, "title");
      each(article, "paragraphs",
           [&](const Node& paragraph) { parse_paragraph(paragraph, title); });
    });
  }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& what,
                           const std::string& advice = kSquadShape) const {
    const std::string path = node.path();
    throw Error(ExitCode::kBadData, where_ + ": " + (path.empty() ? "" : path + ": ") + what,
                advice);
  }

  /// "question 56be4db0acb8001400a502ec"
  [[noreturn]] void refuse_question(const Node& node, const SquadQuestion& question,
                                    const std::string& what, const std::string& advice) const {
    refuse(node, "question " + printable(question.id) + ": " + what, advice);
  }

  std::optional<Node> find(const Node& node, std::string_view key) const {
    if (!node.json.is_object()) refuse(node, std::string("must be an object, is ") + kind_of(node));
    const auto found = node.json.find(key);
    if (found == node.json.end()) return std::nullopt;
    return Node{.json = *found, .parent = &node, .key = key};
  }

  Node need(const Node& node, std::string_view key) const {
    const auto found = find(node, key);
    if (!found) refuse(node, "there is no `" + std::string(key) + "`");
    return *found;
  }

  static std::string kind_of(const Node& node) { return node.json.type_name(); }

  std::string text_of(const Node& node) const {
    if (!node.json.is_string()) refuse(node, "must be a string, is " + kind_of(node));
    return node.json.get<std::string>();
  }

  std::string optional_text(const Node& node, std::string_view key) const {
    const auto found = find(node, key);
    return found ? text_of(*found) : std::string();
  }

  template <class Visit>
  void each_of(const Node& list, Visit visit) const {
    if (!list.json.is_array()) refuse(list, "must be an array, is " + kind_of(list));
    size_t index = 0;
    for (const auto& element : list.json) {
      visit(Node{.json = element, .parent = &list, .index = index++});
    }
  }

  template <class Visit>
  void each(const Node& node, std::string_view key, Visit visit) const {
    each_of(need(node, key), visit);
  }

  void parse_paragraph(const Node& node, const std::string& title) {
    data_.paragraphs.push_back({.text = text_of(need(node, "context")), .title = title});
    const std::string& text = data_.paragraphs.back().text;
    const CodePoints context(text);
    each(node, "qas", [&](const Node& question) { parse_question(question, text, context); });
  }

  void parse_question(const Node& node, std::string_view text, const CodePoints& context) {
    SquadQuestion question{.id = text_of(need(node, "id")),
                           .text = text_of(need(node, "question")),
                           .paragraph = data_.paragraphs.size() - 1};
    if (!ids_.insert(question.id).second) {
      refuse_question(node, question, "another question has this id",
                      "predictions and scores are found by id: give each question its own");
    }
    if (const auto impossible = find(node, "is_impossible")) {
      if (!impossible->json.is_boolean()) {
        refuse(*impossible, "must be true or false, is " + kind_of(*impossible));
      }
      question.is_impossible = impossible->json.get<bool>();
    }
    int64_t skipped = 0;
    if (const auto answers = find(node, "answers")) {
      each_of(*answers, [&](const Node& answer) {
        skipped += parse_answer(answer, text, context, question) ? 0 : 1;
      });
    }
    data_.skipped_answers += skipped;
    finish_question(node, std::move(question), skipped);
  }

  void finish_question(const Node& node, SquadQuestion&& question, int64_t skipped) {
    if (question.answers.empty() && !question.is_impossible) {
      if (skipped > 0) {
        ++data_.skipped_questions;
        return;
      }
      if (reading_.require_answers) {
        refuse_question(node, question, "it has no answer, and is not marked `is_impossible`",
                        "add its answers; SQuAD 2.0 marks questions without any");
      }
    }
    data_.questions.push_back(std::move(question));
  }

  /// @return false where the answer is skipped
  bool parse_answer(const Node& node, std::string_view text, const CodePoints& context,
                    SquadQuestion& question) {
    SquadAnswer answer{.text = text_of(need(node, "text"))};
    if (reading_.bad_answers != BadAnswers::kIgnore) {
      answer.begin = offset_of(need(node, "answer_start"));
      const std::string problem = problem_of(answer, context, question);
      if (!problem.empty()) {
        if (reading_.bad_answers == BadAnswers::kSkip) return false;
        refuse_question(node, question, problem, advice_for(answer, text, context));
      }
    }
    question.answers.push_back(std::move(answer));
    return true;
  }

  int64_t offset_of(const Node& node) const {
    const bool fits = node.json.is_number_integer() &&
                      !(node.json.is_number_unsigned() && node.json.get<uint64_t>() > INT64_MAX);
    if (!fits) refuse(node, "must be a whole number, is " + printable(node.json.dump(), 50));
    return node.json.get<int64_t>();
  }

  static std::string problem_of(const SquadAnswer& answer, const CodePoints& context,
                                const SquadQuestion& question) {
    if (question.is_impossible) return "it is marked `is_impossible`, but has an answer";
    if (answer.text.empty()) return "its answer is empty";
    const int64_t length = CodePoints(answer.text).size();
    const std::string quoted = "answer \"" + printable(answer.text, 60) + "\"";
    if (answer.begin < 0 || answer.begin > context.size() - length) {
      return quoted + " of " + counted(length, "character") + " at " +
             std::to_string(answer.begin) + " is outside its paragraph, which has " +
             counted(context.size(), "character");
    }
    const auto there = context.slice(answer.begin, answer.begin + length);
    if (there == answer.text) return "";
    return quoted + " is not at " + std::to_string(answer.begin) + ", where the paragraph has \"" +
           printable(there, 60) + "\"";
  }

  /// Looks for the answer where a program that counts other units would put it.
  static std::string advice_for(const SquadAnswer& answer, std::string_view text,
                                const CodePoints& context) {
    const std::string count = "answer_start counts Unicode characters from 0";
    if (answer.text.empty()) return "remove it; a question without answers has an empty list";
    const size_t first = text.find(answer.text);
    if (first == std::string_view::npos) {
      return count + "; the paragraph does not contain this text: look for changed white space";
    }
    const auto stands_at_byte = [&](int64_t byte) {
      return byte >= 0 && byte <= static_cast<int64_t>(text.size()) &&
             text.substr(static_cast<size_t>(byte)).starts_with(answer.text);
    };
    if (stands_at_byte(answer.begin)) return count + "; this one counts bytes of UTF-8";
    if (const auto byte = byte_of_utf16(text, answer.begin); byte && stands_at_byte(*byte)) {
      return count + "; this one counts units of UTF-16";
    }
    return count + "; the text is at " +
           std::to_string(context.code_point_at(static_cast<int64_t>(first)));
  }

  /// The byte of `text` before which it has so many units of UTF-16.
  static std::optional<int64_t> byte_of_utf16(std::string_view text, int64_t units) {
    int64_t passed = 0;
    for (size_t byte = 0; byte <= text.size(); ++byte) {
      const auto lead = static_cast<unsigned char>(byte < text.size() ? text[byte] : 0);
      if ((lead & 0xC0) == 0x80) continue;
      if (passed == units) return static_cast<int64_t>(byte);
      passed += lead >= 0xF0 ? 2 : 1;
    }
    return std::nullopt;
  }

  const std::string& where_;
  const SquadReading& reading_;
  SquadData& data_;
  std::unordered_set<std::string> ids_;
};

}  // namespace

void parse_squad(std::string_view bytes, const std::string& where, const SquadReading& reading,
                 SquadData& data) {
  const size_t before = data.questions.size();
  const int64_t skipped_before = data.skipped_questions;
  SquadParser(where, reading, data).parse(parse_file(bytes, where));
  if (data.questions.size() > before) return;
  const bool skipped = data.skipped_questions > skipped_before;
  throw Error(ExitCode::kBadData,
              where + (skipped ? ": all questions were skipped, since none of their answers is "
                                 "where the file says"
                               : ": there are no questions"),
              skipped ? "answer_start counts Unicode characters from 0" : kSquadShape);
}

SquadData read_squad(std::span<const std::string> paths, const SquadReading& reading) {
  SquadData data;
  for (const auto& path : paths) {
    parse_squad(read_whole(*open_bytes(path), path, kMaxSquadBytes), path, reading, data);
  }
  return data;
}

}  // namespace stretto::data
