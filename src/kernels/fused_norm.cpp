#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm.h"

namespace stretto::kernels::fused {
namespace {

// Rows whose gradients of weight and bias are summed by one thread. The sums of blocks are added in
// order, so that they do not depend on the number of threads, as those of libtorch do.
constexpr int64_t kBlock = 32;

struct LayerNormNode : torch::autograd::Function<LayerNormNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon) {
    const at::Tensor rows = x.contiguous(), gains = weight.contiguous();
    const auto [out, mean, inverse] =
        at::native_layer_norm(rows, {rows.size(1)}, gains, bias, epsilon);
    ctx->save_for_backward({rows, gains, mean, inverse});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    const int64_t num_rows = x.size(0), width = x.size(1);
    const int64_t blocks = (num_rows + kBlock - 1) / kBlock;
    at::Tensor dx = ctx->needs_input_grad(0) ? at::empty_like(x) : at::Tensor();
    at::Tensor sums = at::zeros({blocks, 2 * width}, x.options());
    cpu::NormSlopes slopes{.x = x.const_data_ptr<float>(),
                           .dy = dy.const_data_ptr<float>(),
                           .mean = saved[2].const_data_ptr<float>(),
                           .inverse_deviation = saved[3].const_data_ptr<float>(),
                           .weight = weight.const_data_ptr<float>(),
                           .dx = dx.defined() ? dx.data_ptr<float>() : nullptr,
                           .dweight = nullptr,
                           .dbias = nullptr};
    float* const of_blocks = sums.data_ptr<float>();
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      cpu::NormSlopes mine = slopes;
      for (int64_t i = begin; i < end; ++i) {
        mine.dweight = of_blocks + i * 2 * width;
        mine.dbias = mine.dweight + width;
        cpu::table().layer_norm_backward(mine,
                                         {i * kBlock, std::min((i + 1) * kBlock, num_rows), width});
      }
    });
    const at::Tensor both = gemm::column_sums(sums);
    return {dx, both.slice(0, 0, width), both.slice(0, width), {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon) {
  if (!at::GradMode::is_enabled()) return at::layer_norm(x, {x.size(1)}, weight, bias, epsilon);
  return LayerNormNode::apply(x, weight, bias, epsilon);
}

}  // namespace stretto::kernels::fused
