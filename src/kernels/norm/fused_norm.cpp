#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"

namespace stretto::kernels::fused {
namespace {

// Rows whose gradients of weight and bias are summed by one thread. The sums of blocks are added in
// order, so that they do not depend on the number of threads, as those of libtorch do.
constexpr int64_t kBlock = 32;

/// Sums over all rows of x, `size` numbers each: `add(rows, sums)` adds those of a block of rows.
template <class Add>
at::Tensor sums_of_blocks(const at::Tensor& x, int64_t size, const Add& add) {
  const int64_t num_rows = x.size(0), blocks = (num_rows + kBlock - 1) / kBlock;
  at::Tensor sums = at::zeros({blocks, size}, x.options());
  float* const of_blocks = sums.data_ptr<float>();
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const cpu::Rows rows{i * kBlock, std::min((i + 1) * kBlock, num_rows), x.size(1)};
      add(rows, of_blocks + i * size);
    }
  });
  return gemm::column_sums(sums);
}

/// The rows over their root mean square, and its inverse for each; both arguments contiguous.
std::pair<at::Tensor, at::Tensor> root_mean_square(const at::Tensor& x, const at::Tensor& weight,
                                                   double epsilon) {
  at::Tensor out = at::empty_like(x), inverse = at::empty({x.size(0)}, x.options());
  const float* const from = x.const_data_ptr<float>();
  const float* const gains = weight.const_data_ptr<float>();
  float *const to = out.data_ptr<float>(), *const of_rows = inverse.data_ptr<float>();
  at::parallel_for(0, x.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
    cpu::table().rms_norm(from, gains, static_cast<float>(epsilon), to, of_rows,
                          {begin, end, x.size(1)});
  });
  return {out, inverse};
}

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
    const int64_t width = x.size(1);
    at::Tensor dx = ctx->needs_input_grad(0) ? at::empty_like(x) : at::Tensor();
    const cpu::NormSlopes slopes{.x = x.const_data_ptr<float>(),
                                 .dy = dy.const_data_ptr<float>(),
                                 .mean = saved[2].const_data_ptr<float>(),
                                 .inverse_deviation = saved[3].const_data_ptr<float>(),
                                 .weight = weight.const_data_ptr<float>(),
                                 .dx = dx.defined() ? dx.data_ptr<float>() : nullptr,
                                 .dweight = nullptr,
                                 .dbias = nullptr};
    const at::Tensor both = sums_of_blocks(x, 2 * width, [&](const cpu::Rows& rows, float* sums) {
      cpu::NormSlopes mine = slopes;
      mine.dweight = sums;
      mine.dbias = sums + width;
      cpu::table().layer_norm_backward(mine, rows);
    });
    return {dx, both.slice(0, 0, width), both.slice(0, width), {}};
  }
};

struct RmsNormNode : torch::autograd::Function<RmsNormNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            double epsilon) {
    const at::Tensor rows = x.contiguous(), gains = weight.contiguous();
    const auto [out, inverse] = root_mean_square(rows, gains, epsilon);
    ctx->save_for_backward({rows, gains, inverse});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    at::Tensor dx = ctx->needs_input_grad(0) ? at::empty_like(x) : at::Tensor();
    const cpu::RmsNormSlopes slopes{.x = x.const_data_ptr<float>(),
                                    .dy = dy.const_data_ptr<float>(),
                                    .inverse_root = saved[2].const_data_ptr<float>(),
                                    .weight = weight.const_data_ptr<float>(),
                                    .dx = dx.defined() ? dx.data_ptr<float>() : nullptr,
                                    .dweight = nullptr};
    const at::Tensor dweight =
        sums_of_blocks(x, x.size(1), [&](const cpu::Rows& rows, float* sums) {
          cpu::RmsNormSlopes mine = slopes;
          mine.dweight = sums;
          cpu::table().rms_norm_backward(mine, rows);
        });
    return {dx, dweight, {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (!at::GradMode::is_enabled())
    return root_mean_square(x.contiguous(), weight.contiguous(), epsilon).first;
  return RmsNormNode::apply(x, weight, epsilon);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon) {
  if (!at::GradMode::is_enabled()) return at::layer_norm(x, {x.size(1)}, weight, bias, epsilon);
  return LayerNormNode::apply(x, weight, bias, epsilon);
}

}  // namespace stretto::kernels::fused
