#include "optim/weight_average.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace stretto::optim {
namespace {

constexpr int64_t kAverageGrain = int64_t{1} << 15;

// Not at::lerp: the ends of its threads' parts may round in another way than the middle.
void move_towards(torch::Tensor& average, const torch::Tensor& weights, float share) {
  float* a = average.data_ptr<float>();
  const float* w = weights.const_data_ptr<float>();
  at::parallel_for(0, average.numel(), kAverageGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a[i] += share * (w[i] - a[i]);
  });
}

}  // namespace

double AverageRule::decay_at(int64_t number) const {
  const auto t = static_cast<double>(number);
  return warm_up ? std::min(decay, (1 + t) / (10 + t)) : decay;
}

WeightAverage::WeightAverage(AverageRule rule, const Arena& arena, Slice slice)
    : rule_(rule), slice_(slice), values_(part_of(arena.params()).clone()) {}

torch::Tensor WeightAverage::part_of(const torch::Tensor& params) const {
  return params.narrow(0, slice_.begin, slice_.size());
}

void WeightAverage::begin(const Arena& arena) {
  const torch::NoGradGuard no_grad;
  values_.copy_(part_of(arena.params()));
}

double WeightAverage::share_of(int64_t number) const {
  if (!rule_.is_mean) return 1 - rule_.decay_at(number);
  return mean_after_ && number > *mean_after_ ? 1 / static_cast<double>(number - *mean_after_) : 1;
}

void WeightAverage::update(const Arena& arena, int64_t number) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor weights = part_of(arena.params());
  const double share = share_of(number);
  // To the bit, which a + (w - a) is not.
  if (rule_.is_mean && share == 1) return begin(arena);
  if (values_.is_cpu() && values_.scalar_type() == torch::kFloat) {
    move_towards(values_, weights, static_cast<float>(share));
  } else {
    values_.lerp_(weights, share);  // no copy of all weights
  }
}

KeptWeights::KeptWeights(Arena& arena) : arena_(arena), params_(arena.params().clone()) {}

KeptWeights::~KeptWeights() {
  const torch::NoGradGuard no_grad;
  arena_.params().copy_(params_);
}

}  // namespace stretto::optim
