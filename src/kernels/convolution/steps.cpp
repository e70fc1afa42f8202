#include "kernels/convolution/steps.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "kernels/convolution/fused.h"
#include "kernels/convolution/reference.h"
#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/packed_weights.h"
#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

/// weights [L or 1, H, K], normalised.
at::Tensor weigh_step(const at::Tensor& x, const at::Tensor& weights, RowCache& cache) {
  TORCH_CHECK(weights.size(2) == cache.kernel(), "[kernels] convolution step: weights have ",
              weights.size(2), " taps, the cache ", cache.kernel());
  check_heads(x.size(1), weights.size(1), "convolution step");
  cache.push(x);
  if (is_fused(x) && is_fused(weights))
    return fused::weigh_lines(cache.rows(), weights.flatten(1).contiguous(), weights.size(1),
                              cache.lines());
  const auto kernel = on_gpu(cuda::table().convolution_step, x, weights);
  return kernel != nullptr ? kernel(cache, weights) : reference::weigh(cache.windows(), weights);
}

}  // namespace

RowCache::RowCache(int64_t kernel, int64_t dilation) : kernel_(kernel), dilation_(dilation) {
  TORCH_CHECK(kernel > 0 && dilation > 0,
              "[kernels] RowCache: kernel and dilation must be above 0, got ", kernel, " and ",
              dilation);
}

void RowCache::push(const at::Tensor& x) {
  check_rows(x, "RowCache::push");
  const int64_t span = (kernel_ - 1) * dilation_ + 1;
  if (!rows_.defined()) rows_ = at::zeros({span, x.size(0), x.size(1)}, x.options());
  TORCH_CHECK(x.sizes() == rows_.sizes().slice(1),
              "[kernels] RowCache::push: need rows of the lanes that there are, ",
              rows_.sizes().slice(1), ", got ", x.sizes());
  rows_.select(0, pushed_ % span).copy_(x);
  ++pushed_;
}

void RowCache::reorder(const at::Tensor& parents) {
  if (rows_.defined()) rows_ = rows_.index_select(1, parents);
}

at::Tensor RowCache::lines() const {
  at::Tensor lines = at::empty({lanes(), kernel_}, at::kInt);
  int32_t* to = lines.data_ptr<int32_t>();
  for (int64_t lane = 0; lane < lanes(); ++lane)
    for (int64_t tap = 0; tap < kernel_; ++tap) {
      const int64_t step = pushed_ - 1 - (kernel_ - 1 - tap) * dilation_;
      *to++ = static_cast<int32_t>(step < 0 ? -1 : step % rows_.size(0) * lanes() + lane);
    }
  return lines;
}

at::Tensor RowCache::windows() const {
  const at::Tensor lines = this->lines().to(rows_.device(), at::kLong);
  const at::Tensor seen = rows().index_select(0, lines.clamp_min(0).flatten());
  return seen.view({lanes(), kernel_, -1}).masked_fill(lines.lt(0).unsqueeze(2), 0);
}

PackedConvolution::PackedConvolution(const at::Tensor& weight, const at::Tensor& bias,
                                     int64_t kernel)
    : weight_(weight.detach().contiguous()),
      bias_(bias.defined() ? bias.detach().contiguous() : bias),
      kernel_(kernel) {
  TORCH_CHECK(weight.dim() == 2 && kernel > 0 && weight.size(1) % kernel == 0,
              "[kernels] PackedConvolution: weight must be [outputs, ", kernel,
              " taps * channels], got ", weight.sizes());
  if (!is_fused(weight_)) return;
  const Compute compute = ComputeScope::current();
  PackedWeights* kept = PackedWeightsScope::current();
  packed_ = kept != nullptr
                ? kept->shared(weight_, compute)
                : std::make_shared<const gemm::Packed>(gemm::Operand{weight_, true}, compute);
}

at::Tensor time_convolution_step(const PackedConvolution& convolution, const at::Tensor& x,
                                 RowCache& cache) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(convolution.kernel() == cache.kernel() && x.size(1) == convolution.inputs(),
              "[kernels] time_convolution_step: ", convolution.kernel(), " taps of ",
              convolution.inputs(), " channels do not fit ", x.sizes(), " and a cache of ",
              cache.kernel(), " taps");
  if (const auto kernel = on_gpu(cuda::table().time_convolution_step, x))
    return kernel(convolution, x, cache);
  cache.push(x);
  if (!convolution.packed() || !is_fused(x))
    return linear(cache.windows().flatten(1), convolution.weight(), convolution.bias());
  at::Tensor out = at::empty({x.size(0), convolution.outputs()}, x.options());
  gemm::multiply_gathered({cache.rows(), cache.lines()}, *convolution.packed(), convolution.bias(),
                          false, out);
  return out;
}

at::Tensor light_convolution_step(const at::Tensor& weight, const at::Tensor& x, RowCache& cache) {
  const at::NoGradGuard no_grad;
  check_rows(weight, "light_convolution_step");
  return weigh_step(x, at::softmax(weight, -1).unsqueeze(0), cache);
}

at::Tensor dynamic_convolution_step(const at::Tensor& weights, int64_t num_heads,
                                    const at::Tensor& x, RowCache& cache) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(weights.dim() == 2 && weights.size(0) == x.size(0) &&
                  weights.size(1) == num_heads * cache.kernel(),
              "[kernels] dynamic_convolution_step: weights must be [", x.size(0), ", ", num_heads,
              " heads * ", cache.kernel(), " taps], got ", weights.sizes());
  const at::Tensor raw = weights.reshape({x.size(0), num_heads, cache.kernel()});
  return weigh_step(x, at::softmax(raw, -1), cache);
}

}  // namespace stretto::kernels
