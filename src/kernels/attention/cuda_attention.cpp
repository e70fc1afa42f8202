// Attention of packed rows by libtorch's variable-length kernels, and one step of decoding.
#include <algorithm>
#include <optional>
#include <tuple>

#include "kernels/attention/padded_attention.h"
#include "kernels/cuda/bridge.h"
#include "kernels/cuda/cuda.h"
#include "kernels/reference.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Heads apart: q [Nq, H, W], k and v [Nk, H, W], views with dense last dimension.
struct Heads {
  at::Tensor q, k, v;
};

enum class Kernel { kFlash, kEfficient, kPadded };

Kernel choose(const Heads& heads, const PaddedAttention& options) {
  const int64_t width = heads.q.size(2);
  if (options.dropout.active() || options.bias.active() || heads.q.size(0) == 0 ||
      heads.k.size(0) == 0)
    return Kernel::kPadded;
  // 16-byte loads: a head's columns must start on such a boundary.
  if (heads.q.scalar_type() == at::kFloat)
    return width % 4 == 0 ? Kernel::kEfficient : Kernel::kPadded;
  if (width % 8 != 0) return Kernel::kPadded;
  const bool ampere = at::cuda::getDeviceProperties(heads.q.device().index())->major >= 8;
  return ampere && width <= 256 ? Kernel::kFlash : Kernel::kEfficient;
}

/// libtorch refuses a bound above the number of rows.
int64_t longest(const Offsets& offsets, const at::Tensor& rows) {
  const int64_t bound =
      offsets.max_length > 0 ? offsets.max_length : at::diff(offsets.values).max().item<int64_t>();
  return std::min(bound, rows.size(0));
}

/// While it lives, libtorch's flash attention adds the gradients of queries in a fixed order. One
/// at a time: a process has one GPU.
class InOrder {
 public:
  InOrder()
      : before_(at::globalContext().deterministicAlgorithms()),
        warned_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        filled_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~InOrder() {
    at::globalContext().setDeterministicAlgorithms(before_, warned_);
    at::globalContext().setDeterministicFillUninitializedMemory(filled_);
  }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

 private:
  bool before_, warned_, filled_;
};

/// Attention of packed rows without dropout of weights, by libtorch; the same bits each time.
struct PackedNode : Function<PackedNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const PaddedAttention& options, bool flash) {
    const auto bounds = [&](const Offsets& offsets) {
      return offsets.values.to(q.device(), at::kInt).contiguous();
    };
    const at::Tensor rows = bounds(options.query_offsets), cols = bounds(options.key_offsets);
    const int64_t max_q = longest(options.query_offsets, q);
    const int64_t max_k = longest(options.key_offsets, k);
    ctx->saved_data["max_q"] = max_q;
    ctx->saved_data["max_k"] = max_k;
    ctx->saved_data["causal"] = options.causal;
    ctx->saved_data["flash"] = flash;
    at::Tensor out, log_sums, seed, offset;
    if (flash)
      std::tie(out, log_sums, seed, offset, std::ignore) = at::_flash_attention_forward(
          q, k, v, rows, cols, max_q, max_k, /*dropout_p=*/0.0, options.causal,
          /*return_debug_mask=*/false);
    else
      std::tie(out, log_sums, seed, offset, std::ignore, std::ignore) =
          at::_efficient_attention_forward(
              q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), std::nullopt, rows, cols, max_q,
              max_k, /*dropout_p=*/0.0, mask_of(options.causal), /*compute_log_sumexp=*/true);
    ctx->save_for_backward({q, k, v, out, log_sums, seed, offset, rows, cols});
    return flash ? out : out.squeeze(0);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3];
    const at::Tensor &log_sums = saved[4], &seed = saved[5], &offset = saved[6];
    const int64_t max_q = ctx->saved_data["max_q"].toInt();
    const int64_t max_k = ctx->saved_data["max_k"].toInt();
    const bool causal = ctx->saved_data["causal"].toBool();
    const at::Tensor dy = grads[0].contiguous();
    if (ctx->saved_data["flash"].toBool()) {
      const InOrder in_order;
      const auto [dq, dk, dv] =
          at::_flash_attention_backward(dy, q, k, v, out, log_sums, saved[7], saved[8], max_q,
                                        max_k, /*dropout_p=*/0.0, causal, seed, offset);
      return {dq, dk, dv, {}, {}};
    }
    // One split of the keys, so that the gradients of queries are added in their order.
    const auto [dq, dk, dv, bias] = at::_efficient_attention_backward(
        dy.unsqueeze(0), q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), std::nullopt, out,
        saved[7], saved[8], max_q, max_k, log_sums, /*dropout_p=*/0.0, seed, offset,
        mask_of(causal), /*bias_requires_grad=*/false, /*scale=*/std::nullopt,
        /*num_splits_key=*/1);
    return {dq.squeeze(0), dk.squeeze(0), dv.squeeze(0), {}, {}};
  }

  /// libtorch's number of a mask.
  static int64_t mask_of(bool causal) { return causal ? 1 : 0; }
};

at::Tensor attend(const Heads& heads, const PaddedAttention& options) {
  const at::Tensor &q = heads.q, &k = heads.k, &v = heads.v;
  const Kernel kernel = choose(heads, options);
  if (kernel == Kernel::kPadded)
    return padded_attention_on_gpu(q.flatten(1), k.flatten(1), v.flatten(1), options);
  return PackedNode::apply(q, k, v, options, kernel == Kernel::kFlash).flatten(1);
}

/// Equal parts of each row as heads; the gradient of unbind is one stack, not a sum of zeroes.
std::vector<at::Tensor> parts_of(const at::Tensor& rows, int64_t parts, int64_t heads) {
  const int64_t width = rows.size(1) / parts / heads;
  return rows.contiguous().view({rows.size(0), parts, heads, width}).unbind(1);
}

/// (q, k, v) with fewer heads of keys and values than of queries; those are copied for each query.
Heads grouped(const at::Tensor& qkv, int64_t heads, int64_t kv_heads) {
  const int64_t all = heads + 2 * kv_heads;
  const auto parts = qkv.contiguous()
                         .view({qkv.size(0), all, qkv.size(1) / all})
                         .split_with_sizes({heads, kv_heads, kv_heads}, 1);
  return {parts[0], shared_by(parts[1], heads), shared_by(parts[2], heads)};
}

}  // namespace

at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options) {
  const PaddedAttention all{options.offsets, options.offsets, options.num_heads,
                            options.causal,  options.dropout, options.bias};
  if (options.kv_heads() != options.num_heads)
    return attend(grouped(qkv, options.num_heads, options.kv_heads()), all);
  const auto parts = parts_of(qkv, 3, options.num_heads);
  return attend({parts[0], parts[1], parts[2]}, all);
}

at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options) {
  const auto parts = parts_of(kv, 2, options.kv_heads());
  return attend(
      {parts_of(q, 1, options.num_heads)[0], shared_by(parts[0], options.num_heads),
       shared_by(parts[1], options.num_heads)},
      {options.query_offsets, options.key_offsets, options.num_heads, false, options.dropout});
}

bool takes_decoding(const at::Tensor& q, const at::Tensor& k_cache, const at::Tensor& v_cache,
                    const at::Tensor& lineage, int64_t t) {
  return takes(q, k_cache) && takes(q, v_cache) && k_cache.strides() == v_cache.strides() &&
         k_cache.stride(2) == 1 && lineage.device() == q.device() &&
         lineage.scalar_type() == at::kInt && lineage.stride(1) == 1 && t < kDecodeSteps;
}

at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias, const at::Tensor& first) {
  const at::NoGradGuard no_grad;
  const at::Tensor query = q.contiguous(), key = k_new.to(q.options()).contiguous();
  const at::Tensor value = v_new.to(q.options()).contiguous();
  at::Tensor out = at::empty_like(query);
  const int64_t width = q.size(1) / num_heads;
  at::Tensor biases;
  if (bias.active()) biases = reference::bias_of_step(bias, t).to(at::kFloat).contiguous();
  const DecodeStep step{query.const_data_ptr(),
                        key.const_data_ptr(),
                        value.const_data_ptr(),
                        k_cache.data_ptr(),
                        v_cache.data_ptr(),
                        k_cache.stride(0),
                        k_cache.stride(1),
                        lineage.const_data_ptr<int32_t>(),
                        lineage.stride(0),
                        out.data_ptr(),
                        q.size(0),
                        num_heads,
                        k_cache.size(2) / width,
                        width,
                        t,
                        bias.active() ? biases.const_data_ptr<float>() : nullptr,
                        bias.is_of_queries() ? num_heads * (t + 1) : 0,
                        first.defined() ? first.const_data_ptr<int32_t>() : nullptr,
                        type_of(q)};
  on_stream(query, [&](cudaStream_t stream) { decode_attention(step, stream); });
  return out;
}

}  // namespace stretto::kernels::cuda
