#include "families/translation/engine/ensemble_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "data/pairs/pair_columns.h"
#include "decoding/ensemble.h"
#include "losses/registry.h"

namespace stretto::tasks {
namespace {

using Models = std::vector<std::shared_ptr<models::Seq2SeqModel>>;

// For one step and one model, 64 MiB; a sentence has 1 MiB at 262,144 pieces.
constexpr int64_t kProbabilitiesAtOnce = int64_t{1} << 24;

// One lane a sentence; those that have ended leave.
BatchLoss forced(decoding::StepModel& model, const data::PackedTokens& tgt, int64_t bos,
                 const losses::DistributionLoss& loss) {
  BatchLoss sums;
  sums.pair_nll.resize(static_cast<size_t>(tgt.num_sequences()));
  std::vector<int64_t> lanes;  // sentences that go on, ascending
  for (int64_t i = 0; i < tgt.num_sequences(); ++i) lanes.push_back(i);
  std::vector<int64_t> before(lanes.size(), bos);
  for (int64_t time = 0; !lanes.empty(); ++time) {
    std::vector<int64_t> targets;
    for (const int64_t i : lanes) {
      targets.push_back(
          tgt.values[static_cast<size_t>(tgt.offsets[static_cast<size_t>(i)] + time)]);
    }
    const at::Tensor log_probs = model.step(at::tensor(before, at::kLong));
    const auto step = loss(log_probs, at::tensor(targets, at::kLong).to(log_probs.device()));
    sums.loss_sum += step.loss_sum.item<double>();
    sums.nll_sum += step.nll_sum.item<double>();
    const at::Tensor token_nll = step.token_nll.cpu();
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      sums.pair_nll[static_cast<size_t>(lanes[lane])] += token_nll.const_data_ptr<double>()[lane];
    }
    std::vector<int64_t> parents, going_on;
    before.clear();
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      if (tgt.length(lanes[lane]) == time + 1) continue;
      parents.push_back(static_cast<int64_t>(lane));
      going_on.push_back(lanes[lane]);
      before.push_back(targets[lane]);
    }
    const bool some_leave = going_on.size() < lanes.size();
    lanes = std::move(going_on);
    if (some_leave && !lanes.empty()) model.reorder(parents);
  }
  return sums;
}

}  // namespace

std::unique_ptr<decoding::StepModel> start_together(const Models& models,
                                                    const data::PackedTokens& src,
                                                    int64_t lanes_per_src) {
  if (models.size() == 1) return models.front()->start(src, lanes_per_src);
  std::vector<std::unique_ptr<decoding::StepModel>> members;
  for (const auto& model : models) members.push_back(model->start(src, lanes_per_src));
  return std::make_unique<decoding::EnsembleStepModel>(std::move(members));
}

BatchLoss ensemble_loss(const Models& models, const data::Batch& batch,
                        const losses::CrossEntropyOptions& loss) {
  const at::NoGradGuard no_grad;
  const auto of_distributions = losses::make_distribution_loss(loss);
  const int64_t bos = models.front()->target_specials().bos;
  BatchLoss sums;
  int64_t at_once = 1;
  for (int64_t begin = 0; begin < batch.num_sequences();) {
    const int64_t end = std::min(begin + at_once, batch.num_sequences());
    const data::Batch part = data::part(batch, begin, end);
    const auto model = start_together(models, data::source(part), 1);
    const BatchLoss part_sums = forced(*model, data::target(part), bos, of_distributions);
    sums.loss_sum += part_sums.loss_sum;
    sums.nll_sum += part_sums.nll_sum;
    sums.pair_nll.insert(sums.pair_nll.end(), part_sums.pair_nll.begin(), part_sums.pair_nll.end());
    at_once = std::max<int64_t>(1, kProbabilitiesAtOnce / model->vocab_size());
    begin = end;
  }
  return sums;
}

BatchLoss batch_loss(const Models& models, const data::Batch& batch,
                     const losses::CrossEntropyOptions& loss) {
  if (models.size() > 1) return ensemble_loss(models, batch, loss);
  const at::NoGradGuard no_grad;
  const auto output = models.front()->loss(batch, {.training = false});
  BatchLoss sums{output.loss_sum.item<double>(), output.nll_sum.item<double>(), {}};
  const at::Tensor token_nll = output.token_nll.cpu();
  const double* token = token_nll.const_data_ptr<double>();
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < data::target(batch).length(i); ++k) sum += *token++;
    sums.pair_nll.push_back(sum);
  }
  return sums;
}

}  // namespace stretto::tasks
