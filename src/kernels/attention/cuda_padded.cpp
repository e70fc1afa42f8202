// Attention in rectangles with its weights by one kernel each way: softmax over the keys that a
// query sees, and dropout.
#include "kernels/attention/padded_attention.h"
#include "kernels/cuda/bridge.h"
#include "kernels/cuda/cuda.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// `sequences`: starts and lengths of the queries, lengths of the keys.
PaddedRows padded_rows_of(const at::Tensor& scores, const variable_list& sequences, bool causal,
                          cudaStream_t stream) {
  return {sequences[0].const_data_ptr<int64_t>(),
          sequences[1].const_data_ptr<int64_t>(),
          sequences[2].const_data_ptr<int64_t>(),
          scores.size(0),
          scores.size(1),
          scores.size(2),
          scores.size(3),
          causal,
          type_of(scores),
          stream};
}

/// Scores to dropped weights. Two rectangles are kept for backward: the weights here, and the
/// dropped ones by the product with v. The mask is computed again: that costs less than to read
/// it. To keep the weights alone would take one more write of a rectangle each backward. The scores
/// are kept nowhere.
struct WeightsNode : torch::autograd::Function<WeightsNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& scores,
                            const PaddedScores& of) {
    const at::Tensor rectangles = scores.contiguous();
    const bool drops = of.dropout.active();
    const variable_list sequences{of.query_starts.contiguous(), of.query_lengths.contiguous(),
                                  of.key_lengths.contiguous()};
    const at::Tensor row_keys =
        drops ? of.dropout.row_keys.to(scores.device()).contiguous() : at::Tensor();
    const at::Tensor weights = at::empty_like(rectangles);
    const at::Tensor dropped = drops ? at::empty_like(rectangles) : at::Tensor();
    on_stream(rectangles, [&](cudaStream_t stream) {
      padded_softmax(padded_rows_of(rectangles, sequences, of.causal, stream),
                     rectangles.const_data_ptr(), weights.data_ptr(),
                     drops ? dropped.data_ptr() : nullptr,
                     drop_of(of.dropout.p, of.dropout.key, row_keys));
    });
    ctx->saved_data["causal"] = of.causal;
    ctx->saved_data["p"] = of.dropout.p;
    ctx->saved_data["key"] = static_cast<int64_t>(of.dropout.key);
    ctx->save_for_backward({sequences[0], sequences[1], sequences[2], weights, row_keys});
    return drops ? dropped : weights;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &weights = saved[3], &row_keys = saved[4];
    const at::Tensor slopes = grads[0].contiguous();
    const at::Tensor out = at::empty_like(weights);
    const Drop drop = drop_of(ctx->saved_data["p"].toDouble(),
                              static_cast<uint64_t>(ctx->saved_data["key"].toInt()), row_keys);
    on_stream(weights, [&](cudaStream_t stream) {
      padded_softmax_backward(
          padded_rows_of(weights, saved, ctx->saved_data["causal"].toBool(), stream),
          weights.const_data_ptr(), slopes.const_data_ptr(), out.data_ptr(), drop);
    });
    return {out, {}};
  }
};

}  // namespace

at::Tensor padded_attention_on_gpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const PaddedAttention& options) {
  return padded_attention(q, k, v, options, [&](const PaddedScores& of) -> at::Tensor {
    if (!options.bias.active() && of.scores.size(3) <= kPaddedKeys)
      return WeightsNode::apply(of.scores, of);
    return plain_weights(of, [&](const at::Tensor& weights, const at::Tensor& row_keys,
                                 int64_t heads, int64_t queries) {
      return drop_rows(weights, {}, {options.dropout.p, options.dropout.key, row_keys},
                       {heads, queries});
    });
  });
}

}  // namespace stretto::kernels::cuda
