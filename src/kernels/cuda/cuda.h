#pragma once

#include <optional>

#include "kernels/kernels.h"

/// The operators of kernels.h on a GPU: fp32, fp16 and bf16, shapes already checked by kernels.h.
/// They are called through the places of cuda::Table (table.h). A build without CUDA has
/// `no_cuda.cpp` instead, where is_built(), available() and takes() say no, the table is empty, and
/// there are no operators.
///
/// Each follows the dropout rule of kernels/reference.h exactly, computes in fp32 and rounds once,
/// and recomputes masks in backward.
namespace stretto::kernels::cuda {

/// Is this a CUDA build, whatever the machine?
bool is_built();

/// Is this a CUDA build, on a machine with a GPU that the driver offers?
bool available();

/// Does this GPU multiply bf16 in tensor cores (compute capability 8.0 and newer)?
bool has_fast_bf16(at::Device device);

/// Does this GPU multiply fp16 in tensor cores (compute capability 7.0 and newer)?
bool has_fast_fp16(at::Device device);

/// The most bytes that tensors held at once on this GPU since the process began, by libtorch's
/// allocator: without its unused blocks, NCCL's buffers and what the driver takes. Unset where
/// `device` is no GPU.
std::optional<int64_t> peak_memory_bytes(at::Device device);

/// Bytes of memory that this GPU has in all. Unset where there is none.
std::optional<int64_t> total_memory_bytes(at::Device device);

/// Is `x` on a GPU, in a type that the kernels read?
bool takes(const at::Tensor& x);

/// Does this also hold for `other`, in the same type on the same device?
inline bool takes(const at::Tensor& x, const at::Tensor& other) {
  return takes(x) && other.device() == x.device() && other.scalar_type() == x.scalar_type();
}

/// Sums of columns in fp32, in a fixed order: [N, D] -> [D].
at::Tensor column_sums(const at::Tensor& x);

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout);
at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout);
at::Tensor bias_activation_dropout(const at::Tensor& x, const at::Tensor& bias,
                                   Activation activation, const Dropout& dropout);
at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);
at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);

/// Up to 8192 wide; wider rows take libtorch's operator.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon);

/// Without dropout of weights: libtorch's variable-length kernels, flash attention (Dao 2023,
/// arXiv:2307.08691) for fp16 and bf16 on Ampere and newer, the memory-efficient one for fp32. With
/// it, or where those do not take the head width: attention/padded_attention.h, since their masks
/// depend on how a batch was cut.
at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options);
at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options);

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position);

/// The arithmetic of its products is ComputeScope::current() for fp32 tensors: in half precision
/// the logits are rounded, softmax and loss fp32 (compute.h). Sums are returned in fp32, whatever
/// the type of x: a loss summed over thousands of tokens has no digits left in bf16.
CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias);

/// Can decode_self_attention take caches like these, `t` steps long?
bool takes_decoding(const at::Tensor& q, const at::Tensor& k_cache, const at::Tensor& v_cache,
                    const at::Tensor& lineage, int64_t t);
at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias = {}, const at::Tensor& first = {});

/// Waits for the GPU: the result is a number on the host.
double sum_of_squares(const at::Tensor& flat);
std::vector<double> sum_of_squares_blocks(const at::Tensor& flat);

}  // namespace stretto::kernels::cuda
