#include "families/question_answering/engine/answer_finder.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/squad/code_points.h"
#include "distributed/numbers.h"
#include "families/question_answering/engine/span_pass.h"
#include "families/text/engine/batch_tokens.h"
#include "tasks/parallel_jobs.h"

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

/// Neighbouring things that fit under the bounds, at least one.
/// @param rows  of each from `begin` to before `end`
template <class Rows>
int64_t end_of_batch(int64_t begin, int64_t end, const AnswerFinding& finding, const Rows& rows) {
  int64_t sum = rows(begin), next = begin + 1;
  for (; next < end; ++next) {
    if (finding.max_samples > 0 && next - begin >= finding.max_samples) break;
    sum += rows(next);
    if (sum > finding.max_tokens) break;
  }
  return next;
}

/// Questions whose windows are about one batch: the same whatever the number of processes.
std::vector<data::Span> stretches_of(const QuestionWindows& windows, const AnswerFinding& finding) {
  const auto rows_of = [&](int64_t question) {
    return num_rows_of(windows, static_cast<size_t>(question));
  };
  std::vector<data::Span> stretches;
  const auto count = static_cast<int64_t>(windows.num_questions());
  for (int64_t begin = 0; begin < count;) {
    const int64_t end = end_of_batch(begin, count, finding, rows_of);
    stretches.push_back({.begin = begin, .end = end});
    begin = end;
  }
  return stretches;
}

/// Scores of the windows of a stretch, and the sums of their losses.
class StretchScores {
 public:
  StretchScores(const std::vector<std::shared_ptr<models::TextModel>>& models,
                const QuestionWindows& windows, data::Span stretch, const AnswerFinding& finding)
      : windows_(windows), first_(windows.windows_of(static_cast<size_t>(stretch.begin)).begin) {
    const int64_t end = windows.windows_of(static_cast<size_t>(stretch.end - 1)).end;
    const auto rows_of = [&](int64_t window) { return windows.num_rows(window); };
    for (int64_t begin = first_; begin < end;) {
      const int64_t next = end_of_batch(begin, end, finding, rows_of);
      add(models, begin, next);
      begin = next;
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
  void add(const std::vector<std::shared_ptr<models::TextModel>>& models, int64_t begin,
           int64_t end) {
    data::Batch batch = data::empty_window_batch();
    for (int64_t i = begin; i < end; ++i) windows_.append(i, batch);
    const SpanPass pass = span_pass(models, batch);
    const auto losses = losses_of(pass).to(at::kDouble).cpu();
    const auto scores = pass.scores.to(at::kFloat).cpu().contiguous();
    int64_t row = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t rows = windows_.num_rows(i);
      const at::Tensor own = scores.narrow(0, row, rows);
      const std::span<const float> values(own.const_data_ptr<float>(),
                                          static_cast<size_t>(own.numel()));
      is_finite_.push_back(std::ranges::all_of(values, [](float x) { return std::isfinite(x); }));
      scores_.push_back(window_scores(windows_, i, own));
      row += rows;
      if (windows_.window(i).label == data::WindowLabel::kUnknown) continue;
      loss_sum_ += losses.const_data_ptr<double>()[i - begin];
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

/// The place of the first true among some, from 1; 0 = there is none.
double number_of_first(const std::vector<bool>& some) {
  const auto found = std::ranges::find(some, true);
  return found == some.end() ? 0 : static_cast<double>(found - some.begin() + 1);
}

nlohmann::json packed(const AnswerChoice& choice) {
  auto candidates = nlohmann::json::array();
  for (const auto& one : choice.candidates) {
    candidates.push_back({one.text, one.tokens.begin, one.tokens.end, one.score, one.probability});
  }
  return {choice.text, choice.none_score_difference, std::move(candidates)};
}

AnswerChoice unpacked(const nlohmann::json& json) {
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

/// Each process has the choices of some questions; afterwards all have all.
void share_choices(const distributed::ProcessGroup& group, const std::vector<size_t>& mine,
                   std::vector<AnswerChoice>& choices) {
  if (group.size() == 1) return;
  auto list = nlohmann::json::array();
  for (const size_t question : mine) list.push_back({question, packed(choices[question])});
  const auto bytes = nlohmann::json::to_msgpack(list);
  for (const auto& theirs : group.all_gather_bytes(std::string(bytes.begin(), bytes.end()))) {
    for (const auto& one : nlohmann::json::from_msgpack(theirs)) {
      choices.at(one[0].get<size_t>()) = unpacked(one[1]);
    }
  }
}

}  // namespace

int64_t num_rows_of(const QuestionWindows& windows, size_t question) {
  const auto own = windows.windows_of(question);
  int64_t rows = 0;
  for (int64_t i = own.begin; i < own.end; ++i) rows += windows.num_rows(i);
  return rows;
}

StretchAnswers answer_stretch(const std::vector<std::shared_ptr<models::TextModel>>& models,
                              const QuestionWindows& windows, data::Span questions,
                              const AnswerFinding& finding) {
  const StretchScores scores(models, windows, questions, finding);
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

FoundAnswers find_answers(const std::vector<std::shared_ptr<models::TextModel>>& models,
                          const QuestionWindows& windows, const AnswerFinding& asked) {
  const at::Device device = models.front()->device();
  AnswerFinding finding = asked;
  finding.max_tokens = batch_tokens(asked.max_tokens, device);
  FoundAnswers found;
  found.choices.resize(windows.num_questions());
  const auto stretches = stretches_of(windows, finding);
  constexpr size_t kColumns = 3;
  std::vector<double> sums(kColumns * stretches.size());
  std::vector<size_t> mine;
  ParallelJobs passes(device);
  passes.run_share(finding.group, std::ssize(stretches), [&](int64_t number) {
    const auto i = static_cast<size_t>(number);
    auto answers = answer_stretch(models, windows, stretches[i], finding);
    sums[kColumns * i] = answers.loss_sum;
    sums[kColumns * i + 1] = static_cast<double>(answers.num_labelled);
    sums[kColumns * i + 2] = number_of_first(answers.overflowed);
    for (size_t k = 0; k < answers.choices.size(); ++k) {
      auto& choice = found.choices[static_cast<size_t>(stretches[i].begin) + k];
      choice = std::move(answers.choices[k]);
      if (finding.num_candidates > 0) {
        const auto kept =
            std::min<size_t>(choice.candidates.size(), static_cast<size_t>(finding.num_candidates));
        choice.candidates.resize(kept);
      }
    }
    passes.exclusively([&] {
      for (int64_t q = stretches[i].begin; q < stretches[i].end; ++q) {
        mine.push_back(static_cast<size_t>(q));
      }
    });
  });
  share_choices(finding.group, mine, found.choices);
  distributed::sum_numbers(finding.group, sums);  // of zeros and one number: exact
  for (size_t i = 0; i < sums.size(); i += kColumns) {
    found.loss_sum += sums[i];
    found.num_labelled += static_cast<int64_t>(sums[i + 1]);
    if (sums[i + 2] != 0 && found.overflowed < 0) {
      found.overflowed = stretches[i / kColumns].begin + static_cast<int64_t>(sums[i + 2]) - 1;
    }
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
