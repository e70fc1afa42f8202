// Dropout and what is fused with it. One thread owns eight columns of one row, the reach of one
// Philox block, so that a mask costs one evaluation and is never stored.
#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

template <class Operation>
__global__ void for_groups(Operation operation, Drop drop, int64_t rows, int64_t groups) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * groups; i += step) {
    const int64_t row = i / groups, group = i % groups;
    float factor[kLanes];
    mask_of(drop, row, group, factor);
    operation(row, group * kLanes, factor);
  }
}

template <class Operation>
void launch(const Operation& operation, const Drop& drop, const Rows& rows) {
  const int64_t groups = (rows.width + kLanes - 1) / kLanes;
  if (rows.count * groups == 0) return;
  for_groups<<<blocks_for(rows.count * groups), kThreads, 0, rows.stream>>>(operation, drop,
                                                                            rows.count, groups);
}

constexpr Drop kKeepAll{0, nullptr, 0, 1, 0, 0};

template <class T, class Out>
struct ApplyMask {
  Matrix<T> x;
  Matrix<Out> residual, out;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float value[kLanes], rest[kLanes] = {};
    x.load(row, column, value);
    if (residual.data != nullptr) residual.load(row, column, rest);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) value[j] = value[j] * factor[j] + rest[j];
    out.store(row, column, value);
  }
};

__device__ float gelu_of(float x) {
  return 0.5f * x * (1 + erff(x * 0.70710678f));
}

__device__ float gelu_slope(float x) {
  const float density = 0.39894228f * expf(-0.5f * x * x);
  return 0.5f * (1 + erff(x * 0.70710678f)) + x * density;
}

// x times the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3).
__device__ float gelu_tanh_share(float x) {
  return 1 / (1 + expf(-1.59576912f * x * (1 + 0.044715f * x * x)));
}

__device__ float gelu_tanh_slope(float x) {
  const float share = gelu_tanh_share(x);
  return share + x * (share * (1 - share) * 1.59576912f * (1 + 0.134145f * x * x));
}

template <Bend kBend>
__device__ float bent(float x) {
  if constexpr (kBend == Bend::kRelu) return fmaxf(x, 0);
  if constexpr (kBend == Bend::kGelu) return gelu_of(x);
  return x * gelu_tanh_share(x);
}

template <Bend kBend>
__device__ float slope_of(float x) {
  return kBend == Bend::kGelu ? gelu_slope(x) : gelu_tanh_slope(x);
}

template <class T, class B, Bend kBend>
struct BiasActivation {
  Matrix<T> x;
  Matrix<B> bias;
  Matrix<T> out;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float value[kLanes], shift[kLanes];
    x.load(row, column, value);
    bias.load(0, column, shift);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) {
      value[j] = factor[j] * bent<kBend>(value[j] + shift[j]);
    }
    out.store(row, column, value);
  }
};

template <class T>
struct ReluBackward {
  Matrix<T> dy, out, dx;
  float scale;
  __device__ void operator()(int64_t row, int64_t column, const float (&)[kLanes]) const {
    float slope[kLanes], kept[kLanes];
    dy.load(row, column, slope);
    out.load(row, column, kept);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) slope[j] = kept[j] > 0 ? slope[j] * scale : 0.0f;
    dx.store(row, column, slope);
  }
};

template <class T, class B, Bend kBend>
struct GeluBackward {
  Matrix<T> dy, x;
  Matrix<B> bias;
  Matrix<T> dx;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float slope[kLanes], value[kLanes], shift[kLanes];
    dy.load(row, column, slope);
    x.load(row, column, value);
    bias.load(0, column, shift);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) slope[j] *= factor[j] * slope_of<kBend>(value[j] + shift[j]);
    dx.store(row, column, slope);
  }
};

__device__ float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}

// Gate and up are the even and odd rows of a [2 rows, width] view: halves of one wide row.
template <class T>
struct Swiglu {
  Matrix<T> halves, out;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float gate[kLanes], up[kLanes];
    halves.load(2 * row, column, gate);
    halves.load(2 * row + 1, column, up);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) up[j] *= factor[j] * gate[j] * sigmoid(gate[j]);
    out.store(row, column, up);
  }
};

template <class T>
struct SwigluBackward {
  Matrix<T> dy, halves, slopes;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float slope[kLanes], gate[kLanes], up[kLanes];
    dy.load(row, column, slope);
    halves.load(2 * row, column, gate);
    halves.load(2 * row + 1, column, up);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) {
      const float s = sigmoid(gate[j]), d = slope[j] * factor[j];
      const float gate_slope = d * up[j] * s * (1 + gate[j] * (1 - s));
      up[j] = d * gate[j] * s;
      gate[j] = gate_slope;
    }
    slopes.store(2 * row, column, gate);
    slopes.store(2 * row + 1, column, up);
  }
};

template <class T>
struct Geglu {
  Matrix<T> halves, out;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float gate[kLanes], up[kLanes];
    halves.load(2 * row, column, gate);
    halves.load(2 * row + 1, column, up);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) up[j] *= factor[j] * gelu_of(gate[j]);
    out.store(row, column, up);
  }
};

template <class T>
struct GegluBackward {
  Matrix<T> dy, halves, slopes;
  __device__ void operator()(int64_t row, int64_t column, const float (&factor)[kLanes]) const {
    float slope[kLanes], gate[kLanes], up[kLanes];
    dy.load(row, column, slope);
    halves.load(2 * row, column, gate);
    halves.load(2 * row + 1, column, up);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) {
      const float d = slope[j] * factor[j], gate_slope = d * up[j] * gelu_slope(gate[j]);
      up[j] = d * gelu_of(gate[j]);
      gate[j] = gate_slope;
    }
    slopes.store(2 * row, column, gate);
    slopes.store(2 * row + 1, column, up);
  }
};

/// Calls `use` with null pointers of the types of the rows and of what stands beside them: the same
/// or fp32.
template <class Use>
void with_types(Type rows, Type beside, const Use& use) {
  with_type(rows, [&](auto* null) {
    if (beside == rows)
      use(null, null);
    else
      use(null, static_cast<float*>(nullptr));
  });
}

constexpr int kSumRows = kThreads / kWarp;  ///< rows that a block reads at once

/// Rows [part * length, (part + 1) * length), and columns of one warp: partial[part, column].
template <class T>
__global__ void column_sums_of_parts(Matrix<T> x, int64_t rows, int64_t groups, int64_t length,
                                     float* partial) {
  __shared__ float shared[kSumRows][kWarp * kLanes];
  const int lane = threadIdx.x % kWarp, line = threadIdx.x / kWarp;
  const int64_t group = int64_t{blockIdx.x} * kWarp + lane, part = blockIdx.y;
  const int64_t end = min(rows, (part + 1) * length);
  float sums[kLanes] = {};
  if (group < groups)
    for (int64_t row = part * length + line; row < end; row += kSumRows) {
      float value[kLanes];
      x.load(row, group * kLanes, value);
#pragma unroll
      for (int j = 0; j < kLanes; ++j) sums[j] += value[j];
    }
#pragma unroll
  for (int j = 0; j < kLanes; ++j) shared[line][lane * kLanes + j] = sums[j];
  __syncthreads();
  const int64_t column = int64_t{blockIdx.x} * kWarp * kLanes + threadIdx.x;
  if (column >= x.width) return;
  float sum = 0;
  for (int i = 0; i < kSumRows; ++i) sum += shared[i][threadIdx.x];
  partial[part * x.width + column] = sum;
}

__global__ void add_parts(const float* partial, int64_t parts, int64_t width, float* out) {
  __shared__ float shared[kSumRows][kWarp];
  const int lane = threadIdx.x % kWarp, line = threadIdx.x / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < width)
    for (int64_t part = line; part < parts; part += kSumRows) sum += partial[part * width + column];
  shared[line][lane] = sum;
  __syncthreads();
  if (line > 0 || column >= width) return;
  for (int i = 1; i < kSumRows; ++i) sum += shared[i][lane];
  out[column] = sum;
}

}  // namespace

void dropout(const Rows& rows, const void* x, const void* residual, void* out, Type out_type,
             const Drop& drop) {
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    with_type(out_type, [&](auto* other) {
      using Out = std::remove_pointer_t<decltype(other)>;
      const auto to = [&](const void* data) { return matrix<Out>(data, rows.width); };
      launch(ApplyMask<T, Out>{matrix<T>(x, rows.width), to(residual), to(out)}, drop, rows);
    });
  });
}

int64_t column_sum_parts(int64_t count) {
  constexpr int64_t kMost = 128, kLeast = 64;  // parts, and rows of one
  return std::max<int64_t>(1, std::min(kMost, count / kLeast));
}

void column_sums(const Rows& rows, const void* x, float* partial, float* out) {
  if (rows.width == 0) return;
  const int64_t parts = column_sum_parts(rows.count), groups = (rows.width + kLanes - 1) / kLanes;
  const int64_t length = (rows.count + parts - 1) / parts;
  const auto across = static_cast<unsigned>((groups + kWarp - 1) / kWarp);
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    column_sums_of_parts<<<dim3(across, static_cast<unsigned>(parts)), kThreads, 0, rows.stream>>>(
        matrix<T>(x, rows.width), rows.count, groups, length, partial);
  });
  add_parts<<<static_cast<unsigned>((rows.width + kWarp - 1) / kWarp), kThreads, 0, rows.stream>>>(
      partial, parts, rows.width, out);
}

void bias_activation(const Rows& rows, const void* x, const Bias& bias, void* out, Bend activation,
                     const Drop& drop) {
  with_types(rows.type, bias.type, [&](auto* null, auto* other) {
    using T = std::remove_pointer_t<decltype(null)>;
    using B = std::remove_pointer_t<decltype(other)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    const Matrix<B> shift = matrix<B>(bias.data, rows.width);
    if (activation == Bend::kGelu)
      launch(BiasActivation<T, B, Bend::kGelu>{of(x), shift, of(out)}, drop, rows);
    else if (activation == Bend::kGeluTanh)
      launch(BiasActivation<T, B, Bend::kGeluTanh>{of(x), shift, of(out)}, drop, rows);
    else
      launch(BiasActivation<T, B, Bend::kRelu>{of(x), shift, of(out)}, drop, rows);
  });
}

void relu_backward(const Rows& rows, const void* dy, const void* out, void* dx, float scale) {
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    launch(ReluBackward<T>{of(dy), of(out), of(dx), scale}, kKeepAll, rows);
  });
}

void gelu_backward(const Rows& rows, const void* dy, const void* x, const Bias& bias, void* dx,
                   Bend activation, const Drop& drop) {
  with_types(rows.type, bias.type, [&](auto* null, auto* other) {
    using T = std::remove_pointer_t<decltype(null)>;
    using B = std::remove_pointer_t<decltype(other)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    const Matrix<B> shift = matrix<B>(bias.data, rows.width);
    if (activation == Bend::kGelu)
      launch(GeluBackward<T, B, Bend::kGelu>{of(dy), of(x), shift, of(dx)}, drop, rows);
    else
      launch(GeluBackward<T, B, Bend::kGeluTanh>{of(dy), of(x), shift, of(dx)}, drop, rows);
  });
}

void swiglu(const Rows& rows, const void* gate_up, void* out, const Drop& drop) {
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    launch(Swiglu<T>{of(gate_up), of(out)}, drop, rows);
  });
}

void swiglu_backward(const Rows& rows, const void* dy, const void* gate_up, void* dgate_up,
                     const Drop& drop) {
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    launch(SwigluBackward<T>{of(dy), of(gate_up), of(dgate_up)}, drop, rows);
  });
}

void geglu(const Rows& rows, const void* gate_up, void* out, const Drop& drop) {
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    launch(Geglu<T>{of(gate_up), of(out)}, drop, rows);
  });
}

void geglu_backward(const Rows& rows, const void* dy, const void* gate_up, void* dgate_up,
                    const Drop& drop) {
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    launch(GegluBackward<T>{of(dy), of(gate_up), of(dgate_up)}, drop, rows);
  });
}

}  // namespace stretto::kernels::cuda
