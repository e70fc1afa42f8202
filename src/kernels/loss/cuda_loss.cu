// Label-smoothed cross entropy on a block of logits: one block of threads a row, two passes. The
// second finds the row in the cache: 32,000 classes are 64 to 128 kB.
#include <limits>

#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

/// Neighbouring threads read neighbouring groups of kColumns: single ones where rows do not come in
/// packs.
template <class T, int kColumns>
__global__ void loss_kernel(Matrix<T> logits, const int64_t* targets, LossOfRows out,
                            LossScalars scalars, bool gradient) {
  const int64_t row = blockIdx.x, classes = logits.width;
  T* numbers = logits.data + row * classes;
  const int64_t target = targets[row];
  const bool valid = target >= 0 && target < classes;
  const float at_target = valid ? widen(numbers[target]) : std::numeric_limits<float>::quiet_NaN();
  const auto load = [&](int64_t column, float* x) {
    if constexpr (kColumns == kLanes)
      logits.load(row, column, *reinterpret_cast<float(*)[kLanes]>(x));
    else
      x[0] = widen(numbers[column]);
  };
  constexpr int64_t kStep = int64_t{kThreads} * kColumns;
  const int64_t first = int64_t{threadIdx.x} * kColumns;

  // One pass: the sum of exponentials is rescaled whenever the maximum grows.
  float top = -std::numeric_limits<float>::infinity(), sum = 0, plain = 0;
  for (int64_t column = first; column < classes; column += kStep) {
    float x[kColumns], most = top;
    load(column, x);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) most = fmaxf(most, x[j]);
    if (most > top) {
      sum *= expf(top - most);
      top = most;
    }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      plain += x[j];
      sum += expf(x[j] - top);
    }
  }
  const float highest = block_max(top);
  const float whole = block_sum(sum > 0 ? sum * expf(top - highest) : sum);
  const double total = block_sum(static_cast<double>(plain));
  const float log_sum = highest + logf(whole);

  if (threadIdx.x == 0) {
    const double own = static_cast<double>(log_sum) - at_target;
    const double all = total - static_cast<double>(classes) * log_sum;
    out.nll[row] = own;
    out.loss[row] = scalars.target * own - scalars.each * all;
    out.right[row] = at_target >= highest ? 1 : 0;
  }
  if (!gradient) return;
  __syncthreads();  // at_target was read by every thread before anyone overwrites it
  // The weights of all classes sum to one, so the softmax comes in with factor one.
  for (int64_t column = first; column < classes; column += kStep) {
    float x[kColumns];
    load(column, x);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const float p = valid ? expf(x[j] - log_sum) : at_target;
      x[j] = p - scalars.each - (column + j == target ? scalars.target : 0.0f);
    }
    if constexpr (kColumns == kLanes)
      logits.store(row, column, x);
    else
      numbers[column] = narrow<T>(x[0]);
  }
}

}  // namespace

void loss_rows(const Rows& rows, void* logits, const int64_t* targets, const LossOfRows& out,
               const LossScalars& scalars, bool gradient) {
  if (rows.count == 0) return;
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const Matrix<T> all = matrix<T>(logits, rows.width);
    const auto kernel = all.aligned ? loss_kernel<T, kLanes> : loss_kernel<T, 1>;
    kernel<<<static_cast<unsigned>(rows.count), kThreads, 0, rows.stream>>>(all, targets, out,
                                                                            scalars, gradient);
  });
}

}  // namespace stretto::kernels::cuda
