#include "families/question_answering/engine/span_pass.h"

#include <torch/torch.h>

#include <limits>

#include "families/text/engine/encoder_task.h"

namespace stretto::tasks {
namespace {

enum SpanTensor : size_t {
  kSpanAllowed,  ///< bool [N]: rows that an answer may begin or end at
  kSpanPlaces,   ///< int64: their numbers
  kSpanBegins,   ///< int64 [B], as SpanTargets has them
  kSpanEnds,
};

}  // namespace

train::Prepared prepare_windows(data::Batch batch, const models::TextModel& model) {
  train::Prepared made = prepare_texts(std::move(batch), model);
  const at::Tensor allowed = made.column(data::kAllowedRows).to(at::kBool);
  made.add(allowed);
  // Counted on the CPU, since a GPU would be waited for.
  made.add(allowed.nonzero().squeeze(1));
  if (made.batch().columns.size() > data::kAnswerRows) {
    const at::Tensor bounds = made.column(data::kAnswerRows).view({-1, 2});
    made.add(bounds.select(1, 0).contiguous());
    made.add(bounds.select(1, 1).contiguous());
  }
  return made;
}

SpanTargets span_targets(const train::Prepared& batch) {
  return {.begins = batch.tensor(kSpanBegins), .ends = batch.tensor(kSpanEnds)};
}

SpanPass span_pass(models::TextModel& model, const train::Prepared& batch,
                   const models::ForwardContext& context) {
  const at::Tensor& allowed = batch.tensor(kSpanAllowed);
  // The last layer computes no rows of questions, a quarter of those of a short paragraph.
  const at::Tensor& places = batch.tensor(kSpanPlaces);
  const at::Tensor scores = model.spans().scores(model.encode_of(places, batch.rows(), context));
  return {.scores = at::zeros({allowed.size(0), 2}, scores.options()).index_copy(0, places, scores),
          .rows = {.offsets = batch.rows().offsets, .allowed = allowed}};
}

SpanPass span_pass(const std::vector<std::shared_ptr<models::TextModel>>& models,
                   const train::Prepared& batch) {
  SpanPass pass = span_pass(*models.front(), batch, {});
  if (models.size() == 1) return pass;
  for (size_t i = 1; i < models.size(); ++i) pass.scores += span_pass(*models[i], batch, {}).scores;
  pass.scores /= static_cast<double>(models.size());
  return pass;
}

at::Tensor losses_of(const SpanPass& pass, const SpanTargets& targets) {
  return models::span_losses(pass.scores, pass.rows, targets.begins, targets.ends);
}

at::Tensor num_right(const SpanPass& pass, const SpanTargets& targets) {
  const torch::NoGradGuard no_grad;
  constexpr double kWorst = -std::numeric_limits<double>::infinity();
  const auto first = pass.rows.offsets.values.to(at::kLong);
  const auto scores =
      pass.scores.detach().masked_fill(pass.rows.allowed.logical_not().unsqueeze(1), kWorst);
  const auto best = at::segment_reduce(scores, "max", at::diff(first), {}, {}, /*axis=*/0,
                                       /*unsafe=*/false, /*initial=*/kWorst);
  const auto begins_of = first.slice(0, 0, -1);
  const auto at_answer = [&](const at::Tensor& places, int64_t column) {
    return scores.select(1, column).index_select(0, begins_of + places);
  };
  const auto begin = at_answer(targets.begins, 0).ge(best.select(1, 0));
  const auto end = at_answer(targets.ends, 1).ge(best.select(1, 1));
  return begin.logical_and(end).sum();
}

data::WindowScores window_scores(const data::QuestionWindows& windows, int64_t window,
                                 const at::Tensor& scores) {
  data::WindowScores found{.tokens = windows.window(window).tokens, .start = {}, .end = {}};
  const float* values = scores.const_data_ptr<float>();
  const int64_t none = windows.none_row(window), first = windows.first_row(window);
  found.none = values[2 * none] + values[2 * none + 1];
  for (int64_t row = first; row < first + found.tokens.size(); ++row) {
    found.start.push_back(values[2 * row]);
    found.end.push_back(values[2 * row + 1]);
  }
  return found;
}

}  // namespace stretto::tasks
