// Label-smoothed cross entropy on a block of logits: one block of threads a row, two passes. The
// second finds the row in the cache: 32,000 classes are 64 to 128 kB.
#include <limits>

#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

template <class T>
__global__ void loss_kernel(T* logits, const int64_t* targets, int64_t classes, LossOfRows out,
                            LossScalars scalars, bool gradient) {
  T* row = logits + int64_t{blockIdx.x} * classes;
  const int64_t target = targets[blockIdx.x];
  const bool valid = target >= 0 && target < classes;
  const float at_target = valid ? widen(row[target]) : std::numeric_limits<float>::quiet_NaN();

  // One pass: the sum of exponentials is rescaled whenever the maximum grows.
  float top = -std::numeric_limits<float>::infinity(), sum = 0, plain = 0;
  for (int64_t j = threadIdx.x; j < classes; j += kThreads) {
    const float x = widen(row[j]);
    plain += x;
    if (x > top) {
      sum = sum * expf(top - x) + 1;
      top = x;
    } else {
      sum += expf(x - top);
    }
  }
  const float highest = block_max(top);
  const float whole = block_sum(sum > 0 ? sum * expf(top - highest) : sum);
  const double total = block_sum(static_cast<double>(plain));
  const float log_sum = highest + logf(whole);

  if (threadIdx.x == 0) {
    const double own = static_cast<double>(log_sum) - at_target;
    const double all = total - static_cast<double>(classes) * log_sum;
    out.nll[blockIdx.x] = own;
    out.loss[blockIdx.x] = scalars.target * own - scalars.each * all;
    out.right[blockIdx.x] = at_target >= highest ? 1 : 0;
  }
  if (!gradient) return;
  __syncthreads();  // at_target was read by every thread before anyone overwrites it
  // The weights of all classes sum to one, so the softmax comes in with factor one.
  for (int64_t j = threadIdx.x; j < classes; j += kThreads) {
    const float p = valid ? expf(widen(row[j]) - log_sum) : at_target;
    row[j] = narrow<T>(p - scalars.each - (j == target ? scalars.target : 0.0f));
  }
}

}  // namespace

void loss_rows(const Rows& rows, void* logits, const int64_t* targets, const LossOfRows& out,
               const LossScalars& scalars, bool gradient) {
  if (rows.count == 0) return;
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    loss_kernel<<<static_cast<unsigned>(rows.count), kThreads, 0, rows.stream>>>(
        static_cast<T*>(logits), targets, rows.width, out, scalars, gradient);
  });
}

}  // namespace stretto::kernels::cuda
