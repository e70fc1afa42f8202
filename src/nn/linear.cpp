#include "nn/linear.h"

#include <ATen/core/grad_mode.h>

#include "kernels/gemm/packed_weights.h"
#include "kernels/quantised/quantised.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

MergedMap map_of(int64_t in, int64_t out, const LinearOptions& options) {
  if (!options.part_rows.empty()) return {.in = in, .rows = options.part_rows};
  const auto parts = static_cast<size_t>(options.parts);
  return {.in = in, .rows = std::vector<int64_t>(parts, out / options.parts)};
}

}  // namespace

LinearImpl::LinearImpl(const Init& init, int64_t in, int64_t out, const LinearOptions& options) {
  weight = register_parameter(
      "weight", options.part_rows.empty()
                    ? init.xavier_uniform("weight", out, in, options.parts, options.gain)
                    : init.xavier_uniform("weight", options.part_rows, in, options.gain));
  if (options.bias) bias = register_parameter("bias", init.constant("bias", out, 0.0));
  const MergedMap map = map_of(in, out, options);
  part_rows = map.rows;
  if (auto options_here = init.lora()) {
    lora = std::make_unique<Lora>(*this, init, std::move(options_here), map);
  }
}

at::Tensor LinearImpl::forward(const at::Tensor& x, kernels::Storage storage) const {
  if (!lora || !at::GradMode::is_enabled()) {
    return watch(*this, kernels::linear(x, operand(), bias, storage));
  }
  return watch(*this, kernels::linear(x, weight, bias) + lora->delta(x));
}

at::Tensor LinearImpl::product(const at::Tensor& x, kernels::Storage storage) const {
  if (!lora || !at::GradMode::is_enabled()) return kernels::linear(x, operand(), {}, storage);
  return kernels::linear(x, weight) + lora->delta(x);
}

at::Tensor LinearImpl::rows(const at::Tensor& x, int64_t from, int64_t count) const {
  const at::Tensor shift = bias.defined() ? bias.narrow(0, from, count) : bias;
  return kernels::linear(x, operand().narrow(0, from, count), shift);
}

double LinearImpl::operations() const {
  const int64_t learned = lora ? lora->a.numel() + lora->b.numel() : 0;
  return 2 * static_cast<double>(weight.numel() + learned);
}

at::Tensor LinearImpl::operand() const {
  return lora ? matrix() : weight;
}

at::Tensor LinearImpl::matrix() const {
  if (!lora) return kernels::dense_weight(weight);
  if (at::GradMode::is_enabled()) return lora->merged(weight);
  // While weights are laid out for decoding, they are also merged once.
  auto* kept = kernels::PackedWeightsScope::current();
  const auto merged = [&] { return lora->merged(weight); };
  return kept != nullptr ? kept->made_of(weight, merged) : merged();
}

}  // namespace stretto::nn
