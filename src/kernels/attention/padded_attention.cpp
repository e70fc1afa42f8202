#include "kernels/attention/padded_attention.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/reference.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Places of a rectangle come in such blocks, for 16-byte loads and the tiles of tensor cores.
constexpr int64_t kPlaces = 8;

/// Where the sequences lie in rows [N, ...] and in rectangles [B, T, ...].
struct Sequences {
  at::Tensor starts, lengths;  // int64 [B]
  int64_t longest;             // T
  at::Tensor row_of_place;     // int64 [B * T]: some valid row behind the end of a sequence
  at::Tensor place_of_row;     // int64 [N]

  Sequences(const Offsets& offsets, const at::Tensor& rows) : longest(offsets.max_length) {
    const at::Tensor bounds = offsets.values.to(rows.device(), at::kLong);
    starts = bounds.slice(0, 0, -1);
    lengths = bounds.slice(0, 1) - starts;
    if (longest <= 0) longest = lengths.max().item<int64_t>();
    longest = (longest + kPlaces - 1) / kPlaces * kPlaces;
    const int64_t batch = starts.size(0), count = rows.size(0);
    const at::Tensor step = places();
    row_of_place = (starts.unsqueeze(1) + step).clamp_max(count - 1).flatten();
    // The stated size spares a wait for the GPU.
    const at::Tensor sequence =
        at::repeat_interleave(at::arange(batch, step.options()), lengths, 0, count);
    place_of_row =
        at::arange(count, step.options()) - starts.index_select(0, sequence) + sequence * longest;
  }
  at::Tensor places() const { return at::arange(longest, starts.options()); }
};

/// Sequences as they were made, and from what.
struct KnownSequences {
  at::Tensor values;  // held, so that no other tensor can take its place in memory
  int64_t version, max_length, count;
  c10::Stream stream;  // of the device of the rows: another one would have to wait for this one
  Sequences sequences;
};

/// The sequences of `offsets`, made once for all layers of a model.
Sequences sequences_of(const Offsets& offsets, const at::Tensor& rows) {
  // One of a batch's sources, a second source, its targets, and one to spare. Other threads, such
  // as those of backward, have their own.
  constexpr size_t kMost = 4;
  thread_local std::vector<KnownSequences> known;  // the last used one first
  // Tensors of inference mode have no version, and no autograd node may keep them.
  if (c10::InferenceMode::is_enabled() || offsets.values.is_inference()) return {offsets, rows};
  const c10::impl::VirtualGuardImpl device(rows.device().type());
  const c10::Stream stream = device.getStream(rows.device());
  const int64_t version = offsets.values._version();
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownSequences& one) {
    return one.values.is_same(offsets.values) && one.version == version &&
           one.max_length == offsets.max_length && one.count == rows.size(0) &&
           one.stream == stream;
  });
  if (found != known.end()) {
    std::rotate(known.begin(), found, found + 1);
  } else {
    KnownSequences made{offsets.values, version, offsets.max_length,
                        rows.size(0),   stream,  Sequences(offsets, rows)};
    if (known.size() == kMost) known.pop_back();
    known.insert(known.begin(), std::move(made));
  }
  return known.front().sequences;
}

/// Rows [H, N, W] to places [H, B * T, W] and back. Each is the other's gradient, so both read and
/// neither adds up; the gradient of index_select would be a sum in no particular order.
///
/// Places behind the end of a sequence hold copies of valid rows instead of zeroes, finite where
/// all rows are, in both directions. No result depends on them: their weights are exactly 0, of
/// their keys as of their queries, and so are the gradients of their scores (WeightsOf). What
/// products write to these places is never read back.
struct MoveNode : torch::autograd::Function<MoveNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& from,
                            const Sequences& sequences, bool to_rows) {
    const at::Tensor &there = to_rows ? sequences.place_of_row : sequences.row_of_place,
                     &back = to_rows ? sequences.row_of_place : sequences.place_of_row;
    ctx->save_for_backward({back});
    return from.index_select(1, there);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0].index_select(1, ctx->get_saved_variables()[0]), {}, {}};
  }
};

/// rows [N, D] -> [H * B, T, D / H]. Heads come first, so that one copy makes them dense.
at::Tensor spread(const at::Tensor& rows, const Sequences& sequences, int64_t heads) {
  const int64_t width = rows.size(1) / heads;
  return MoveNode::apply(rows.view({-1, heads, width}).transpose(0, 1), sequences, false)
      .view({-1, sequences.longest, width});
}

/// [H * B, T, W] -> [N, H * W].
at::Tensor gather(const at::Tensor& padded_RTW, const Sequences& sequences, int64_t heads) {
  return MoveNode::apply(padded_RTW.view({heads, -1, padded_RTW.size(2)}), sequences, true)
      .transpose(0, 1)
      .flatten(1);
}

/// q [R, Tq, W], k [R, Tk, W] -> q k^T. Unlike ATen's, the gradient of k is dense.
struct ScoresNode : torch::autograd::Function<ScoresNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k) {
    ctx->save_for_backward({q, k});
    return at::bmm(q, k.transpose(1, 2));
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return {at::bmm(grads[0], saved[1]), at::bmm(grads[0].transpose(1, 2), saved[0])};
  }
};

/// rows [H, B, Tq, distances] -> [H, B, Tq, Tk]: number clip(zero + j - i) of query i for key j.
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

/// What the bias adds to scores: [H, 1, Tq, Tk] or [H, B, Tq, Tk].
at::Tensor bias_of(const DistanceBias& bias, const Sequences& queries, const Sequences& keys) {
  if (!bias.is_of_queries())
    return reference::bias_of_scores(bias, queries.longest, keys.longest).unsqueeze(1);
  const int64_t heads = bias.table.size(1), distances = bias.table.size(2);
  const at::Tensor rows = spread(bias.table.flatten(1), queries, heads);
  return ByDistanceNode::apply(rows.view({heads, -1, queries.longest, distances}), bias.zero,
                               keys.longest);
}

/// Which keys a query does not see, and all of one behind the end: bool [B, Tq, Tk].
at::Tensor hidden_of(const PaddedScores& of) {
  const at::TensorOptions ids = of.key_lengths.options();
  const at::Tensor query = at::arange(of.scores.size(2), ids).unsqueeze(1);
  const at::Tensor key = at::arange(of.scores.size(3), ids);
  const auto behind = [](const at::Tensor& places, const at::Tensor& lengths) {
    return places.ge(lengths.view({-1, 1, 1}));
  };
  const at::Tensor padding =
      behind(key, of.key_lengths).logical_or(behind(query, of.query_lengths));
  return of.causal ? padding.logical_or(key > query) : padding;
}

/// One key for each row of [H, B, Tq]; those of padding are of no consequence.
at::Tensor spread_keys(const PaddedScores& of) {
  const int64_t heads = of.scores.size(0), queries = of.scores.size(2);
  const at::Tensor keys = of.dropout.row_keys.to(of.query_starts.device());
  const at::Tensor row =
      of.query_starts.unsqueeze(1) + at::arange(queries, of.query_starts.options());
  return keys.index_select(0, row.clamp_max(keys.size(0) - 1).flatten()).repeat({heads});
}

}  // namespace

at::Tensor shared_by(const at::Tensor& heads, int64_t num_heads) {
  const int64_t sharers = num_heads / heads.size(1);
  if (sharers == 1) return heads;
  return heads.unsqueeze(2).expand({-1, -1, sharers, -1}).flatten(1, 2);
}

at::Tensor plain_weights(const PaddedScores& of, const DropWeights& drop) {
  const at::ScalarType wide = of.type == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor hidden = hidden_of(of);
  // Finite, so that rows which see nothing bring no NaN into the gradients.
  const at::Tensor masked = of.scores.to(wide).masked_fill(hidden, -1e30);
  const at::Tensor weights = at::softmax(masked, -1).to(of.type).masked_fill(hidden, 0);
  if (!of.dropout.active()) return weights;
  return drop(weights.view({-1, weights.size(3)}), spread_keys(of), weights.size(0),
              weights.size(1) * weights.size(2))
      .view(weights.sizes());
}

at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PaddedAttention& options, const WeightsOf& weights_of) {
  if (q.size(0) == 0 || k.size(0) == 0) return at::zeros_like(q);
  const Sequences queries = sequences_of(options.query_offsets, q),
                  keys = sequences_of(options.key_offsets, k);
  const int64_t heads = options.num_heads;
  // Dividing q first keeps fp16 scores in range.
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(1) / heads));
  const at::Tensor products =
      ScoresNode::apply(spread(q * scale, queries, heads), spread(k, keys, heads));
  PaddedScores of{.scores = products.view({heads, -1, queries.longest, keys.longest}),
                  .type = q.scalar_type(),
                  .query_starts = queries.starts,
                  .query_lengths = queries.lengths,
                  .key_lengths = keys.lengths,
                  .causal = options.causal,
                  .dropout = options.dropout};
  if (options.bias.active()) {
    const at::ScalarType wide = of.type == at::kDouble ? at::kDouble : at::kFloat;
    of.scores = of.scores.to(wide) + bias_of(options.bias, queries, keys).to(wide);
  }
  const at::Tensor weights = weights_of ? weights_of(of) : plain_weights(of, {});
  return gather(at::bmm(weights.view(products.sizes()), spread(v, keys, heads)), queries, heads);
}

}  // namespace stretto::kernels::cuda
