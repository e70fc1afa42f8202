// One step of cached self-attention: one block of threads for each lane and head.
#include <limits>

#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

/// Turns scores [count] into probabilities, all threads of the block together.
__device__ void softmax(float* scores, int64_t count) {
  float top = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int64_t j = threadIdx.x; j < count; j += kThreads) top = fmaxf(top, scores[j]);
  top = block_max(top);
  for (int64_t j = threadIdx.x; j < count; j += kThreads) sum += scores[j] = expf(scores[j] - top);
  sum = block_sum(sum);
  for (int64_t j = threadIdx.x; j < count; j += kThreads) scores[j] /= sum;
  __syncthreads();
}

template <class T>
__global__ void decode_kernel(DecodeStep step) {
  extern __shared__ float scores[];
  const int64_t lane = blockIdx.x / step.heads, head = blockIdx.x % step.heads;
  const int64_t row = (lane * step.heads + head) * step.width;  // in q and out
  const int64_t shared = head / (step.heads / step.kv_heads);
  T* k_cache = static_cast<T*>(step.k_cache) + shared * step.width;
  T* v_cache = static_cast<T*>(step.v_cache) + shared * step.width;
  const int64_t own = step.t * step.cache_step_stride + lane * step.cache_lane_stride;
  const int64_t fresh = (lane * step.kv_heads + shared) * step.width;  // in k_new and v_new
  // Blocks whose heads share keys all write them, the same ones, so that none waits for another.
  for (int64_t c = threadIdx.x; c < step.width; c += kThreads) {
    k_cache[own + c] = static_cast<const T*>(step.k_new)[fresh + c];
    v_cache[own + c] = static_cast<const T*>(step.v_new)[fresh + c];
  }
  __syncthreads();

  // The new step lies in the lane's own slot, whether or not the table says so already.
  const int32_t* lineage = step.lineage + lane * step.lineage_stride;
  const auto slot = [&](int64_t j) {
    return j * step.cache_step_stride + (j == step.t ? lane : lineage[j]) * step.cache_lane_stride;
  };
  const T* query = static_cast<const T*>(step.q) + row;
  const float scale = rsqrtf(static_cast<float>(step.width));
  const int64_t first = step.first == nullptr ? 0 : step.first[lane];
  for (int64_t j = first + threadIdx.x / kWarp; j <= step.t; j += kThreads / kWarp) {
    const T* key = k_cache + slot(j);
    float dot = 0;
    for (int64_t c = threadIdx.x % kWarp; c < step.width; c += kWarp)
      dot += widen(query[c]) * widen(key[c]);
    dot = warp_sum(dot);
    if (threadIdx.x % kWarp == 0)
      scores[j - first] =
          dot * scale + (step.bias == nullptr
                             ? 0.0f
                             : step.bias[lane * step.bias_lane_stride + head * (step.t + 1) + j]);
  }
  __syncthreads();
  softmax(scores, step.t + 1 - first);

  for (int64_t c = threadIdx.x; c < step.width; c += kThreads) {
    float sum = 0;
#pragma unroll 4
    for (int64_t j = first; j <= step.t; ++j)
      sum += scores[j - first] * widen(v_cache[slot(j) + c]);
    static_cast<T*>(step.out)[row + c] = narrow<T>(sum);
  }
}

}  // namespace

void decode_attention(const DecodeStep& step, cudaStream_t stream) {
  if (step.lanes == 0) return;
  const auto blocks = static_cast<unsigned>(step.lanes * step.heads);
  const size_t shared = sizeof(float) * static_cast<size_t>(step.t + 1);
  with_type(step.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    decode_kernel<T><<<blocks, kThreads, shared, stream>>>(step);
  });
}

}  // namespace stretto::kernels::cuda
