#include "nn/distance_bias.h"

#include <ATen/ops/outer.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "nn/watch.h"

namespace stretto::nn {
namespace {

/// Distances of the columns of a table: a causal one ends with 0.
std::vector<int64_t> distances_of(int64_t longest, bool causal) {
  std::vector<int64_t> all;
  for (int64_t d = 1 - longest; d <= (causal ? 0 : longest - 1); ++d) all.push_back(d);
  return all;
}

}  // namespace

std::vector<double> alibi_slopes(int64_t num_heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_heads)));
  const auto slope = [](int64_t head, int64_t heads) {
    return std::exp2(-8.0 * static_cast<double>(head) / static_cast<double>(heads));
  };
  std::vector<double> slopes;
  for (int64_t i = 1; i <= power; ++i) slopes.push_back(slope(i, power));
  for (int64_t i = 1; i <= num_heads - power; ++i) slopes.push_back(slope(2 * i - 1, 2 * power));
  return slopes;
}

int64_t t5_bucket(int64_t distance, bool causal) {
  const int64_t buckets = causal ? kT5Buckets : kT5Buckets / 2, exact = buckets / 2;
  const int64_t first = !causal && distance > 0 ? buckets : 0;
  const int64_t away = causal ? std::max<int64_t>(-distance, 0) : std::abs(distance);
  if (away < exact) return first + away;
  const double share = std::log(static_cast<double>(away) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(kT5MostDistance) / static_cast<double>(exact));
  // Where a bucket begins at a whole number, rounding must not put it into the one before.
  constexpr double kRounding = 1e-9;
  const auto step = static_cast<int64_t>(share * static_cast<double>(buckets - exact) + kRounding);
  return first + std::min(exact + step, buckets - 1);
}

DistanceBiasImpl::DistanceBiasImpl(const Init& init, const DistanceBiasOptions& options,
                                   int64_t d_model)
    : options_(options) {
  if (options_.kind != "t5") return;
  weight = register_parameter("weight", init.normal("weight", kT5Buckets, options_.num_heads,
                                                    1.0 / std::sqrt(double(d_model))));
}

kernels::DistanceBias DistanceBiasImpl::forward(int64_t longest, const at::Tensor& like) const {
  const std::vector<int64_t> distances =
      distances_of(std::max<int64_t>(longest, 1), options_.causal);
  const int64_t zero = std::max<int64_t>(longest, 1) - 1;
  if (!weight.defined()) {
    std::vector<double> away;
    for (const int64_t d : distances) away.push_back(-std::abs(static_cast<double>(d)));
    const at::Tensor table = at::outer(at::tensor(alibi_slopes(options_.num_heads), at::kDouble),
                                       at::tensor(away, at::kDouble));
    const at::ScalarType type = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return {.table = table.to(like.device(), type), .zero = zero};
  }
  std::vector<int64_t> buckets;
  for (const int64_t d : distances) buckets.push_back(t5_bucket(d, options_.causal));
  const at::Tensor ids = at::tensor(buckets, at::kLong).to(weight.device());
  const at::Tensor rows = watch(*this, kernels::embed(weight, ids, 1.0, {}));
  return {.table = rows.t().contiguous(), .zero = zero};
}

}  // namespace stretto::nn
