#include "families/question_answering/engine/answer_finder.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/squad/code_points.h"
#include "families/question_answering/engine/span_pass.h"
#include "families/text/engine/batch_tokens.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

using data::AnswerCandidate;
using data::AnswerChoice;
using data::QuestionWindows;

/// A paragraph with the bytes that its tokens stand for.
class ByteParagraph {
 public:
  ByteParagraph(const QuestionWindows& windows, size_t question)
      : text_(windows.paragraph_of(question).text) {
    const data::CodePoints characters(text_);
    for (const auto& [begin, end] : windows.tokens_of(question).code_points) {
      offsets_.push_back({.begin = characters.byte_at(begin), .end = characters.byte_at(end)});
    }
  }
  data::ParagraphTokens tokens() const { return {.text = text_, .offsets = offsets_}; }

 private:
  std::string_view text_;
  std::vector<data::Span> offsets_;
};

using TextModels = std::vector<std::shared_ptr<models::TextModel>>;

/// The windows of a stretch of questions, in their order.
std::vector<data::Batch> batches_of(const QuestionWindows& windows, data::Span stretch,
                                    const AnswerFinding& finding) {
  const int64_t first = windows.windows_of(static_cast<size_t>(stretch.begin)).begin;
  const int64_t end = windows.windows_of(static_cast<size_t>(stretch.end - 1)).end;
  std::vector<int64_t> rows;
  for (int64_t i = first; i < end; ++i) rows.push_back(windows.num_rows(i));
  std::vector<data::Batch> batches;
  for (const auto& places : cost_batches(rows, finding.batches())) {
    batches.push_back(data::empty_window_batch());
    for (const size_t place : places) {
      windows.append(first + static_cast<int64_t>(place), batches.back());
    }
  }
  return batches;
}

/// Scores of the windows of a stretch, and the sums of their losses.
class StretchScores {
 public:
  StretchScores(const QuestionWindows& windows, data::Span stretch)
      : windows_(windows), first_(windows.windows_of(static_cast<size_t>(stretch.begin)).begin) {}

  /// The next of batches_of().
  void add(const TextModels& models, const train::Prepared& batch) {
    const SpanPass pass = span_pass(models, batch);
    add_losses(pass, batch);
    const auto scores = pass.scores.to(at::kFloat).cpu().contiguous();
    int64_t row = 0;
    for (const int64_t i : batch.batch().sample_ids) {
      const int64_t rows = windows_.num_rows(i);
      const at::Tensor own = scores.narrow(0, row, rows);
      const std::span<const float> values(own.const_data_ptr<float>(),
                                          static_cast<size_t>(own.numel()));
      is_finite_.push_back(std::ranges::all_of(values, [](float x) { return std::isfinite(x); }));
      scores_.push_back(window_scores(windows_, i, own));
      row += rows;
    }
  }

  std::span<const data::WindowScores> of(size_t question) const {
    const auto own = windows_.windows_of(question);
    return std::span(scores_).subspan(static_cast<size_t>(own.begin - first_),
                                      static_cast<size_t>(own.size()));
  }
  bool is_finite(size_t question) const {
    const auto own = windows_.windows_of(question);
    const auto begin = is_finite_.begin() + (own.begin - first_);
    return std::find(begin, begin + own.size(), false) == begin + own.size();
  }
  double loss_sum() const { return loss_sum_; }
  int64_t num_labelled() const { return num_labelled_; }

 private:
  /// Inference has no window with a label.
  void add_losses(const SpanPass& pass, const train::Prepared& prepared) {
    const data::Batch& batch = prepared;
    const auto is_labelled = [&](int64_t window) {
      return windows_.window(window).label != data::WindowLabel::kUnknown;
    };
    if (std::ranges::none_of(batch.sample_ids, is_labelled)) return;
    const auto losses = losses_of(pass, span_targets(prepared)).to(at::kDouble).cpu();
    for (int64_t i = 0; i < batch.num_sequences(); ++i) {
      if (!is_labelled(batch.sample_ids[static_cast<size_t>(i)])) continue;
      loss_sum_ += losses.const_data_ptr<double>()[i];
      ++num_labelled_;
    }
  }

  const QuestionWindows& windows_;
  const int64_t first_;
  std::vector<data::WindowScores> scores_;
  double loss_sum_ = 0;
  int64_t num_labelled_ = 0;
  std::vector<bool> is_finite_;  ///< of each window
};

/// @param batches  of batches_of(), prepared and on the device
StretchAnswers answers_from(const TextModels& models, std::span<const train::Prepared> batches,
                            const QuestionWindows& windows, data::Span questions,
                            const AnswerFinding& finding) {
  StretchScores scores(windows, questions);
  for (const train::Prepared& batch : batches) scores.add(models, batch);
  StretchAnswers found{.choices = {},
                       .overflowed = {},
                       .loss_sum = scores.loss_sum(),
                       .num_labelled = scores.num_labelled()};
  for (auto q = static_cast<size_t>(questions.begin); q < static_cast<size_t>(questions.end); ++q) {
    const ByteParagraph paragraph(windows, q);
    found.choices.push_back(data::choose_answer(scores.of(q), paragraph.tokens(), finding.choice));
    found.overflowed.push_back(!scores.is_finite(q));
  }
  return found;
}

std::string packed(const AnswerChoice& choice) {
  auto candidates = nlohmann::json::array();
  for (const auto& one : choice.candidates) {
    candidates.push_back({one.text, one.tokens.begin, one.tokens.end, one.score, one.probability});
  }
  const auto bytes = nlohmann::json::to_msgpack(
      nlohmann::json{choice.text, choice.none_score_difference, std::move(candidates)});
  return {bytes.begin(), bytes.end()};
}

AnswerChoice unpacked(const std::string& bytes) {
  const auto json = nlohmann::json::from_msgpack(bytes);
  AnswerChoice choice{.text = json[0].get<std::string>(),
                      .candidates = {},
                      .none_score_difference = json[1].get<double>()};
  for (const auto& one : json[2]) {
    choice.candidates.push_back(
        {.text = one[0].get<std::string>(),
         .tokens = {.begin = one[1].get<int64_t>(), .end = one[2].get<int64_t>()},
         .score = one[3].get<double>(),
         .probability = one[4].get<double>()});
  }
  return choice;
}

}  // namespace

int64_t num_rows_of(const QuestionWindows& windows, size_t question) {
  const auto own = windows.windows_of(question);
  int64_t rows = 0;
  for (int64_t i = own.begin; i < own.end; ++i) rows += windows.num_rows(i);
  return rows;
}

StretchAnswers answer_stretch(const TextModels& models, const QuestionWindows& windows,
                              data::Span questions, const AnswerFinding& finding) {
  std::vector<train::Prepared> prepared;
  for (data::Batch& batch : batches_of(windows, questions, finding)) {
    prepared.push_back(prepare_windows(std::move(batch), *models.front()));
    prepared.back().send(models.front()->device());
  }
  return answers_from(models, prepared, windows, questions, finding);
}

FoundAnswers find_answers(const TextModels& models, const QuestionWindows& windows,
                          const AnswerFinding& asked) {
  const at::Device device = models.front()->device();
  AnswerFinding finding = asked;
  finding.max_tokens = batch_tokens(asked.max_tokens, device);
  FoundAnswers found;
  found.choices.resize(windows.num_questions());
  std::vector<int64_t> rows;
  for (size_t i = 0; i < found.choices.size(); ++i) rows.push_back(num_rows_of(windows, i));
  const auto stretches = cost_batches(rows, finding.batches());
  const bool is_shared = finding.group.size() > 1;
  std::vector<std::string> answers(is_shared ? found.choices.size() : 0);
  // A row for each question. Sums of a stretch stand in the row of its first one.
  constexpr int64_t kColumns = 3;  // loss, windows with a label, whether a score overflowed
  const auto span_of = [](const std::vector<size_t>& stretch) -> data::Span {
    return {.begin = static_cast<int64_t>(stretch.front()),
            .end = static_cast<int64_t>(stretch.back()) + 1};
  };
  const train::EvaluationParts parts{.count = std::ssize(stretches), .load = [&](int64_t number) {
                                       const auto& stretch = stretches[static_cast<size_t>(number)];
                                       return batches_of(windows, span_of(stretch), finding);
                                     }};
  const auto prepare = [&](data::Batch batch) {
    return prepare_windows(std::move(batch), *models.front());
  };
  const auto answer = [&](int64_t number, std::span<const train::Prepared> batches,
                          train::ScoreTable& table) {
    const auto& stretch = stretches[static_cast<size_t>(number)];
    auto own = answers_from(models, batches, windows, span_of(stretch), finding);
    const auto first = table.row(static_cast<int64_t>(stretch.front()));
    first[0] = own.loss_sum;
    first[1] = static_cast<double>(own.num_labelled);
    for (size_t k = 0; k < stretch.size(); ++k) {
      table.row(static_cast<int64_t>(stretch[k]))[2] = own.overflowed[k] ? 1 : 0;
      auto& choice = found.choices[stretch[k]] = std::move(own.choices[k]);
      if (finding.num_candidates > 0) {
        choice.candidates.resize(
            std::min(choice.candidates.size(), static_cast<size_t>(finding.num_candidates)));
      }
      if (is_shared) answers[stretch[k]] = packed(choice);
    }
  };
  const auto sums = train::evaluate(
      parts, train::ScoreTable(std::ssize(found.choices), kColumns),
      {.device = device, .group = finding.group, .loading = finding.loading, .prepare = prepare},
      answer);
  train::merge_answers(finding.group, answers);
  for (size_t i = 0; i < answers.size(); ++i) found.choices[i] = unpacked(answers[i]);
  found.loss_sum = sums.sum(0);
  found.num_labelled = static_cast<int64_t>(sums.sum(1));
  for (int64_t i = std::ssize(found.choices) - 1; i >= 0; --i) {
    if (sums.row(i)[2] != 0) found.overflowed = i;
  }
  return found;
}

data::Span characters_of(const QuestionWindows& windows, size_t question,
                         const AnswerCandidate& candidate) {
  if (candidate.tokens.size() == 0) return {};
  const auto& places = windows.tokens_of(question).code_points;
  const int64_t begin = places[static_cast<size_t>(candidate.tokens.begin)].begin;
  const int64_t end = places[static_cast<size_t>(candidate.tokens.end - 1)].end;
  // White space at the ends of the tokens is no part of the answer: it is ASCII, a byte each.
  const data::CodePoints characters(windows.paragraph_of(question).text);
  const auto before = static_cast<int64_t>(characters.slice(begin, end).find(candidate.text));
  return {.begin = begin + before, .end = begin + before + data::CodePoints(candidate.text).size()};
}

}  // namespace stretto::tasks
