#include "parallel/running_statistics.h"

#include <ATen/ATen.h>

#include <utility>

#include "distributed/numbers.h"

namespace stretto::parallel {
namespace {

/// Numbers in host memory: a few thousand for the largest models.
const auto kNumbers = at::TensorOptions().dtype(at::kDouble);

std::span<double> span_of(at::Tensor& numbers) {
  return {numbers.data_ptr<double>(), static_cast<size_t>(numbers.numel())};
}

}  // namespace

RunningStatistics::RunningStatistics(torch::nn::Module& model, distributed::ProcessGroup group,
                                     Setup setup)
    : group_(std::move(group)), setup_(setup) {
  std::vector<at::Tensor> momenta;
  for (nn::BatchNormImpl* layer : nn::batch_norms(model)) {
    if (layer->is_frozen()) continue;
    norms_.push_back({.layer = layer, .mean = {}, .var = {}});
    momenta.push_back(at::full({2 * layer->running_mean.numel()}, layer->momentum(), kNumbers));
  }
  if (empty()) return;
  momentum_ = at::cat(momenta);
  for (Norm& norm : norms_) {
    norm.layer->hand_moments_to([&norm](const nn::BatchMoments& moments) {
      norm.mean = norm.calls == 0 ? moments.mean : norm.mean + moments.mean;
      norm.var = norm.calls == 0 ? moments.var : norm.var + moments.var;
      norm.calls += 1;
    });
  }
}

RunningStatistics::~RunningStatistics() {
  for (Norm& norm : norms_) {
    norm.layer->hand_moments_to({});
    norm.layer->synchronise({});
  }
}

void RunningStatistics::begin(int64_t count) {
  count_ = count;
  is_open_ = false;
  moments_.clear();
  synchronise(false);
}

void RunningStatistics::before_micro_batch(int64_t part) {
  close_micro_batch();
  for (Norm& norm : norms_) norm.calls = 0;
  is_open_ = true;
  synchronise(setup_.synchronised && group_.size() > 1 && (part + 1) * group_.size() <= count_);
}

void RunningStatistics::end() {
  close_micro_batch();
  synchronise(false);
}

// What later calls hand over (forensics runs micro-batches again) belongs to nothing.
void RunningStatistics::close_micro_batch() {
  if (!std::exchange(is_open_, false)) return;
  std::vector<at::Tensor> parts;
  for (const Norm& norm : norms_) {
    const auto add = [&](const at::Tensor& sum, const at::Tensor& running) {
      // A layer that was not called is taken as standing where it was before the update.
      const at::Tensor mean =
          norm.calls == 0 ? running.to(at::kDouble) : sum.to(at::kDouble) / norm.calls;
      parts.push_back(mean);
    };
    add(norm.mean, norm.layer->running_mean);
    add(norm.var, norm.layer->running_var);
  }
  if (!empty()) moments_.push_back(at::cat(parts).to(at::kCPU));
}

void RunningStatistics::synchronise(bool wanted) {
  if (empty() || std::exchange(synchronised_now_, wanted) == wanted) return;
  nn::SumOverRanks sum;
  if (wanted)
    sum = [this](std::span<double> numbers) { distributed::sum_numbers(group_, numbers); };
  for (Norm& norm : norms_) norm.layer->synchronise(sum);
}

// Synchronised, those of the other ranks that ran beside rank 0's have its moments, and no turn.
int64_t RunningStatistics::turn_of(int64_t micro_batch) const {
  const int64_t size = group_.size(), rounds = count_ / size;
  if (!setup_.synchronised) return micro_batch;
  if (micro_batch < rounds * size) return micro_batch % size == 0 ? micro_batch / size : -1;
  return rounds + micro_batch % size;
}

int64_t RunningStatistics::num_turns() const {
  return setup_.synchronised ? count_ / group_.size() + count_ % group_.size() : count_;
}

void RunningStatistics::add(at::Tensor& sum, const at::Tensor& moments, int64_t micro_batch) const {
  const int64_t turn = turn_of(micro_batch);
  if (turn < 0) return;
  sum.add_(momentum_ * (1 - momentum_).pow(num_turns() - 1 - turn) * moments);
}

at::Tensor RunningStatistics::sum_over_ranks() const {
  const int64_t size = group_.size(), rank = group_.rank();
  at::Tensor sum = at::zeros_like(momentum_);
  if (!setup_.ordered) {
    for (size_t part = 0; part < moments_.size(); ++part) {
      add(sum, moments_[part], static_cast<int64_t>(part) * size + rank);
    }
    distributed::sum_numbers(group_, span_of(sum));
    return sum;
  }
  const int64_t parts = (count_ + size - 1) / size;  // of the rank that has most
  at::Tensor all = at::zeros({size, parts, momentum_.numel()}, kNumbers);
  for (size_t part = 0; part < moments_.size(); ++part) {
    all[rank][static_cast<int64_t>(part)].copy_(moments_[part]);
  }
  distributed::gather_numbers(group_, span_of(all));
  for (int64_t j = 0; j < count_; ++j) add(sum, all[j % size][j / size], j);
  return sum;
}

void RunningStatistics::move() {
  if (empty()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor sum = sum_over_ranks();
  const double turns = static_cast<double>(num_turns());
  int64_t at = 0;
  for (const Norm& norm : norms_) {
    for (const at::Tensor& running : {norm.layer->running_mean, norm.layer->running_var}) {
      const at::Tensor kept = running.to(at::kCPU, at::kDouble);
      const at::Tensor decay = (1 - momentum_.narrow(0, at, running.numel())).pow(turns);
      running.copy_(kept * decay + sum.narrow(0, at, running.numel()));
      at += running.numel();
    }
  }
}

}  // namespace stretto::parallel
