#include "families/masked_lm/engine/masked_model.h"

#include <algorithm>

#include "distributed/numbers.h"
#include "families/text/engine/batch_tokens.h"
#include "families/text/engine/text_task.h"
#include "tasks/parallel_jobs.h"

namespace stretto::tasks {
namespace {

// A row of log-probabilities has the size of the vocabulary.
constexpr int64_t kMasksTogether = 256;

/// int64 [M]: the masked tokens among the rows of a batch.
at::Tensor masked_places(const data::Batch& batch, at::Device device) {
  const auto& rows = data::masked_rows(batch);
  const auto& offsets = data::tokens(batch).offsets;
  at::Tensor places = at::empty({rows.num_rows()}, at::kLong);
  int64_t* out = places.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows.num_sequences(); ++i) {
    for (const int64_t row : rows.sequence(i)) *out++ = offsets[static_cast<size_t>(i)] + row;
  }
  return places.to(device);
}

/// Rows of the masked tokens, [M, D].
at::Tensor masked_rows_of(models::TextModel& model, const data::Batch& batch,
                          const models::ForwardContext& context) {
  return model.encode_of(masked_places(batch, model.device()), pack_texts(batch, model), context);
}

}  // namespace

MaskedSums masked_loss(models::TextModel& model, const data::Batch& batch,
                       const models::ForwardContext& context) {
  const at::Tensor rows = masked_rows_of(model, batch, context);
  if (rows.size(0) == 0) {
    return {.nll = rows.sum(), .right = at::zeros({}, rows.options().dtype(at::kDouble))};
  }
  const auto& ids = data::masked_labels(batch).values;
  const at::Tensor labels = at::tensor(ids, at::kLong).to(rows.device());
  const auto sums = model.masked_tokens().loss(rows, labels);
  return {.nll = sums.loss_sum, .right = sums.right_sum};
}

// Each batch is one process's; its numbers are added in the order of batches, so that the sum has
// the same bits for any number of processes.
MaskedScore score_masked(models::TextModel& model, const data::MaskedText& text,
                         const MaskedScoreOptions& options) {
  constexpr size_t kColumns = 4;
  const auto batches = data::make_masked_eval_batches(
      text, batch_tokens(options.max_tokens, model.device()), options.max_samples, options.seed);
  std::vector<double> table(static_cast<size_t>(batches->num_batches()) * kColumns);
  ParallelJobs passes(model.device());
  passes.run_share(options.group, batches->num_batches(), [&](int64_t i) {
    const data::Batch batch = batches->load(0, i);
    const MaskedSums sums = masked_loss(model, batch, {});
    double* row = table.data() + static_cast<size_t>(i) * kColumns;
    row[0] = static_cast<double>(data::masked_labels(batch).num_rows());
    row[1] = static_cast<double>(data::tokens(batch).num_rows());
    row[2] = sums.nll.item<double>();
    row[3] = sums.right.item<double>();
  });
  distributed::sum_numbers(options.group, table);  // of zeros and one number: exact
  MaskedScore score;
  double right = 0;
  for (size_t at = 0; at < table.size(); at += kColumns) {
    score.masked_tokens += static_cast<int64_t>(table[at]);
    score.tokens += static_cast<int64_t>(table[at + 1]);
    score.nll += table[at + 2];
    right += table[at + 3];
  }
  if (score.masked_tokens == 0) return score;
  const auto count = static_cast<double>(score.masked_tokens);
  score.nll /= count;
  score.accuracy = right / count;
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
  const at::Tensor rows = masked_rows_of(model, batch, {});
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
