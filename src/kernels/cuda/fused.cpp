// Autograd nodes around the elementwise kernels and the embedding. Masks of dropout are computed
// again in backward instead of being kept.
#include "kernels/cuda/bridge.h"
#include "kernels/cuda/cuda.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// A mask and what it points to.
struct Mask {
  at::Tensor keys;
  Drop drop;
};

Mask mask_of(const Dropout& dropout, const at::Tensor& x, HeadLayout layout = {}) {
  const at::Tensor keys =
      dropout.active() ? dropout.row_keys.to(x.device()).contiguous() : at::Tensor();
  return {keys, drop_of(dropout.p, dropout.key, keys, layout)};
}

void keep(AutogradContext* ctx, const Dropout& dropout) {
  ctx->saved_data["p"] = dropout.p;
  ctx->saved_data["key"] = static_cast<int64_t>(dropout.key);
  ctx->saved_data["row_keys"] = dropout.row_keys;
}

Dropout kept(AutogradContext* ctx) {
  return {ctx->saved_data["p"].toDouble(), static_cast<uint64_t>(ctx->saved_data["key"].toInt()),
          ctx->saved_data["row_keys"].toTensor()};
}

/// In the type of the residual, or in `type` without one.
at::Tensor apply_mask(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout,
                      HeadLayout layout, at::ScalarType type) {
  const at::Tensor rows = x.contiguous();
  const at::Tensor rest = residual.defined() ? residual.contiguous() : residual;
  const Mask mask = mask_of(dropout, x, layout);
  at::Tensor out =
      at::empty(rows.sizes(), rows.options().dtype(rest.defined() ? rest.scalar_type() : type));
  on_stream(rows, [&](cudaStream_t stream) {
    cuda::dropout(rows_of(rows, stream), rows.const_data_ptr(),
                  rest.defined() ? rest.const_data_ptr() : nullptr, out.data_ptr(), type_of(out),
                  mask.drop);
  });
  return out;
}

Bias bias_of(const at::Tensor& bias) {
  return {bias.const_data_ptr(), type_of(bias)};
}

struct DropoutNode : Function<DropoutNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& residual, const Dropout& dropout,
                            HeadLayout layout) {
    keep(ctx, dropout);
    ctx->saved_data["added"] = residual.has_value();
    ctx->saved_data["heads"] = layout.heads;
    ctx->saved_data["queries"] = layout.queries;
    ctx->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    return apply_mask(x, residual.value_or(at::Tensor()), dropout, layout, x.scalar_type());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const bool added = ctx->saved_data["added"].toBool();
    const HeadLayout layout{ctx->saved_data["heads"].toInt(), ctx->saved_data["queries"].toInt()};
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["type"].toInt());
    return {
        apply_mask(grads[0], {}, kept(ctx), layout, type), added ? grads[0] : at::Tensor(), {}, {}};
  }
};

struct BiasActivationNode : Function<BiasActivationNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& bias,
                            Bend activation, const Dropout& dropout) {
    const at::Tensor rows = x.contiguous(), shift = bias.contiguous();
    const Mask mask = mask_of(dropout, x);
    at::Tensor out = at::empty_like(rows);
    on_stream(rows, [&](cudaStream_t stream) {
      bias_activation(rows_of(rows, stream), rows.const_data_ptr(), bias_of(shift), out.data_ptr(),
                      activation, mask.drop);
    });
    keep(ctx, dropout);
    ctx->saved_data["activation"] = static_cast<int64_t>(activation);
    ctx->saved_data["bias_type"] = static_cast<int64_t>(shift.scalar_type());
    // The next layer keeps `out` anyway; ReLU needs nothing else, so x can be freed.
    ctx->save_for_backward(activation == Bend::kRelu ? variable_list{out}
                                                     : variable_list{rows, shift});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor dy = grads[0].contiguous();
    const Mask mask = mask_of(kept(ctx), dy);
    const auto activation = static_cast<Bend>(ctx->saved_data["activation"].toInt());
    at::Tensor dx = at::empty_like(dy);
    on_stream(dy, [&](cudaStream_t stream) {
      const Rows rows = rows_of(dy, stream);
      if (activation != Bend::kRelu)
        gelu_backward(rows, dy.const_data_ptr(), saved[0].const_data_ptr(), bias_of(saved[1]),
                      dx.data_ptr(), activation, mask.drop);
      else
        relu_backward(rows, dy.const_data_ptr(), saved[0].const_data_ptr(), dx.data_ptr(),
                      mask.drop.scale);
    });
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["bias_type"].toInt());
    const bool learns = ctx->needs_input_grad(1);
    return {dx, learns ? cuda::column_sums(dx).to(type) : at::Tensor(), {}, {}};
  }
};

/// The kernels of a gated activation.
struct Gated {
  decltype(&swiglu) forward;
  decltype(&swiglu_backward) backward;
};
constexpr Gated kSwiglu{&swiglu, &swiglu_backward}, kGeglu{&geglu, &geglu_backward};

template <const Gated& kernel>
struct GatedNode : Function<GatedNode<kernel>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up,
                            const Dropout& dropout) {
    const at::Tensor rows = gate_up.contiguous();
    const Mask mask = mask_of(dropout, rows);
    at::Tensor out = at::empty({rows.size(0), rows.size(1) / 2}, rows.options());
    on_stream(rows, [&](cudaStream_t stream) {
      kernel.forward(rows_of(out, stream), rows.const_data_ptr(), out.data_ptr(), mask.drop);
    });
    keep(ctx, dropout);
    ctx->save_for_backward({rows});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor rows = ctx->get_saved_variables()[0], dy = grads[0].contiguous();
    const Mask mask = mask_of(kept(ctx), dy);
    at::Tensor slopes = at::empty_like(rows);
    on_stream(dy, [&](cudaStream_t stream) {
      kernel.backward(rows_of(dy, stream), dy.const_data_ptr(), rows.const_data_ptr(),
                      slopes.data_ptr(), mask.drop);
    });
    return {slopes, {}};
  }
};

struct EmbedNode : Function<EmbedNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& table, const at::Tensor& ids,
                            double scale, const std::optional<at::Tensor>& position) {
    const at::Tensor rows = table.contiguous(),
                     tokens = ids.to(table.device(), at::kLong).contiguous();
    const at::Tensor place = position ? position->to(table.options()).contiguous() : at::Tensor();
    at::Tensor out = at::empty({tokens.size(0), rows.size(1)}, rows.options());
    on_stream(rows, [&](cudaStream_t stream) {
      cuda::embed(rows_of(out, stream), rows.const_data_ptr(), rows.size(0),
                  tokens.const_data_ptr<int64_t>(), static_cast<float>(scale),
                  place.defined() ? place.const_data_ptr() : nullptr, out.data_ptr());
    });
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["vocab"] = rows.size(0);
    if (position) ctx->saved_data["position_type"] = static_cast<int64_t>(position->scalar_type());
    ctx->save_for_backward({tokens});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor ids = ctx->get_saved_variables()[0], dy = grads[0].contiguous();
    const int64_t vocab = ctx->saved_data["vocab"].toInt();
    at::Tensor dtable;
    if (ctx->needs_input_grad(0)) {
      // A stable sort keeps the occurrences of a token in their order.
      const auto [sorted, order] = at::sort(ids, /*stable=*/true, /*dim=*/0, /*descending=*/false);
      dtable = at::zeros({vocab, dy.size(1)}, dy.options());
      on_stream(dy, [&](cudaStream_t stream) {
        embed_backward(rows_of(dy, stream), dy.const_data_ptr(), sorted.const_data_ptr<int64_t>(),
                       order.const_data_ptr<int64_t>(), vocab,
                       static_cast<float>(ctx->saved_data["scale"].toDouble()), dtable.data_ptr());
      });
    }
    at::Tensor dposition;
    if (const auto type = ctx->saved_data.find("position_type"); type != ctx->saved_data.end())
      dposition = dy.to(static_cast<at::ScalarType>(type->second.toInt()));
    return {dtable, {}, {}, dposition};
  }
};

std::optional<at::Tensor> if_defined(const at::Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

}  // namespace

at::Tensor drop_rows(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout,
                     HeadLayout layout) {
  return DropoutNode::apply(x, if_defined(residual), dropout, layout);
}

at::Tensor column_sums(const at::Tensor& x) {
  const at::Tensor rows = x.contiguous();
  const at::TensorOptions wide = rows.options().dtype(at::kFloat);
  at::Tensor partial = at::empty({column_sum_parts(rows.size(0)), rows.size(1)}, wide);
  at::Tensor out = at::empty({rows.size(1)}, wide);
  on_stream(rows, [&](cudaStream_t stream) {
    column_sums(rows_of(rows, stream), rows.const_data_ptr(), partial.data_ptr<float>(),
                out.data_ptr<float>());
  });
  return out;
}

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout) {
  return drop_rows(x, {}, dropout);
}

at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout) {
  return drop_rows(x, residual, dropout);
}

at::Tensor bias_activation_dropout(const at::Tensor& x, const at::Tensor& bias,
                                   Activation activation, const Dropout& dropout) {
  static_assert(static_cast<int>(Activation::kGeluTanh) == static_cast<int>(Bend::kGeluTanh));
  return BiasActivationNode::apply(x, bias, static_cast<Bend>(activation), dropout);
}

at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  return GatedNode<kSwiglu>::apply(gate_up, dropout);
}

at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  return GatedNode<kGeglu>::apply(gate_up, dropout);
}

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position) {
  return EmbedNode::apply(table, ids, scale, if_defined(position));
}

}  // namespace stretto::kernels::cuda
