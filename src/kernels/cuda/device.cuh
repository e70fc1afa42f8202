#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "base/random.h"
#include "kernels/cuda/launch.h"
#include "kernels/optimizer/step_numbers.h"

/// What the kernels share: conversion to and from fp32, rows read eight columns at a time, the
/// dropout rule, sums over a block in a fixed order.
namespace stretto::kernels::cuda {

constexpr int kLanes = 8;  ///< columns of one thread: those of one Philox block
constexpr int kThreads = 256;
constexpr int kWarp = 32;

__device__ inline float widen(float x) {
  return x;
}
__device__ inline float widen(__half x) {
  return __half2float(x);
}
__device__ inline float widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

__device__ inline float averaged(float average, float x, const MovingAverage& a) {
  return a.keep * average + (a.keep_rest * average + a.gain * x);
}

template <class T>
__device__ T narrow(float x);
template <>
__device__ inline float narrow<float>(float x) {
  return x;
}
template <>
__device__ inline __half narrow<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/// Calls `use` with a null pointer of the element type that `type` names.
template <class Use>
void with_type(Type type, const Use& use) {
  if (type == Type::kFloat)
    use(static_cast<float*>(nullptr));
  else if (type == Type::kHalf)
    use(static_cast<__half*>(nullptr));
  else
    use(static_cast<__nv_bfloat16*>(nullptr));
}

template <class T>
struct alignas(16) Pack {
  T values[kLanes];
};

/// A dense matrix of which a thread reads or writes `kLanes` columns of one row.
template <class T>
struct Matrix {
  T* data;
  int64_t width;
  bool aligned;  ///< every group of kLanes columns is whole and on a 16-byte boundary

  __device__ void load(int64_t row, int64_t column, float (&out)[kLanes]) const {
    const T* from = data + row * width + column;
    if (aligned) {
      const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
#pragma unroll
      for (int j = 0; j < kLanes; ++j) out[j] = widen(pack.values[j]);
    } else {
#pragma unroll
      for (int j = 0; j < kLanes; ++j) out[j] = column + j < width ? widen(from[j]) : 0.0f;
    }
  }

  __device__ void store(int64_t row, int64_t column, const float (&in)[kLanes]) const {
    T* to = data + row * width + column;
    if (aligned) {
      Pack<T> pack;
#pragma unroll
      for (int j = 0; j < kLanes; ++j) pack.values[j] = narrow<T>(in[j]);
      *reinterpret_cast<Pack<T>*>(to) = pack;
    } else {
#pragma unroll
      for (int j = 0; j < kLanes; ++j)
        if (column + j < width) to[j] = narrow<T>(in[j]);
    }
  }
};

template <class T>
Matrix<T> matrix(const void* data, int64_t width) {
  const bool aligned = width % kLanes == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
  return {static_cast<T*>(const_cast<void*>(data)), width, aligned};
}

/// Factors of dropout for columns group * kLanes and on of one row.
__device__ inline void mask_of(const Drop& drop, int64_t row, int64_t group,
                               float (&factor)[kLanes]) {
  if (drop.row_keys == nullptr) {
#pragma unroll
    for (int j = 0; j < kLanes; ++j) factor[j] = 1;
    return;
  }
  const int64_t head = drop.heads > 0 ? row / drop.queries % drop.heads : 0;
  const int64_t counter = head * ((int64_t{1} << 20) / kLanes) + group;
  const auto words = Philox::at(drop.key, static_cast<uint64_t>(drop.row_keys[row]),
                                static_cast<uint64_t>(counter));
#pragma unroll
  for (int j = 0; j < kLanes; ++j) {
    const uint32_t lane = (words[j / 2] >> (16 * (j % 2))) & 0xFFFFu;
    factor[j] = lane >= drop.threshold ? drop.scale : 0.0f;
  }
}

/// Sum over a warp, the same bits in each of its lanes.
__device__ inline float warp_sum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  return value;
}

/// Sum over the kThreads threads of a block, the same bits in each of them.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T shared[kThreads];
  __syncthreads();  // an earlier call may still be reading
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

__device__ inline float block_max(float value) {
  __shared__ float shared[kThreads];
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  return shared[0];
}

/// Blocks of kThreads for n threads of work; kernels walk on from there with a grid stride.
inline unsigned blocks_for(int64_t n) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

}  // namespace stretto::kernels::cuda
