#include "losses/sampled_softmax.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/random.h"

namespace stretto::losses {
namespace {

thread_local std::optional<uint64_t> sample_key;

kernels::CrossEntropy loss_of_samples(const at::Tensor& x, const at::Tensor& weight,
                                      const at::Tensor& targets, const at::Tensor& bias,
                                      const std::vector<int64_t>& samples, int64_t num_classes) {
  std::vector<double> expected;  // logarithms of how often each class comes among the samples
  for (const int64_t c : samples) {
    expected.push_back(std::log(static_cast<double>(samples.size())) +
                       std::log(log_uniform_probability(c, num_classes)));
  }
  const at::Tensor ids = at::tensor(samples, at::kLong).to(x.device());
  const at::Tensor correction = at::tensor(expected, at::kDouble).to(x.device(), x.scalar_type());
  const auto of_classes = [&](const at::Tensor& classes) {
    return bias.defined() ? bias.index_select(0, classes) : bias;
  };
  at::Tensor own = (x * weight.index_select(0, targets)).sum(1);
  if (bias.defined()) own = own + of_classes(targets);
  const at::Tensor others =
      (kernels::linear(x, weight.index_select(0, ids), of_classes(ids)) - correction)
          .masked_fill(targets.unsqueeze(1).eq(ids.unsqueeze(0)),
                       -std::numeric_limits<double>::infinity());
  const at::Tensor loss = (at::logsumexp(at::cat({own.unsqueeze(1), others}, 1), {1}) - own).sum();
  return {.loss_sum = loss, .nll_sum = loss.detach()};
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
                                             const at::Tensor& bias) {
    if (!at::GradMode::is_enabled()) return whole(x, weight, targets, num_classes, bias);
    const auto key = SampleScope::current();
    TORCH_CHECK(key, "[sampled_softmax] a loss with gradients needs a SampleScope");
    TORCH_CHECK(!x.is_cpu() || targets.lt(num_classes).all().item<bool>(),
                "[sampled_softmax] targets must lie below ", num_classes);
    return loss_of_samples(x, weight, targets, bias,
                           log_uniform_samples(*key, samples, num_classes), num_classes);
  };
}

}  // namespace stretto::losses
