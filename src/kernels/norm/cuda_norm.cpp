// The autograd node around the kernels of layer normalisation.
#include <utility>

#include "kernels/cuda/bridge.h"
#include "kernels/cuda/cuda.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// The normalised rows, and fp32 [2, N]: the mean of each row, its inverse deviation; all arguments
/// contiguous.
std::pair<at::Tensor, at::Tensor> normalised(const at::Tensor& x, const at::Tensor& weight,
                                             const at::Tensor& bias, double epsilon) {
  at::Tensor out = at::empty_like(x);
  at::Tensor moments = at::empty({2, x.size(0)}, x.options().dtype(at::kFloat));
  on_stream(x, [&](cudaStream_t stream) {
    float* const mean = moments.data_ptr<float>();
    layer_norm(rows_of(x, stream), x.const_data_ptr(), weight.const_data_ptr(),
               bias.const_data_ptr(), static_cast<float>(epsilon), out.data_ptr(), mean,
               mean + x.size(0));
  });
  return {out, moments};
}

struct LayerNormNode : Function<LayerNormNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon) {
    const at::Tensor rows = x.contiguous(), gains = weight.contiguous();
    const auto [out, moments] = normalised(rows, gains, bias.contiguous(), epsilon);
    ctx->save_for_backward({rows, gains, moments});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    const auto if_needed = [&](size_t input, const at::Tensor& like) {
      return ctx->needs_input_grad(input) ? at::empty_like(like) : at::Tensor();
    };
    const auto data_of = [](const at::Tensor& slope) -> void* {
      return slope.defined() ? slope.data_ptr() : nullptr;
    };
    const at::Tensor dx = if_needed(0, x), dweight = if_needed(1, weight),
                     dbias = if_needed(2, weight);
    at::Tensor partial;
    if (dweight.defined() || dbias.defined())
      partial = at::empty({2, norm_parts(x.size(0)), x.size(1)}, saved[2].options());
    on_stream(x, [&](cudaStream_t stream) {
      const float* const mean = saved[2].const_data_ptr<float>();
      layer_norm_backward(rows_of(x, stream),
                          {.x = x.const_data_ptr(),
                           .dy = dy.const_data_ptr(),
                           .weight = weight.const_data_ptr(),
                           .mean = mean,
                           .inverse_deviation = mean + x.size(0),
                           .dx = data_of(dx),
                           .dweight = data_of(dweight),
                           .dbias = data_of(dbias),
                           .partial = partial.defined() ? partial.data_ptr<float>() : nullptr});
    });
    return {dx, dweight, dbias, {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon) {
  if (x.size(1) > kNormWidth) return at::layer_norm(x, {x.size(1)}, weight, bias, epsilon);
  if (!at::GradMode::is_enabled())
    return normalised(x.contiguous(), weight.contiguous(), bias.contiguous(), epsilon).first;
  return LayerNormNode::apply(x, weight, bias, epsilon);
}

}  // namespace stretto::kernels::cuda
