#include "kernels/attention/padded_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "kernels/reference.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Where the sequences lie in rows [N, ...] and in rectangles [B, T, ...].
struct Sequences {
  at::Tensor starts, lengths;  // int64 [B]
  int64_t longest;             // T
  at::Tensor row_of_place;     // int64 [B * T]: some valid row behind the end of a sequence
  at::Tensor is_padding;       // bool [B * T, 1]
  at::Tensor place_of_row;     // int64 [N]

  Sequences(const Offsets& offsets, const at::Tensor& rows) : longest(offsets.max_length) {
    const at::Tensor bounds = offsets.values.to(rows.device(), at::kLong);
    starts = bounds.slice(0, 0, -1);
    lengths = bounds.slice(0, 1) - starts;
    if (longest <= 0) longest = lengths.max().item<int64_t>();
    const int64_t batch = starts.size(0), count = rows.size(0);
    const at::Tensor step = places();
    row_of_place = (starts.unsqueeze(1) + step).clamp_max(count - 1).flatten();
    is_padding = (step >= lengths.unsqueeze(1)).view({-1, 1});
    // The stated size spares a wait for the GPU.
    const at::Tensor sequence =
        at::repeat_interleave(at::arange(batch, step.options()), lengths, 0, count);
    place_of_row =
        at::arange(count, step.options()) - starts.index_select(0, sequence) + sequence * longest;
  }
  at::Tensor places() const { return at::arange(longest, starts.options()); }

  at::Tensor to_places(const at::Tensor& rows) const {
    return rows.index_select(0, row_of_place).masked_fill_(is_padding, 0);
  }
  at::Tensor to_rows(const at::Tensor& places_BTxD) const {
    return places_BTxD.index_select(0, place_of_row);
  }
};

/// Rows to places and back. Each is the other's gradient, so both read and neither adds up; the
/// gradient of index_select would be a sum in no particular order.
struct MoveNode : torch::autograd::Function<MoveNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& from,
                            const Sequences& sequences, bool to_rows) {
    ctx->saved_data["to_rows"] = to_rows;
    ctx->save_for_backward({sequences.row_of_place, sequences.is_padding, sequences.place_of_row});
    return to_rows ? sequences.to_rows(from) : sequences.to_places(from);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &row_of_place = saved[0], &is_padding = saved[1], &place_of_row = saved[2];
    if (ctx->saved_data["to_rows"].toBool())
      return {grads[0].index_select(0, row_of_place).masked_fill_(is_padding, 0), {}, {}};
    return {grads[0].index_select(0, place_of_row), {}, {}};
  }
};

/// rows [N, D] -> [B, H, T, D / H], zeroes behind the end of a sequence.
at::Tensor spread(const at::Tensor& rows, const Sequences& sequences, int64_t heads) {
  return MoveNode::apply(rows, sequences, false)
      .view({-1, sequences.longest, heads, rows.size(1) / heads})
      .transpose(1, 2);
}

/// [B, H, T, W] -> [N, H * W].
at::Tensor gather(const at::Tensor& padded_BHTW, const Sequences& sequences) {
  const int64_t width = padded_BHTW.size(1) * padded_BHTW.size(3);
  return MoveNode::apply(padded_BHTW.transpose(1, 2).reshape({-1, width}), sequences, true);
}

/// rows [B, H, Tq, distances] -> [B, H, Tq, Tk]: number clip(zero + j - i) of query i for key j.
///
/// The gradient of a gather would be a sum in no particular order. Here distances inside the ends
/// have one key each, which is read, and the ends are sums along the keys.
struct ByDistanceNode : torch::autograd::Function<ByDistanceNode> {
  /// zero + j - i, int64 [Tq, Tk].
  static at::Tensor columns(int64_t queries, int64_t keys, int64_t zero,
                            const at::TensorOptions& ids) {
    return at::arange(keys, ids) - at::arange(queries, ids).unsqueeze(1) + zero;
  }
  static at::TensorOptions ids_beside(const at::Tensor& x) {
    return at::dtype(at::kLong).device(x.device());
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, int64_t zero,
                            int64_t keys) {
    ctx->saved_data["zero"] = zero;
    ctx->saved_data["distances"] = rows.size(3);
    const at::Tensor column =
        columns(rows.size(2), keys, zero, ids_beside(rows)).clamp(0, rows.size(3) - 1);
    return rows.gather(3, column.expand({rows.size(0), rows.size(1), -1, -1}));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const int64_t zero = ctx->saved_data["zero"].toInt();
    const int64_t distances = ctx->saved_data["distances"].toInt();
    const at::Tensor& slopes = grads[0];
    if (distances == 1) return {slopes.sum(3, /*keepdim=*/true), {}, {}};
    const int64_t queries = slopes.size(2), keys = slopes.size(3);
    const at::TensorOptions ids = ids_beside(slopes);
    const at::Tensor column = columns(queries, keys, zero, ids);
    const auto sum_where = [&](const at::Tensor& kept) {
      return slopes.masked_fill(kept.logical_not(), 0).sum(3, /*keepdim=*/true);
    };
    // The key that lies at an inner distance, int64 [Tq, distances - 2].
    const at::Tensor key =
        at::arange(1, distances - 1, ids) - zero + at::arange(queries, ids).unsqueeze(1);
    const at::Tensor outside = key.lt(0).logical_or(key.ge(keys));
    const at::Tensor inner =
        slopes.gather(3, key.clamp(0, keys - 1).expand({slopes.size(0), slopes.size(1), -1, -1}))
            .masked_fill(outside, 0);
    return {
        at::cat({sum_where(column.le(0)), inner, sum_where(column.ge(distances - 1))}, 3), {}, {}};
  }
};

/// What the bias adds to scores: [H, Tq, Tk] or [B, H, Tq, Tk].
at::Tensor bias_of(const DistanceBias& bias, const Sequences& queries, const Sequences& keys) {
  if (!bias.is_of_queries()) return reference::bias_of_scores(bias, queries.longest, keys.longest);
  const at::Tensor rows = spread(bias.table.flatten(1), queries, bias.table.size(1));
  return ByDistanceNode::apply(rows, bias.zero, keys.longest);
}

/// bool [B, 1, Tq or 1, Tk].
at::Tensor visible(const Sequences& queries, const Sequences& keys, bool causal) {
  const at::Tensor places = keys.places();
  const at::Tensor real = (places < keys.lengths.unsqueeze(1)).unsqueeze(1).unsqueeze(1);
  return causal ? real.logical_and(places <= queries.places().unsqueeze(1)) : real;
}

/// One key for each row of [B, H, Tq]; those of padding are of no consequence.
at::Tensor spread_keys(const at::Tensor& row_keys, const Sequences& queries, int64_t heads) {
  return row_keys.to(queries.starts.device())
      .index_select(0, queries.row_of_place)
      .view({-1, 1, queries.longest})
      .expand({-1, heads, -1})
      .reshape({-1});
}

}  // namespace

at::Tensor shared_by(const at::Tensor& heads, int64_t num_heads) {
  const int64_t sharers = num_heads / heads.size(1);
  if (sharers == 1) return heads;
  return heads.unsqueeze(2).expand({-1, -1, sharers, -1}).flatten(1, 2);
}

at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PaddedAttention& options, const DropWeights& drop) {
  if (q.size(0) == 0 || k.size(0) == 0) return at::zeros_like(q);
  const Sequences queries(options.query_offsets, q), keys(options.key_offsets, k);
  const int64_t heads = options.num_heads;
  const at::ScalarType wide = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  // Dividing q first keeps fp16 scores in range.
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(1) / heads));
  const at::Tensor scores_BHTS =
      at::matmul(spread(q * scale, queries, heads), spread(k, keys, heads).transpose(2, 3));
  at::Tensor wide_scores = scores_BHTS.to(wide);
  if (options.bias.active())
    wide_scores = wide_scores + bias_of(options.bias, queries, keys).to(wide);
  // Finite, so that the rows of padding, which see nothing, bring no NaN into the gradients.
  const at::Tensor masked =
      wide_scores.masked_fill(visible(queries, keys, options.causal).logical_not(), -1e30);
  at::Tensor weights = at::softmax(masked, -1).to(q.scalar_type());
  if (options.dropout.active())
    weights = drop(weights.reshape({-1, keys.longest}),
                   spread_keys(options.dropout.row_keys, queries, heads), heads, queries.longest)
                  .view(weights.sizes());
  return gather(at::matmul(weights, spread(v, keys, heads)), queries);
}

}  // namespace stretto::kernels::cuda
