#include "kernels/loss/sampled_loss.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

#include "kernels/dispatch.h"

namespace stretto::kernels {
namespace {

void check_ids(const at::Tensor& ids, int64_t rows) {
  const int64_t* id = ids.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < ids.size(0); ++i) {
    TORCH_CHECK(id[i] >= 0 && id[i] < rows && (i == 0 || id[i] > id[i - 1]),
                "[kernels] sampled_cross_entropy: ids must rise within the ", rows,
                " rows of the table, got ", id[i], " at ", i);
  }
}

CrossEntropy plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                   const SampledClasses& sampled, const at::Tensor& bias, double softcap) {
  const auto bias_of = [&](const at::Tensor& classes) {
    return bias.defined() ? bias.index_select(0, classes) : bias;
  };
  at::Tensor own = (x * weight.index_select(0, targets)).sum(1);
  if (bias.defined()) own = own + bias_of(targets);
  own = softcapped(own, softcap).unsqueeze(1);
  const at::Tensor logits =
      softcapped(linear(x, weight.index_select(0, sampled.ids), bias_of(sampled.ids)), softcap);
  const at::Tensor others = (logits + sampled.log_weights)
                                .masked_fill(targets.unsqueeze(1).eq(sampled.ids.unsqueeze(0)),
                                             -std::numeric_limits<double>::infinity());
  const at::Tensor loss = (at::logsumexp(at::cat({own, others}, 1), {1}, true) - own).sum();
  return {.loss_sum = loss, .nll_sum = loss.detach()};
}

}  // namespace

CrossEntropy sampled_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& targets, const SampledClasses& sampled,
                                   const at::Tensor& bias, double softcap) {
  const char* const name = "sampled_cross_entropy";
  check_rows(x, name);
  check_rows(weight, name);
  const at::Tensor &ids = sampled.ids, &weights = sampled.log_weights;
  TORCH_CHECK(weight.size(1) == x.size(1) && targets.dim() == 1 && targets.size(0) == x.size(0),
              "[kernels] ", name, ": x ", x.sizes(), ", weight ", weight.sizes(), " and targets ",
              targets.sizes(), " do not fit");
  TORCH_CHECK(ids.dim() == 1 && ids.size(0) > 0 && ids.scalar_type() == at::kLong &&
                  weights.sizes() == ids.sizes() && weights.scalar_type() == x.scalar_type(),
              "[kernels] ", name, ": needs int64 ids [S] and as many log_weights of the type of x");
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), "[kernels] ",
              name, ": bias must be [", weight.size(0), "], got ", bias.sizes());
  if (x.is_cpu()) {
    check_range(targets, weight.size(0), name, "target");
    check_ids(ids, weight.size(0));
  }
  const bool takes_node = wants_gradient(x, weight, bias) && softcap <= 0 && is_fused(x) &&
                          is_fused(weight) && targets.scalar_type() == at::kLong &&
                          (!bias.defined() || is_fused(bias));
  return takes_node ? fused::sampled_cross_entropy(x, weight, targets, sampled, bias)
                    : plain(x, weight, targets, sampled, bias, softcap);
}

}  // namespace stretto::kernels
