#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"

namespace stretto::kernels::fused {

at::Tensor masked_rows(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout) {
  const at::Tensor rows = x.contiguous(), keys = keys_of(dropout);
  const at::Tensor rest = residual.defined() ? residual.contiguous() : residual;
  at::Tensor out = at::empty_like(rows);
  const cpu::Drop drop = drop_of(dropout, keys);
  const float* from = rows.const_data_ptr<float>();
  const float* add = rest.defined() ? rest.const_data_ptr<float>() : nullptr;
  float* to = out.data_ptr<float>();
  at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
    cpu::table().dropout(from, add, to, {begin, end, rows.size(1)}, drop);
  });
  return out;
}

namespace {

/// The gradient of a bias, the second input of its node, from that of its rows; undefined where it
/// does not learn: zeroes stand for a bias that a model does not have.
at::Tensor slopes_of_bias(AutogradContext* ctx, const at::Tensor& slopes) {
  return ctx->needs_input_grad(1) ? gemm::column_sums(slopes) : at::Tensor();
}

struct DropoutNode : torch::autograd::Function<DropoutNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& residual, const Dropout& dropout) {
    keep(ctx, dropout);
    ctx->saved_data["added"] = residual.has_value();
    return masked_rows(x, residual.value_or(at::Tensor()), dropout);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const bool added = ctx->saved_data["added"].toBool();
    return {masked_rows(grads[0], {}, kept(ctx)), added ? grads[0] : at::Tensor(), {}};
  }
};

struct BiasReluNode : torch::autograd::Function<BiasReluNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& bias,
                            const Dropout& dropout) {
    const at::Tensor rows = x.contiguous(), shift = bias.contiguous(), keys = keys_of(dropout);
    at::Tensor out = at::empty_like(rows);
    const cpu::Drop drop = drop_of(dropout, keys);
    const float *from = rows.const_data_ptr<float>(), *add = shift.const_data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().bias_relu(from, add, to, {begin, end, rows.size(1)}, drop);
    });
    ctx->saved_data["scale"] = static_cast<double>(drop.scale);
    ctx->save_for_backward({out});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    // A positive output was kept and past the ReLU: the mask need not be computed again.
    const at::Tensor out = ctx->get_saved_variables()[0], dy = grads[0].contiguous();
    at::Tensor dx = at::empty_like(dy);
    const auto scale = static_cast<float>(ctx->saved_data["scale"].toDouble());
    const float *from = dy.const_data_ptr<float>(), *kept_out = out.const_data_ptr<float>();
    float* to = dx.data_ptr<float>();
    at::parallel_for(0, dy.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().relu_backward(from, kept_out, to, {begin, end, dy.size(1)}, scale);
    });
    return {dx, slopes_of_bias(ctx, dx), {}};
  }
};

/// The loops of an activation whose slope is computed from its input.
struct BiasLoops {
  decltype(cpu::Table::bias_gelu) cpu::Table::*forward;
  decltype(cpu::Table::gelu_backward) cpu::Table::*backward;
};
struct GatedLoops {
  decltype(cpu::Table::swiglu) cpu::Table::*forward;
  decltype(cpu::Table::swiglu_backward) cpu::Table::*backward;
};
constexpr BiasLoops kGelu{&cpu::Table::bias_gelu, &cpu::Table::gelu_backward};
constexpr BiasLoops kGeluTanh{&cpu::Table::bias_gelu_tanh, &cpu::Table::gelu_tanh_backward};
constexpr BiasLoops kSilu{&cpu::Table::bias_silu, &cpu::Table::silu_backward};
constexpr BiasLoops kReluSquared{&cpu::Table::bias_relu_squared,
                                 &cpu::Table::relu_squared_backward};
constexpr GatedLoops kSwiglu{&cpu::Table::swiglu, &cpu::Table::swiglu_backward};
constexpr GatedLoops kGeglu{&cpu::Table::geglu, &cpu::Table::geglu_backward};

template <const BiasLoops& loops>
struct BiasActivationNode : torch::autograd::Function<BiasActivationNode<loops>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& bias,
                            const Dropout& dropout) {
    const at::Tensor rows = x.contiguous(), shift = bias.contiguous(), keys = keys_of(dropout);
    at::Tensor out = at::empty_like(rows);
    const cpu::Drop drop = drop_of(dropout, keys);
    const float *from = rows.const_data_ptr<float>(), *add = shift.const_data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      (cpu::table().*loops.forward)(from, add, to, {begin, end, rows.size(1)}, drop);
    });
    keep(ctx, dropout);
    ctx->save_for_backward({rows, shift});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Dropout dropout = kept(ctx);
    const at::Tensor dy = grads[0].contiguous(), keys = keys_of(dropout);
    at::Tensor dx = at::empty_like(dy);
    const cpu::Drop drop = drop_of(dropout, keys);
    const float *from = dy.const_data_ptr<float>(), *x = saved[0].const_data_ptr<float>();
    const float* shift = saved[1].const_data_ptr<float>();
    float* to = dx.data_ptr<float>();
    at::parallel_for(0, dy.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      (cpu::table().*loops.backward)(from, x, shift, to, {begin, end, dy.size(1)}, drop);
    });
    return {dx, slopes_of_bias(ctx, dx), {}};
  }
};

template <const GatedLoops& loops>
struct GatedNode : torch::autograd::Function<GatedNode<loops>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const Dropout& dropout) {
    const at::Tensor rows = x.contiguous(), keys = keys_of(dropout);
    at::Tensor out = at::empty({rows.size(0), rows.size(1) / 2}, rows.options());
    const cpu::Drop drop = drop_of(dropout, keys);
    const float* from = rows.const_data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      (cpu::table().*loops.forward)(from, to, {begin, end, out.size(1)}, drop);
    });
    keep(ctx, dropout);
    ctx->save_for_backward({rows});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor rows = ctx->get_saved_variables()[0], dy = grads[0].contiguous();
    const Dropout dropout = kept(ctx);
    const at::Tensor keys = keys_of(dropout);
    at::Tensor dx = at::empty_like(rows);
    const cpu::Drop drop = drop_of(dropout, keys);
    const float *from = dy.const_data_ptr<float>(), *x = rows.const_data_ptr<float>();
    float* to = dx.data_ptr<float>();
    at::parallel_for(0, dy.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      (cpu::table().*loops.backward)(from, x, to, {begin, end, dy.size(1)}, drop);
    });
    return {dx, {}};
  }
};

}  // namespace

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout) {
  return DropoutNode::apply(x, std::optional<at::Tensor>(), dropout);
}

at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout) {
  return DropoutNode::apply(x, std::optional<at::Tensor>(residual), dropout);
}

at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  return BiasReluNode::apply(x, bias, dropout);
}

at::Tensor bias_gelu_dropout(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  return BiasActivationNode<kGelu>::apply(x, bias, dropout);
}

at::Tensor bias_gelu_tanh_dropout(const at::Tensor& x, const at::Tensor& bias,
                                  const Dropout& dropout) {
  return BiasActivationNode<kGeluTanh>::apply(x, bias, dropout);
}

at::Tensor bias_silu_dropout(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  return BiasActivationNode<kSilu>::apply(x, bias, dropout);
}

at::Tensor bias_relu_squared_dropout(const at::Tensor& x, const at::Tensor& bias,
                                     const Dropout& dropout) {
  return BiasActivationNode<kReluSquared>::apply(x, bias, dropout);
}

at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  return GatedNode<kSwiglu>::apply(gate_up, dropout);
}

at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  return GatedNode<kGeglu>::apply(gate_up, dropout);
}

}  // namespace stretto::kernels::fused
