#include "families/masked_lm/engine/masked_model.h"

#include <algorithm>
#include <optional>

#include "families/text/engine/encoder_task.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

// A row of log-probabilities has the size of the vocabulary.
constexpr int64_t kMasksTogether = 256;

enum MaskedTensor : size_t {
  kMaskPlaces,  ///< int64 [M]: the masked tokens among the rows of the batch
  kMaskLabels,  ///< int64 [M]: the ids that stood there
};

at::Tensor masked_places(const data::Batch& batch) {
  const auto& rows = data::masked_rows(batch);
  const auto& offsets = data::tokens(batch).offsets;
  at::Tensor places = at::empty({rows.num_rows()}, at::kLong);
  int64_t* out = places.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows.num_sequences(); ++i) {
    for (const int64_t row : rows.sequence(i)) *out++ = offsets[static_cast<size_t>(i)] + row;
  }
  return places;
}

/// Rows of the masked tokens, [M, D].
at::Tensor masked_rows_of(models::TextModel& model, const train::Prepared& batch,
                          const models::ForwardContext& context) {
  return model.encode_of(batch.tensor(kMaskPlaces), batch.rows(), context);
}

}  // namespace

train::Prepared prepare_masked(data::Batch batch, const models::TextModel& model) {
  train::Prepared made = prepare_texts(std::move(batch), model);
  made.add(masked_places(made));
  made.add(made.column(data::kMaskedLabels));
  return made;
}

MaskedPass masked_pass(models::TextModel& model, const train::Prepared& batch,
                       const models::ForwardContext& context, PassParts parts) {
  MaskedPass pass;
  nn::AttentionRows attention;
  std::optional<nn::AttentionRecordScope> recording;
  if (parts.attention) recording.emplace(attention);
  at::Tensor rows;
  if (parts.rows) {
    pass.parts.rows = model.encode(batch.rows(), context);
    rows = pass.parts.rows.index_select(0, batch.tensor(kMaskPlaces));
  } else {
    rows = masked_rows_of(model, batch, context);
  }
  pass.parts.attention = attention;
  if (rows.size(0) == 0) {
    const auto real = rows.options().dtype(at::kDouble);
    pass.sums = {.loss = rows.sum(), .nll = at::zeros({}, real), .right = at::zeros({}, real)};
    return pass;
  }
  const auto sums = model.masked_tokens().loss(rows, batch.tensor(kMaskLabels));
  pass.sums = {.loss = sums.loss_sum, .nll = sums.nll_sum, .right = sums.right_sum};
  return pass;
}

MaskedSums masked_loss(models::TextModel& model, const train::Prepared& batch,
                       const models::ForwardContext& context) {
  return masked_pass(model, batch, context, {}).sums;
}

MaskedScore score_masked(models::TextModel& model, const data::BatchSource& batches,
                         train::EvaluationSetup setup) {
  setup.prepare = [&](data::Batch batch) { return prepare_masked(std::move(batch), model); };
  const auto score_batch = [&](const train::Prepared& batch) -> std::vector<double> {
    const MaskedSums found = masked_loss(model, batch, {});
    return {static_cast<double>(data::masked_labels(batch).num_rows()),
            static_cast<double>(data::tokens(batch).num_rows()), found.loss.item<double>(),
            found.right.item<double>()};
  };
  const auto sums = train::evaluate_sums(batches, /*num_sums=*/4, setup, score_batch);
  MaskedScore score{.masked_tokens = static_cast<int64_t>(sums[0]),
                    .tokens = static_cast<int64_t>(sums[1])};
  if (score.masked_tokens == 0) return score;
  score.nll = sums[2] / sums[0];
  score.accuracy = sums[3] / sums[0];
  return score;
}

std::vector<MaskFillers> best_fillers(const at::Tensor& log_probs, int64_t count) {
  const auto [values, ids] = log_probs.topk(std::min(count, log_probs.size(1)), 1);
  const at::Tensor probabilities = values.to(at::kDouble).exp().cpu().contiguous();
  const at::Tensor tokens = ids.cpu().contiguous();
  const at::Tensor finite = log_probs.amin(1).isfinite().cpu().contiguous();  // NaN is a minimum
  std::vector<MaskFillers> fillers(static_cast<size_t>(log_probs.size(0)));
  const double* probability = probabilities.const_data_ptr<double>();
  const int64_t* id = tokens.const_data_ptr<int64_t>();
  const bool* is_finite = finite.const_data_ptr<bool>();
  for (auto& of_row : fillers) {
    of_row.is_finite = *is_finite++;
    for (int64_t k = 0; k < tokens.size(1); ++k) of_row.best.push_back({*id++, *probability++});
  }
  return fillers;
}

std::vector<MaskFillers> fillers_of(models::TextModel& model, const data::Batch& batch,
                                    int64_t count) {
  const at::NoGradGuard no_grad;
  train::Prepared prepared = prepare_masked(batch, model);
  prepared.send(model.device());
  const at::Tensor rows = masked_rows_of(model, prepared, {});
  std::vector<MaskFillers> fillers;
  for (int64_t begin = 0; begin < rows.size(0); begin += kMasksTogether) {
    const auto block = rows.narrow(0, begin, std::min(kMasksTogether, rows.size(0) - begin));
    for (auto& of_mask : best_fillers(model.masked_tokens().log_probs(block), count)) {
      fillers.push_back(std::move(of_mask));
    }
  }
  return fillers;
}

}  // namespace stretto::tasks
