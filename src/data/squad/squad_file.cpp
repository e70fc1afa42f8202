#include "data/squad/squad_file.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/squad/code_points.h"
#include "data/squad/squad_problems.h"

namespace stretto::data {
namespace {

using SquadJson = nlohmann::json;

constexpr const char* kSquadShape =
    "SQuAD's JSON is {\"data\": [{\"paragraphs\": [{\"context\": …, \"qas\": [{\"id\": …, "
    "\"question\": …, \"answers\": [{\"text\": …, \"answer_start\": …}]}]}]}]}";
constexpr const char* kFlatShape =
    "a question of the flat form is {\"id\": …, \"context\": …, \"question\": …, \"answers\": "
    "{\"text\": […], \"answer_start\": […]}}";

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
    const bool is_repeated = std::string_view(error.what()).find("twice") != std::string_view::npos;
    throw Error(
        error.code(), error.what(),
        is_repeated
            ? "each key stands once in an object: remove or rename one of the two"
            : std::string("the file is not JSON in SQuAD's format, or is damaged. ") + kSquadShape);
  }
}

class SquadParser {
 public:
  SquadParser(const std::string& where, const SquadReading& reading, SquadData& data,
              BadSamples& bad)
      : where_(where), reading_(reading), data_(data), bad_(bad) {
    for (const auto& question : data.questions) ids_.insert(question.id);
  }

  /// A whole file.
  void parse(const SquadJson& json) {
    const Node root{.json = json};
    if (json.is_array()) {
      parse_flat_list(root);
    } else if (is_flat(json)) {
      attempt([&] { parse_flat(root); });
    } else {
      each(root, "data", [this](const Node& article) {
        attempt([&] { is_flat(article.json) ? parse_flat(article) : parse_article(article); });
      });
    }
  }

  /// A file with one object a line.
  void parse_lines(std::string_view bytes) {
    if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t end = std::min(bytes.find('\n', begin), bytes.size());
      const std::string_view line = bytes.substr(begin, end - begin);
      begin = end + 1;
      ++line_;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      attempt([&] {
        const SquadJson json = parse_line(line);
        parse_flat(Node{.json = json});
      });
    }
  }

 private:
  /// Runs what reads one sample. Its fault leaves out that sample, or is kept until the end.
  template <class Read>
  void attempt(const Read& read) {
    try {
      read();
    } catch (const SampleError& error) {
      bad_.add(error);
    }
  }

  [[noreturn]] void refuse(const Node& node, const std::string& what,
                           const std::string& advice) const {
    const std::string path = node.path();
    throw SampleError(where_,
                      (line_ > 0 ? ":" + std::to_string(line_) : "") + ": " +
                          (path.empty() ? "" : path + ": ") + what,
                      advice);
  }
  [[noreturn]] void refuse(const Node& node, const std::string& what) const {
    refuse(node, what, is_flat_ ? kFlatShape : kSquadShape);
  }

  /// "question 56be4db0acb8001400a502ec"
  [[noreturn]] void refuse_question(const Node& node, const SquadQuestion& question,
                                    const std::string& what, const std::string& advice) const {
    refuse(node, "question " + printable(question.id) + ": " + what, advice);
  }

  SquadJson parse_line(std::string_view line) const {
    try {
      return parse_json(line, where_, 0, line_);
    } catch (const Error& error) {
      throw SampleError::of(
          {error.code(), error.what(),
           "each line is a JSON object on its own, in which each key stands once: repair or remove "
           "it"},
          where_);
    }
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

  /// Predictions have it as the key of an object, which is a string.
  std::string id_of(const Node& node) const {
    if (node.json.is_number_integer()) return node.json.dump();
    if (node.json.is_string()) return node.json.get<std::string>();
    refuse(node, "must be a string or a whole number, is " + kind_of(node));
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

  static bool is_flat(const SquadJson& json) {
    return json.is_object() && json.contains("context") && !json.contains("qas");
  }

  void parse_article(const Node& article) {
    const std::string title = optional_text(article, "title");
    each(article, "paragraphs",
         [&](const Node& paragraph) { attempt([&] { parse_paragraph(paragraph, title); }); });
  }

  void parse_paragraph(const Node& node, const std::string& title) {
    std::string text = text_of(need(node, "context"));
    const Node questions = need(node, "qas");
    is_flat_ = false;
    data_.paragraphs.push_back({.text = std::move(text), .title = title});
    context_.emplace(data_.paragraphs.back().text);
    each_of(questions, [&](const Node& question) { attempt([&] { parse_question(question); }); });
  }

  void parse_flat_list(const Node& list) {
    is_flat_ = true;
    each_of(list, [&](const Node& row) { attempt([&] { parse_flat(row); }); });
  }

  /// A question with its own paragraph.
  void parse_flat(const Node& row) {
    is_flat_ = true;
    std::string text = text_of(need(row, "context"));
    std::string title = optional_text(row, "title");
    const bool is_new = data_.paragraphs.empty() || data_.paragraphs.back().text != text;
    if (is_new) data_.paragraphs.push_back({.text = std::move(text), .title = std::move(title)});
    if (is_new || !context_) context_.emplace(data_.paragraphs.back().text);
    parse_question(row);
  }

  void parse_question(const Node& node) {
    SquadQuestion question{.id = id_of(need(node, "id")),
                           .text = text_of(need(node, "question")),
                           .paragraph = data_.paragraphs.size() - 1};
    if (ids_.contains(question.id)) {
      refuse_question(node, question, "another question has this id",
                      "predictions and scores are found by id: give each question its own");
    }
    if (reading_.bad_answers != BadAnswers::kIgnore && trim(question.text).empty()) {
      refuse_question(node, question, "its text is empty", "complete it, or remove the question");
    }
    const auto impossible = find(node, "is_impossible");
    if (impossible && !impossible->json.is_boolean()) {
      refuse(*impossible, "must be true or false, is " + kind_of(*impossible));
    }
    const auto answers = find(node, "answers");
    question.is_impossible =
        impossible ? impossible->json.get<bool>() : is_flat_ && answers && has_no_answers(*answers);
    const int64_t skipped = answers ? parse_answers(*answers, question) : 0;
    finish_question(node, std::move(question), skipped);
  }

  /// For the flat form, which does not mark such questions.
  static bool has_no_answers(const Node& answers) {
    const auto& json = answers.json;
    return json.is_object() ? json.contains("text") && json.at("text").empty() : json.empty();
  }

  void finish_question(const Node& node, SquadQuestion&& question, int64_t skipped) {
    const bool is_answered = !question.answers.empty() || question.is_impossible;
    if (!is_answered && skipped == 0 && reading_.require_answers) {
      refuse_question(node, question, "it has no answer, and is not marked `is_impossible`",
                      "add its answers; SQuAD 2.0 marks questions without any");
    }
    ids_.insert(question.id);
    data_.skipped_answers += skipped;
    if (!is_answered && skipped > 0) {
      ++data_.skipped_questions;
    } else {
      data_.questions.push_back(std::move(question));
    }
  }

  /// A list of objects, or one object of two lists. @return how many are skipped
  int64_t parse_answers(const Node& answers, SquadQuestion& question) const {
    int64_t skipped = 0;
    if (!answers.json.is_object()) {
      each_of(answers, [&](const Node& answer) {
        const auto begin = find(answer, "answer_start");
        skipped += add_answer(answer, need(answer, "text"), begin, question) ? 0 : 1;
      });
      return skipped;
    }
    const Node texts = need(answers, "text");
    const auto begins = find(answers, "answer_start");
    if (begins && (!begins->json.is_array() || begins->json.size() != texts.json.size())) {
      refuse(*begins, "must be an array with a number for each text");
    }
    each_of(texts, [&](const Node& text) {
      std::optional<Node> begin;
      if (begins) {
        begin.emplace(
            Node{.json = begins->json[text.index], .parent = &*begins, .index = text.index});
      }
      skipped += add_answer(answers, text, begin, question) ? 0 : 1;
    });
    return skipped;
  }

  /// @param node  whose `answer_start` is `begin`
  /// @return false where the answer is skipped
  bool add_answer(const Node& node, const Node& text, const std::optional<Node>& begin,
                  SquadQuestion& question) const {
    SquadAnswer answer{.text = text_of(text)};
    if (reading_.bad_answers != BadAnswers::kIgnore) {
      if (!begin) refuse(node, "there is no `answer_start`");
      answer.begin = offset_of(*begin);
      const std::string problem = problem_of_answer(answer, *context_, question);
      if (!problem.empty()) {
        if (reading_.bad_answers == BadAnswers::kSkip) return false;
        const std::string& paragraph = data_.paragraphs.back().text;
        refuse_question(node, question, problem,
                        advice_for_answer(answer, paragraph, *context_, question));
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

  const std::string& where_;
  const SquadReading& reading_;
  SquadData& data_;
  BadSamples& bad_;
  std::unordered_set<std::string> ids_;
  std::optional<CodePoints> context_;  ///< of the last paragraph
  bool is_flat_ = false;
  size_t line_ = 0;  ///< of a file with one object a line
};

/// Whether the file has one object a line: its name says so, or it has several lines of which the
/// first is JSON of its own.
bool has_object_lines(std::string_view bytes, std::string_view name) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return true;
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || bytes[begin] != '{') return false;
  const size_t end = bytes.find('\n', begin);
  if (end == std::string_view::npos) return false;
  if (bytes.find_first_not_of(" \t\r\n", end) == std::string_view::npos) return false;
  const std::string_view first = bytes.substr(begin, end - begin);
  return SquadJson::accept(first.begin(), first.end());
}

}  // namespace

void parse_squad(std::string_view bytes, const std::string& where, const SquadReading& reading,
                 SquadData& data, BadSamples& bad) {
  const size_t before = data.questions.size();
  const int64_t skipped_before = data.skipped_questions, bad_before = bad.left_out().count;
  SquadParser parser(where, reading, data, bad);
  if (has_object_lines(bytes, where)) {
    parser.parse_lines(bytes);
  } else {
    parser.parse(parse_file(bytes, where));
  }
  bad.end_file();
  if (data.questions.size() > before) return;
  const bool skipped = data.skipped_questions > skipped_before;
  if (bad.left_out().count > bad_before) {
    throw Error(ExitCode::kBadData,
                where + ": all questions were left out, " + printable(bad.left_out().text(), 300),
                "look for a wrong file; data.bad_samples = \"stop\" says more");
  }
  throw Error(ExitCode::kBadData,
              where + (skipped ? ": all questions were skipped, since none of their answers is "
                                 "where the file says"
                               : ": there are no questions"),
              skipped ? "answer_start counts Unicode characters from 0" : kSquadShape);
}

SquadData read_squad(std::span<const std::string> paths, const SquadReading& reading) {
  SquadData data;
  BadSamples bad(reading.bad_samples);
  for (const auto& path : paths) {
    parse_squad(read_whole(*open_bytes(path), path, kMaxSquadBytes), path, reading, data, bad);
  }
  data.bad = bad.left_out();
  return data;
}

}  // namespace stretto::data
