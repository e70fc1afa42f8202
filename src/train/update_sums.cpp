#include "train/update_sums.h"

#include <ATen/ATen.h>

#include <cmath>

namespace stretto::train {

UpdateSums::UpdateSums(const Task& task)
    : num_losses_(task.losses().size()),
      num_statistics_(task.statistics().size()),
      num_counts_(task.counters().size()) {
  TORCH_CHECK(num_losses_ > 0, "[task] it has no loss");
}

parallel::RankResult UpdateSums::begin(size_t turns) {
  unread_.clear();
  parallel::RankResult rank_result;
  rank_result.num_sums = num_sums();
  rank_result.micros.assign(turns, parallel::MicroSums(num_sums()));
  return rank_result;
}

void UpdateSums::add(size_t turn, const Sums& sums, std::span<const double> weights,
                     parallel::RankResult& rank_result) {
  TORCH_CHECK(sums.losses.size() == num_losses_ && weights.size() == num_losses_ &&
                  sums.statistics.size() == num_statistics_ && sums.counts.size() == num_counts_,
              "[task] a micro-batch has ", sums.losses.size(), " losses, ", weights.size(),
              " weights, ", sums.statistics.size(), " statistics and ", sums.counts.size(),
              " counts; the task names ", num_losses_, ", ", num_losses_, ", ", num_statistics_,
              " and ", num_counts_);
  auto& micro = rank_result.micros[turn];
  for (size_t i = 0; i < num_losses_; ++i) micro[num_losses_ + i] += weights[i];
  const size_t counts = 2 * num_losses_ + num_statistics_;
  for (size_t i = 0; i < num_counts_; ++i) micro[counts + i] += static_cast<double>(sums.counts[i]);
  Unread& unread = unread_.emplace_back(Unread{.turn = turn, .losses = {}, .statistics = {}});
  for (const auto& loss : sums.losses) unread.losses.push_back(loss.detach());
  for (const auto& statistic : sums.statistics) unread.statistics.push_back(statistic.detach());
}

void UpdateSums::read(parallel::RankResult& rank_result) {
  if (unread_.empty()) return;
  std::vector<at::Tensor> scalars;
  for (const Unread& part : unread_) {
    for (const auto* list : {&part.losses, &part.statistics}) {
      for (const auto& scalar : *list) scalars.push_back(scalar.to(at::kDouble).reshape({}));
    }
  }
  const at::Tensor values = at::stack(scalars).cpu();
  const double* next = values.const_data_ptr<double>();
  for (const Unread& part : unread_) {
    auto& micro = rank_result.micros[part.turn];
    for (size_t i = 0; i < num_losses_; ++i) micro[i] += *next++;
    for (size_t i = 0; i < num_statistics_; ++i) micro[2 * num_losses_ + i] += *next++;
  }
  unread_.clear();
}

Totals UpdateSums::totals(const std::vector<parallel::MicroSums>& micros) const {
  parallel::MicroSums sums(num_sums());
  for (const auto& micro : micros) parallel::add_sums(sums, micro);
  const auto weights = sums.cbegin() + static_cast<std::ptrdiff_t>(num_losses_);
  const auto statistics = weights + static_cast<std::ptrdiff_t>(num_losses_);
  const auto counts = statistics + static_cast<std::ptrdiff_t>(num_statistics_);
  Totals totals{.losses = {sums.cbegin(), weights},
                .weights = {weights, statistics},
                .statistics = {statistics, counts}};
  for (auto count = counts; count != sums.cend(); ++count) {
    totals.counts.push_back(std::llround(*count));
  }
  return totals;
}

}  // namespace stretto::train
