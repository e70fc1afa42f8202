// The gradient norm: sums of squares over the flat buffers of the parameter arena.
#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

template <class T>
__global__ void partial_squares(const T* values, int64_t n, double* partial) {
  const int64_t begin = int64_t{blockIdx.x} * kSumBlock;
  const int64_t end = begin + kSumBlock < n ? begin + kSumBlock : n;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double value = widen(values[i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void total_of(const double* partial, int64_t count, double* total) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum;
}

}  // namespace

void sum_of_squares(const void* values, int64_t n, Type type, double* partial, double* total,
                    cudaStream_t stream) {
  const int64_t blocks = (n + kSumBlock - 1) / kSumBlock;
  if (blocks > 0)
    with_type(type, [&](auto* null) {
      using T = std::remove_pointer_t<decltype(null)>;
      partial_squares<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
          static_cast<const T*>(values), n, partial);
    });
  total_of<<<1, kThreads, 0, stream>>>(partial, blocks, total);
}

}  // namespace stretto::kernels::cuda
