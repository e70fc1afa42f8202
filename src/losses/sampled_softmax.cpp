#include "losses/sampled_softmax.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "kernels/loss/sampled_loss.h"

namespace stretto::losses {
namespace {

thread_local std::optional<uint64_t> sample_key;

/// A class that was drawn several times counts as often in one place.
kernels::SampledClasses classes_of(std::vector<int64_t> samples, int64_t num_classes,
                                   const at::TensorOptions& options) {
  std::sort(samples.begin(), samples.end());
  const auto num_samples = static_cast<double>(samples.size());
  std::vector<int64_t> ids;
  std::vector<double> log_weights;
  for (auto first = samples.begin(); first != samples.end();) {
    const auto end = std::upper_bound(first, samples.end(), *first);
    const double expected = num_samples * log_uniform_probability(*first, num_classes);
    ids.push_back(*first);
    log_weights.push_back(std::log(static_cast<double>(end - first) / expected));
    first = end;
  }
  return {.ids = at::tensor(ids, at::kLong).to(options.device()),
          .log_weights = at::tensor(log_weights, at::kDouble).to(options)};
}

}  // namespace

SampleScope::SampleScope(uint64_t key) : before_(std::exchange(sample_key, key)) {}

SampleScope::~SampleScope() {
  sample_key = before_;
}

std::optional<uint64_t> SampleScope::current() {
  return sample_key;
}

double log_uniform_probability(int64_t c, int64_t num_classes) {
  return std::log1p(1 / static_cast<double>(c + 1)) /
         std::log(static_cast<double>(num_classes + 1));
}

std::vector<int64_t> log_uniform_samples(uint64_t key, int64_t samples, int64_t num_classes) {
  const double range = std::log(static_cast<double>(num_classes + 1));
  RandomStream random(key);
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < samples; ++i) {
    const auto c = static_cast<int64_t>(std::exp(random.uniform() * range)) - 1;
    drawn.push_back(std::clamp<int64_t>(c, 0, num_classes - 1));
  }
  return drawn;
}

nn::OutputLoss sampled_softmax(int64_t samples, nn::OutputLoss whole) {
  TORCH_CHECK(samples > 0, "[sampled_softmax] needs at least one sample, got ", samples);
  return [samples, whole = std::move(whole)](const at::Tensor& x, const at::Tensor& weight,
                                             const at::Tensor& targets, int64_t num_classes,
                                             const at::Tensor& bias, double softcap) {
    if (!at::GradMode::is_enabled()) return whole(x, weight, targets, num_classes, bias, softcap);
    const auto key = SampleScope::current();
    TORCH_CHECK(key, "[sampled_softmax] a loss with gradients needs a SampleScope");
    TORCH_CHECK(!x.is_cpu() || targets.lt(num_classes).all().item<bool>(),
                "[sampled_softmax] targets must lie below ", num_classes);
    const auto sampled =
        classes_of(log_uniform_samples(*key, samples, num_classes), num_classes, x.options());
    return kernels::sampled_cross_entropy(x, weight, targets, sampled, bias, softcap);
  };
}

}  // namespace stretto::losses
