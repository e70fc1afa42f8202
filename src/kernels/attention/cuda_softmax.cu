// Softmax and dropout of attention weights in rectangles, in one pass over memory each way. A team
// of threads has one row: a part of a warp, a warp, or a block. Each thread keeps its columns in
// registers, in groups as far as one Philox block reaches.
#include <limits>

#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

/// Sum over the threads of a team, the same bits in each of them. All threads of a block call it.
template <int kTeam>
__device__ float team_sum(float value) {
  if constexpr (kTeam == kThreads) {
    return block_sum(value);
  } else {
    for (int offset = kTeam / 2; offset > 0; offset /= 2)
      value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    return value;
  }
}

template <int kTeam>
__device__ float team_max(float value) {
  if constexpr (kTeam == kThreads) {
    return block_max(value);
  } else {
    for (int offset = kTeam / 2; offset > 0; offset /= 2)
      value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    return value;
  }
}

/// A row of weights, as one of the threads that share it sees it.
template <int kTeam>
struct RowOfThread {
  int64_t row, head;
  int64_t width;  ///< columns that are written; 0: no row is left for this team
  int64_t seen;   ///< columns that the query sees: all others are 0
  Drop drop;      ///< of this row alone

  __device__ RowOfThread(const PaddedRows& rows, const Drop& of_all)
      : row(int64_t{blockIdx.x} * (kThreads / kTeam) + threadIdx.x / kTeam), drop(of_all) {
    const int64_t place = row % rows.queries, sequence = row / rows.queries % rows.batch;
    head = row / rows.queries / rows.batch;
    width = head < rows.heads ? rows.keys : 0;
    int64_t keys = rows.key_lengths[sequence];
    if (rows.causal && keys > place + 1) keys = place + 1;
    if (place >= rows.query_lengths[sequence]) keys = 0;
    seen = keys < width ? keys : width;
    // A padding query would lie outside the keys, but it sees nothing and asks for no mask.
    if (drop.row_keys != nullptr) drop.row_keys += rows.query_starts[sequence] + place;
    drop.heads = 0;
  }

  /// First column of the thread's group number `step`.
  __device__ int64_t column(int step) const {
    return (int64_t{step} * kTeam + threadIdx.x % kTeam) * kLanes;
  }
  __device__ void mask(int64_t column, float (&factor)[kLanes]) const {
    mask_of(drop, 0, (head * (int64_t{1} << 20) + column) / kLanes, factor);
  }
};

template <class T, int kTeam, int kGroups>
__global__ void softmax_kernel(PaddedRows rows, Matrix<T> scores, Matrix<T> weights,
                               Matrix<T> dropped, Drop drop) {
  const RowOfThread<kTeam> own(rows, drop);
  float value[kGroups][kLanes];
  float top = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int step = 0; step < kGroups; ++step) {
    const int64_t column = own.column(step);
    if (column >= own.seen) continue;
    scores.load(own.row, column, value[step]);
#pragma unroll
    for (int j = 0; j < kLanes; ++j)
      if (column + j < own.seen) top = fmaxf(top, value[step][j]);
  }
  top = team_max<kTeam>(top);
  float sum = 0;
#pragma unroll
  for (int step = 0; step < kGroups; ++step) {
    const int64_t column = own.column(step);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) {
      value[step][j] = column + j < own.seen ? expf(value[step][j] - top) : 0.0f;
      sum += value[step][j];
    }
  }
  sum = team_sum<kTeam>(sum);
  const float scale = own.seen > 0 ? 1 / sum : 0.0f;
#pragma unroll
  for (int step = 0; step < kGroups; ++step) {
    const int64_t column = own.column(step);
    if (column >= own.width) continue;
#pragma unroll
    for (int j = 0; j < kLanes; ++j) value[step][j] = widen(narrow<T>(value[step][j] * scale));
    weights.store(own.row, column, value[step]);
    if (dropped.data == nullptr) continue;
    if (column < own.seen) {
      float factor[kLanes];
      own.mask(column, factor);
#pragma unroll
      for (int j = 0; j < kLanes; ++j) value[step][j] *= factor[j];
    }
    dropped.store(own.row, column, value[step]);
  }
}

template <class T, int kTeam, int kGroups>
__global__ void softmax_backward_kernel(PaddedRows rows, Matrix<T> weights, Matrix<T> slopes,
                                        Matrix<T> out, Drop drop) {
  const RowOfThread<kTeam> own(rows, drop);
  float weight[kGroups][kLanes], slope[kGroups][kLanes];
  float sum = 0;
#pragma unroll
  for (int step = 0; step < kGroups; ++step) {
    const int64_t column = own.column(step);
    if (column >= own.seen) continue;
    float factor[kLanes];
    own.mask(column, factor);
    weights.load(own.row, column, weight[step]);
    slopes.load(own.row, column, slope[step]);
#pragma unroll
    for (int j = 0; j < kLanes; ++j)
      if (column + j < own.seen) {
        slope[step][j] *= factor[j];
        sum += slope[step][j] * weight[step][j];
      }
  }
  sum = team_sum<kTeam>(sum);
#pragma unroll
  for (int step = 0; step < kGroups; ++step) {
    const int64_t column = own.column(step);
    if (column >= own.width) continue;
    float value[kLanes];
#pragma unroll
    for (int j = 0; j < kLanes; ++j)
      value[j] = column + j < own.seen ? weight[step][j] * (slope[step][j] - sum) : 0.0f;
    out.store(own.row, column, value);
  }
}

/// Calls `launch(blocks, team, groups)`, the latter two as types, so that a team's groups cover a
/// row of `rows`.
template <class Launch>
void with_team(const PaddedRows& rows, const Launch& launch) {
  const auto as = [&](auto team, auto groups) {
    constexpr int64_t kRows = kThreads / decltype(team)::value;  // of a block
    const int64_t count = rows.heads * rows.batch * rows.queries;
    launch(static_cast<unsigned>((count + kRows - 1) / kRows), team, groups);
  };
  using std::integral_constant;
  constexpr integral_constant<int, 1> kOne{};
  constexpr integral_constant<int, 4> kFour{};
  if (rows.keys <= 8 * kLanes)
    as(integral_constant<int, 8>(), kOne);
  else if (rows.keys <= 16 * kLanes)
    as(integral_constant<int, 16>(), kOne);
  else if (rows.keys <= kWarp * kLanes)
    as(integral_constant<int, kWarp>(), kOne);
  else if (rows.keys <= 2 * kWarp * kLanes)
    as(integral_constant<int, kWarp>(), integral_constant<int, 2>());
  else if (rows.keys <= 4 * kWarp * kLanes)
    as(integral_constant<int, kWarp>(), kFour);
  else
    as(integral_constant<int, kThreads>(), kFour);
}
static_assert(kPaddedKeys == 4 * kThreads * kLanes);

}  // namespace

void padded_softmax(const PaddedRows& rows, const void* scores, void* weights, void* dropped,
                    const Drop& drop) {
  if (rows.heads * rows.batch * rows.queries * rows.keys == 0) return;
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    with_team(rows, [&](unsigned blocks, auto team, auto groups) {
      softmax_kernel<T, decltype(team)::value, decltype(groups)::value>
          <<<blocks, kThreads, 0, rows.stream>>>(rows, matrix<T>(scores, rows.keys),
                                                 matrix<T>(weights, rows.keys),
                                                 matrix<T>(dropped, rows.keys), drop);
    });
  });
}

void padded_softmax_backward(const PaddedRows& rows, const void* weights, const void* slopes,
                             void* out, const Drop& drop) {
  if (rows.heads * rows.batch * rows.queries * rows.keys == 0) return;
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    with_team(rows, [&](unsigned blocks, auto team, auto groups) {
      softmax_backward_kernel<T, decltype(team)::value, decltype(groups)::value>
          <<<blocks, kThreads, 0, rows.stream>>>(rows, matrix<T>(weights, rows.keys),
                                                 matrix<T>(slopes, rows.keys),
                                                 matrix<T>(out, rows.keys), drop);
    });
  });
}

}  // namespace stretto::kernels::cuda
