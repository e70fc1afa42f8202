#include "optim/noise_scale.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stretto::optim {
namespace {

double need(const std::map<std::string, double>& state, const char* key) {
  const auto found = state.find(key);
  if (found == state.end() || !std::isfinite(found->second)) {
    throw Error(ExitCode::kBadData,
                std::string("noise scale: the saved state has no valid `") + key + "`",
                "resume from another checkpoint; this one was written by another version");
  }
  return found->second;
}

}  // namespace

GradientNorms norms_of_parts(std::span<const GradientPart> parts, const GradientPart& whole,
                             double loss_scale) {
  GradientNorms norms;
  const double unscale = 1 / (loss_scale * loss_scale);
  double weight = 0, num_parts = 0, weighted = 0;
  for (const GradientPart& part : parts) {
    if (!(part.weight > 0)) continue;
    weight += part.weight;
    num_parts += 1;
    weighted += part.sum_norm_sq / part.weight;  // b |sum / b|^2
  }
  if (num_parts == 0 || !(whole.weight > 0)) return norms;
  norms.small_batch = weight / num_parts;
  norms.small_norm_sq = weighted / weight * unscale;
  norms.big_batch = whole.weight;
  norms.big_norm_sq = whole.sum_norm_sq / (whole.weight * whole.weight) * unscale;
  return norms;
}

NoiseScale::NoiseScale(double decay) : decay_(decay) {}

void NoiseScale::add(const GradientNorms& norms) {
  const double small = norms.small_batch, big = norms.big_batch;
  if (!(small > 0) || !(small < big)) return;
  const double norm_sq = (big * norms.big_norm_sq - small * norms.small_norm_sq) / (big - small);
  const double trace = (norms.small_norm_sq - norms.big_norm_sq) / (1 / small - 1 / big);
  if (!std::isfinite(norm_sq) || !std::isfinite(trace)) return;
  norm_sq_ = decay_ * norm_sq_ + (1 - decay_) * norm_sq;
  trace_ = decay_ * trace_ + (1 - decay_) * trace;
  count_ += 1;
}

double NoiseScale::norm_sq() const {
  return count_ == 0 ? 0 : norm_sq_ / (1 - std::pow(decay_, static_cast<double>(count_)));
}

double NoiseScale::trace() const {
  return count_ == 0 ? 0 : trace_ / (1 - std::pow(decay_, static_cast<double>(count_)));
}

std::optional<double> NoiseScale::value() const {
  if (count_ < kMinUpdates || !(norm_sq_ > 0)) return std::nullopt;
  return std::max(0.0, trace_ / norm_sq_);  // the corrections of both are the same
}

std::map<std::string, double> NoiseScale::state() const {
  return {{"count", static_cast<double>(count_)}, {"norm_sq", norm_sq_}, {"trace", trace_}};
}

void NoiseScale::restore(const std::map<std::string, double>& state) {
  if (state.empty()) {
    count_ = 0;
    norm_sq_ = trace_ = 0;
    return;
  }
  const double count = need(state, "count");
  if (count < 0 || count != std::floor(count) || count > 0x1p53) {
    throw Error(ExitCode::kBadData,
                "noise scale: the saved `count` is no number of updates: " + std::to_string(count),
                "resume from another checkpoint");
  }
  const double norm_sq = need(state, "norm_sq"), trace = need(state, "trace");
  count_ = static_cast<int64_t>(count);
  norm_sq_ = norm_sq;
  trace_ = trace;
}

}  // namespace stretto::optim
