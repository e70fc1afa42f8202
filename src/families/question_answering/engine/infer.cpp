#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/squad/question_lines.h"
#include "data/text_input.h"
#include "families/question_answering/engine/answer_finder.h"
#include "families/question_answering/engine/answer_scores.h"
#include "families/question_answering/engine/commands.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "tasks/finite_answers.h"

namespace stretto::tasks {
namespace {

using data::QuestionWindows;

// Questions that are answered together: enough for a few batches, few enough that output streams.
constexpr size_t kQuestionsTogether = 256;
constexpr int64_t kQuestionWarnings = 10;  // that are shown; the rest is counted

/// Answers questions and prints.
class QuestionAnswerer {
 public:
  QuestionAnswerer(const InferRequest& request, LoadedTextRun run)
      : request_(request), run_(std::move(run)), passes_(run_.models.front()->device()) {
    const auto& experiment = request.experiment.options;
    const auto& options = experiment::questions_of(experiment);
    const auto version = experiment::squad_version(experiment, had_impossible(run_.assets));
    finding_ = {.choice = options.decode.choice(version == metrics::SquadVersion::kV2),
                .max_tokens = options.eval.max_tokens,
                .max_samples = options.eval.max_samples,
                .passes = &passes_};
    finding_.choice.nbest = std::max(finding_.choice.nbest, num_printed());
  }

  void answer_file(const std::string& path) {
    const std::vector<std::string> paths{path};
    auto questions = data::read_squad(paths, {.bad_answers = data::BadAnswers::kIgnore});
    for (auto& question : questions.questions) question.answers.clear();
    std::vector<data::QuestionLine> lines;
    for (const auto& question : questions.questions) {
      lines.push_back({.id = question.id,
                       .question = question.text,
                       .paragraph = questions.paragraphs[question.paragraph].text});
      const std::string place = path + ": question " + printable(question.id);
      if (trim(question.text).empty()) {
        lines.back().problem = "no question";
        warn_about({.place = place}, "no question");
      } else {
        places_.push_back(place);
      }
      if (lines.size() == kQuestionsTogether) flush(lines);
    }
    flush(lines);
  }

  void answer_lines(const std::vector<std::string>& paths) {
    data::TextInput input(paths);
    std::vector<data::QuestionLine> lines;
    for (data::InputLine line; input.next(line);) {
      lines.push_back(data::parse_question_line(line));
      if (lines.back().problem.empty()) places_.push_back(line.place);
      warn_about(line, lines.back().problem);
      if (lines.size() == kQuestionsTogether || !input.ready()) flush(lines);
    }
    flush(lines);
  }

  void finish() const {
    warn_of_cut(cut_questions_, cut_tokens_);
    if (warnings_ > kQuestionWarnings) {
      log::warn(with_thousands(warnings_) + " lines in all have no question that can be answered");
    }
  }

 private:
  int64_t num_printed() const { return std::max<int64_t>(1, request_.question_answering.nbest); }

  void warn_about(const data::InputLine& line, const std::string& problem) {
    if (problem.empty() || ++warnings_ > kQuestionWarnings) return;
    log::warn(line.place + ": " + problem + "; its answer is empty");
  }

  void flush(std::vector<data::QuestionLine>& lines) {
    data::SquadData questions;
    for (const auto& line : lines) {
      if (line.problem.empty()) data::append_question(line, questions);
    }
    const QuestionWindows windows(std::move(questions), *run_.tokenizer.tokenizer,
                                  experiment::window_options(request_.experiment.options));
    cut_questions_ += windows.num_cut_questions();
    cut_tokens_ += windows.num_cut_tokens();
    const auto found = find_answers(run_.models, windows, finding_);
    if (found.overflowed >= 0) {
      refuse_not_finite(places_[static_cast<size_t>(found.overflowed)],
                        "the answer to this question, or to one that is read with it,",
                        request_.run_directory);
    }
    places_.clear();
    size_t next = 0;
    for (const auto& line : lines) {
      if (line.problem.empty()) {
        print(line, windows, next, found.choices[next]);
        ++next;
      } else {
        print_problem(line);
      }
    }
    lines.clear();
    flush_stdout();
  }

  void print(const data::QuestionLine& line, const QuestionWindows& windows, size_t question,
             const data::AnswerChoice& choice) const {
    if (request_.json) {
      print_json(line, windows, question, choice);
      return;
    }
    const auto answers = answers_in_order(choice);
    for (size_t i = 0; i < static_cast<size_t>(num_printed()); ++i) {
      if (i < answers.size()) print_text(*answers[i]);
      std::cout << "\n";  // empty lines keep a reader who counts in step
    }
  }

  /// The chosen one first: a threshold may have put no answer before or behind the best one.
  static std::vector<const data::AnswerCandidate*> answers_in_order(
      const data::AnswerChoice& choice) {
    std::vector<const data::AnswerCandidate*> answers;
    for (const auto& one : choice.candidates) answers.push_back(&one);
    std::stable_partition(answers.begin(), answers.end(),
                          [&](const auto* one) { return one->text == choice.text; });
    return answers;
  }

  void print_text(const data::AnswerCandidate& answer) const {
    if (request_.question_answering.scores) std::cout << fixed(answer.probability, 4) << "\t";
    std::string text = answer.text;
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    std::cout << shown_on_stdout(text);
  }

  void print_json(const data::QuestionLine& line, const QuestionWindows& windows, size_t question,
                  const data::AnswerChoice& choice) const {
    nlohmann::ordered_json json;
    if (!line.id.empty()) json["id"] = line.id;
    json["question"] = line.question;
    json["answer"] = choice.text;
    const auto answers = answers_in_order(choice);
    auto list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < std::min<size_t>(answers.size(), num_printed()); ++i) {
      const auto place = characters_of(windows, question, *answers[i]);
      nlohmann::ordered_json entry{{"text", answers[i]->text},
                                   {"score", answers[i]->score},
                                   {"probability", answers[i]->probability}};
      if (answers[i]->tokens.size() > 0) {
        entry["begin"] = place.begin;
        entry["end"] = place.end;
      }
      list.push_back(std::move(entry));
    }
    json["answers"] = std::move(list);
    if (finding_.choice.may_have_none) json["none_score_difference"] = choice.none_score_difference;
    write(json);
  }

  void print_problem(const data::QuestionLine& line) const {
    if (!request_.json) {
      for (int64_t i = 0; i < num_printed(); ++i) std::cout << "\n";
      return;
    }
    write({{"question", line.question},
           {"problem", line.problem},
           {"answer", ""},
           {"answers", nlohmann::ordered_json::array()}});
  }

  static void write(const nlohmann::ordered_json& json) {
    std::cout << shown_on_stdout(
                     json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
              << "\n";
  }

  const InferRequest& request_;
  LoadedTextRun run_;
  SideBySide passes_;
  AnswerFinding finding_;
  std::vector<std::string> places_;  ///< of the questions that are answered together
  int64_t warnings_ = 0, cut_questions_ = 0, cut_tokens_ = 0;
};

}  // namespace

int infer_answers(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  auto run =
      load_question_run(request.experiment.options, folder, request.checkpoints, context.device);
  QuestionAnswerer answerer(request, std::move(run));
  auto files = request.files;
  if (files.empty()) files.emplace_back("-");
  for (const auto& file : files) {
    if (data::names_squad_file(file)) {
      answerer.answer_file(file);
    } else {
      answerer.answer_lines({file});
    }
  }
  answerer.finish();
  return 0;
}

}  // namespace stretto::tasks
