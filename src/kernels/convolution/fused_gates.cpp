#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

#include "kernels/convolution/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"

namespace stretto::kernels::fused {
namespace {

const float* numbers_of(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

struct GluNode : torch::autograd::Function<GluNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& bias, const Dropout& dropout) {
    const at::Tensor rows = x.contiguous(), keys = keys_of(dropout);
    const at::Tensor shift = bias ? bias->contiguous() : at::Tensor();
    at::Tensor out = at::empty({rows.size(0), rows.size(1) / 2}, rows.options());
    const cpu::Drop drop = drop_of(dropout, keys);
    const float *from = rows.const_data_ptr<float>(), *add = numbers_of(shift);
    float* to = out.data_ptr<float>();
    at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().convolution.glu(from, add, to, {begin, end, out.size(1)}, drop);
    });
    keep(ctx, dropout);
    ctx->save_for_backward({rows, shift});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Dropout dropout = kept(ctx);
    const at::Tensor dy = grads[0].contiguous(), keys = keys_of(dropout);
    at::Tensor dx = at::empty_like(saved[0]);
    const cpu::Drop drop = drop_of(dropout, keys);
    const float *from = dy.const_data_ptr<float>(), *x = saved[0].const_data_ptr<float>();
    const float* add = numbers_of(saved[1]);
    float* to = dx.data_ptr<float>();
    at::parallel_for(0, dy.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().convolution.glu_backward(from, x, add, to, {begin, end, dy.size(1)}, drop);
    });
    const bool biased = saved[1].defined() && ctx->needs_input_grad(1);
    return {dx, biased ? gemm::column_sums(dx) : at::Tensor(), {}};
  }
};

struct WeightNormNode : torch::autograd::Function<WeightNormNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& v, const at::Tensor& gain) {
    const at::Tensor rows = v.contiguous(), gains = gain.contiguous();
    at::Tensor out = at::empty_like(rows), norms = at::empty_like(gains);
    const float *from = rows.const_data_ptr<float>(), *scales = gains.const_data_ptr<float>();
    float *to = out.data_ptr<float>(), *lengths = norms.data_ptr<float>();
    at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().convolution.weight_norm(from, scales, to, lengths, {begin, end, rows.size(1)});
    });
    ctx->save_for_backward({rows, gains, norms});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor dy = grads[0].contiguous();
    at::Tensor dv = at::empty_like(saved[0]), dgain = at::empty_like(saved[1]);
    const float *from = dy.const_data_ptr<float>(), *v = saved[0].const_data_ptr<float>();
    const float *gain = saved[1].const_data_ptr<float>(), *norms = saved[2].const_data_ptr<float>();
    float *to = dv.data_ptr<float>(), *to_gain = dgain.data_ptr<float>();
    at::parallel_for(0, dy.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().convolution.weight_norm_backward(from, v, gain, norms, to, to_gain,
                                                    {begin, end, dy.size(1)});
    });
    return {dv, dgain};
  }
};

}  // namespace

at::Tensor glu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  return GluNode::apply(x, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt,
                        dropout);
}

at::Tensor weight_norm(const at::Tensor& v, const at::Tensor& gain) {
  return WeightNormNode::apply(v, gain);
}

}  // namespace stretto::kernels::fused
