#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "data/squad/question_lines.h"
#include "families/question_answering/engine/answer_finder.h"
#include "families/question_answering/engine/answer_scores.h"
#include "families/question_answering/engine/commands.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "families/question_answering/requests.h"
#include "families/text/engine/batch_tokens.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

using data::QuestionWindows;

struct AskedLine : WorkLine {
  std::optional<data::QuestionLine> asked = {};  ///< of a file of SQuAD as it is read
  size_t question = 0;                           ///< its place among the window's questions
  data::AnswerChoice choice = {};
  bool is_finite = true;
};

/// The questions of a file of SQuAD.
class SquadSource : public LineSource<AskedLine> {
 public:
  explicit SquadSource(const std::string& path)
      : path_(path),
        data_(data::read_squad(std::vector<std::string>{path},
                               {.bad_answers = data::BadAnswers::kIgnore})) {}

  bool next(AskedLine& line) override {
    if (next_ == data_.questions.size()) return false;
    const auto& question = data_.questions[next_++];
    line.input.place = path_ + ": question " + printable(question.id);
    line.asked = {.id = question.id,
                  .question = question.text,
                  .paragraph = data_.paragraphs[question.paragraph].text,
                  .problem = ""};
    if (trim(question.text).empty()) line.asked->problem = "no question";
    return true;
  }
  bool ready() override { return true; }

 private:
  const std::string path_;
  const data::SquadData data_;
  size_t next_ = 0;
};

/// Answers questions and prints.
class QuestionAnswerer : public LineFamily<AskedLine> {
 public:
  QuestionAnswerer(const InferRequest& request, const LoadedTextRun& run)
      : request_(request), asked_(request.own.as<QuestionInferArguments>()), run_(run) {
    const auto& experiment = request.experiment.options;
    const auto& options = experiment::questions_of(experiment);
    const auto version = experiment::squad_version(experiment, had_impossible(run_.assets));
    finding_ = {.choice = options.decode.choice(version == metrics::SquadVersion::kV2),
                .max_tokens = batch_tokens(options.eval.max_tokens, run.models.front()->device()),
                .max_samples = options.eval.max_samples};
    finding_.choice.nbest = std::max(finding_.choice.nbest, num_printed());
  }

  CostBatchOptions batches() const { return finding_.batches(); }

  void prepare(AskedLine& line) const override {
    if (!line.asked) line.asked = data::parse_question_line(line.input);
    line.input.problem = line.asked->problem;
  }

  /// Questions in a row that share a paragraph share its tokens.
  void arrange(std::span<AskedLine> window) override {
    data::SquadData questions;
    for (AskedLine& line : window) {
      if (!line.input.problem.empty()) continue;
      line.question = questions.questions.size();
      data::append_question(*line.asked, questions);
    }
    windows_.emplace(std::move(questions), *run_.tokenizer.tokenizer,
                     experiment::window_options(request_.experiment.options));
    cut_questions_ += windows_->num_cut_questions();
    cut_tokens_ += windows_->num_cut_tokens();
  }

  int64_t cost(const AskedLine& line) const override {
    return num_rows_of(*windows_, line.question);
  }

  void run(std::span<AskedLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    const data::Span questions{.begin = static_cast<int64_t>(lines.front()->question),
                               .end = static_cast<int64_t>(lines.back()->question) + 1};
    auto found = answer_stretch(run_.models, *windows_, questions, finding_);
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i]->choice = std::move(found.choices[i]);
      lines[i]->is_finite = !found.overflowed[i];
    }
  }

  bool is_finite(const AskedLine& line) const override { return line.is_finite; }

  void write(std::span<const AskedLine> lines) override {
    for (const AskedLine& line : lines) {
      std::cout << (request_.json ? json_of(line) : text_of(line));
    }
  }

  void finish() override { warn_of_cut(cut_questions_, cut_tokens_); }

 private:
  int64_t num_printed() const { return std::max<int64_t>(1, asked_.nbest); }

  /// The chosen one first: a threshold may have put no answer before or behind the best one.
  static std::vector<const data::AnswerCandidate*> answers_in_order(
      const data::AnswerChoice& choice) {
    std::vector<const data::AnswerCandidate*> answers;
    for (const auto& one : choice.candidates) answers.push_back(&one);
    std::stable_partition(answers.begin(), answers.end(),
                          [&](const auto* one) { return one->text == choice.text; });
    return answers;
  }

  /// As many lines as are printed of each question: empty ones keep a reader who counts in step.
  std::string text_of(const AskedLine& line) const {
    const auto answers = answers_in_order(line.choice);
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(num_printed()); ++i) {
      if (i < answers.size()) text += text_of(*answers[i]);
      text += "\n";
    }
    return text;
  }

  std::string text_of(const data::AnswerCandidate& answer) const {
    const bool scores = asked_.scores;
    std::string text = answer.text;
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return (scores ? fixed(answer.probability, 4) + "\t" : "") + shown_on_stdout(text);
  }

  std::string json_of(const AskedLine& line) const {
    const auto asked = line.asked.value_or(data::QuestionLine{});
    nlohmann::ordered_json json;
    if (!asked.id.empty()) json["id"] = asked.id;
    json["question"] = asked.question;
    if (!line.input.problem.empty()) {
      json["problem"] = line.input.problem;
      json["answer"] = "";
      json["answers"] = nlohmann::ordered_json::array();
      return json_line(json);
    }
    json["answer"] = line.choice.text;
    const auto answers = answers_in_order(line.choice);
    auto list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < std::min<size_t>(answers.size(), num_printed()); ++i) {
      const auto place = characters_of(*windows_, line.question, *answers[i]);
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
    if (finding_.choice.may_have_none) {
      json["none_score_difference"] = line.choice.none_score_difference;
    }
    return json_line(json);
  }

  const InferRequest& request_;
  const QuestionInferArguments& asked_;
  const LoadedTextRun& run_;
  AnswerFinding finding_;
  std::optional<QuestionWindows> windows_;  ///< of the lines that are answered together
  int64_t cut_questions_ = 0, cut_tokens_ = 0;
};

}  // namespace

int infer_answers(const InferRequest& request, const CommandContext& context) {
  const data::TextInput all(request.files);  // missing files before models load
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run =
      load_question_run(request.experiment.options, folder, request.checkpoints, context.device);
  QuestionAnswerer answerer(request, run);
  auto files = request.files;
  if (files.empty()) files.emplace_back("-");
  const bool are_lines = std::ranges::none_of(files, &data::names_squad_file);
  LineWork<AskedLine> work(
      answerer,
      {.files = are_lines ? request.files : std::vector<std::string>{},
       .run = request.run_directory,
       .device = run.models.front()->device(),
       .max_lines = 256,
       .batches = answerer.batches(),
       .words = {.answer = "the answer to this question", .problem = "its answer is empty"},
       .stats = request.stats});
  for (const auto& file : files) {
    if (data::names_squad_file(file)) {
      SquadSource questions(file);
      work.run(questions);
    } else {
      data::TextInput input({file});
      TextSource<AskedLine> questions(input);
      work.run(questions);
    }
  }
  work.finish();
  return 0;
}

}  // namespace stretto::tasks
