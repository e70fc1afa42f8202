#include "families/question_answering/engine/span_pass.h"

#include <torch/torch.h>

#include <limits>

#include "families/text/engine/text_task.h"

namespace stretto::tasks {
namespace {

/// Rows that an answer may begin or end at, bool [N] on the CPU.
at::Tensor allowed_rows(const data::Batch& batch) {
  const auto& allowed = batch.column<uint8_t>(data::kAllowedRows).values;
  return at::tensor(at::ArrayRef<uint8_t>(allowed), at::kByte).to(at::kBool);
}

}  // namespace

SpanTargets span_targets(const data::Batch& batch, at::Device device) {
  const auto& answers = batch.column<int64_t>(data::kAnswerRows).values;
  const auto bounds = at::tensor(at::ArrayRef<int64_t>(answers), at::kLong).view({-1, 2});
  return {.begins = bounds.select(1, 0).contiguous().to(device),
          .ends = bounds.select(1, 1).contiguous().to(device)};
}

SpanPass span_pass(models::TextModel& model, const data::Batch& batch,
                   const models::ForwardContext& context) {
  const at::Device device = model.device();
  const auto rows = pack_texts(batch, model);
  const at::Tensor allowed = allowed_rows(batch);
  // The last layer computes no rows of questions, a quarter of those of a short paragraph. They are
  // counted on the CPU, since a GPU would be waited for.
  const at::Tensor places = allowed.nonzero().squeeze(1).to(device);
  const at::Tensor scores = model.spans().scores(model.encode_of(places, rows, context));
  return {.scores = at::zeros({allowed.size(0), 2}, scores.options()).index_copy(0, places, scores),
          .rows = {.offsets = rows.offsets, .allowed = allowed.to(device)}};
}

SpanPass span_pass(const std::vector<std::shared_ptr<models::TextModel>>& models,
                   const data::Batch& batch) {
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
